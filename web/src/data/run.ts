// What is known about a run from the start: its bounds, processes, locations, metrics, steps. Small, and fetched once.
import { type Group, isGroup, PHASES, type Phase } from "../base/color";
import { plural } from "../base/quantity";
import type { TimeRange } from "../base/time";
import type { Api } from "./api";
import { type ArrowTable, list, maybe, number, object, record, text, WireError } from "./wire";

export type Process = {
  readonly process: number;
  readonly pid: number;
  readonly main: boolean;
  readonly title: string;
  readonly host: string;
  /** In MPI_COMM_WORLD; undefined where it has none. */
  readonly rank: number | undefined;
  /** Of the process that started it. */
  readonly parentPid?: number;
};

export const LOCATION_KINDS = ["thread", "stream", "task"] as const;
export type LocationKind = (typeof LOCATION_KINDS)[number];

export type Location = {
  readonly location: number;
  readonly process: number;
  readonly name: string;
  readonly kind: LocationKind;
  /** Number of the GPU that a stream belongs to, as its process counts. */
  readonly device?: number | undefined;
  readonly threadId: number;
  readonly spanCount: number;
};

/** What tells one thread or stream from another: a stream whose work overlaps has several locations. */
const identity = ({ kind, location, process, device, threadId }: Location): string =>
  kind === "stream" ? `${process}/${device}/${threadId}` : `${location}`;

/** "12 threads, 4 streams": kinds that there are none of are left out, but for threads where there is nothing else. */
export function countLocations(locations: readonly Location[]): string {
  const counted = LOCATION_KINDS.map((kind) => {
    const own = locations.filter((one) => one.kind === kind);
    return [kind, new Set(own.map(identity)).size] as const;
  });
  const there = counted.filter(([kind, count]) => count > 0 || (kind === "thread" && !locations.length));
  return there.map(([kind, count]) => plural(count, kind)).join(", ");
}

export type Series = {
  readonly series: number;
  readonly metric: string;
  readonly unit: string;
  readonly process: number;
  readonly lowest: number;
  readonly highest: number;
};

/** "GPU 0" of a metric that a GPU was asked for; undefined for those of processes. */
export const gpuOf = (series: Pick<Series, "metric">): string | undefined => /^(GPU \d+): /.exec(series.metric)?.[1];

/** One iteration of the dominant loop; where `count` is above 1, it stands for its neighbours too. */
export type Step = {
  readonly process: number;
  readonly step: number;
  readonly startNs: number;
  readonly durationNs: number;
  readonly className: string;
  /** Place of its class by number of steps: 0 is the most frequent. */
  readonly classRank: number;
  readonly outlier: boolean;
  readonly cause: string;
  readonly count: number;
  readonly parts: Readonly<Record<Phase, number>>;
  /** Whether its spans are in the trace: all, only those of its end, or none (then there are statistics). */
  readonly detail: Detail;
  /** Number of the main loop that it is an iteration of: programs may have several, one after the other. */
  readonly loop: number;
  /** One of the slow steps at the very beginning. */
  readonly warmUp: boolean;
};

const DETAILS = ["all", "part", "none"] as const;
export type Detail = (typeof DETAILS)[number];

const decodeMeta = object({
  name: text,
  program: text,
  command: list(text),
  host: text,
  python: text,
  ended: text,
  started_unix_ns: number,
  start_ns: number,
  end_ns: number,
  span_count: number,
  folded_count: number,
  folded_processes: list(number),
  size_bytes: number,
  tile_cells: number,
});
export type Meta = ReturnType<typeof decodeMeta>;

export type Run = {
  readonly meta: Meta;
  readonly bounds: TimeRange;
  readonly processes: readonly Process[];
  readonly locations: readonly Location[];
};

/** Rows of a table as objects: `row(i)` is called for each row number. */
const rows = <T>(table: ArrowTable, row: (i: number) => T): T[] => Array.from({ length: table.rows }, (_, i) => row(i));

export function decodeGroup(value: string): Group {
  if (!isGroup(value)) throw new WireError(`'${value}' is not a group`);
  return value;
}

/** "…/bin/python -u src/train.py --lr 1" is "train.py --lr 1". */
const shortCommand = (argv: string): string => {
  const [program = "", ...rest] = argv.split(" ");
  const words = /python[\d.]*$/.test(program) && rest.length ? rest : [program, ...rest];
  const first = words.findIndex((word) => !word.startsWith("-"));
  return words
    .slice(Math.max(0, first))
    .map((word, i) => (i === 0 ? (word.split("/").at(-1) ?? word) : word))
    .join(" ");
};

