// Which rows the timeline has, from top to bottom, and how tall they are. Pure: the same input gives the same rows.

import { grouped } from "../../base/grouped";
import { firstThat } from "../../base/search";
import { gpuOf, type Series } from "../../data/readings";
import { isDrawn, type Location, type Process, type Run } from "../../data/run";
import type { RowOrder, RowPlace } from "../../data/wire/wire.generated";
import type { RowsView } from "../../state/rowsState";
import { type Amounts, type HostNode, hostNodes, type ProcessNode, processNodes } from "./processTree";

/** Heights in CSS pixels. */
export const HEIGHTS = {
  process: 28,
  metric: 46,
  flat: 24,
  depth: 17,
  nestedPadding: 5,
  summary: 150,
  steps: 19,
  gpu: 34,
} as const;

/** Series of one process, or of one GPU, in one unit, drawn in one row. */
export type MetricRow = {
  readonly kind: "metric";
  readonly process: number;
  /** What it is found by: the unit, behind the GPU where it is one. */
  readonly family: string;
  readonly title: string;
  readonly unit: string;
  /** Stacked: their sum means something (cores in use). Otherwise they are lines over each other. */
  readonly stacked: boolean;
  readonly series: readonly Series[];
};
/** A host above its processes, or, where it is folded, the mean of their main threads. */
export type HostRow = {
  readonly kind: "host";
  readonly host: string;
  readonly folded: boolean;
  readonly count: number;
  readonly members: readonly number[];
};
/** A process above its threads. */
type ProcessRow = {
  readonly kind: "process";
  readonly process: Process;
  readonly title: string;
  /** Whether it can be folded into one row. */
  readonly folds: boolean;
  /** Metrics that are not shown until asked for; 0 where all are shown. */
  readonly hidden: number;
  readonly canHide: boolean;
};
/** A thread or stream, or a folded process, which shows its main thread. */
export type LocationRow = {
  readonly kind: "location";
  readonly location: Location;
  readonly open: boolean;
  readonly depths: number;
  /** Its process, named where that is not seen above it. */
  readonly of?: string;
  /** The process that is folded into this row. */
  readonly stands?: { readonly title: string; readonly process: Process; readonly count: number };
};
/** Shares of groups over the time, stacked: of one place in all processes, or of some locations. */
export type SummaryRow = {
  readonly kind: "summary";
  readonly title: string;
  readonly place: number;
  /** The locations, where these are not all of the place. */
  readonly some: readonly number[] | undefined;
  readonly count: number;
};
/** The steps of a process, where several have steps of their own. */
type StepsRow = { readonly kind: "steps"; readonly title: string; readonly process: number };
/** A row of many ranks: 8^rowLevel locations of a place, row `number` of them. */
export type RanksRow = {
  readonly kind: "ranks";
  readonly title: string;
  readonly place: number;
  readonly placeTitle: string;
  readonly rowLevel: number;
  readonly number: number;
  readonly count: number;
  readonly open: boolean;
};
/** A GPU above its streams: what it is used for, stacked. */
export type GpuRow = {
  readonly kind: "gpu";
  readonly title: string;
  readonly process: number;
  readonly members: readonly number[];
  readonly folded: boolean;
};
/** The rows of a profiler and of scheduling: folded unless asked for. */
type SystemRow = {
  readonly kind: "system";
  readonly title: string;
  readonly members: readonly number[];
  readonly folded: boolean;
};
export type Row = (
  | MetricRow
  | HostRow
  | ProcessRow
  | LocationRow
  | SummaryRow
  | RanksRow
  | StepsRow
  | GpuRow
  | SystemRow
) & {
  readonly key: string;
  readonly top: number;
  readonly height: number;
  /** Steps from the root of the tree. */
  readonly level: number;
};

const TITLES: Readonly<Record<string, string>> = {
  cores: "CPU",
  bytes: "Memory",
  "bytes/s": "I/O",
  "1/s": "Context switches",
};

/** What a GPU is asked for, by unit. */
const GPU_TITLES: Readonly<Record<string, string>> = {
  "%": "load",
  "Throughput %": "load",
  bytes: "memory",
  "bytes/s": "PCIe, NVLink",
  MHz: "clocks",
  W: "power",
  J: "energy",
  "°C": "temperature",
  "": "why clocks are lower",
};

/** What a nested row reserves before its depth is known. */
const DEPTHS_UNKNOWN = 4;
/** Runs of more processes come with each of them folded into one row. */
const MOST_UNFOLDED = 16;
/** Runs of more processes come with all rows on the screen at once. */
const MOST_SCROLLED = 128;

