// Which bars of processes are drawn, in which order, and how clusters differ, in words. Pure.

import { formatDuration } from "../../base/time";
import type { Run } from "../../data/run";
import type { Bar, Cluster } from "../../data/wire/wire.generated";
import type { BarsSort } from "../../state/drawerState";

/** How a process is called: by its rank where it has one. */
export function processTitle(run: Run, process: number): string {
  const found = run.processes[process];
  if (found?.rank !== undefined) return `rank ${found.rank}`;
  return found?.title ? `${found.title} ${found.pid}` : `process ${process}`;
}

const total = (ns: readonly number[]): number => ns.reduce((sum, one) => sum + one, 0);

/** The bars in the order that is wanted: by cluster, then by process; by process; by time, the longest first. */
export function barOrder(bars: readonly Bar[], sort: BarsSort): Bar[] {
  const key: Readonly<Record<BarsSort, (bar: Bar) => number>> = {
    cluster: (bar) => bar.cluster,
    rank: (bar) => bar.process,
    time: (bar) => -total(bar.ns),
  };
  return [...bars].sort((a, b) => key[sort](a) - key[sort](b) || a.process - b.process);
}

/** The longest of some bars, ns: what fills the width. */
export const longestBar = (bars: readonly { readonly ns: readonly number[] }[]): number =>
  bars.reduce((most, bar) => Math.max(most, total(bar.ns)), 1);

/** What the members of a cluster do otherwise than all others. */
export const differences = (cluster: Cluster): string[] =>
  cluster.differs.map(({ name, mean_ns, others_ns }) => {
    const more = mean_ns > others_ns;
    return `${name}: ${formatDuration(mean_ns)} (others ${formatDuration(others_ns)}, ${more ? "+" : "−"}${formatDuration(Math.abs(mean_ns - others_ns))})`;
  });

/** Numbers as ranges: "0–3, 7, 9–10". */
export function asRanges(numbers: readonly number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < numbers.length; ) {
    let last = i;
    while (numbers[last + 1] === (numbers[last] ?? 0) + 1) last++;
    parts.push(last === i ? `${numbers[i]}` : `${numbers[i]}${last === i + 1 ? ", " : "–"}${numbers[last]}`);
    i = last + 1;
  }
  return parts.join(", ");
}
