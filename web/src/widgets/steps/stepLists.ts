// Which steps a list shows, in which order, and what they are compared with. Pure.

import { PIECES, type StepPiece } from "../../base/stepPieces";
import { byPiece, type Step } from "../../data/runSteps";
import type { StepFilter } from "../../state/address";

export function filterSteps(steps: readonly Step[], filter: StepFilter): Step[] {
  const { classes, outliers, detailed } = filter;
  return steps.filter(
    (step) =>
      (!classes.length || classes.includes(step.class)) &&
      (!outliers || step.outlier) &&
      (!detailed || step.detail === "all"),
  );
}

export const STEP_ORDERS = ["step", "class", "duration", "delta", "detail", "cause"] as const;
export type StepOrder = { readonly by: (typeof STEP_ORDERS)[number]; readonly down: boolean };

/** The steps in an order; equal ones stay in order of time. */
export function sortSteps(steps: readonly Step[], order: StepOrder, medians: ReadonlyMap<string, number>): Step[] {
  const keys: Readonly<Record<StepOrder["by"], (step: Step) => number | string>> = {
    step: (step) => step.step,
    class: (step) => step.classRank,
    duration: (step) => step.durationNs,
    delta: (step) => step.durationNs - (medians.get(step.class) ?? 0),
    detail: (step) => step.detail,
    cause: (step) => step.cause,
  };
  const sign = order.down ? -1 : 1;
  return [...steps].sort((a, b) => {
    const [x, y] = [keys[order.by](a), keys[order.by](b)];
    return sign * (x < y ? -1 : x > y ? 1 : 0);
  });
}

/** Some neighbouring steps in one bar: the mean of their parts, and the longest outlier among them. */
type Bin = {
  readonly from: number;
  readonly to: number;
  readonly parts: Readonly<Record<StepPiece, number>>;
  readonly outlier: Step | undefined;
};

/** Steps joined to at most `count` bars. */
export function binsOf(steps: readonly Step[], count: number): Bin[] {
  const bins = Math.min(steps.length, Math.max(1, count));
  return Array.from({ length: bins }, (_, i) => {
    const [from, to] = [Math.floor((i * steps.length) / bins), Math.floor(((i + 1) * steps.length) / bins)];
    const members = steps.slice(from, to);
    const weight = members.reduce((sum, step) => sum + step.count, 0);
    const mean = (phase: StepPiece): number =>
      members.reduce((sum, step) => sum + step.parts[phase] * step.count, 0) / Math.max(1, weight);
    const outliers = members.filter((step) => step.outlier).sort((a, b) => b.durationNs - a.durationNs);
    return { from, to, parts: byPiece(mean), outlier: outliers[0] };
  });
}

/** How many steps of each class last how long: bars on a logarithmic axis. */
export type Histogram = {
  readonly lowNs: number;
  readonly highNs: number;
  /** Per class, from the most frequent one: steps in each bar. */
  readonly classes: readonly { readonly name: string; readonly rank: number; readonly counts: readonly number[] }[];
  /** Steps in the fullest bar, over all classes. */
  readonly most: number;
};

/** Sorts steps into `bars` bars by duration, each class for itself. */
export function histogramOf(steps: readonly Step[], bars: number): Histogram {
  const durations = steps.map((step) => Math.max(1, step.durationNs));
  const lowNs = durations.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const highNs = durations.reduce((a, b) => Math.max(a, b), 1);
  const width = Math.log(highNs / lowNs) / bars || 1;
  const classes = new Map<number, { name: string; rank: number; counts: number[] }>();
  for (const step of steps) {
    const known = classes.get(step.classRank);
    const one = known ?? { name: step.class, rank: step.classRank, counts: Array<number>(bars).fill(0) };
    if (!known) classes.set(step.classRank, one);
    const bar = Math.min(bars - 1, Math.floor(Math.log(Math.max(1, step.durationNs) / lowNs) / width));
    one.counts[bar] = (one.counts[bar] ?? 0) + step.count;
  }
  const sorted = [...classes.values()].sort((a, b) => a.rank - b.rank);
  const sums = Array.from({ length: bars }, (_, i) => sorted.reduce((sum, one) => sum + (one.counts[i] ?? 0), 0));
  return { lowNs, highNs, classes: sorted, most: Math.max(1, ...sums) };
}

/** The pieces of a step that take any time, in order. */
export const partsOf = (
  parts: Readonly<Record<StepPiece, number>>,
): { readonly phase: StepPiece; readonly ns: number }[] =>
  PIECES.map((phase) => ({ phase, ns: parts[phase] })).filter(({ ns }) => ns > 0);