/** What comes first; other units follow in the order in which they were recorded. */
const UNIT_ORDER = ["cores", "bytes"];
/** What the process that was started shows, and what its children do, unless all is asked for. */
const SHOWN_UNITS = { main: ["cores", "bytes"], child: ["cores"] } as const;

/** What cores did beside the time of groups of threads, and what threads waited for: none is a part of the cores in use. */
const CORES_ROWS: readonly { readonly family: string; readonly title: string; readonly of: RegExp }[] = [
  { family: "by kind", title: "CPU by kind", of: /^cpu (user|system)$/ },
  { family: "machine", title: "CPU of the machine", of: /^machine / },
  { family: "system", title: "System time", of: /^system time / },
  { family: "waited for", title: "Waiting for a core", of: /^throttled|waits? for a core$/ },
  { family: "waited for disks", title: "Waiting for block I/O", of: /waits? for block I\/O$/ },
];
const coresRow = (series: Series) => CORES_ROWS.find(({ of }) => series.unit === "cores" && of.test(series.metric));

/** Time of one thread is also that of its group. */
const ofThread = (series: Series): boolean =>
  series.location !== undefined && (series.metric === "cpu" || /^(system time|waits for .*)$/.test(series.metric));

/** What stands in one row: series of one unit, those of each GPU by themselves. */
const familyOf = (series: Series): string =>
  [gpuOf(series), series.unit, coresRow(series)?.family].filter((part) => part !== undefined).join(" ");

/** What is shown before all is asked for; of a GPU what it does with its time. */
const isUsual = (row: MetricRow, main: boolean): boolean =>
  row.unit === "bytes" && row.series.every(({ highest }) => highest < LEAST_MEMORY)
    ? false
    : row.family === row.unit
      ? (main ? SHOWN_UNITS.main : SHOWN_UNITS.child).some((unit) => unit === row.unit)
      : row.unit.endsWith("%") || row.unit === "bytes";

/** Memory below this, bytes, is not usual: a counter of a few bytes would come before everything else. */
const LEAST_MEMORY = 1e6;

/** Joins the series of a process into rows by unit; GPUs that are shown with it have rows of their own. */
export function metricRows(process: number, series: readonly Series[]): MetricRow[] {
  const own = series.filter((one) => one.process === process && one.highest > 0 && !ofThread(one));
  const families = grouped(own, familyOf);
  return [...new Set([...UNIT_ORDER, ...families.keys()])].flatMap((family) => {
    const members = families.get(family) ?? [];
    const [first] = members;
    if (!first) return [];
    const [unit, gpu] = [first.unit, gpuOf(first)];
    const names = members.map((s) => s.metric).join(", ");
    const known = coresRow(first)?.title ?? TITLES[unit] ?? names;
    const title = gpu === undefined ? known : `${gpu} ${GPU_TITLES[unit] ?? unit}`;
    return [{ kind: "metric", process, family, title, unit, stacked: unit === "cores", series: members }];
  });
}

/** The locations that are open unless the user chose otherwise: the busiest of the program that was started. */
export function openByDefault(run: Run): number[] {
  const main = run.processes.find((p) => p.main)?.process ?? run.processes[0]?.process;
  const busiest = run.locations
    .filter((l) => l.process === main && isDrawn(l))
    .sort((a, b) => b.spanCount - a.spanCount)[0];
  return busiest ? [busiest.location] : [];
}

/** Threads and streams by what they are; sets, as there may be ten thousand. */
export type KnownOrder = Readonly<Record<keyof RowOrder, ReadonlySet<number>>>;

/** Everything that the rows depend on. */
export type Ask = {
  readonly run: Run;
  readonly series: readonly Series[];
  /** Locations that are drawn with their nesting. */
  readonly open: readonly number[];
  /** Processes that show all their metrics. */
  readonly measured: readonly number[];
  /** How deep each location was seen to be. */
  readonly depths: ReadonlyMap<number, number>;
  readonly view: RowsView;
  /** The height of the screen, for rows that share it. */
  readonly heightPx: number;
  /** What the radar shows: "group.NAME", "region.NAME", "metric.NAME". */
  readonly measure: string;
  /** What `sort` sorts by, by location. */
  readonly amounts: Amounts;
  /** What has the same part in every process; none while that is not known. */
  readonly places: readonly RowPlace[];
  readonly stepped: readonly number[];
  /** Which rows are what; undefined while that is not known. */
  readonly order: KnownOrder | undefined;
};

