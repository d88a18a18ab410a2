// Metrics over the whole run, drawn by uPlot, which is fetched only where there is something to draw.

import { useEffect, useRef } from "preact/hooks";
import type uPlot from "uplot";
import { CHROME, css, type Theme, toRgb } from "../base/color";
import { formatQuantity } from "../base/quantity";
import { fetchReadings, type Series } from "../data/readings";
import type { Run } from "../data/run";
import { useSession } from "../data/session";

type Props = { readonly run: Run; readonly series: readonly Series[]; readonly title: string; readonly height: number };

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

function options(series: readonly Series[], width: number, height: number, theme: Theme): uPlot.Options {
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
      ...series.map((one, i) => ({
        label: one.metric.replace(/^cpu /, ""),
        stroke: css(toRgb({ l: theme === "dark" ? 0.75 : 0.55, c: 0.11, h: HUES[i % HUES.length] ?? 0 })),
        width: 1.5,
        spanGaps: true,
        points: { show: false },
        value: (_: uPlot, y: number | null) => (y === null ? "–" : formatQuantity(y, unit)),
      })),
    ],
    cursor: { y: false, points: { size: 6 } },
    legend: { live: true },
  };
}

export function RunChart({ run, series, title, height }: Props) {
  const session = useSession();
  const theme = session.theme.value;
  const box = useRef<HTMLDivElement>(null);
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
        plot = new UPlot(options(series, width, height, theme), joined(parts), element);
        observer.observe(element);
      },
      () => undefined,
    );
    return () => {
      controller.abort();
      observer.disconnect();
      plot?.destroy();
    };
  }, [session, run, series, theme, height]);
  return (
    <figure class="run-chart">
      <figcaption class="weak">{title}</figcaption>
      <div ref={box} style={{ minHeight: `${height}px` }} role="img" aria-label={`${title} over the run`} />
    </figure>
  );
}
