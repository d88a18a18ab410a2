// Where the time of each process went in a stretch of time: clusters of those that are alike, and a bar for each of them.

import { useEffect } from "preact/hooks";
import { css, GROUP_TITLES, groupColor, isGroup, regionColor, type Theme } from "../../base/color";
import { middleCut, shortName } from "../../base/names";
import { formatCount, formatShare, plural } from "../../base/quantity";
import { formatDuration, type TimeRange } from "../../base/time";
import type { Run } from "../../data/run";
import { useSession } from "../../data/session";
import { stretchOf } from "../../data/wire/api";
import type { Bars, Cluster } from "../../data/wire/wire.generated";
import { BARS_BY, BARS_SORTS, type BarsSort, type DrawerView, MOST_CLUSTERS } from "../../state/drawerState";
import { Button, Select } from "../controls";
import { SaveRows } from "../tables/SaveTable";
import { ROW_HEIGHT, useRows } from "../tables/virtualRows";
import { useRested } from "../useAnswer";
import { asRanges, barOrder, differences, longestBar, processTitle } from "./barOrder";

const SORT_TITLES: Readonly<Record<BarsSort, string>> = {
  cluster: "by cluster",
  rank: "by rank",
  time: "by time",
};
/** How many clusters there may be. */
const CLUSTERS = Array.from({ length: MOST_CLUSTERS + 1 }, (_, count) => String(count));
/** Characters of a name of a region. */
const NAME_LENGTH = 28;
const METHOD =
  "Distance: the Hellinger distance of exclusive time by region and by group, 0 to 1. " +
  "Clusters: average linkage. " +
  "Automatic: as many clusters as stand out; distances below 0.05 separate nothing. Nothing is random.";

type Props = { readonly run: Run; readonly range: TimeRange };

export function ProcessBars({ run, range }: Props) {
  const session = useSession();
  const view = session.state.value.drawer;
  const { value, failure, waiting } = useRested(
    `${range.startNs}-${range.endNs} ${view.by} ${view.clusters}`,
    (signal) => session.api.json("window/bars", { ...stretchOf(range), by: view.by, clusters: view.clusters }, signal),
  );
  if (failure.value) return <p class="empty">{failure.value}</p>;
  const bars = value.value;
  if (!bars) return <p class="empty">Summing up …</p>;
  if (!bars.bars.length) return <p class="empty">No process did anything in this stretch of time.</p>;
  return <Chart run={run} range={range} bars={bars} view={view} old={waiting.value} />;
}

/** Clusters of ranks, without the bars of each: they are sums, which are there long before waits and steps are. */
export function ClusterBars({ run, range, onAnswer }: Props & { readonly onAnswer: () => void }) {
  const session = useSession();
  const { value, failure } = useRested(`${range.startNs}-${range.endNs}`, (signal) =>
    session.api.json("window/bars", { ...stretchOf(range), of: "ranks", limit: 0 }, signal),
  );
  const bars = value.value;
  const answered = Boolean(bars || failure.value);
  useEffect(() => {
    if (answered) onAnswer();
  }, [answered]);
  if (failure.value) return <p class="empty">{failure.value}</p>;
  if (!bars) return <p class="empty">Summing up …</p>;
  const most = Math.max(1, ...bars.clusters.map(({ ns }) => ns.reduce((sum, one) => sum + one, 0)));
  return (
    <div class="bars fine">
      <Parts bars={bars} />
      {bars.clusters.map((cluster, number) => (
        <ClusterRow key={cluster.typical} run={run} bars={bars} cluster={cluster} number={number} most={most} />
      ))}
    </div>
  );
}

type ChartProps = Props & { readonly bars: Bars; readonly view: DrawerView; readonly old: boolean };

function Chart({ run, range, bars, view, old }: ChartProps) {
  const session = useSession();
  const change = (change: Partial<DrawerView>): void =>
    session.update({ drawer: { ...session.state.peek().drawer, ...change } });
  const { parts } = bars;
  // Of one process there is nothing to compare.
  const clusters = bars.processes > 1 ? bars.clusters : [];
  const most = longestBar(bars.bars);
  const order = barOrder(bars.bars, view.sort);
  const { scroller, rows } = useRows(clusters.length + order.length, -1);
  const shown = order.slice(Math.max(0, rows.first - clusters.length), Math.max(0, rows.last - clusters.length));
  const above = Math.max(0, rows.first - clusters.length) * ROW_HEIGHT;
  return (
    <>
      <div class="drawer-tools row fixed fine">
        <span class="weak ellipsis">bars by</span>
        {BARS_BY.map((by) => (
          <Button class="chip row" key={by} aria-pressed={view.by === by} onClick={() => change({ by })}>
            {by}
          </Button>
        ))}
        <Select
          words="order"
          choices={BARS_SORTS}
          value={view.sort}
          titleOf={(sort) => SORT_TITLES[sort]}
          onChoose={(sort) => change({ sort })}
        />
        <Select
          words="clusters"
          about={METHOD}
          choices={CLUSTERS}
          value={String(view.clusters)}
          titleOf={(count) => (count === "0" ? "automatic" : count)}
          onChoose={(count) => change({ clusters: Number(count) })}
        />
        <span class="weak ellipsis" title={METHOD}>
          exclusive time over all threads and streams · {plural(bars.processes, "process")}
          {clusters.length > 0 && ` in ${plural(clusters.length, "cluster")}`}
          {bars.processes > bars.bars.length &&
            ` · bars: the ${formatCount(bars.bars.length)} least like their clusters`}
          {old && " · summing up …"}
        </span>
        <span class="spacer" />
        <SaveRows
          name="processes"
          range={range}
          rows={() => [
            ["process", "rank", "cluster", "distance", ...parts.map((part) => `${part.name}_ns`)],
            ...bars.bars.map((bar) => [
              bar.process,
              run.processes[bar.process]?.rank,
              bar.cluster + 1,
              bar.distance,
              ...bar.ns,
            ]),
          ]}
        />
      </div>
      <Parts bars={bars} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling area must be reachable by keyboard (WCAG 2.1.1). */}
      <section class="bars fill fine" ref={scroller} tabIndex={0} aria-label="Bars of clusters and processes">
        {clusters.map((cluster, number) => (
          <ClusterRow key={cluster.typical} run={run} bars={bars} cluster={cluster} number={number} most={most} />
        ))}
        <div style={{ height: `${above}px` }} />
        {shown.map((bar) => (
          <div class="bar-row cells" key={bar.process}>
            <span class="ellipsis" title={processTitle(run, bar.process)}>
              {processTitle(run, bar.process)} <span class="weak">{clusters.length > 1 && `c${bar.cluster + 1}`}</span>
            </span>
            <Stacked ns={bar.ns} bars={bars} most={most} />
          </div>
        ))}
        <div style={{ height: `${Math.max(0, order.length - shown.length) * ROW_HEIGHT - above}px` }} />
      </section>
    </>
  );
}