/** Whether all rows share the screen. */
export const fits = ({ view, run }: Pick<Ask, "view" | "run">): boolean =>
  view.fit ?? (view.preset !== "process" && view.preset !== "counter" && run.processes.length > MOST_SCROLLED);

/** Whether a row comes folded, before it is flipped. */
export function foldedByDefault(key: string, { view, run }: Pick<Ask, "view" | "run">): boolean {
  if (/^[dy]/.test(key)) return key.startsWith("y");
  if (view.folds) return view.folds === "all" && (key.startsWith("p") || view.preset === "all");
  if (key.startsWith("n")) return false;
  return (
    view.preset === "master" || view.preset === "radar" || run.processes.length > MOST_UNFOLDED || fits({ view, run })
  );
}

const isFolded = (key: string, ask: Ask): boolean => foldedByDefault(key, ask) !== ask.view.flipped.includes(key);

type Bare = HostRow | ProcessRow | LocationRow | MetricRow | SummaryRow | RanksRow | StepsRow | GpuRow | SystemRow;
type Planned<Kind extends Bare = Bare> = {
  readonly row: Kind;
  readonly key: string;
  readonly level: number;
  readonly height: number;
};

/** All rows of a run; locations without spans have no row. */
export function layoutRows(ask: Ask): Row[] {
  const single = plan(ask);
  const ranks = fits(ask) && single.length > ask.heightPx ? planRanks(ask) : undefined;
  const planned = ranks ?? single;
  const height =
    fits(ask) && !ranks && ask.view.preset !== "summary" ? sharedHeight(planned.length, ask.heightPx) : undefined;
  return placed(planned, height);
}

/** Rows below each other, all of one height where that is given. */
function placed(planned: readonly Planned[], shared?: number): Row[] {
  let top = 0;
  return planned.map(({ row, key, level, height: own }) => {
    const height = shared ?? own;
    top += height;
    return { ...row, key, level, top: top - height, height };
  });
}

/** What rows that share the screen have each: whole pixels, at least one, and no more than they need. */
const sharedHeight = (count: number, heightPx: number): number =>
  Math.min(HEIGHTS.flat, Math.max(1, Math.floor(heightPx / Math.max(1, count))));

function plan(ask: Ask): Planned[] {
  const { run, series, view } = ask;
  const metrics = grouped(series, (one) => one.process);
  if (view.preset === "process") return onlyLocation(ask);
  if (view.preset === "summary") return planSummary(ask);
  const nodes = processNodes(run, view.filter, view.sort, ask.amounts, new Set(metrics.keys()));
  const hosts = hostNodes(nodes, run);
  const byAmount = view.sort === "time" || view.sort === "value";
  if (hosts.length < 2 || byAmount || fits(ask)) return nodes.flatMap((node) => planProcess(node, ask, metrics, 0));
  return hosts.flatMap((host) => planHost(host, ask, metrics));
}

function planHost(node: HostNode, ask: Ask, metrics: ReadonlyMap<number, Series[]>): Planned[] {
  const key = `n${node.number}`;
  const folded = isFolded(key, ask);
  const members = node.processes.flatMap(({ main }) => (main ? [main.location] : []));
  const row: HostRow = { kind: "host", host: node.host, folded, count: node.processes.length, members };
  const head = { row, key, level: 0, height: HEIGHTS.process };
  return folded ? [head] : [head, ...node.processes.flatMap((process) => planProcess(process, ask, metrics, 1))];
}

