// What the user presses and chooses from, as all pages have it.
import type { ButtonHTMLAttributes, ComponentChildren } from "preact";

/** A button that submits nothing. */
export const Button = (props: ButtonHTMLAttributes) => <button type="button" {...props} />;

/** A button that stays pressed while its choice holds. */
export const Chip = ({ pressed, ...props }: { pressed: boolean } & ButtonHTMLAttributes) => (
  <Button class="chip" aria-pressed={pressed} {...props} />
);

type CloseProps = { readonly onClick: () => void; readonly label?: string; readonly title?: string };

/** The cross that closes a card or clears what is chosen. */
export const Close = ({ onClick, label = "Clear the selection", title }: CloseProps) => (
  <Button class="quiet" onClick={onClick} aria-label={label} title={title}>
    ✕
  </Button>
);

type SelectProps<T extends string> = {
  readonly choices: readonly T[];
  readonly value: string;
  readonly onChoose: (value: T) => void;
  readonly title?: string;
  readonly titleOf: (choice: T) => ComponentChildren;
  readonly disabled?: (choice: T) => boolean;
};

/** A list to choose one of some texts from. */
export function Select<T extends string>({ choices, value, onChoose, title, titleOf, disabled }: SelectProps<T>) {
  return (
    <select
      value={value}
      title={title}
      onChange={(event) => {
        const chosen = choices.find((choice) => choice === event.currentTarget.value);
        if (chosen !== undefined) onChoose(chosen);
      }}
    >
      {choices.map((choice) => (
        <option key={choice} value={choice} disabled={disabled?.(choice)}>
          {titleOf(choice)}
        </option>
      ))}
    </select>
  );
}

type SearchProps = {
  readonly label: string;
  readonly placeholder?: string;
  readonly value: string;
  readonly onInput: (text: string) => void;
};

/** The field that searches a table. */
export const TableSearch = ({ label, placeholder = label, value, onInput }: SearchProps) => (
  <input
    type="search"
    class="table-search"
    aria-label={label}
    placeholder={placeholder}
    spellcheck={false}
    value={value}
    onInput={(event) => onInput(event.currentTarget.value)}
  />
);
