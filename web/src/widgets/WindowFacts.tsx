// Which groups and names take the time of what is on the screen, or of the chosen stretch.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { css, GROUP_TITLES, groupColor } from "../base/color";
import { formatCount, formatShare } from "../base/quantity";
import { formatDuration, type TimeRange } from "../base/time";
import { explain } from "../data/api";
import { useSession } from "../data/session";
import { fetchWindow, type Usage, type WindowFacts } from "../data/spans";

/** A window that moves asks again only after it has rested this long. */
const REST_MS = 250;

type Props = { readonly range: TimeRange; readonly onName: (name: string) => void };

export function WindowStatistics({ range, onName }: Props) {
  const session = useSession();
  const facts = useSignal<WindowFacts | undefined>(undefined);
  const failure = useSignal<string | undefined>(undefined);
  const { startNs, endNs } = range;
  useEffect(() => {
    const controller = new AbortController();
    const timer = setTimeout(
      () => {
        fetchWindow(session.api, { startNs, endNs }, controller.signal).then(
          (value) => {
            facts.value = value;
            failure.value = undefined;
          },
          (error: unknown) => {
            failure.value = controller.signal.aborted ? failure.value : explain(error);
          },
        );
      },
      facts.peek() ? REST_MS : 0,
    );
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [session, startNs, endNs, facts, failure]);
  if (failure.value) return <p class="empty">{failure.value}</p>;
  if (!facts.value) return null;
  const { groups, names } = facts.value;
  if (!groups.length) return <p class="empty">No span is in this stretch of time.</p>;
  const all = groups.reduce((sum, one) => sum + one.selfNs, 0);
  return (
    <>
      <h3>By group</h3>
      <UsageBar groups={groups} all={all} />
      <UsageList usage={groups.map((one) => ({ ...one, name: GROUP_TITLES[one.group] }))} all={all} />
      <h3>By name</h3>
      <UsageList usage={names} all={all} onName={onName} />
    </>
  );
}

function UsageBar({ groups, all }: { groups: readonly Usage[]; all: number }) {
  const theme = useSession().theme.value;
  const text = groups.map((one) => `${GROUP_TITLES[one.group]} ${formatShare(one.selfNs / all)}`).join(", ");
  return (
    <div class="usage-bar" role="img" aria-label={`Exclusive time by group: ${text}`}>
      {groups.map((one) => (
        <span key={one.group} style={{ flexGrow: one.selfNs / all, background: css(groupColor(one.group, theme)) }} />
      ))}
    </div>
  );
}

type ListProps = { readonly usage: readonly Usage[]; readonly all: number; readonly onName?: (name: string) => void };

function UsageList({ usage, all, onName }: ListProps) {
  const theme = useSession().theme.value;
  return (
    <ul class="usage">
      {usage.map((one) => (
        <li key={one.name} title={`${one.name}: ${formatCount(one.count)} spans`}>
          <i style={{ background: css(groupColor(one.group, theme)) }} />
          {onName ? (
            <button type="button" class="plain" onClick={() => onName(one.name)}>
              {one.name}
            </button>
          ) : (
            <span>{one.name}</span>
          )}
          <span class="number">{formatDuration(one.selfNs)}</span>
          <span class="number weak">{formatShare(one.selfNs / all)}</span>
        </li>
      ))}
    </ul>
  );
}