function planProcess(node: ProcessNode, ask: Ask, metrics: ReadonlyMap<number, Series[]>, level: number): Planned[] {
  const { process, title, locations, main } = node;
  const { view } = ask;
  const key = `p${process.process}`;
  const counters = view.preset === "counter";
  if (main && !counters && isFolded(key, ask)) {
    const stands = { title, process, count: locations.length };
    return [planLocation(main, ask, key, level, stands)];
  }
  const bare = fits(ask);
  const all = counters || view.preset === "all" ? metricRows(process.process, metrics.get(process.process) ?? []) : [];
  const every = counters || ask.measured.includes(process.process);
  const shown = bare ? [] : every ? all : all.filter((m) => isUsual(m, process.main));
  if (counters && !shown.length) return [];
  const canHide = !counters && all.some((m) => !isUsual(m, process.main));
  const head: ProcessRow = {
    kind: "process",
    process,
    title,
    folds: main !== undefined && !counters,
    hidden: all.length - shown.length,
    canHide,
  };
  const inside = level + 1;
  // Where no name of the process stands above it, a thread's label has it.
  const named = (planned: Planned<LocationRow>): Planned =>
    bare && ask.run.processes.length > 1 ? { ...planned, row: { ...planned.row, of: title } } : planned;
  const planMetric = (row: MetricRow, at: number): Planned => ({
    row,
    key: `m${process.process}.${row.family}`,
    level: at,
    height: counters ? HEIGHTS.metric * 2 : HEIGHTS.metric,
  });
  const plain = (some: readonly Location[], at: number): Planned[] =>
    some.map((location) => named(planLocation(location, ask, `l${location.location}`, at)));
  const { own, gpus, system } = parted(locations, process, ask);
  const grouping = !bare && (view.preset === "all" || view.preset === "master");
  const ofGpu = (row: MetricRow): boolean =>
    grouping && !counters && gpus.some(({ title }) => row.series[0] && gpuOf(row.series[0]) === title);
  const planned = [
    ...(bare ? [] : [{ row: head, key, level, height: HEIGHTS.process }]),
    ...(bare || counters || !showsSteps(ask, process.process) ? [] : [planSteps(process.process, "steps", inside)]),
    ...shown.filter((row) => !ofGpu(row)).map((row) => planMetric(row, inside)),
  ];
  if (counters) return planned;
  if (!grouping) return [...planned, ...plain([...own, ...gpus.flatMap((gpu) => gpu.streams), ...system], inside)];
  return [
    ...planned,
    ...plain(own, inside),
    ...gpus.flatMap(({ title, device, streams }) => {
      const key = `d${process.process}.${device}`;
      const folded = isFolded(key, ask);
      const members = streams.filter((one) => one.kind === "stream").map((one) => one.location);
      const row: GpuRow = { kind: "gpu", title, process: process.process, members, folded };
      const metrics = shown.filter((one) => one.series[0] && gpuOf(one.series[0]) === title);
      return [
        { row, key, level: inside, height: HEIGHTS.gpu },
        ...(folded ? [] : [...metrics.map((one) => planMetric(one, inside + 1)), ...plain(streams, inside + 1)]),
      ];
    }),
    ...planSystem(system, process, ask, inside, plain),
  ];
}

function planSystem(
  system: readonly Location[],
  { process }: Process,
  ask: Ask,
  level: number,
  plain: (some: readonly Location[], level: number) => Planned[],
): Planned[] {
  if (!system.length) return [];
  const key = `y${process}`;
  const folded = isFolded(key, ask);
  const members = system.map((one) => one.location);
  const row: SystemRow = { kind: "system", title: `system (${system.length})`, members, folded };
  return [{ row, key, level, height: HEIGHTS.flat }, ...(folded ? [] : plain(system, level + 1))];
}

type Gpu = { readonly device: number; readonly title: string; readonly streams: readonly Location[] };
type Parted = {
  readonly own: readonly Location[];
  readonly gpus: readonly Gpu[];
  readonly system: readonly Location[];
};

/** The rows of a process by what they are: main thread, threads of the backward pass, other threads; GPUs; system. */
function parted(locations: readonly Location[], { pid }: Process, { order }: Ask): Parted {
  const known = (part: keyof KnownOrder, { location }: Location): boolean => order?.[part].has(location) ?? false;
  const isMain = (one: Location): boolean => (order ? known("main", one) : one.threadId === pid);
  const placeOf = (one: Location): number =>
    one.kind !== "thread" ? (one.kind === "stream" ? 3 : 4) : isMain(one) ? 0 : known("backward", one) ? 1 : 2;
  const rest = locations.filter((one) => one.device === undefined);
  const devices = grouped(
    locations.filter((one) => one.device !== undefined),
    ({ device = 0 }) => device,
  );
  return {
    own: rest.filter((one) => !known("system", one)).sort((a, b) => placeOf(a) - placeOf(b)),
    gpus: [...devices]
      .sort(([a], [b]) => a - b)
      .map(([device, streams]) => ({
        device,
        title: `GPU ${device}`,
        streams: [...streams].sort((a, b) => placeOf(a) - placeOf(b)),
      })),
    system: rest.filter((one) => known("system", one)),
  };
}

/** The steps at the head of the page are those of one process: where others have some, too, each has a row of them. */
const showsSteps = ({ stepped, view }: Ask, process: number): boolean =>
  view.preset === "all" && stepped.length > 1 && stepped.includes(process);

