// The geometry of the iteration stack: where columns and rows lie, and what lies under the pointer. Pure.

import { firstThat } from "../base/search";
import type { StackWidths } from "../state/address";

/** The narrowest column where columns are as wide as their time and there is room for it. */
const NARROWEST = 2;
/** A folded group is so wide that it can be read and pressed. */
const FOLDED_WIDTH = 72;

/** Left edges of the columns and the right edge of the last one, in CSS pixels; `folded`: which stand for a group. */
export function columnEdges(
  times: readonly number[],
  width: number,
  widths: StackWidths,
  folded: readonly boolean[] = [],
): Float64Array {
  const groups = folded.filter(Boolean).length;
  const single = times.length - groups;
  const wide = single ? Math.min(FOLDED_WIDTH, width / 2 / Math.max(1, groups)) : width / Math.max(1, groups);
  const room = width - wide * groups;
  const edges = new Float64Array(times.length + 1);
  const total = times.reduce((sum, time, i) => (folded[i] ? sum : sum + time), 0);
  const least = widths === "equal" || total <= 0 ? room / Math.max(1, single) : Math.min(NARROWEST, room / single / 2);
  const rest = Math.max(0, room - least * single);
  for (let i = 0; i < times.length; i++)
    edges[i + 1] = (edges[i] ?? 0) + (folded[i] ? wide : least + (total > 0 ? (rest * (times[i] ?? 0)) / total : 0));
  return edges;
}

/** Height of a row where `count` of them share a height. */
export const rowHeight = (count: number, height: number): number => height / Math.max(1, count);

/** The last column that begins at or before x. */
export function columnAt(edges: Float64Array, x: number): number {
  // Of the columns behind the first one: where there is none, x lies in the first.
  return firstThat(edges.length - 2, (column) => (edges[column + 1] ?? 0) > x);
}

/** Runs of equal things in a list, as [from, to): what shares one label. */
export function runsOf<T>(
  items: readonly T[],
): readonly { readonly from: number; readonly to: number; readonly item: T }[] {
  const runs: { from: number; to: number; item: T }[] = [];
  items.forEach((item, i) => {
    const last = runs.at(-1);
    if (last && last.item === item) last.to = i + 1;
    else runs.push({ from: i, to: i + 1, item });
  });
  return runs;
}

/** Rows, in order of time, before which steps are missing: they were kept as statistics only. */
export function missingBefore(steps: readonly number[], counts: readonly number[]): readonly number[] {
  const found: number[] = [];
  // Where a row stands for several steps, its number is that of any of them: no step is known to be missing then.
  if (counts.some((count) => count !== 1)) return found;
  for (let row = 1; row < steps.length; row++) {
    const [before, here] = [steps[row - 1] ?? 0, steps[row] ?? 0];
    if (here !== before + 1) found.push(row);
  }
  return found;
}
