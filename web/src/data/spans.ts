// Spans one by one: the facts about one, and what fills a stretch of time.
import { isGroup } from "../base/color";
import type { Group } from "../base/kinds.generated";
import type { TimeRange } from "../base/time";
import type { SpanKey } from "../state/address";
import { ofLevel } from "./runSteps";
import { type Api, stretchOf } from "./wire/api";
import type { SpanFacts } from "./wire/wire.generated";

/** Where to look for a span: a window of a location, and its depth or region where those are known. */
export type Place = {
  readonly location: number;
  readonly range: TimeRange;
  readonly depth?: number;
  readonly region?: number;
};

/** The span that fills most of a place; the step that it lies in is an iteration of a loop level ("": as was found). */
export function fetchSpan(api: Api, place: Place, level: string): Promise<SpanFacts | undefined> {
  const { range, ...known } = place;
  return api.json("span", { ...known, ...stretchOf(range), ...ofLevel(level) });
}

export type Way = "next" | "previous" | "parent" | "child";

/** The span beside, around, or first inside another one. */
export const fetchNeighbour = (api: Api, { location, startNs, depth }: SpanKey, way: Way, level: string) =>
  api.json("neighbour", { location, start_ns: startNs, depth, way, ...ofLevel(level) });

export const keyOf = ({ location, start_ns: startNs, depth }: SpanFacts): SpanKey => ({ location, startNs, depth });

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
  const table = await api.table("window", { start_ns: range.startNs, end_ns: range.endNs }, signal);
  const rows = table.rowsOf();
  const usage = (kind: "group" | "name"): Usage[] =>
    rows.filter((row) => row.kind === kind).map((row) => ({ ...row, group: isGroup(row.group) ? row.group : "other" }));
  return {
    range,
    groups: usage("group"),
    names: usage("name"),
    folded: rows.filter((row) => row.kind === "folded").map(({ name, selfNs }) => ({ name, ns: selfNs })),
    foldedSteps: table.number("folded_steps"),
    countedSteps: table.number("counted_steps"),
    unplaced: table.number("unplaced"),
  };
}