function planSteps(process: number, title: string, level: number): Planned {
  return { row: { kind: "steps", title, process }, key: `t${process}`, level, height: HEIGHTS.steps };
}

function planLocation(
  location: Location,
  ask: Ask,
  key: string,
  level: number,
  stands?: LocationRow["stands"],
): Planned<LocationRow> {
  const open = !stands && !fits(ask) && ask.view.preset !== "radar" && ask.open.includes(location.location);
  const depths = open ? (ask.depths.get(location.location) ?? DEPTHS_UNKNOWN) : 1;
  const height = open ? depths * HEIGHTS.depth + HEIGHTS.nestedPadding : HEIGHTS.flat;
  return { row: { kind: "location", location, open, depths, ...(stands && { stands }) }, key, level, height };
}

/** Rows of many ranks are at least so tall, in CSS pixels. */
const LEAST_RANKS = 4;
/** Ranks in a row of the next level. */
export const FANOUT = 8;
/** Rows of an opened one, in CSS pixels. */
const OPENED = 18;

/** Rows that stand for so many ranks each that all of them are on the screen; undefined where they cannot stand for what is asked. */
function planRanks(ask: Ask): Planned[] | undefined {
  const { view, places, heightPx } = ask;
  if (view.filter || view.sort === "time" || view.sort === "value" || !places.length) return undefined;
  // Shares add up over ranks, other measures do not.
  if (view.preset === "radar" && !ask.measure.startsWith("group.")) return undefined;
  // Of folded processes their main threads are shown: the first place.
  const shown = foldedByDefault("p0", ask) ? places.slice(0, 1) : places.filter((place) => place.kind !== "task");
  const rowsAt = (level: number): number =>
    shown.reduce((sum, place) => sum + Math.ceil(place.locations.length / FANOUT ** level), 0);
  let level = 1;
  while (rowsAt(level) > shown.length && rowsAt(level) * LEAST_RANKS > heightPx) level++;
  const height = Math.max(LEAST_RANKS, Math.min(HEIGHTS.flat, Math.floor(heightPx / rowsAt(level))));
  return shown.flatMap((place, number) =>
    Array.from({ length: Math.ceil(place.locations.length / FANOUT ** level) }, (_, row) =>
      planRanksRow(ask, place, number, level, row, 0, height),
    ).flat(),
  );
}

function planRanksRow(
  ask: Ask,
  place: RowPlace,
  placeNumber: number,
  rowLevel: number,
  number: number,
  level: number,
  height: number,
): Planned[] {
  const size = FANOUT ** rowLevel;
  const members = place.locations.slice(number * size, (number + 1) * size);
  if (rowLevel === 0) return members.flatMap((member) => rankRow(ask, member, level));
  const key = `g${placeNumber}.${rowLevel}.${number}`;
  const open = ask.view.flipped.includes(key);
  const row: RanksRow = {
    kind: "ranks",
    title: ranksTitle(ask.run, members),
    place: placeNumber,
    placeTitle: place.title,
    rowLevel,
    number,
    count: members.length,
    open,
  };
  const head = { row, key, level, height };
  if (!open) return [head];
  const inside = Array.from({ length: Math.min(FANOUT, Math.ceil((members.length * FANOUT) / size)) }, (_, i) =>
    planRanksRow(ask, place, placeNumber, rowLevel - 1, number * FANOUT + i, level + 1, OPENED),
  );
  return [{ ...head, height: Math.max(height, OPENED) }, ...inside.flat()];
}

/** A single location below rows of many ranks. */
function rankRow(ask: Ask, member: number, level: number): Planned[] {
  const location = locationOf(ask.run, member);
  if (!location) return [];
  const planned = planLocation(location, ask, `l${member}`, level);
  return [{ ...planned, height: OPENED, row: { ...planned.row, of: rankName(ask.run, location) } }];
}

/** Locations are numbered in their order: of ten thousand, none is looked for. */
const locationOf = (run: Run, number: number): Location | undefined =>
  run.locations[number]?.location === number ? run.locations[number] : run.locations.find((l) => l.location === number);

const rankName = (run: Run, location: Location): string => {
  const process = run.processes[location.process];
  return process?.rank === undefined ? `process ${location.process}` : `rank ${process.rank}`;
};

