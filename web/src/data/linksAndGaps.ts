// What belongs to a span or lies between spans: its links to others, and idle gaps of a row.

import type { TimeRange } from "../base/time";
import type { GapKey, SpanKey } from "../state/address";
import type { Api } from "./wire/api";
import type { IdleGap, Links } from "./wire/wire.generated";

/** What a span started, what started it, who it sent to or met. */
export const fetchLinks = (api: Api, { location, startNs, depth }: SpanKey, signal?: AbortSignal): Promise<Links> =>
  api.json("links", { location, start_ns: startNs, depth }, signal);

/** The gap around a moment. */
export const fetchGap = (api: Api, { location, startNs }: GapKey, signal?: AbortSignal): Promise<IdleGap | undefined> =>
  api.json("gap", { location, time_ns: Math.max(0, Math.floor(startNs)) }, signal);

/** The next or previous gap of a row from a moment on, of at least a length. */
export const fetchGapBeside = (
  api: Api,
  { location, startNs }: GapKey,
  way: "next" | "previous",
  shortestNs: number,
): Promise<IdleGap | undefined> =>
  api.json("gap", { location, way, time_ns: Math.max(0, Math.floor(startNs)), shortest_ns: Math.round(shortestNs) });

/** The longest gap of a row in a window, or the one that is so many places behind it. */
export const fetchLongestGap = (
  api: Api,
  location: number,
  window: TimeRange,
  place: number,
): Promise<IdleGap | undefined> =>
  api.json("gap", {
    location,
    way: "longest",
    start_ns: Math.max(0, Math.floor(window.startNs)),
    end_ns: Math.max(1, Math.ceil(window.endNs)),
    number: place,
    shortest_ns: 1,
  });

export const gapKeyOf = (gap: IdleGap): GapKey => ({ location: gap.location, startNs: gap.start_ns });
