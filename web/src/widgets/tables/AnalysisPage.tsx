// A page about one analysis: what its rows are, the table, and beside it the chosen row or the rows that stand out.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { classColor, css } from "../../base/color";
import { asSentence, middleCut } from "../../base/names";
import { formatShare } from "../../base/quantity";
import { type AnalysisTable, columnOf, fetchAnalysis, fileAddress } from "../../data/analysisTable";
import type { Run } from "../../data/run";
import { load, useSession } from "../../data/session";
import { fetchBehind } from "../../data/spanHits";
import { Button } from "../controls";
import { type BarPart, PartBar } from "../figures";
import { AwaitWithRun } from "../Loading";
import { jumpTo } from "../showOnTimeline";
import { RowFacts, titlesOf } from "./RowFacts";
import { chosenRow, TablePage, useTableView } from "./TablePage";
import { cellsOf, pareto } from "./tableRows";

const TOP = 20;
/** Characters of a name beside the bars. */
const NAME_LENGTH = 30;
/** Types in the bar; narrower ones have no label. */
const TYPES = 8;
const LABELLED = 0.1;

type Props = {
  /** Name of the analysis and of the page. */
  readonly name: string;
  readonly label: string;
  /** Columns whose cells name the spans behind a row. */
  readonly cells: readonly string[];
  /** Columns that this page shows though tables elsewhere rarely do. */
  readonly also?: readonly string[];
  /** Pictures between the tools and the table. */
  readonly above?: (run: Run, table: AnalysisTable) => ComponentChildren;
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

type SharesProps = {
  readonly name: string;
  readonly table: AnalysisTable;
  readonly onChoose: (row: number) => void;
  readonly onType: (type: string) => void;
};

type PageProps = Props & { readonly run: Run; readonly table: AnalysisTable };

function Page({ cells, run, table, above, ...page }: PageProps) {
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
      above={above?.(run, table)}
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
          columnOf(table, "share") && <Shares name={name} table={table} onChoose={choose} onType={toType} />
        )
      }
      onChoose={choose}
      onOpen={(one) => void open(one)}
    />
  );
}

/** Where the time goes: the types as one bar, where the analysis has them, and the rows with the highest shares. */
function Shares({ name, table, onChoose, onType }: SharesProps) {
  const session = useSession();
  const typed = table.options.some((option) => option.name === "by" && option.choices.includes("type"));
  const types = useMemo(
    () => (typed ? load(() => fetchAnalysis(session.api, name, { by: "type" })) : undefined),
    [session, name, typed],
  );
  const shown = pareto(table, TOP);
  const most = shown[0]?.value ?? 1;
  const byType = types?.value.status === "ready" ? types.value.value : undefined;
  return (
    <section class="highest rows fine" aria-labelledby="highest-title">
      {byType && byType.rows > 0 && <TypeBar table={byType} onType={onType} />}
      <h2 id="highest-title">Where the time goes</h2>
      <p class="weak">{shown.length ? "share, and share of all down to the row" : "no row has a share"}</p>
      <ol class="rows gap-4">
        {shown.map(({ row, value, upTo }) => {
          const titles = titlesOf(table, row);
          return (
            <li class="cells" key={row}>
              <Button class="plain ellipsis" title={titles.name || titles.title} onClick={() => onChoose(row)}>
                {middleCut(titles.title, NAME_LENGTH)}
              </Button>
              <span class="bar">
                <span style={{ width: `${(100 * value) / most}%` }} />
              </span>
              <span class="number">{formatShare(value)}</span>
              <span class="number weak">{formatShare(upTo)}</span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}

/** The types with the highest shares beside each other; what is left of the bar is all others. */
function TypeBar({ table, onType }: { table: AnalysisTable; onType: (type: string) => void }) {
  const theme = useSession().theme.value;
  const shown = pareto(table, TYPES);
  const others = 1 - (shown.at(-1)?.upTo ?? 1);
  const parts = shown.map(({ row, value }, rank) => {
    const { type } = titlesOf(table, row);
    return { name: type, share: value, color: classColor(rank, theme) };
  });
  const bars: BarPart[] = [...parts, { name: "others", share: others, color: undefined }].map((one) => ({
    ...one,
    grow: one.share,
    title: `${one.name}: ${formatShare(one.share)}`,
    text: one.share >= LABELLED && formatShare(one.share),
  }));
  return (
    <>
      <h2>By type</h2>
      <PartBar label="Share of each type" parts={bars.filter(({ grow }) => grow > 0)} />
      <ul class="type-list row wraps">
        {parts.map(({ name, share, color }) => (
          <li key={name}>
            <Button class="plain row" onClick={() => onType(name)}>
              <i style={{ background: css(color) }} /> {name} <b>{formatShare(share)}</b>
            </Button>
          </li>
        ))}
      </ul>
    </>
  );
}