function decodeProcesses(table: ArrowTable): Process[] {
  const [process, pid, main, argv] = [
    table.numbers("process"),
    table.numbers("pid"),
    table.flags("main"),
    table.texts("argv"),
  ];
  const [host, rank] = [table.texts("host"), table.numbers("rank")];
  const [parent, name] = [table.numbers("parent_pid"), table.texts("name")];
  return rows(table, (i) => ({
    process: process[i] ?? 0,
    pid: pid[i] ?? 0,
    main: main[i] ?? false,
    title: name[i] || shortCommand(argv[i] ?? ""),
    parentPid: parent[i] ?? 0,
    host: host[i] ?? "",
    rank: Number.isNaN(rank[i] ?? Number.NaN) ? undefined : rank[i],
  }));
}

function decodeLocations(table: ArrowTable): Location[] {
  const [location, process, thread] = [table.numbers("location"), table.numbers("process"), table.numbers("thread_id")];
  const [name, kind, count] = [table.texts("name"), table.texts("kind"), table.numbers("span_count")];
  const device = table.numbers("device");
  return rows(table, (i) => ({
    location: location[i] ?? 0,
    process: process[i] ?? 0,
    name: name[i] ?? "",
    kind: LOCATION_KINDS.find((one) => one === kind[i]) ?? "thread",
    device: Number.isNaN(device[i] ?? Number.NaN) ? undefined : device[i],
    threadId: thread[i] ?? 0,
    spanCount: count[i] ?? 0,
  }));
}

function decodeSeries(table: ArrowTable): Series[] {
  const [series, process] = [table.numbers("series"), table.numbers("process")];
  const [lowest, highest] = [table.numbers("lowest"), table.numbers("highest")];
  const [metric, unit] = [table.texts("metric"), table.texts("unit")];
  return rows(table, (i) => ({
    series: series[i] ?? 0,
    metric: metric[i] ?? "",
    unit: unit[i] ?? "",
    process: process[i] ?? 0,
    lowest: lowest[i] ?? 0,
    highest: highest[i] ?? 0,
  }));
}

/** Decodes the table of steps, in order of start. */
export function decodeSteps(table: ArrowTable): Step[] {
  const [process, step, start] = [table.numbers("process"), table.numbers("step"), table.numbers("start_ns")];
  const [duration, rank, count] = [table.numbers("duration_ns"), table.numbers("class_rank"), table.numbers("count")];
  const [className, cause, outlier] = [table.texts("class"), table.texts("cause"), table.flags("outlier")];
  const [details, loops, warmUp] = [table.texts("detail"), table.numbers("loop"), table.flags("warm_up")];
  const parts = PHASES.map((phase) => [phase, table.numbers(`${phase}_ns`)] as const);
  return rows(table, (i) => {
    const part = (phase: Phase): number => parts.find(([name]) => name === phase)?.[1][i] ?? 0;
    return {
      process: process[i] ?? 0,
      step: step[i] ?? 0,
      startNs: start[i] ?? 0,
      durationNs: duration[i] ?? 0,
      className: className[i] ?? "",
      classRank: rank[i] ?? 0,
      outlier: outlier[i] ?? false,
      cause: cause[i] ?? "",
      count: count[i] ?? 1,
      parts: {
        data_wait: part("data_wait"),
        forward: part("forward"),
        backward: part("backward"),
        optimizer: part("optimizer"),
        rest: part("rest"),
      },
      detail: DETAILS.find((one) => one === details[i]) ?? "all",
      loop: loops[i] ?? 0,
      warmUp: warmUp[i] ?? false,
    };
  });
}

/** Fetches what every page needs. */
export async function fetchRun(api: Api): Promise<Run> {
  const [meta, processes, locations] = await Promise.all([
    api.json("meta", {}, decodeMeta),
    api.arrow("processes", {}).then(decodeProcesses),
    api.arrow("locations", {}).then(decodeLocations),
  ]);
  return {
    meta,
    bounds: { startNs: meta.start_ns, endNs: Math.max(meta.end_ns, meta.start_ns + 1) },
    processes,
    locations,
  };
}

const decodeAbout = object({
  kept: number,
  classes: list(object({ name: text, rank: number, count: number, median_ns: number, outliers: number })),
  causes: record(number),
  parts_ns: record(number),
  processes: list(number),
});
/**
 * What holds of all steps, however few of them are fetched: how they were found or why there are none, how many there are and how many of
 * them in detail, their classes (the most frequent first), what made the slow ones slow, and the sums of their parts.
 */
