// Which groups and names take the time of what is on the screen, or of the chosen stretch.
import { PART_TITLES } from "../../base/color";
import { formatCount, plural } from "../../base/quantity";
import { formatDuration, type TimeRange } from "../../base/time";
import { useSession } from "../../data/session";
import { fetchWindow, type Usage, type WindowFacts } from "../../data/spans";
import { UsageRow } from "../figures";
import { useRested } from "../useAnswer";
import { Pivot } from "./Pivot";
import { WallSections } from "./WallSections";

type Props = {
  readonly range: TimeRange;
  /** Whether the range was chosen: then what ran in it is shown by any column, with its durations. */
  readonly chosen: boolean;
  readonly onName: (name: string) => void;
};

export function WindowStatistics({ range, chosen, onName }: Props) {
  const session = useSession();
  const { value: facts, failure } = useRested(`${range.startNs}-${range.endNs}`, (signal) =>
    fetchWindow(session.api, range, signal),
  );
  if (failure.value) return <p class="empty">{failure.value}</p>;
  if (!facts.value) return null;
  const { names, folded } = facts.value;
  const foldedNs = folded.reduce((sum, one) => sum + one.ns, 0);
  if (!names.length && foldedNs <= 0) return <p class="empty">No span is in this stretch of time.</p>;
  return (
    <>
      <WallSections range={range} />
      <Source facts={facts.value} />
      {foldedNs > 0 && <FoldedList facts={facts.value} foldedNs={foldedNs} />}
      {chosen ? (
        <Pivot range={range} onName={onName} />
      ) : (
        names.length > 0 && (
          <section class="rows gap-6">
            <h3>By name{foldedNs > 0 && ", outside of the folded steps"}</h3>
            <UsageList usage={names} onName={onName} />
            <p class="weak finer">Exclusive time: without what is called. All threads and streams together.</p>
          </section>
        )
      )}
    </>
  );
}

/** What the numbers are made from, where that is not the spans alone. */
function Source({ facts: { foldedSteps, countedSteps, unplaced } }: { facts: WindowFacts }) {
  if (!foldedSteps && !countedSteps && !unplaced) return null;
  return (
    <p class="weak source-note">
      {foldedSteps > 0
        ? `From spans. Of ${plural(foldedSteps, "step")} here only the time and its parts are known: what folded steps call is counted over all of them. ` +
          "The whole run shows it."
        : countedSteps > 0
          ? `Exact: from spans, and from the statistics of ${plural(countedSteps, "folded step")}.`
          : "From spans."}
      {unplaced > 0 &&
        ` ${plural(unplaced, "call")} outside of all steps, or too short, ${unplaced === 1 ? "was" : "were"} folded too, and may be in here as own time of what is around.`}
    </p>
  );
}

const FOLDED_TITLES: Readonly<Record<string, string>> = {
  ...PART_TITLES,
  cut: "steps cut by the edge",
  meanwhile: "other threads and processes",
};

/** The time of folded steps: in all, and by the parts of their records. */
function FoldedList({ facts, foldedNs }: { facts: WindowFacts; foldedNs: number }) {
  const rows = [...facts.folded].sort((a, b) => b.ns - a.ns);
  return (
    <ul class="usage rows gap-2 fine" aria-label="Folded steps">
      <UsageRow
        title="Steps that were kept as statistics only"
        group={undefined}
        name={plural(facts.foldedSteps, "folded step")}
        amount={formatDuration(foldedNs)}
      />
      {rows.map(({ name, ns }) => (
        <li key={name} class="weak cells">
          <i />
          <span>{FOLDED_TITLES[name] ?? name}</span>
          <span class="number">{formatDuration(ns)}</span>
        </li>
      ))}
    </ul>
  );
}

type ListProps = { readonly usage: readonly Usage[]; readonly onName: (name: string) => void };

function UsageList({ usage, onName }: ListProps) {
  return (
    <ul class="usage rows gap-2 fine">
      {usage.map((one) => (
        <UsageRow
          key={one.name}
          title={`${one.name}: ${formatCount(one.count)} calls`}
          group={one.group}
          name={one.name}
          amount={formatDuration(one.selfNs)}
          button={{ onClick: () => onName(one.name) }}
        />
      ))}
    </ul>
  );
}
