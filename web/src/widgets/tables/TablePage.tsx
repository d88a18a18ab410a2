// A page that is a table: tools above it, search, the table itself, and beside it facts about the chosen row or about all.
import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { formatCount, shownOf } from "../../base/quantity";
import { useSession } from "../../data/session";
import type { AnalysisTable } from "../../data/tables/analysisTable";
import type { RowBars } from "../../data/tables/overSteps";
import { TABLE_VIEW, type TableView } from "../../state/address";
import { Button, TableSearch, WithCode } from "../controls";
import { Table } from "./Table";
import { orderOf, rowKey, rowOf, shownColumns } from "./tableRows";

const NO_COLUMNS: readonly string[] = [];

/** How a table of a page is looked at, and how that is changed; what its rows are changes the browser's history. */
export function useTableView(name: string): readonly [TableView, (next: TableView) => void] {
  const session = useSession();
  const view = session.state.value.tables[name] ?? TABLE_VIEW;
  const change = (next: TableView): void =>
    session.update(
      { tables: { ...session.state.value.tables, [name]: next } },
      next.by === view.by ? "replace" : "push",
    );
  return [view, change];
}

type Props = {
  /** Its name among the tables in the address. */
  readonly name: string;
  readonly label: string;
  readonly table: AnalysisTable;
  /** Columns that this page shows though tables elsewhere rarely do. */
  readonly also?: readonly string[];
  /** What a row is, in a word. */
  readonly rowWord?: string;
  readonly toolsLabel: string;
  /** Before the search. */
  readonly tools: ComponentChildren;
  /** Behind the number of rows. */
  readonly links: ComponentChildren;
  /** Between the tools and the table. */
  readonly above?: ComponentChildren;
  readonly none?: string;
  /** Facts about the chosen row; about all where it is -1. Undefined: there are none. */
  readonly side: (row: number) => ComponentChildren;
  readonly onChoose: (row: number) => void;
  readonly onOpen: (row: number) => void;
  /** The time of a row over the steps. */
  readonly bars?: ((row: number) => Signal<RowBars>) | undefined;
};

export function TablePage({ name, label, table, also = NO_COLUMNS, rowWord = "row", side, ...props }: Props) {
  const [view, change] = useTableView(name);
  const key = useSession().state.value.row;
  const columns = useMemo(() => shownColumns(table, view.all, also), [table, view.all, also]);
  const order = useMemo(() => orderOf(table, view), [table, view]);
  const row = useMemo(() => rowOf(table, key), [table, key]);
  const facts = table.rows > 0 && side(row);
  return (
    <div class="steps vertical">
      <div class="filters row wraps" role="toolbar" aria-label={props.toolsLabel}>
        {props.tools}
        <TableSearch label="Search this table" value={view.find} onInput={(find) => change({ ...view, find })} />
        <Button class="chip row" aria-pressed={view.all} onClick={() => change({ ...view, all: !view.all })}>
          all columns
        </Button>
        <span class="spacer" />
        <span class="weak">
          {shownOf(order.length, table.rows, rowWord)}
          {table.total > table.rows && ` (${formatCount(table.total)} in the files)`}
          {table.about && ` · ${table.about}`}
        </span>
        {props.links}
      </div>
      {props.above}
      <div class="steps-body flex fill">
        {order.length ? (
          <Table
            label={label}
            table={table}
            columns={columns}
            order={order}
            view={view}
            chosen={key}
            onView={change}
            onChoose={props.onChoose}
            onOpen={props.onOpen}
            bars={props.bars}
          />
        ) : (
          <p class="empty fill">
            <WithCode text={table.rows ? "No row passes the filter." : (props.none ?? "")} />
          </p>
        )}
        {facts && (
          <aside class="steps-side narrow rows fixed scrolls surface" aria-label="Facts about what is chosen">
            {facts}
          </aside>
        )}
      </div>
    </div>
  );
}

export const chosenRow = (table: AnalysisTable, row: number): { readonly row: string } => ({ row: rowKey(table, row) });
