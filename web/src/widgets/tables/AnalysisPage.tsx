// A page about one analysis: what its rows are, the table, and beside it the chosen row or the rows that stand out.
import { useMemo } from "preact/hooks";
import { asSentence, middleCut } from "../../base/names";
import { plural } from "../../base/quantity";
import { formatDuration } from "../../base/time";
import { type AnalysisTable, fetchAnalysis, fileAddress } from "../../data/analysisTable";
import type { Run } from "../../data/run";
import { load, useSession } from "../../data/session";
import { fetchBehind } from "../../data/spanHits";
import { Button } from "../controls";
import { AwaitWithRun } from "../Loading";
import { jumpTo } from "../showOnTimeline";
import { RowFacts, titlesOf } from "./RowFacts";
import { chosenRow, TablePage, useTableView } from "./TablePage";
import { cellsOf, topRows } from "./tableRows";

const TOP = 20;
/** Characters of a name beside the bars. */
const NAME_LENGTH = 30;

type Props = {
  /** Name of the analysis and of the page. */
  readonly name: string;
  readonly label: string;
  /** Columns whose cells name the spans behind a row. */
  readonly cells: readonly string[];
  /** Columns that this page shows though tables elsewhere rarely do. */
  readonly also?: readonly string[];
};

export function AnalysisPage(props: Props) {
  const session = useSession();
  const { name } = props;
  const [{ by }] = useTableView(name);
  const table = useMemo(() => load(() => fetchAnalysis(session.api, name, by ? { by } : {})), [session, name, by]);
  return (
    <AwaitWithRun of={table.value} what="Computing">
      {(run, value) => <Page {...props} run={run} table={value} />}
    </AwaitWithRun>
  );
}

type PageProps = Props & { readonly run: Run; readonly table: AnalysisTable };

function Page({ cells, run, table, ...page }: PageProps) {
  const session = useSession();
  const { name } = page;
  const [view, change] = useTableView(name);
  const choose = (one: number): void => session.update({ ...chosenRow(table, one), region: titlesOf(table, one).name });
  const open = async (one: number): Promise<void> => {
    choose(one);
    const wanted = cellsOf(table, one, cells);
    if (!Object.keys(wanted).length) return;
    const found = await session.ask(fetchBehind(session.api, wanted));
    const [longest] = found?.longest ?? [];
    if (longest) jumpTo(session, run, longest);
    else if (found) session.notify("None of its spans was kept in detail");
  };
  const toType = (type: string): void => {
    session.update({ row: "" });
    change({ ...view, by: "name", inside: type, find: "", sort: "", down: false });
  };
  const by = table.options.find((option) => option.name === "by");
  const options = view.by ? { by: view.by } : {};
  return (
    <TablePage
      {...page}
      table={table}
      toolsLabel="What the table shows"
      none={asSentence(table.note)}
      tools={
        <>
          {by && <span class="weak">by</span>}
          {by?.choices.map((choice) => (
            <Button
              class="chip row"
              key={choice}
              aria-pressed={by.value === choice}
              onClick={() => change({ ...view, by: choice, inside: "", sort: "", down: false })}
            >
              {choice}
            </Button>
          ))}
          {view.inside && (
            <Button class="chip row" aria-pressed={true} onClick={() => change({ ...view, inside: "" })}>
              type {view.inside} ✕
            </Button>
          )}
        </>
      }
      links={
        <>
          <a href={fileAddress(name, options, "csv")} download={`${name}.csv`}>
            CSV
          </a>
          <a href={fileAddress(name, options, "json")} download={`${name}.json`}>
            JSON
          </a>
        </>
      }
      side={(row) =>
        row >= 0 ? (
          <RowFacts
            run={run}
            table={table}
            row={row}
            cells={cells}
            onInside={by?.choices.includes("name") ? toType : undefined}
            onClose={() => session.update({ row: "" })}
          />
        ) : (
          <Highest table={table} onChoose={choose} />
        )
      }
      onChoose={choose}
      onOpen={(one) => void open(one)}
    />
  );
}

/** The rows whose single calls take longest. */
function Highest({ table, onChoose }: { table: AnalysisTable; onChoose: (row: number) => void }) {
  const top = topRows(table, "avg_ns", TOP);
  const most = top[0]?.value ?? 1;
  const about = top.length ? `the ${plural(top.length, "row")} whose single calls take most time` : "no row has calls";
  return (
    <section class="highest rows fine" aria-labelledby="highest-title">
      <h2 id="highest-title">Longest on average</h2>
      <p class="weak">{about}</p>
      <ol class="rows gap-4">
        {top.map(({ row, value }) => {
          const { title, name } = titlesOf(table, row);
          return (
            <li class="cells" key={row}>
              <Button class="plain ellipsis" title={name || title} onClick={() => onChoose(row)}>
                {middleCut(title, NAME_LENGTH)}
              </Button>
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
