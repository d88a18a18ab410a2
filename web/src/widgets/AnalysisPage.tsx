// A page about one analysis: what its rows are, search, the table, and beside it the chosen row or the rows that stand out.
import { useMemo } from "preact/hooks";
import { middleCut } from "../base/names";
import { formatCount, plural } from "../base/quantity";
import { TABLE_VIEW, type TableView } from "../base/state";
import { formatDuration } from "../base/time";
import type { Run } from "../data/run";
import { load, useSession } from "../data/session";
import { type AnalysisTable, fetchAnalysis, fetchBehind, fileAddress } from "../data/table";
import { jumpTo } from "./jump";
import { Await } from "./Loading";
import { RowFacts, titlesOf } from "./RowFacts";
import { Table } from "./Table";
import { cellsOf, orderOf, rowKey, rowOf, shownColumns, topRows } from "./tableRows";

const TOP = 20;
/** Characters of a name beside the bars. */
const NAME_LENGTH = 30;
const NO_COLUMNS: readonly string[] = [];

type Props = {
  /** Name of the analysis and of the page. */
  readonly name: string;
  readonly label: string;
  /** Columns whose cells tell which spans are behind a row. */
  readonly cells: readonly string[];
  /** Columns that this page shows though tables elsewhere rarely do. */
  readonly also?: readonly string[];
};

export function AnalysisPage(props: Props) {
  const session = useSession();
  const { name } = props;
  const view = session.state.value.tables[name] ?? TABLE_VIEW;
  const { by } = view;
  const table = useMemo(() => load(() => fetchAnalysis(session.api, name, by ? { by } : {})), [session, name, by]);
  return (
    <Await of={session.run.value} what="Opening the trace">
      {(run) => (
        <Await of={table.value} what="Computing">
          {(value) => <Page {...props} run={run} table={value} view={view} />}
        </Await>
      )}
    </Await>
  );
}

type PageProps = Props & { readonly run: Run; readonly table: AnalysisTable; readonly view: TableView };

function Page({ name, label, cells, also = NO_COLUMNS, run, table, view }: PageProps) {
  const session = useSession();
  const key = session.state.value.row;
  const columns = useMemo(() => shownColumns(table, view.all, also), [table, view.all, also]);
  const order = useMemo(() => orderOf(table, view), [table, view]);
  const row = useMemo(() => rowOf(table, key), [table, key]);
  const change = (next: TableView): void =>
    session.update(
      { tables: { ...session.state.value.tables, [name]: next } },
      next.by === view.by ? "replace" : "push",
    );
  const choose = (one: number): void => session.update({ row: rowKey(table, one), region: titlesOf(table, one).name });
  const open = async (one: number): Promise<void> => {
    choose(one);
    const wanted = cellsOf(table, one, cells);
    if (!Object.keys(wanted).length) return;
    const found = await session.ask(fetchBehind(session.api, wanted));
    const [longest] = found?.longest ?? [];
    if (longest) jumpTo(session, run, longest);
    else if (found) session.say("None of its spans was kept in detail");
  };
  const toType = (type: string): void => {
    session.update({ row: "" });
    change({ ...view, by: "name", inside: type, find: "", sort: "", down: false });
  };
  const canGoInside = table.options.some((option) => option.name === "by" && option.choices.includes("name"));
  return (
    <div class="steps">
      <Tools name={name} table={table} view={view} shown={order.length} onView={change} />
      <div class="steps-body">
        {order.length ? (
          <Table
            label={label}
            table={table}
            columns={columns}
            order={order}
            view={view}
            chosen={key}
            onView={change}
            onChoose={choose}
            onOpen={(one) => void open(one)}
          />
        ) : (
          <p class="empty">{table.rows ? "No row passes the filter." : sentence(table.note)}</p>
        )}
        {table.rows > 0 && (
          <aside class="steps-side narrow" aria-label="Facts about what is chosen">
            {row >= 0 ? (
              <RowFacts
                run={run}
                table={table}
                row={row}
                cells={cells}
                onInside={canGoInside ? toType : undefined}
                onClose={() => session.update({ row: "" })}
              />
            ) : (
              <Highest table={table} onChoose={choose} />
            )}
          </aside>
        )}
      </div>
    </div>
  );
}

const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;

type ToolsProps = {
  readonly name: string;
  readonly table: AnalysisTable;
  readonly view: TableView;
  readonly shown: number;
  readonly onView: (view: TableView) => void;
};

function Tools({ name, table, view, shown, onView }: ToolsProps) {
  const by = table.options.find((option) => option.name === "by");
  const options = view.by ? { by: view.by } : {};
  return (
    <div class="filters" role="toolbar" aria-label="What the table shows">
      {by && <span class="weak">by</span>}
      {by?.choices.map((choice) => (
        <button
          type="button"
          class="chip"
          key={choice}
          aria-pressed={by.value === choice}
          onClick={() => onView({ ...view, by: choice, inside: "", sort: "", down: false })}
        >
          {choice}
        </button>
      ))}
      {view.inside && (
        <button type="button" class="chip" aria-pressed={true} onClick={() => onView({ ...view, inside: "" })}>
          type {view.inside} ✕
        </button>
      )}
      <input
        type="search"
        class="table-search"
        aria-label="Search this table"
        placeholder="Search this table"
        spellcheck={false}
        value={view.find}
        onInput={(event) => onView({ ...view, find: event.currentTarget.value })}
      />
      <button type="button" class="chip" aria-pressed={view.all} onClick={() => onView({ ...view, all: !view.all })}>
        all columns
      </button>
      <span class="spacer" />
      <span class="weak">
        {shown === table.rows ? plural(shown, "row") : `${formatCount(shown)} of ${plural(table.rows, "row")}`}
        {table.total > table.rows && ` (${formatCount(table.total)} in the files)`}
        {table.about && ` · ${table.about}`}
      </span>
      <a href={fileAddress(name, options, "csv")} download={`${name}.csv`}>
        CSV
      </a>
      <a href={fileAddress(name, options, "json")} download={`${name}.json`}>
        JSON
      </a>
    </div>
  );
}

/** The rows whose single calls take longest. */
function Highest({ table, onChoose }: { table: AnalysisTable; onChoose: (row: number) => void }) {
  const top = topRows(table, "avg_ns", TOP);
  const most = top[0]?.value ?? 1;
  return (
    <section class="highest" aria-labelledby="highest-title">
      <h2 id="highest-title">Longest on average</h2>
      <p class="weak">the {plural(top.length, "row")} whose single calls take most time</p>
      <ol>
        {top.map(({ row, value }) => {
          const { title, name } = titlesOf(table, row);
          return (
            <li key={row}>
              <button type="button" class="plain" title={name || title} onClick={() => onChoose(row)}>
                {middleCut(title, NAME_LENGTH)}
              </button>
              <span class="bar">
                <span style={{ width: `${(100 * value) / most}%` }} />
              </span>
              <span class="number">{formatDuration(value)}</span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}
