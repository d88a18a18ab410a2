// Draws readings over time: stacked areas where a sum means something, else lines over each other.

import { CHROME, css, type Rgb, type Theme, toRgb } from "../../base/color";
import { formatQuantity } from "../../base/quantity";
import { firstThat } from "../../base/search";
import { length, type TimeRange } from "../../base/time";
import { toPx } from "../../base/viewport";
import type { Readings, Series } from "../../data/readings";
import type { MetricRow } from "../rows/rowLayout";
import type { Box } from "./scene";
import type { Pen } from "./svgSurface";

const HUES = [166, 250, 72, 345, 38] as const;
const PADDING = 4;

/** Colour of the series number `i` of its row. */
export const seriesColor = (i: number, theme: Theme): Rgb =>
  toRgb({ l: theme === "dark" ? 0.72 : 0.6, c: 0.1, h: HUES[i % HUES.length] ?? 0 });

/** Upper end of a row's axis: the highest reading of its series, or the sum of them where they are stacked. */
function axisTop(row: Pick<MetricRow, "series" | "stacked">): number {
  const highest = row.series.map((s) => s.highest);
  // The sum of all maxima may never have been reached: but it is never passed.
  return row.stacked ? highest.reduce((a, b) => a + b, 0) : Math.max(...highest, 0);
}

/** The reading that held at a moment: the last one at or before it. */
export function readingAt(readings: Readings | undefined, ns: number): number | undefined {
  if (!readings?.timeNs.length) return undefined;
  const after = firstThat(readings.timeNs.length, (i) => (readings.timeNs[i] ?? 0) > ns);
  return readings.mean[Math.max(0, after - 1)];
}

/** Draws one row of metrics into a box. */
export function drawMetric(
  context: Pen,
  row: MetricRow,
  readings: ReadonlyMap<number, Readings>,
  window: TimeRange,
  box: Box,
  theme: Theme,
): void {
  const top = axisTop(row);
  if (top <= 0) return;
  const inner = { top: box.top + PADDING, height: box.height - 2 * PADDING - 1 };
  const y = (value: number): number => inner.top + inner.height * (1 - Math.min(1, value / top));
  context.save();
  context.beginPath();
  context.rect(box.left, box.top, box.width, box.height);
  context.clip();
  if (row.stacked) drawStack(context, row.series, readings, window, box, y, theme);
  else
    row.series.forEach((series, i) => {
      const points = readings.get(series.series);
      if (points) drawLine(context, points, window, box, y, seriesColor(i, theme), row.series.length === 1);
    });
  drawAxisTop(context, formatQuantity(top, row.unit), box, theme);
  context.restore();
}

/** The upper end of the axis in words, legible on whatever lies below. */
function drawAxisTop(context: Pen, text: string, box: Box, theme: Theme): void {
  context.font = "10px system-ui, sans-serif";
  context.textBaseline = "top";
  context.textAlign = "right";
  const wide = context.measureText(text).width + 8;
  const right = box.left + box.width - 3;
  context.fillStyle = `rgb(${CHROME[theme].background.join(" ")} / 72%)`;
  context.fillRect(right - wide, box.top + 2, wide, 14);
  context.fillStyle = CHROME[theme].textWeak;
  context.fillText(text, right - 4, box.top + 4);
}

/** The mean as a line in the band from lowest to highest. */
function drawLine(
  context: Pen,
  points: Readings,
  window: TimeRange,
  box: Box,
  y: (value: number) => number,
  color: Rgb,
  filled: boolean,
): void {
  const xs = Array.from(points.timeNs, (ns) => box.left + toPx(ns, window, box.width));
  if (points.low.some((low, i) => low !== points.high[i])) {
    context.beginPath();
    for (const [i, x] of xs.entries()) context.lineTo(x, y(points.high[i] ?? 0));
    for (let i = xs.length - 1; i >= 0; i--) context.lineTo(xs[i] ?? 0, y(points.low[i] ?? 0));
    context.fillStyle = `rgb(${color.join(" ")} / 38%)`;
    context.fill();
  }
  context.beginPath();
  for (const [i, x] of xs.entries()) context.lineTo(x, y(points.mean[i] ?? 0));
  context.strokeStyle = css(color);
  context.lineWidth = 1.25;
  context.lineJoin = "round";
  context.stroke();
  if (!filled) return;
  context.lineTo(xs.at(-1) ?? 0, box.top + box.height);
  context.lineTo(xs[0] ?? 0, box.top + box.height);
  context.fillStyle = `rgb(${color.join(" ")} / 18%)`;
  context.fill();
}

function drawStack(
  context: Pen,
  series: readonly Series[],
  readings: ReadonlyMap<number, Readings>,
  window: TimeRange,
  box: Box,
  y: (value: number) => number,
  theme: Theme,
): void {
  // The recorder reads all series of a process at once, so one column of pixels has one reading of each.
  const columns = Math.max(1, Math.round(box.width / 2));
  const stepNs = length(window) / columns;
  const base = new Float64Array(columns + 1);
  series.forEach((one, i) => {
    const points = readings.get(one.series);
    if (!points?.timeNs.length) return;
    const lower = base.slice();
    for (let c = 0; c <= columns; c++) base[c] = (base[c] ?? 0) + (meanAt(points, window.startNs + c * stepNs) ?? 0);
    context.beginPath();
    for (let c = 0; c <= columns; c++) context.lineTo(box.left + (c / columns) * box.width, y(base[c] ?? 0));
    for (let c = columns; c >= 0; c--) context.lineTo(box.left + (c / columns) * box.width, y(lower[c] ?? 0));
    context.fillStyle = `rgb(${seriesColor(i, theme).join(" ")} / 62%)`;
    context.fill();
  });
}

/** A rate that was read at t is the mean since the reading before: so a moment belongs to the next reading after it. */
function meanAt(points: Readings, ns: number): number | undefined {
  const next = firstThat(points.timeNs.length, (i) => (points.timeNs[i] ?? 0) >= ns);
  // Before the first reading nothing is known: its process may not have been there.
  return next === 0 ? undefined : points.mean[next];
}