type ClusterProps = {
  readonly run: Run;
  readonly bars: Bars;
  readonly cluster: Cluster;
  readonly number: number;
  readonly most: number;
};

function ClusterRow({ run, bars, cluster, number, most }: ClusterProps) {
  const session = useSession();
  const differs = differences(cluster);
  const rankOf = (process: number): number | undefined => run.processes[process]?.rank;
  const ranks = cluster.members.flatMap((process) => rankOf(process) ?? []).sort((a, b) => a - b);
  const others = cluster.members.filter((process) => rankOf(process) === undefined);
  const named = [...(ranks.length ? [asRanges(ranks)] : []), ...others.map((process) => processTitle(run, process))];
  const members = [...named, ...(cluster.members.length < cluster.size ? ["…"] : [])].join(", ");
  const [first] = cluster.differs;
  const title = [
    `typical: ${processTitle(run, cluster.typical)}; farthest ${cluster.farthest.toFixed(2)} away`,
    ...differs,
  ].join("\n");
  return (
    <div class="bar-row cells cluster" title={title}>
      <span class="ellipsis">
        <b>c{number + 1}</b> {formatCount(cluster.size)} × <span class="weak">{members}</span>
      </span>
      <Stacked ns={cluster.ns} bars={bars} most={most} />
      {first && (
        <Button class="plain ellipsis" title={title} onClick={() => session.update({ region: first.name })}>
          {first.mean_ns > first.others_ns ? "▲" : "▼"} {middleCut(shortName(first.name), NAME_LENGTH)}{" "}
          {formatDuration(Math.abs(first.mean_ns - first.others_ns))}
        </Button>
      )}
    </div>
  );
}

/** The colour of a part: that of its group; regions of one group differ in how light they are. */
const partStyle = (bars: Bars, part: number, theme: Theme): Record<string, string> => {
  const { name, group } = bars.parts[part] ?? { name: "", group: "" };
  if (!isGroup(group)) return {};
  return { background: css(name === group ? groupColor(group, theme) : regionColor(group, name, theme)) };
};

function Stacked({ ns, bars, most }: { ns: readonly number[]; bars: Bars; most: number }) {
  const session = useSession();
  const theme = session.theme.value;
  const all = ns.reduce((sum, one) => sum + one, 0);
  const texts = bars.parts
    .map((part, i) => ({ title: partTitle(part), ns: ns[i] ?? 0 }))
    .filter((part) => part.ns > 0)
    .map((part) => `${part.title} ${formatDuration(part.ns)} (${formatShare(part.ns / Math.max(1, all))})`);
  return (
    <span class="bar-stack flex" role="img" aria-label={texts.join(", ")} title={texts.join("\n")}>
      {ns.map((one, part) =>
        one > 0 ? (
          <i
            key={bars.parts[part]?.name}
            class={isGroup(bars.parts[part]?.group ?? "") ? "" : "hatched"}
            style={{ width: `${(100 * one) / most}%`, ...partStyle(bars, part, theme) }}
          />
        ) : null,
      )}
    </span>
  );
}

const partTitle = ({ name, group }: Bars["parts"][number]): string =>
  name === group && isGroup(group) ? GROUP_TITLES[group] : middleCut(shortName(name), NAME_LENGTH);

function Parts({ bars }: { bars: Bars }) {
  const session = useSession();
  const theme = session.theme.value;
  return (
    <ul class="bar-parts weak finer wraps" aria-label="What the bars are made of">
      {bars.parts.map((part, i) => (
        <li key={part.name}>
          <i class={isGroup(part.group) ? "" : "hatched"} style={partStyle(bars, i, theme)} />
          {part.name === part.group || !isGroup(part.group) || part.name === "other regions" ? (
            partTitle(part)
          ) : (
            <Button class="plain" title={part.name} onClick={() => session.update({ region: part.name })}>
              {partTitle(part)}
            </Button>
          )}
        </li>
      ))}
    </ul>
  );
}
