// A table that an analysis answered.
import { useMemo } from "preact/hooks";
import { type AnalysisTable, type Column, columnOf } from "../../data/analysisTable";
import { TABLE_VIEW, type TableView } from "../../state/address";
import { Grid, SortHeading } from "./Grid";
import { cellText, highest, isShare, rowOf } from "./tableRows";

const WIDEST_BAR_PX = 54;
/** Characters at the end of a name that are always seen. */
const TAIL = 14;

type Props = {
  readonly label: string;
  readonly table: AnalysisTable;
  readonly columns: readonly Column[];
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
  return (
    <Grid
      label={label}
      rows={order}
      at={at}
      idOf={(one) => `row-${one}`}
      minWidth={columns.reduce((sum, column) => sum + widthOf(column), 0)}
      headings={columns.map((column) => <Heading key={column.name} column={column} view={view} onView={onView} />)}
      cells={(one) =>
        columns.map((column) => (
          <Cell key={column.name} table={table} column={column} row={one} most={tops.get(column.name) ?? 0} />
        ))
      }
      onChoose={onChoose}
      onOpen={onOpen}
    />
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
    <SortHeading
      title={column.title}
      meaning={column.meaning}
      class={column.kind === "number" ? "number" : ""}
      width={isName(column) ? "auto" : `${widthOf(column)}px`}
      down={mine ? view.down : undefined}
      onSort={() => onView(next())}
    />
  );
}

/** Names differ least in their middle: that gives way where there is no room for all. */
function CutName({ text }: { text: string }) {
  if (text.length <= TAIL * 2) return <>{text}</>;
  return (
    <span class="cut-name">
      <span class="ellipsis">{text.slice(0, -TAIL)}</span>
      <span>{text.slice(-TAIL)}</span>
    </span>
  );
}

function Cell({ table, column, row, most }: { table: AnalysisTable; column: Column; row: number; most: number }) {
  const text = cellText(column, row);
  if (column.kind !== "number") {
    const whole = column.name === "kernel" ? columnOf(table, "name") : undefined;
    return <td title={whole ? cellText(whole, row) : text}>{isName(column) ? <CutName text={text} /> : text}</td>;
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
