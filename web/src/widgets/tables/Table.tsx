// A table that an analysis answered.
import type { Signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { type AnalysisTable, type Column, columnOf } from "../../data/tables/analysisTable";
import type { RowBars } from "../../data/tables/overSteps";
import { TABLE_VIEW, type TableView } from "../../state/address";
import { CutName } from "./CutName";
import { Grid, SortHeading } from "./Grid";
import { StepSpark } from "./StepSpark";
import { cellText, hasBar, highest, rowOf } from "./tableRows";

const WIDEST_BAR_PX = 54;
const BARS = "over the steps";
const BARS_PX = 116;

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
  /** The time of a row over the steps, in a column before the first number. */
  readonly bars?: ((row: number) => Signal<RowBars>) | undefined;
};

export function Table({ label, table, columns, order, view, chosen, onView, onChoose, onOpen, bars }: Props) {
  const row = useMemo(() => rowOf(table, chosen), [table, chosen]);
  const at = useMemo(() => (row < 0 ? -1 : order.indexOf(row)), [order, row]);
  const tops = useMemo(() => new Map(columns.map((column) => [column.name, highest(column)])), [columns]);
  const firstNumber = columns.findIndex((column) => column.kind === "number");
  const withBars = <T,>(cells: T[], cell: () => T): T[] =>
    bars && firstNumber >= 0 ? cells.toSpliced(firstNumber, 0, cell()) : cells;
  return (
    <Grid
      label={label}
      rows={order}
      at={at}
      idOf={(one) => `row-${one}`}
      minWidth={columns.reduce((sum, column) => sum + widthOf(column), bars ? BARS_PX : 0)}
      headings={withBars(
        columns.map((column) => <Heading key={column.name} column={column} view={view} onView={onView} />),
        () => (
          <SortHeading
            key={BARS}
            title={BARS}
            meaning="time in each step, from zero to its highest; grey where a step is not in detail"
            width={`${BARS_PX}px`}
            down={undefined}
            onSort={undefined}
          />
        ),
      )}
      cells={(one) =>
        withBars(
          columns.map((column) => (
            <Cell key={column.name} table={table} column={column} row={one} most={tops.get(column.name) ?? 0} />
          )),
          () => bars && <StepSpark key={BARS} of={bars(one)} />,
        )
      }
      onChoose={onChoose}
      onOpen={onOpen}
    />
  );
}

/** Names get what the others leave. */
const widthOf = (column: Column): number => {
  if (column.kind === "flag") return Math.max(64, 8 * column.title.length);
  if (column.kind === "number") return hasBar(column) ? 128 : Math.max(74, 7.2 * column.title.length + 24);
  return isName(column) ? 260 : isLong(column) ? 190 : Math.max(128, 8 * column.title.length + 24);
};
const isName = (column: Column): boolean =>
  ["name", "kernel", "type", "line", "source_line", "module"].includes(column.name);
const isLong = (column: Column): boolean =>
  ["shapes", "operators", "source_lines", "cause", "causes", "reason"].includes(column.name);

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

function Cell({ table, column, row, most }: { table: AnalysisTable; column: Column; row: number; most: number }) {
  const text = cellText(column, row);
  if (column.kind !== "number") {
    const whole = column.name === "kernel" ? columnOf(table, "name") : undefined;
    return (
      <td title={whole ? cellText(whole, row) : text}>
        {isName(column) || isLong(column) ? <CutName text={text} /> : text}
      </td>
    );
  }
  const value = column.values[row] ?? Number.NaN;
  const bar = hasBar(column) && value > 0 && most > 0;
  return (
    <td class="number" title={column.unit === "ns" && text ? `${Math.round(value)} ns` : undefined}>
      {bar && <span class="share-bar" style={{ width: `${(WIDEST_BAR_PX * value) / most}px` }} />}
      {text}
    </td>
  );
}
