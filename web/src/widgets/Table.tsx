// A table that an analysis answered. Only the rows on the screen exist, so that a hundred thousand of them stay fluid.
import { useMemo } from "preact/hooks";
import { TABLE_VIEW, type TableView } from "../base/state";
import type { AnalysisTable, Column } from "../data/table";
import { cellText, columnOf, highest, isShare, rowOf } from "./tableRows";
import { ROW_HEIGHT, useRows } from "./virtual";

const WIDEST_BAR_PX = 54;

type Props = {
  readonly label: string;
  readonly table: AnalysisTable;
  readonly columns: readonly Column[];
  /** Rows to show, in order. */
  readonly order: readonly number[];
  readonly view: TableView;
  /** Key of the chosen row. */
  readonly chosen: string;
  readonly onView: (view: TableView) => void;
  readonly onChoose: (row: number) => void;
  readonly onOpen: (row: number) => void;
};

export function Table({ label, table, columns, order, view, chosen, onView, onChoose, onOpen }: Props) {
  const row = useMemo(() => rowOf(table, chosen), [table, chosen]);
  const at = useMemo(() => (row < 0 ? -1 : order.indexOf(row)), [order, row]);
  const tops = useMemo(() => new Map(columns.map((column) => [column.name, highest(column)])), [columns]);
  const { scroller, rows } = useRows(order.length, at);
  const { first, last, page } = rows;
  const goTo = (place: number): void => {
    const next = order[Math.min(order.length - 1, Math.max(0, place))];
    if (next !== undefined) onChoose(next);
  };
  const walk = (by: number): void => goTo(at < 0 ? 0 : at + by);
  const actions: Readonly<Record<string, () => void>> = {
    ArrowUp: () => walk(-1),
    ArrowDown: () => walk(1),
    PageUp: () => walk(-page),
    PageDown: () => walk(page),
    Home: () => goTo(0),
    End: () => goTo(order.length - 1),
    Enter: () => {
      if (row >= 0) onOpen(row);
    },
  };
  const width = columns.reduce((sum, column) => sum + widthOf(column), 0);
  return (
    <div class="grid" ref={scroller}>
      <table
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a grid is a table that one walks through by keys
        role="grid"
        aria-label={label}
        aria-rowcount={order.length + 1}
        aria-activedescendant={at >= first && at < last ? `row-${row}` : undefined}
        tabIndex={0}
        style={{ minWidth: `${width}px` }}
        onKeyDown={(event) => {
          const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.code];
          // Enter on a heading sorts.
          if (!action || (event.code === "Enter" && event.target !== event.currentTarget)) return;
          event.preventDefault();
          action();
        }}
      >
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => (
              <Heading key={column.name} column={column} view={view} onView={onView} />
            ))}
          </tr>
        </thead>
        <tbody>
          <tr class="grid-space" style={{ height: `${first * ROW_HEIGHT}px` }} />
          {order.slice(first, last).map((one, i) => (
            <tr
              key={one}
              class={one === row ? "grid-row chosen" : "grid-row"}
              id={`row-${one}`}
              aria-rowindex={first + i + 2}
              aria-selected={one === row}
              onPointerDown={() => onChoose(one)}
              onDblClick={() => onOpen(one)}
            >
              {columns.map((column) => (
                <Cell key={column.name} table={table} column={column} row={one} most={tops.get(column.name) ?? 0} />
              ))}
            </tr>
          ))}
          <tr class="grid-space" style={{ height: `${Math.max(0, order.length - last) * ROW_HEIGHT}px` }} />
        </tbody>
      </table>
    </div>
  );
}

/** Names get what the others leave. */
const widthOf = (column: Column): number => {
  if (column.kind === "flag") return Math.max(64, 8 * column.title.length);
  if (column.kind === "number") return isShare(column) ? 128 : Math.max(74, 7.2 * column.title.length + 24);
  return isName(column) ? 260 : column.name === "shapes" ? 190 : Math.max(128, 8 * column.title.length + 24);
};
const isName = (column: Column): boolean => ["name", "kernel", "type", "line", "module"].includes(column.name);

function Heading({ column, view, onView }: { column: Column; view: TableView; onView: (view: TableView) => void }) {
  const mine = view.sort === column.name;
  // Numbers are wanted from the highest, texts from A; a third press goes back to the order of the server.
  const downFirst = column.kind !== "text";
  const next = (): TableView => {
    if (!mine) return { ...view, sort: column.name, down: downFirst };
    return view.down === downFirst
      ? { ...view, down: !downFirst }
      : { ...view, sort: TABLE_VIEW.sort, down: TABLE_VIEW.down };
  };
  return (
    <th
      scope="col"
      class={column.kind === "number" ? "number" : ""}
      style={{ width: isName(column) ? "auto" : `${widthOf(column)}px` }}
      title={column.meaning}
      aria-sort={mine ? (view.down ? "descending" : "ascending") : "none"}
    >
      <button type="button" class="plain" onClick={() => onView(next())}>
        {column.title}
        <span aria-hidden="true">{mine ? (view.down ? " ↓" : " ↑") : ""}</span>
      </button>
    </th>
  );
}

function Cell({ table, column, row, most }: { table: AnalysisTable; column: Column; row: number; most: number }) {
  const text = cellText(column, row);
  if (column.kind !== "number") {
    const whole = column.name === "kernel" ? columnOf(table, "name") : undefined;
    return <td title={whole ? cellText(whole, row) : text}>{text}</td>;
  }
  const value = column.values[row] ?? Number.NaN;
  const bar = isShare(column) && value > 0 && most > 0;
  return (
    <td class="number" title={column.unit === "ns" && text ? `${Math.round(value)} ns` : undefined}>
      {bar && <span class="share-bar" style={{ width: `${(WIDEST_BAR_PX * value) / most}px` }} />}
      {text}
    </td>
  );
}
