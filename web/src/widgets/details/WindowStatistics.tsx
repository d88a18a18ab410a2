// Which groups and names take the time of what is on the screen, or of the chosen stretch.
import { css, GROUP_TITLES, groupColor, PART_TITLES } from "../../base/color";
import { formatCount, formatShare, plural } from "../../base/quantity";
import { formatDuration, type TimeRange } from "../../base/time";
import { useSession } from "../../data/session";
import { fetchWindow, type Usage, type WindowFacts } from "../../data/spans";
import { UsageRow } from "../figures";
import { useRested } from "../useAnswer";

type Props = { readonly range: TimeRange; readonly onName: (name: string) => void };

export function WindowStatistics({ range, onName }: Props) {
  const session = useSession();
  const { value: facts, failure } = useRested(`${range.startNs}-${range.endNs}`, (signal) =>
    fetchWindow(session.api, range, signal),
  );
  if (failure.value) return <p class="empty">{failure.value}</p>;
  if (!facts.value) return null;
  const { groups, names, folded } = facts.value;
  const foldedNs = folded.reduce((sum, one) => sum + one.ns, 0);
  const all = groups.reduce((sum, one) => sum + one.selfNs, 0) + foldedNs;
  if (all <= 0) return <p class="empty">No span is in this stretch of time.</p>;
  return (
    <>
      <Source facts={facts.value} />
      <h3>By group</h3>
      <UsageBar groups={groups} foldedNs={foldedNs} all={all} />
      <UsageList usage={groups.map((one) => ({ ...one, name: GROUP_TITLES[one.group] }))} all={all} />
      {foldedNs > 0 && <FoldedList facts={facts.value} foldedNs={foldedNs} all={all} />}
      {names.length > 0 && (
        <>
          <h3>By name{foldedNs > 0 && ", outside of the folded steps"}</h3>
          <UsageList usage={names} all={all} onName={onName} />
        </>
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
function FoldedList({ facts, foldedNs, all }: { facts: WindowFacts; foldedNs: number; all: number }) {
  const rows = [...facts.folded].sort((a, b) => b.ns - a.ns);
  return (
    <ul class="usage rows gap-2 fine" aria-label="Folded steps">
      <UsageRow
        title="Steps that were kept as statistics only"
        group={undefined}
        name={plural(facts.foldedSteps, "folded step")}
        amount={formatDuration(foldedNs)}
        share={foldedNs / all}
      />
      {rows.map(({ name, ns }) => (
        <li key={name} class="weak cells">
          <i />
          <span>{FOLDED_TITLES[name] ?? name}</span>
          <span class="number">{formatDuration(ns)}</span>
          <span class="number">{formatShare(ns / all)}</span>
        </li>
      ))}
    </ul>
  );
}

function UsageBar({ groups, foldedNs, all }: { groups: readonly Usage[]; foldedNs: number; all: number }) {
  const theme = useSession().theme.value;
  const parts = groups.map((one) => `${GROUP_TITLES[one.group]} ${formatShare(one.selfNs / all)}`);
  const text = [...parts, ...(foldedNs > 0 ? [`folded steps ${formatShare(foldedNs / all)}`] : [])].join(", ");
  return (
    <div class="usage-bar" role="img" aria-label={`Exclusive time by group: ${text}`}>
      {groups.map((one) => (
        <span key={one.group} style={{ flexGrow: one.selfNs / all, background: css(groupColor(one.group, theme)) }} />
      ))}
      {foldedNs > 0 && <span class="hatched" style={{ flexGrow: foldedNs / all }} />}
    </div>
  );
}

type ListProps = { readonly usage: readonly Usage[]; readonly all: number; readonly onName?: (name: string) => void };

function UsageList({ usage, all, onName }: ListProps) {
  return (
    <ul class="usage rows gap-2 fine">
      {usage.map((one) => (
        <UsageRow
          key={one.name}
          title={`${one.name}: ${formatCount(one.count)} calls`}
          group={one.group}
          name={one.name}
          amount={formatDuration(one.selfNs)}
          share={one.selfNs / all}
          button={onName && { onClick: () => onName(one.name) }}
        />
      ))}
    </ul>
  );
}
