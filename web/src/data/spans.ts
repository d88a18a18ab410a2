// Spans one by one: those of a tile (for labels and hits), the facts about the selected one, and the hits of a search.
import type { Group } from "../base/color";
import type { SpanKey } from "../base/state";
import type { TimeRange } from "../base/time";
import type { Api } from "./api";
import { decodeGroup } from "./run";
import { type ArrowTable, flag, list, maybe, number, object, text } from "./wire";

/** Spans of one location, in order of start, column by column. */
export type Spans = {
  readonly count: number;
  readonly startNs: Float64Array;
  readonly durationNs: Float64Array;
  readonly depth: Float64Array;
  readonly region: Float64Array;
  readonly names: readonly string[];
  readonly groups: readonly Group[];
  readonly complete: Float64Array;
};

export function decodeSpans(table: ArrowTable): Spans {
  return {
    count: table.rows,
    startNs: table.numbers("start_ns"),
    durationNs: table.numbers("duration_ns"),
    depth: table.numbers("depth"),
    region: table.numbers("region"),
    names: table.texts("name"),
    groups: table.texts("group").map(decodeGroup),
    complete: table.numbers("complete"),
  };
}

const decodeFrame = object({ name: text, group: text, file: maybe(text), line: maybe(number) });
const decodeSisters = maybe(
  object({
    count: number,
    folded_count: number,
    folded_ns: number,
    total_ns: number,
    median_ns: number,
    shortest_ns: number,
    longest_ns: number,
    shorter: number,
    histogram: list(number),
    histogram_low_ns: number,
    histogram_high_ns: number,
  }),
);
export type Sisters = NonNullable<ReturnType<typeof decodeSisters>>;

const decodeDetail = maybe(
  object({
    location: number,
    location_name: text,
    process: number,
    row: number,
    start_ns: number,
    duration_ns: number,
    self_ns: number,
    folded: maybe(object({ steps: number, time_ns: number, exact: flag })),
    depth: number,
    complete: flag,
    region: number,
    name: text,
    paradigm: text,
    role: text,
    group: (value, path) => decodeGroup(text(value, path)),
    file: maybe(text),
    line: maybe(number),
    module: maybe(text),
    path: list(decodeFrame),
    step: maybe(object({ step: number, class: text, start_ns: number, duration_ns: number })),
    sisters: decodeSisters,
  }),
);
/** All that is known about one span. */
export type SpanDetail = NonNullable<ReturnType<typeof decodeDetail>>;

/** Where to look for a span: a window of a location, and its depth or region where those are known. */
export type Place = {
  readonly location: number;
  readonly range: TimeRange;
  readonly depth?: number;
  readonly region?: number;
};

/** The span that fills most of a place; the step that it lies in is an iteration of a loop level ("": as was found). */
export function fetchSpan(api: Api, place: Place, level: string): Promise<SpanDetail | undefined> {
  const { location, range, depth, region } = place;
  const parameters = {
    location,
    start_ns: Math.max(0, Math.floor(range.startNs)),
    end_ns: Math.max(1, Math.ceil(range.endNs)),
    ...(depth === undefined ? {} : { depth }),
    ...(region === undefined ? {} : { region }),
    ...(level ? { level } : {}),
  };
  return api.json("span", parameters, decodeDetail);
}

export type Way = "next" | "previous" | "parent" | "child";

/** The span beside, around, or first inside another one. */
export const fetchNeighbour = (
  api: Api,
  { location, startNs, depth }: SpanKey,
  way: Way,
  level: string,
): Promise<SpanDetail | undefined> =>
  api.json("neighbour", { location, start_ns: startNs, depth, way, ...(level ? { level } : {}) }, decodeDetail);

export const keyOf = (span: SpanDetail): SpanKey => ({
  location: span.location,
  startNs: span.start_ns,
  depth: span.depth,
});

/** Exclusive time of a group or a name in a stretch of time. */
export type Usage = { readonly name: string; readonly group: Group; readonly selfNs: number; readonly count: number };
export type WindowFacts = {
  readonly range: TimeRange;
  readonly groups: readonly Usage[];
  readonly names: readonly Usage[];
  /** Time of folded steps of which it is not known what they called, by part of a step, ns. */
  readonly folded: readonly { readonly name: string; readonly ns: number }[];
  /** How many steps these are, and of how many the statistics are in the groups and names. */
  readonly foldedSteps: number;
  readonly countedSteps: number;
  /** Calls that were folded outside of all steps, or as too short, and are in none of the numbers. */
  readonly unplaced: number;
};

/** Which groups and names take the time of a window, over all locations, most first. */
export async function fetchWindow(api: Api, range: TimeRange, signal?: AbortSignal): Promise<WindowFacts> {
  const table = await api.arrow("window", { start_ns: range.startNs, end_ns: range.endNs }, signal);
  const [kinds, names, groups] = [table.texts("kind"), table.texts("name"), table.texts("group")];
  const [self, count] = [table.numbers("self_ns"), table.numbers("count")];
  const usage = (kind: string): Usage[] =>
    kinds.flatMap((k, i) =>
      k === kind
        ? [{ name: names[i] ?? "", group: decodeGroup(groups[i] ?? ""), selfNs: self[i] ?? 0, count: count[i] ?? 0 }]
        : [],
    );
  const folded = kinds.flatMap((k, i) => (k === "folded" ? [{ name: names[i] ?? "", ns: self[i] ?? 0 }] : []));
  const said = (name: string): number => Number(table.metadata(name) ?? 0);
  return {
    range,
    groups: usage("group"),
    names: usage("name"),
    folded,
    foldedSteps: said("folded_steps"),
    countedSteps: said("counted_steps"),
    unplaced: said("unplaced"),
  };
}

/** A hit of a search. */
export type Hit = SpanKey & { readonly durationNs: number; readonly name: string; readonly group: Group };

export type Found = {
  readonly count: number;
  readonly totalNs: number;
  readonly hits: readonly Hit[];
  readonly density: Float64Array;
};

/** Searches the whole run: the longest hits, how many there are in all, and how many start in each of `bins` parts of the run. */
export async function fetchSearch(api: Api, query: string, bins: number, signal?: AbortSignal): Promise<Found> {
  const [spans, density] = await Promise.all([
    api.arrow("search/spans", { text: query }, signal),
    api.arrow("search/density", { text: query, bins }, signal),
  ]);
  const found = { count: Number(spans.metadata("count") ?? 0), totalNs: Number(spans.metadata("total_ns") ?? 0) };
  if (spans.rows === 0) return { ...found, hits: [], density: density.numbers("count") };
  const [location, start, depth] = [spans.numbers("location"), spans.numbers("start_ns"), spans.numbers("depth")];
  const [duration, names, groups] = [spans.numbers("duration_ns"), spans.texts("name"), spans.texts("group")];
  const hits = Array.from({ length: spans.rows }, (_, i) => ({
    location: location[i] ?? 0,
    startNs: start[i] ?? 0,
    depth: depth[i] ?? 0,
    durationNs: duration[i] ?? 0,
    name: names[i] ?? "",
    group: decodeGroup(groups[i] ?? ""),
  }));
  return { ...found, hits, density: density.numbers("count") };
}
