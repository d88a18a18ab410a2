// Metrics over the whole run, drawn by uPlot, which is fetched only where there is something to draw.

import { useEffect, useMemo, useRef } from "preact/hooks";
import type uPlot from "uplot";
import { CHROME, css, type Rgb, type Theme, toRgb } from "../base/color";
import { formatQuantity } from "../base/quantity";
import { visible } from "../base/visibleText";
import { fetchReadings, type Series } from "../data/readings";
import type { Run } from "../data/run";
import { useSession } from "../data/session";

type Props = {
  readonly run: Run;
  readonly series: readonly Series[];
  readonly title: string;
  readonly height: number;
  /** Areas above each other, the first series at the bottom: their sum means something. */
  readonly stacked?: boolean;
  /** Of each series, where they have colours of their own. */
  readonly colors?: readonly Rgb[];
};

const HUES = [166, 250, 72, 345, 38] as const;

/** Joins the readings of several series on one time axis; uPlot wants one array of times and a value or a gap for each. */
export function joined(
  parts: readonly { readonly timeNs: Float64Array; readonly high: Float64Array }[],
): [number[], ...(number | undefined)[][]] {
  const times = [...new Set(parts.flatMap((p) => [...p.timeNs]))].sort((a, b) => a - b);
  const columns = parts.map((part) => {
    const at = new Map(Array.from(part.timeNs, (t, i) => [t, part.high[i]]));
    return times.map((t) => at.get(t));
  });
  return [times.map((t) => t / 1e9), ...columns];
}

type Column = readonly (number | undefined)[];

/** Each column on top of those before it; a gap of one is a gap of those above it. */
export function stackedUp(columns: readonly Column[]): (number | undefined)[][] {
  const found: (number | undefined)[][] = [];
  for (const column of columns) {
    const below = found.at(-1);
    found.push(
      column.map((value, i) => {
        const under = below ? below[i] : 0;
        return value === undefined || under === undefined ? undefined : value + under;
      }),
    );
  }
  return found;
}

/** `written`: what the legend has of each series, where that is not what is drawn. */
function options(
  series: readonly Series[],
  width: number,
  height: number,
  theme: Theme,
  colors: readonly Rgb[] | undefined,
  written?: readonly Column[],
): uPlot.Options {
  const chrome = CHROME[theme];
  const unit = series[0]?.unit ?? "";
  const axis = {
    stroke: chrome.textWeak,
    grid: { stroke: chrome.grid, width: 1 },
    ticks: { show: false },
    font: "11px system-ui",
  };
  return {
    width,
    height,
    scales: { x: { time: false }, y: { range: (_, __, max) => [0, Math.max(max, 1e-9) * 1.08] } },
    axes: [
      { ...axis, values: (_, splits) => splits.map((s) => `${s} s`), size: 26 },
      { ...axis, values: (_, splits) => splits.map((s) => formatQuantity(s, unit)), size: 74 },
    ],
    series: [
      { value: (_, x) => (x === null ? "–" : `${x.toFixed(2)} s`), label: "time" },
      ...series.map((one, i) => {
        const usual = { l: theme === "dark" ? 0.75 : 0.55, c: 0.11, h: HUES[i % HUES.length] ?? 0 };
        const color = css(colors?.[i] ?? toRgb(usual));
        return {
          label: visible(one.metric.replace(/^(cpu |machine |.* memory: )/, "")),
          stroke: color,
          ...(written && { fill: color }),
          width: 1.5,
          spanGaps: true,
          points: { show: false },
          value: (_: uPlot, y: number | null, __: number, at: number | null) => {
            const value = written && at !== null ? written[i]?.[at] : y;
            return value === undefined || value === null ? "–" : formatQuantity(value, unit);
          },
        };
      }),
    ],
    cursor: { y: false, points: { size: 6 } },
    legend: { live: true },
  };
}

export function RunChart({ run, series: given, title, height, stacked = false, colors: of }: Props) {
  const session = useSession();
  const theme = session.theme.value;
  const box = useRef<HTMLDivElement>(null);
  // The highest area is painted first, so that the others lie on it.
  const series = useMemo(() => (stacked ? given.toReversed() : given), [given, stacked]);
  const colors = useMemo(() => (stacked ? of?.toReversed() : of), [of, stacked]);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const controller = new AbortController();
    let plot: uPlot | undefined;
    const width = element.clientWidth;
    const observer = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height }));
    const numbers = series.map((one) => one.series);
    Promise.all([
      import("uplot"),
      fetchReadings(session.api, numbers, run.bounds, width, controller.signal),
      import("uplot/dist/uPlot.min.css"),
    ]).then(
      ([{ default: UPlot }, readings]) => {
        const parts = series.flatMap((one) => readings.get(one.series) ?? []);
        if (controller.signal.aborted || parts.length !== series.length) return;
        if (stacked) {
          // Means add up, the highest readings of a pixel do not.
          const [times, ...columns] = joined(parts.map(({ timeNs, mean }) => ({ timeNs, high: mean })));
          const drawn = stackedUp(columns.toReversed()).toReversed();
          plot = new UPlot(options(series, width, height, theme, colors, columns), [times, ...drawn], element);
        } else plot = new UPlot(options(series, width, height, theme, colors), joined(parts), element);
        observer.observe(element);
      },
      () => undefined,
    );
    return () => {
      controller.abort();
      observer.disconnect();
      plot?.destroy();
    };
  }, [session, run, series, colors, stacked, theme, height]);
  return (
    <figure class="run-chart">
      <figcaption class="weak">{title}</figcaption>
      <div ref={box} style={{ minHeight: `${height}px` }} role="img" aria-label={`${title} over the run`} />
    </figure>
  );
}
