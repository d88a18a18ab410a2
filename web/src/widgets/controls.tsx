// What the user presses and chooses from, as all pages have it.
import type { ButtonHTMLAttributes } from "preact";

/** A button that submits nothing. */
export const Button = (props: ButtonHTMLAttributes) => <button type="button" {...props} />;

/** A sentence of the server, with what is in backticks as code. */
export const WithCode = ({ text }: { text: string }) => (
  <>{text.split("`").map((part, i) => (i % 2 ? <code key={i}>{part}</code> : part))}</>
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
  readonly titleOf: (choice: T) => string;
  readonly disabled?: (choice: T) => boolean;
  /** The words before it, and what explains both. */
  readonly words: string;
  readonly about?: string;
  readonly title?: string;
};

/** A list to choose one of some texts from. */
export function Select<T extends string>({
  choices,
  onChoose,
  titleOf,
  disabled,
  words,
  about,
  ...list
}: SelectProps<T>) {
  const choose = (value: string): void => {
    const chosen = choices.find((choice) => choice === value);
    if (chosen !== undefined) onChoose(chosen);
  };
  return (
    <label title={about}>
      <span class="weak">{words}</span>{" "}
      <select {...list} onChange={(event) => choose(event.currentTarget.value)}>
        {choices.map((choice) => (
          <option key={choice} value={choice} disabled={disabled?.(choice)}>
            {titleOf(choice)}
          </option>
        ))}
      </select>
    </label>
  );
}

type ChoicesProps<T extends string> = Pick<SelectProps<T>, "choices" | "value" | "onChoose"> & {
  /** The words before them. */
  readonly words?: string;
  /** Undefined: a choice is its own title. */
  readonly titleOf?: (choice: T) => string;
  /** What explains a choice. */
  readonly about?: (choice: T) => string;
};

/** Buttons side by side, of which one is pressed. */
export const Choices = <T extends string>({ choices, value, onChoose, titleOf, words, about }: ChoicesProps<T>) => (
  <fieldset class="choices flex">
    {words && <legend class="weak finer">{words}</legend>}
    {choices.map((one) => (
      <Button key={one} aria-pressed={one === value} title={about?.(one)} onClick={() => onChoose(one)}>
        {titleOf?.(one) ?? one}
      </Button>
    ))}
  </fieldset>
);

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
    class="table-search fine"
    aria-label={label}
    placeholder={placeholder}
    spellcheck={false}
    value={value}
    onInput={(event) => onInput(event.currentTarget.value)}
  />
);
