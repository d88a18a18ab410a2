// Which rows the timeline has, from top to bottom, and how tall they are. Pure: the same input gives the same rows.
import type { Location, Process, Run, Series } from "../data/run";

/** Heights in CSS pixels. */
export const HEIGHTS = { process: 28, metric: 46, flat: 24, depth: 17, nestedPadding: 5 } as const;

/** Series of one process in one unit, drawn in one row. */
export type MetricRow = {
  readonly kind: "metric";
  readonly process: number;
  readonly title: string;
  readonly unit: string;
  /** Stacked: their sum means something (cores in use). Otherwise they are lines over each other. */
  readonly stacked: boolean;
  readonly series: readonly Series[];
};
export type ProcessRow = {
  readonly kind: "process";
  readonly process: Process;
  readonly title: string;
  /** Metrics that are not shown until asked for; 0 where all are shown. */
  readonly hidden: number;
  readonly canHide: boolean;
};
export type LocationRow = {
  readonly kind: "location";
  readonly location: Location;
  readonly open: boolean;
  readonly depths: number;
};
export type Row = (MetricRow | ProcessRow | LocationRow) & {
  readonly key: string;
  readonly top: number;
  readonly height: number;
};

const TITLES: Readonly<Record<string, string>> = {
  cores: "CPU",
  bytes: "Memory",
  "bytes/s": "I/O",
  "1/s": "Context switches",
};

/** What a nested row reserves before its depth is known. */
const DEPTHS_UNKNOWN = 4;

/** What comes first; other units follow in the order in which they were recorded. */
const UNIT_ORDER = ["cores", "bytes"];
/** What the process that was started shows, and what its children do, unless all is asked for. */
const SHOWN_UNITS = { main: ["cores", "bytes"], child: ["cores"] } as const;

/** Joins the series of a process into rows by unit. */
export function metricRows(process: number, series: readonly Series[]): MetricRow[] {
  const found = new Map<string, Series[]>(UNIT_ORDER.map((unit) => [unit, []]));
  for (const one of series)
    if (one.process === process && one.highest > 0) found.set(one.unit, [...(found.get(one.unit) ?? []), one]);
  const filled = [...found].filter(([, members]) => members.length > 0);
  return filled.map(([unit, members]) => ({
    kind: "metric",
    process,
    title: TITLES[unit] ?? members.map((s) => s.metric).join(", "),
    unit,
    stacked: unit === "cores",
    series: members,
  }));
}

/** The locations that are open unless the user chose otherwise: the busiest of the program that was started. */
export function openByDefault(run: Run): number[] {
  const main = run.processes.find((p) => p.main)?.process ?? run.processes[0]?.process;
  const busiest = run.locations
    .filter((l) => l.process === main && l.spanCount > 0)
    .sort((a, b) => b.spanCount - a.spanCount)[0];
  return busiest ? [busiest.location] : [];
}

/** All rows of a run. `measured` are the processes that show all their metrics; `depths` tells how deep each location was seen to be; locations without spans have no row. */
export function layoutRows(
  run: Run,
  series: readonly Series[],
  open: readonly number[],
  measured: readonly number[],
  depths: ReadonlyMap<number, number>,
): Row[] {
  const rows: Row[] = [];
  let top = 0;
  const add = (row: MetricRow | ProcessRow | LocationRow, key: string, height: number): void => {
    rows.push({ ...row, key, top, height });
    top += height;
  };
  for (const process of run.processes) {
    const metrics = metricRows(process.process, series);
    const locations = run.locations.filter((l) => l.process === process.process && l.spanCount > 0);
    if (!metrics.length && !locations.length) continue;
    const main = run.processes.find((p) => p.main);
    const title = process.main
      ? process.title || "main process"
      : process.title === main?.title
        ? "child"
        : process.title;
    const all = measured.includes(process.process);
    const usual: readonly string[] = process.main ? SHOWN_UNITS.main : SHOWN_UNITS.child;
    const shown = all ? metrics : metrics.filter((m) => usual.includes(m.unit));
    const canHide = metrics.some((m) => !usual.includes(m.unit));
    const head: ProcessRow = { kind: "process", process, title, hidden: metrics.length - shown.length, canHide };
    add(head, `process-${process.process}`, HEIGHTS.process);
    for (const metric of shown) add(metric, `metric-${process.process}-${metric.unit}`, HEIGHTS.metric);
    for (const location of locations) {
      const isOpen = open.includes(location.location);
      const deep = isOpen ? (depths.get(location.location) ?? DEPTHS_UNKNOWN) : 1;
      const height = isOpen ? deep * HEIGHTS.depth + HEIGHTS.nestedPadding : HEIGHTS.flat;
      add({ kind: "location", location, open: isOpen, depths: deep }, `location-${location.location}`, height);
    }
  }
  return rows;
}

/** Height of all rows together. */
export const totalHeight = (rows: readonly Row[]): number => {
  const last = rows.at(-1);
  return last ? last.top + last.height : 0;
};

/** The rows that a scrolled screen shows. */
export const visibleRows = (rows: readonly Row[], scrollTop: number, heightPx: number): Row[] =>
  rows.filter((row) => row.top + row.height > scrollTop && row.top < scrollTop + heightPx);
