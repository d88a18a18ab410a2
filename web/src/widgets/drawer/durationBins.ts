// Where things lie in a histogram of durations. Pure.

import { formatCount } from "../../base/quantity";
import type { TimeRange } from "../../base/time";
import type { Durations } from "../../data/wire/wire.generated";

/** The place of a duration from the shortest (0) to the longest (1), in log time. */
export function placeOf(ns: number, edges: readonly number[]): number {
  const [low, high] = [Math.max(1, edges[0] ?? 1), Math.max(1, edges.at(-1) ?? 1)];
  if (high <= low) return 0.5;
  return Math.min(1, Math.max(0, Math.log(Math.max(1, ns) / low) / Math.log(high / low)));
}

/** The durations between two places, as wide as the bins that they touch: no bin is half chosen. */
export function between(from: number, to: number, edges: readonly number[]): TimeRange | undefined {
  const bins = edges.length - 1;
  if (bins < 1) return undefined;
  const [a, b] = [Math.min(from, to), Math.max(from, to)];
  const first = Math.min(bins - 1, Math.max(0, Math.floor(a * bins + 1e-9)));
  const last = Math.min(bins, Math.max(first + 1, Math.ceil(b * bins - 1e-9)));
  // Whole nanoseconds: durations are, and the address holds no others.
  return {
    startNs: Math.ceil(edges[first] ?? 0),
    endNs: Math.max(Math.ceil(edges[first] ?? 0), Math.floor(edges[last] ?? 0)),
  };
}

/** What the numbers were computed from. */
export const howRead = ({ read_share, executions }: Pick<Durations, "read_share" | "executions">): string =>
  read_share >= 1
    ? "all executions that begin here"
    : `of ${formatCount(executions)}: those that begin in ${read_share < 0.001 ? "less than 0.1" : (100 * read_share).toPrecision(2)} % of the time, in even pieces; choose a shorter stretch for all`;
