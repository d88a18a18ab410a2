// What the server says of a stretch of time: its flat profile, durations of a region, bars of processes, its spans.
import type { BarsBy } from "../base/drawerView";
import type { TimeRange } from "../base/time";
import type { Api } from "./api";
import { decodeGroup } from "./run";
import { type AnalysisTable, decodeAnalysis } from "./table";
import { type ArrowTable, list, maybe, number, object, text } from "./wire";

const stretchOf = ({ startNs, endNs }: TimeRange) => ({
  start_ns: Math.max(0, Math.floor(startNs)),
  end_ns: Math.max(1, Math.ceil(endNs)),
});

/** The flat profile, as a table. */
export const fetchFlatProfile = async (api: Api, range: TimeRange, signal: AbortSignal): Promise<AnalysisTable> =>
  decodeAnalysis(await api.arrow("window/profile", stretchOf(range), signal));

const decodeDurations = object({
  name: text,
  executions: number,
  count: number,
  read_share: number,
  total_ns: number,
  median_ns: maybe(number),
  edges_ns: list(number),
  counts: list(number),
  chosen: number,
  spans: list(object({ location: number, start_ns: number, duration_ns: number, depth: number })),
});
export type Durations = ReturnType<typeof decodeDurations>;

/** How long the executions of a region last that begin in a stretch; of those that last `lasting`, the longest one by one. */
export const fetchDurations = (
  api: Api,
  name: string,
  range: TimeRange,
  lasting: TimeRange | undefined,
  signal: AbortSignal,
): Promise<Durations> =>
  api.json(
    "window/durations",
    {
      ...stretchOf(range),
      name,
      ...(lasting ? { low_ns: Math.floor(lasting.startNs), high_ns: Math.ceil(lasting.endNs) } : {}),
    },
    decodeDurations,
    signal,
  );

const decodeBars = object({
  parts: list(object({ name: text, group: text })),
  processes: number,
  bars: list(object({ process: number, cluster: number, distance: number, ns: list(number) })),
  clusters: list(
    object({
      size: number,
      members: list(number),
      typical: number,
      farthest: number,
      ns: list(number),
      differs: list(object({ name: text, group: decodeGroupText, mean_ns: number, others_ns: number })),
    }),
  ),
});
export type Bars = ReturnType<typeof decodeBars>;
export type Cluster = Bars["clusters"][number];
export type Bar = Bars["bars"][number];

function decodeGroupText(value: unknown, path: string) {
  return decodeGroup(text(value, path));
}

/** Where the time of each process went, and clusters of those that are alike (0: as many as stand out). */
export const fetchBars = (
  api: Api,
  range: TimeRange,
  by: BarsBy,
  clusters: number,
  signal: AbortSignal,
): Promise<Bars> => api.json("window/bars", { ...stretchOf(range), by, clusters }, decodeBars, signal);

/** Spans of some locations, to keep: as a table, how many there are in all, and how many locations were too full. */
export type KeptSpans = { readonly table: ArrowTable; readonly count: number; readonly skipped: number };

/** Locations that the server takes in one question. */
export const MOST_LOCATIONS = 256;

export async function fetchSpansIn(api: Api, locations: readonly number[], range: TimeRange): Promise<KeptSpans> {
  const asked = locations.slice(0, MOST_LOCATIONS);
  const table = await api.arrow("window/spans", { ...stretchOf(range), locations: asked.join() });
  const skipped = Number(table.metadata("skipped") ?? 0) + locations.length - asked.length;
  return { table, count: Number(table.metadata("count") ?? 0), skipped };
}
