// What belongs to a span or lies between spans: its links to others, and idle gaps of a row.
import type { GapKey, SpanKey } from "../base/state";
import type { TimeRange } from "../base/time";
import type { Api } from "./api";
import { decodeGroup } from "./run";
import { type Decoder, flag, list, maybe, number, object, text } from "./wire";

const spanFields = {
  location: number,
  start_ns: number,
  duration_ns: number,
  depth: number,
  name: text,
  group: (value: unknown, path: string) => decodeGroup(text(value, path)),
};
const decodeEnd = object(spanFields);
/** A span somewhere else. */
export type SpanEnd = ReturnType<typeof decodeEnd>;

const WAYS = ["to", "from", "with"] as const;
const decodeWay: Decoder<(typeof WAYS)[number]> = (value, path) =>
  WAYS.find((way) => way === text(value, path)) ?? "with";

const decodeLinks = object({
  links: list(object({ kind: text, way: decodeWay, inside: flag, ...spanFields })),
  count: number,
  inside: flag,
  left_out: list(text),
});
/** The links of a span: those that are sent, how many there are, whether those of what is inside were looked for, and which kinds were not. */
export type Links = ReturnType<typeof decodeLinks>;
export type Link = Links["links"][number];

/** What a span started, what started it, who it sent to or met. */
export const fetchLinks = (api: Api, { location, startNs, depth }: SpanKey, signal?: AbortSignal): Promise<Links> =>
  api.json("links", { location, start_ns: startNs, depth }, decodeLinks, signal);

const decodeGap = maybe(
  object({
    location: number,
    start_ns: number,
    end_ns: number,
    before: maybe(decodeEnd),
    after: maybe(decodeEnd),
    cause: maybe(object({ main: text, parts: list(object({ cause: text, ns: number })), call: maybe(decodeEnd) })),
  }),
);
/** A stretch in which nothing runs on a row; what ran before and after, and on a stream of a GPU its causes. */
export type Gap = NonNullable<ReturnType<typeof decodeGap>>;

/** The gap around a moment. */
export const fetchGap = (api: Api, { location, startNs }: GapKey, signal?: AbortSignal): Promise<Gap | undefined> =>
  api.json("gap", { location, time_ns: Math.max(0, Math.floor(startNs)) }, decodeGap, signal);

/** The next or previous gap of a row from a moment on, of at least a length. */
export const fetchGapBeside = (
  api: Api,
  { location, startNs }: GapKey,
  way: "next" | "previous",
  shortestNs: number,
): Promise<Gap | undefined> =>
  api.json(
    "gap",
    { location, way, time_ns: Math.max(0, Math.floor(startNs)), shortest_ns: Math.round(shortestNs) },
    decodeGap,
  );

/** The longest gap of a row in a window, or the one that is so many places behind it. */
export const fetchLongestGap = (
  api: Api,
  location: number,
  window: TimeRange,
  place: number,
): Promise<Gap | undefined> =>
  api.json(
    "gap",
    {
      location,
      way: "longest",
      start_ns: Math.max(0, Math.floor(window.startNs)),
      end_ns: Math.max(1, Math.ceil(window.endNs)),
      number: place,
      shortest_ns: 1,
    },
    decodeGap,
  );

export const gapKeyOf = (gap: Gap): GapKey => ({ location: gap.location, startNs: gap.start_ns });