/** "ranks 64–127". */
function ranksTitle(run: Run, members: readonly number[]): string {
  const [first, last] = [members[0], members.at(-1)].map((member) => {
    const location = member === undefined ? undefined : locationOf(run, member);
    return location ? rankName(run, location).replace(/^\w+ /, "") : "?";
  });
  return first === last ? `rank ${first}` : `ranks ${first}–${last}`;
}

/** The preset `summary`: a tall row for each place, of the locations that the filter leaves. */
function planSummary(ask: Ask): Planned[] {
  const { run, view, places } = ask;
  const left = view.filter
    ? new Set(
        processNodes(run, view.filter, "rank", NO_AMOUNTS, new Set()).flatMap((node) =>
          node.locations.map((l) => l.location),
        ),
      )
    : undefined;
  const shown = places.flatMap((place, number) => {
    const some = left && place.locations.filter((location) => left.has(location));
    const count = some?.length ?? place.locations.length;
    const row: SummaryRow = { kind: "summary", title: place.title, place: number, some, count };
    return count ? [{ row, key: `s${number}`, level: 0 }] : [];
  });
  const height = Math.max(
    HEIGHTS.summary / 2,
    Math.min(1.6 * HEIGHTS.summary, Math.floor(ask.heightPx / shown.length)),
  );
  return shown.map((each) => ({ ...each, height: Math.floor(height) }));
}

/** The preset `process`: one location with its nesting. */
function onlyLocation(ask: Ask): Planned[] {
  const wanted = ask.view.location ?? openByDefault(ask.run)[0];
  const location = ask.run.locations.find((l) => l.location === wanted && isDrawn(l));
  return location ? [planLocation(location, { ...ask, open: [location.location] }, `l${location.location}`, 0)] : [];
}

/** The rows that stay at the top, each as it is where it is not folded away; keys that name none are passed over. */
export function pinnedRows(ask: Ask): Row[] {
  const { run, view, series } = ask;
  if (!view.pinned.length) return [];
  const nodes = new Map(
    processNodes(run, "", "rank", NO_AMOUNTS, new Set()).map((node) => [node.process.process, node]),
  );
  return placed(view.pinned.flatMap((key) => pinnedRow(key, ask, nodes, series) ?? []));
}

const NO_AMOUNTS: Amounts = new Map();

function pinnedRow(
  key: string,
  ask: Ask,
  nodes: ReadonlyMap<number, ProcessNode>,
  series: readonly Series[],
): Planned | undefined {
  const [, letter, number, family] = /^([lpmt])(\d+)(?:\.(.+))?$/.exec(key) ?? [];
  const id = Number(number);
  if (letter === "m") {
    const row = metricRows(id, series).find((metric) => metric.family === family);
    return row && { row, key, level: 0, height: HEIGHTS.metric };
  }
  if (letter === "t")
    return ask.stepped.includes(id) ? planSteps(id, `${nodes.get(id)?.title ?? id} · steps`, 0) : undefined;
  const unfit = { ...ask, view: { ...ask.view, fit: false } };
  if (letter === "p") {
    const node = nodes.get(id);
    const stands = node && { title: node.title, process: node.process, count: node.locations.length };
    return node?.main && planLocation(node.main, unfit, key, 0, stands);
  }
  const { run } = ask;
  const location = run.locations.find((l) => l.location === id && isDrawn(l));
  if (!location) return undefined;
  const planned = planLocation(location, unfit, key, 0);
  const of = run.processes.length > 1 ? nodes.get(location.process)?.title : undefined;
  return of ? { ...planned, row: { ...planned.row, of } } : planned;
}

/** How many threads and streams the filter hides. */
export function hiddenLocations({ run, view }: Ask): number {
  if (!view.filter || view.preset === "process") return 0;
  const shown = processNodes(run, view.filter, "rank", NO_AMOUNTS, new Set());
  const all = run.locations.filter(isDrawn).length;
  return all - shown.reduce((sum, node) => sum + node.locations.length, 0);
}

export const totalHeight = (rows: readonly Row[]): number => {
  const last = rows.at(-1);
  return last ? last.top + last.height : 0;
};

/** The rows that a scrolled screen shows. */
export function visibleRows(rows: readonly Row[], scrollTop: number, heightPx: number): Row[] {
  // Rows lie in order from top to bottom: of ten thousand, few are looked at.
  const first = firstThat(rows.length, (i) => (rows[i]?.top ?? 0) + (rows[i]?.height ?? 0) > scrollTop);
  let last = first;
  while (last < rows.length && (rows[last]?.top ?? 0) < scrollTop + heightPx) last++;
  return rows.slice(first, last);
}
