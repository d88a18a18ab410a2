// The bars of steps: which steps a bar stands for, how tall it is, and what marks it.

import { CHROME, type Theme } from "../../base/color";
import { formatDuration, type TimeRange } from "../../base/time";
import type { Step } from "../../data/runSteps";

/** One bar: the steps [from, to) of the list, drawn as their longest; an outlier among them is shown whatever else. */
export type Bar = {
  readonly from: number;
  readonly to: number;
  readonly shown: Step;
  readonly tall: number;
  readonly cut: boolean;
};

/** Durations above this many times the median are cut, so that one stall does not flatten everything. */
export const CUT_AT_MEDIANS = 3;

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

/** The tallest duration that the strip shows in full. */
export function scaleTop(steps: readonly Step[]): number {
  const durations = steps.map((s) => s.durationNs);
  const highest = durations.reduce((a, b) => Math.max(a, b), 1);
  return Math.min(highest, Math.max(1, median(durations) * CUT_AT_MEDIANS));
}

/** Bars for a strip of a width: at least `narrowest` pixels each, so many steps may share one. Heights are 0..1. */
export function bars(steps: readonly Step[], widthPx: number, narrowest = 2): Bar[] {
  const count = Math.min(steps.length, Math.max(1, Math.floor(widthPx / narrowest)));
  const top = scaleTop(steps);
  return Array.from({ length: count }, (_, i) => {
    const [from, to] = [Math.floor((i * steps.length) / count), Math.floor(((i + 1) * steps.length) / count)];
    const members = steps.slice(from, to);
    const weight = (s: Step): number => (s.outlier ? 1e18 : 0) + s.durationNs;
    const shown = members.reduce((a, b) => (weight(b) > weight(a) ? b : a));
    return { from, to, shown, tall: Math.min(1, shown.durationNs / top), cut: shown.durationNs > top };
  });
}

/** With fewer steps than this each bar carries its value and its number, and stands alone. */
const FEW = 40;
const WIDEST_BAR_PX = 64;
/** Room for a duration, for its number alone, and for the word before the number of a step. */
const ROOM_PX = { duration: 52, number: 27, word: 46, step: 18 };

export type BarTexts = { readonly value: string; readonly step: string };

/** What is written above and in each of a few bars that are so far apart; undefined where there are many. */
export function barTexts(all: readonly Bar[], widePx: number, topNs: number): readonly BarTexts[] | undefined {
  if (all.length >= FEW || all.some((bar) => bar.to - bar.from > 1 || bar.shown.count > 1)) return undefined;
  const unitOf = (ns: number): string => formatDuration(ns).split(" ")[1] ?? "";
  return all.map(({ shown: { step, durationNs } }) => {
    const text = formatDuration(durationNs);
    // The axis has the unit.
    const short = unitOf(durationNs) === unitOf(topNs) ? (text.split(" ")[0] ?? "") : "";
    return {
      value: widePx >= ROOM_PX.duration ? text : widePx >= ROOM_PX.number ? short : "",
      step: widePx >= ROOM_PX.word ? `step ${step}` : widePx >= ROOM_PX.step ? `${step}` : "",
    };
  });
}

/** Where a bar begins in its part of the width, and how wide it is: a few do not fill it. */
export function barPlace(widePx: number, count: number): readonly [left: number, wide: number] {
  if (count >= FEW) return [0, Math.max(1, widePx - (widePx > 3 ? 1 : 0))];
  const wide = Math.min(WIDEST_BAR_PX, widePx - 2);
  return [(widePx - wide) / 2, wide];
}

/** The number of the bar under a pixel. */
export const barAt = (x: number, widthPx: number, count: number): number =>
  Math.min(count - 1, Math.max(0, Math.floor((x / Math.max(1, widthPx)) * count)));

/** The time from the first to the last step of some bars. */
export function stretchOf(steps: readonly Step[], from: number, to: number): TimeRange | undefined {
  const members = steps.slice(from, to);
  const [first] = members;
  if (!first) return undefined;
  return { startNs: first.startNs, endNs: Math.max(...members.map((s) => s.startNs + s.durationNs)) };
}

/** The steps, as [from, to), that a window shows any part of. */
export function stepsIn(steps: readonly Step[], window: TimeRange): readonly [number, number] {
  const from = steps.findIndex((s) => s.startNs + s.durationNs > window.startNs);
  if (from < 0) return [steps.length, steps.length];
  const after = steps.findIndex((s, i) => i >= from && s.startNs >= window.endNs);
  return [from, after < 0 ? steps.length : after];
}

/** A triangle above the bar of an outlier. */
export function drawOutlier(context: CanvasRenderingContext2D, middle: number, top: number): void {
  context.beginPath();
  context.moveTo(middle, top);
  context.lineTo(middle + 4, top + 6);
  context.lineTo(middle - 4, top + 6);
  context.fill();
}

/** A frame around the bar of the chosen step. */
export function drawChosen(
  context: CanvasRenderingContext2D,
  left: number,
  wide: number,
  height: number,
  theme: Theme,
): void {
  context.fillStyle = CHROME[theme].accentFill;
  context.fillRect(left - 1, 0, Math.max(3, wide) + 1, height);
  context.fillStyle = CHROME[theme].accent;
  context.fillRect(left - 1, 0, 1, height);
  context.fillRect(left + Math.max(2, wide), 0, 1, height);
}
