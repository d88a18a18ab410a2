// A page about one analysis: what its rows are, the table, and beside it the chosen row or the shares of types.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { classColor, css } from "../../base/color";
import { asSentence } from "../../base/names";
import { formatShare } from "../../base/quantity";
import type { Run } from "../../data/run";
import { load, useSession } from "../../data/session";
import { fetchBehind } from "../../data/spanHits";
import { type AnalysisTable, columnOf, fetchAnalysis, fileAddress } from "../../data/tables/analysisTable";
import { isStepped, overSteps } from "../../data/tables/overSteps";
import type { Parameters } from "../../data/wire/api";
import { Button, WithCode } from "../controls";
import { type BarPart, PartBar } from "../figures";
import { AwaitWithRun } from "../Loading";
import { jumpTo } from "../showOnTimeline";
import { RowFacts, titlesOf } from "./RowFacts";
import { chosenRow, TablePage, useTableView } from "./TablePage";
import { cellsOf, type TypeShare, typeShares } from "./tableRows";

/** Types with a colour of their own in the bar; narrower ones have no label. */
const TYPES = 6;
const LABELLED = 0.1;
/** Less than this is rounding. */
const LEAST = 0.001;

type Props = {
  /** Name of the analysis and of the page. */
  readonly name: string;
  readonly label: string;
  /** What its rows are of until the user chooses; by default what they are of elsewhere. */
  readonly first?: string;
  /** Columns whose cells name the spans behind a row. */
  readonly cells: readonly string[];
  /** Columns that this page shows though tables elsewhere rarely do. */
  readonly also?: readonly string[];
  /** Pictures between the tools and the table. */
  readonly above?: (run: Run, table: AnalysisTable) => ComponentChildren;
};

export function AnalysisPage(props: Props) {
  const session = useSession();
  const { name, first = "" } = props;
  const [view] = useTableView(name);
  const by = view.by || first;
  const table = useMemo(() => load(() => fetchAnalysis(session.api, name, by ? { by } : {})), [session, name, by]);
  return (
    <AwaitWithRun of={table.value} what="Computing">
      {(run, value) => <Page {...props} run={run} table={value} options={by ? { by } : {}} />}
    </AwaitWithRun>
  );
}

type PageProps = Props & {
  readonly run: Run;
  readonly table: AnalysisTable;
  /** Those that the table was asked with. */
  readonly options: Parameters;
};

function Page({ run, table, options, above, ...page }: PageProps) {
  const session = useSession();
  const { name } = page;
  // A row that only its type and its GPU describe is of many names.
  const cells = page.cells.some((cell) => columnOf(table, cell)?.kind === "text") ? page.cells : [];
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
  const steps = session.steps.value;
  const stepped = steps.status === "ready" && steps.value.length > 0;
  const bars = useMemo(
    () => (stepped && isStepped(name) ? overSteps(session.api, name, view.by) : undefined),
    [session, stepped, name, view.by],
  );
  const by = table.options.find((option) => option.name === "by");
  const typed = by?.choices.includes("type") ?? false;
  const types = useMemo(
    () => (typed ? load(() => fetchAnalysis(session.api, name, { by: "type" })) : undefined),
    [session, name, typed],
  )?.value;
  const shares = types?.status === "ready" ? typeShares(types.value) : [];
  const pictures = above?.(run, table);
  // Nothing divides, searches or keeps what is not there, but the way back from such a division stays.
  if (!table.rows && !view.by && !pictures)
    return (
      <p class="empty">
        <WithCode text={asSentence(table.note)} />
      </p>
    );
  return (
    <TablePage
      {...page}
      table={table}
      bars={bars}
      toolsLabel="What the table shows"
      none={asSentence(table.note)}
      above={pictures}
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
            inside={typed ? { words: `Its ${page.label.toLowerCase()}`, onClick: toType } : undefined}
            onClose={() => session.update({ row: "" })}
          />
        ) : (
          shares.length > 0 && <ByType shares={shares} onType={toType} />
        )
      }
      onChoose={choose}
      onOpen={(one) => void open(one)}
    />
  );
}

/** The types with the highest shares; what is left of the bar is all others. */
function ByType({ shares, onType }: { shares: readonly TypeShare[]; onType: (type: string) => void }) {
  const theme = useSession().theme.value;
  const parts = shares.slice(0, TYPES).map((one, rank) => ({ ...one, color: classColor(rank, theme) }));
  const others = { type: "others", share: 1 - parts.reduce((sum, { share }) => sum + share, 0), color: undefined };
  const bars: BarPart[] = [...parts, others].map(({ type, share, color }) => ({
    name: type,
    grow: share,
    color,
    title: `${type}: ${formatShare(share)}`,
    text: share >= LABELLED && formatShare(share),
  }));
  return (
    <section class="by-type rows fine gap-6" aria-labelledby="by-type-title">
      <h2 id="by-type-title">By type</h2>
      <PartBar label="Share of each type" parts={bars.filter(({ grow }) => grow > LEAST)} />
      <ol class="rows">
        {shares.map(({ type, share }, rank) => (
          <li key={type}>
            <Button class="plain cells" title={`Only ${type}`} onClick={() => onType(type)}>
              <i
                class={rank < TYPES ? "" : "idle"}
                style={rank < TYPES ? { background: css(classColor(rank, theme)) } : {}}
              />
              <span class="ellipsis">{type}</span>
              <span class="number">{formatShare(share)}</span>
            </Button>
          </li>
        ))}
      </ol>
    </section>
  );
}