export type StepsAbout = ReturnType<typeof decodeAbout> & { readonly reason: string; readonly count: number };
export type ClassFacts = StepsAbout["classes"][number];

/** Fetches the steps. */
export const fetchSteps = async (
  api: Api,
  level: string,
): Promise<{ readonly steps: Step[]; readonly about: StepsAbout }> => {
  const table = await api.arrow("steps", level ? { level } : {});
  const facts = decodeAbout(JSON.parse(table.metadata("about") ?? "null"), "steps");
  const about = { ...facts, reason: table.metadata("reason") ?? "", count: Number(table.metadata("steps") ?? 0) };
  return { steps: decodeSteps(table), about };
};
/** Fetches the steps of one process. */
export const fetchStepsOf = (api: Api, process: number, level: string): Promise<Step[]> =>
  api.arrow("steps", { process, ...(level && { level }) }).then(decodeSteps);

export const fetchSeries = (api: Api): Promise<Series[]> => api.arrow("series", {}).then(decodeSeries);

/** Readings of one series: times; lowest, highest and mean value of each pixel (equal where every reading is there). */
export type Readings = {
  readonly timeNs: Float64Array;
  readonly low: Float64Array;
  readonly high: Float64Array;
  readonly mean: Float64Array;
};

/** Fetches the readings of some series in a window, by series number. */
export async function fetchReadings(
  api: Api,
  wanted: readonly number[],
  window: TimeRange,
  widthPx: number,
  signal?: AbortSignal,
): Promise<Map<number, Readings>> {
  const width = Math.max(1, Math.min(4096, Math.round(widthPx)));
  const parameters = { series: wanted.join(), start_ns: window.startNs, end_ns: window.endNs, width };
  const table = await api.arrow("readings", parameters, signal);
  const [series, timeNs] = [table.numbers("series"), table.numbers("time_ns")];
  const [low, high, mean] = [table.numbers("low"), table.numbers("high"), table.numbers("mean")];
  const found = new Map<number, Readings>();
  for (let from = 0; from < table.rows; ) {
    let to = from;
    while (to < table.rows && series[to] === series[from]) to++;
    found.set(series[from] ?? 0, {
      timeNs: timeNs.subarray(from, to),
      low: low.subarray(from, to),
      high: high.subarray(from, to),
      mean: mean.subarray(from, to),
    });
    from = to;
  }
  return found;
}

/** Where the critical path of a step goes; several parts of a location less than a pixel apart are one. */
export type CriticalPath = {
  readonly about: string;
  readonly parts: readonly {
    readonly location: number;
    readonly depth: number;
    readonly startNs: number;
    readonly durationNs: number;
  }[];
};
const decodeCriticalPath = object({
  about: text,
  location: list(number),
  depth: list(number),
  start_ns: list(number),
  duration_ns: list(number),
});

/** Where the critical path of the step at a moment goes in a window. */
export async function fetchCriticalPath(
  api: Api,
  atNs: number,
  window: TimeRange,
  widthPx: number,
): Promise<CriticalPath> {
  const width = Math.max(1, Math.min(4096, Math.round(widthPx)));
  const parameters = { at_ns: Math.round(atNs), start_ns: window.startNs, end_ns: window.endNs, width };
  const found = await api.json("critical", parameters, decodeCriticalPath);
  const parts = found.location.map((location, i) => ({
    location,
    depth: found.depth[i] ?? 0,
    startNs: found.start_ns[i] ?? 0,
    durationNs: found.duration_ns[i] ?? 0,
  }));
  return { about: found.about, parts };
}

/** The facts about one step, as far as jumping to it needs them. */
const decodeStepPlace = maybe(
  object({
    process: number,
    step: number,
    start_ns: number,
    duration_ns: number,
    class: text,
    outlier: (v) => v === true,
  }),
);
export type StepPlace = NonNullable<ReturnType<typeof decodeStepPlace>>;
export type StepKind = "at" | "next" | "previous" | "outlier";

/** The step at, after or before a moment, or the next outlier after it. */
export const fetchStepNear = (
  api: Api,
  timeNs: number,
  kind: StepKind,
  level: string,
): Promise<StepPlace | undefined> =>
  api.json("step", { time_ns: Math.max(0, Math.round(timeNs)), kind, ...(level && { level }) }, decodeStepPlace);
