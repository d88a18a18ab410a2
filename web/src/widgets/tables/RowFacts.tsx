// One row of a table in full, and the spans behind it: the first one and the longest, each a way to the timeline.

import { formatCount, plural } from "../../base/quantity";
import { formatDuration, formatMoment, length } from "../../base/time";
import type { Run } from "../../data/run";
import { useSession } from "../../data/session";
import { fetchBehind, type Hit } from "../../data/spanHits";
import { type AnalysisTable, columnOf, numberIn } from "../../data/tables/analysisTable";
import { Button, Close } from "../controls";
import { Facts } from "../figures";
import { jumpTo } from "../showOnTimeline";
import { useRested } from "../useAnswer";
import { cellsOf, cellText } from "./tableRows";

const MOST_SPANS = 12;
/** Walking through a table by keys asks for the spans of the row one stays at. */
const REST_MS = 120;

type Props = {
  readonly run: Run;
  readonly table: AnalysisTable;
  readonly row: number;
  /** Columns whose cells name the spans behind the row. */
  readonly cells: readonly string[];
  /** Leads from a type to the rows of it. */
  readonly inside: { readonly words: string; readonly onClick: (type: string) => void } | undefined;
  readonly onClose: () => void;
};

export function RowFacts({ run, table, row, cells, inside, onClose }: Props) {
  const { title, name, type } = titlesOf(table, row);
  const facts = table.columns
    .filter((column) => !["name", "kernel", "type"].includes(column.name))
    .map((column) => [column.title, cellText(column, row) || undefined, column.meaning] as const);
  return (
    <section class="row-facts rows gap-12" aria-labelledby="row-title">
      <header>
        <h2 id="row-title" title={title}>
          {title}
        </h2>
        <Close onClick={onClose} />
      </header>
      {name && name !== title && (
        <p class="source" title={name}>
          {name}
        </p>
      )}
      <Spans run={run} cells={cellsOf(table, row, cells)} name={name} calls={numberIn(table, "calls", row) ?? 0} />
      {type && inside && (
        <div class="buttons">
          <Button onClick={() => inside.onClick(type)}>{inside.words}</Button>
        </div>
      )}
      <Facts class="fine" of={facts} />
    </section>
  );
}

/** What a row is called, its whole name where it has one, and its type where it is about one. */
export function titlesOf(table: AnalysisTable, row: number): { title: string; name: string; type: string } {
  const text = (column: string): string => {
    const found = columnOf(table, column);
    return found ? cellText(found, row) : "";
  };
  const first = table.columns.find((column) => column.kind === "text");
  const [name, type] = [text("name") || text("kernel"), columnOf(table, "name") ? "" : text("type")];
  return { title: text("kernel") || name || type || (first && cellText(first, row)) || "none", name, type };
}

function Spans({ run, cells, name, calls }: { run: Run; cells: Record<string, string>; name: string; calls: number }) {
  const session = useSession();
  const asked = Object.keys(cells).length ? JSON.stringify(cells) : "";
  const found = useRested(asked, (signal) => fetchBehind(session.api, cells, signal), {
    restMs: REST_MS,
    forget: true,
  });
  const value = found.value.value;
  if (!asked) return null;
  if (!value && found.failure.value) return <p role="alert">{found.failure.value}</p>;
  if (!value) return <p class="empty late">Looking for its spans …</p>;
  const { first, longest } = value;
  if (!first)
    return <p class="weak">None of its spans was kept: these steps are statistics only, and the numbers are exact.</p>;
  const show = (hit: Hit): void => {
    jumpTo(session, run, hit);
    if (name) session.update({ region: name });
  };
  const { selection } = session.state.value;
  const next = async (): Promise<void> => {
    const after = selection ? { after_ns: selection.startNs } : {};
    const answer = await session.ask(fetchBehind(session.api, { ...cells, ...after }));
    if (answer?.first) show(answer.first);
  };
  return (
    <div class="spans-behind rows">
      <h3>
        {plural(value.count, "span")}
        {value.count < calls && ` of ${formatCount(calls)} in detail`}
        {value.count > calls && " in the whole run"}, {formatDuration(value.totalNs)}
      </h3>
      <div class="buttons">
        <Button onClick={() => show(first)}>First</Button>
        {selection && (
          <Button title="The first one after the span that is chosen on the timeline" onClick={() => void next()}>
            Next
          </Button>
        )}
        <Button onClick={() => show(longest[0] ?? first)}>
          Longest <kbd>Enter</kbd>
        </Button>
      </div>
      <ol class="rows gap-2 fine" aria-label="Longest spans">
        {longest.slice(0, MOST_SPANS).map((hit) => (
          <li class="rows gap-12" key={`${hit.location}-${hit.startNs}-${hit.depth}`}>
            <Button class="link" title="Show it on the timeline" onClick={() => show(hit)}>
              {formatMoment(hit.startNs, Math.max(1000, length(run.bounds) / 100_000))}
            </Button>
            <span class="weak ellipsis">{run.locations[hit.location]?.name}</span>
            <span class="number">{formatDuration(hit.durationNs)}</span>
          </li>
        ))}
      </ol>
    </div>
  );
}
