// A table that one walks through by keys. Only the rows on the screen exist, so that a hundred thousand of them stay fluid.
import type { ComponentChildren } from "preact";
import { Button } from "../controls";
import { ROW_HEIGHT, useRows } from "./virtualRows";

type Props<Row> = {
  readonly label: string;
  /** In the order in which they are shown. */
  readonly rows: readonly Row[];
  /** Place of the chosen row, -1 for none. */
  readonly at: number;
  /** Id of a row's element. */
  readonly idOf: (row: Row) => string;
  readonly headings: ComponentChildren;
  readonly cells: (row: Row) => ComponentChildren;
  /** Classes of a row beside those of all. */
  readonly classOf?: (row: Row) => string;
  readonly kind?: string;
  readonly minWidth?: number;
  readonly onChoose: (row: Row) => void;
  readonly onOpen?: (row: Row) => void;
  /** More keys, by their codes. */
  readonly keys?: Readonly<Record<string, () => void>>;
};

export function Grid<Row>({ label, rows, at, idOf, headings, cells, kind = "", minWidth, ...props }: Props<Row>) {
  const { classOf, onChoose, onOpen, keys } = props;
  const { scroller, rows: seen } = useRows(rows.length, at);
  const { first, last, page } = seen;
  const chosen = rows[at];
  const goTo = (place: number): void => {
    const next = rows[Math.min(rows.length - 1, Math.max(0, place))];
    if (next !== undefined) onChoose(next);
  };
  const walk = (by: number) => (): void => goTo(at < 0 ? 0 : at + by);
  const actions: Readonly<Record<string, () => void>> = {
    ArrowUp: walk(-1),
    ArrowDown: walk(1),
    PageUp: walk(-page),
    PageDown: walk(page),
    Home: () => goTo(0),
    End: () => goTo(rows.length - 1),
    ...(onOpen && {
      Enter: () => {
        if (chosen !== undefined) onOpen(chosen);
      },
    }),
    ...keys,
  };
  return (
    <div class={`grid fill scrolls anchor ${kind}`} ref={scroller}>
      <table
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a grid is a table that one walks through by keys
        role="grid"
        aria-label={label}
        aria-rowcount={rows.length + 1}
        aria-activedescendant={chosen !== undefined && at >= first && at < last ? idOf(chosen) : undefined}
        tabIndex={0}
        style={minWidth === undefined ? {} : { minWidth: `${minWidth}px` }}
        onKeyDown={(event) => {
          const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.code];
          // Enter on a heading sorts.
          if (!action || (event.code === "Enter" && event.target !== event.currentTarget)) return;
          event.preventDefault();
          event.stopPropagation();
          action();
        }}
      >
        <thead>
          <tr aria-rowindex={1}>{headings}</tr>
        </thead>
        <tbody>
          <tr style={{ height: `${first * ROW_HEIGHT}px` }} />
          {rows.slice(first, last).map((row, i) => (
            <tr
              key={idOf(row)}
              class={`grid-row${row === chosen ? " chosen" : ""}${classOf ? ` ${classOf(row)}` : ""}`}
              id={idOf(row)}
              aria-rowindex={first + i + 2}
              aria-selected={row === chosen}
              onPointerDown={() => onChoose(row)}
              onDblClick={() => onOpen?.(row)}
            >
              {cells(row)}
            </tr>
          ))}
          <tr style={{ height: `${Math.max(0, rows.length - last) * ROW_HEIGHT}px` }} />
        </tbody>
      </table>
    </div>
  );
}

type HeadingProps = {
  readonly title: string;
  /** Whether the rows are in the order of the column now: from the highest down, or (false) up. */
  readonly down: boolean | undefined;
  /** Undefined: nothing sorts by it. */
  readonly onSort: (() => void) | undefined;
  readonly class?: string;
  readonly meaning?: string;
  readonly width?: string | undefined;
};

export function SortHeading({ title, down, onSort, class: classes = "", meaning, width }: HeadingProps) {
  return (
    <th
      scope="col"
      class={classes}
      style={width === undefined ? {} : { width }}
      title={meaning}
      aria-sort={onSort && (down === undefined ? "none" : down ? "descending" : "ascending")}
    >
      {onSort ? (
        <Button class="plain" onClick={onSort}>
          {title}
          <span aria-hidden="true">{down === undefined ? "" : down ? " ↓" : " ↑"}</span>
        </Button>
      ) : (
        title
      )}
    </th>
  );
}
