// The server's answers about a stretch of time: its flat profile, durations of a region, bars of processes, its spans.

import type { TimeRange } from "../base/time";
import { type AnalysisTable, decodeAnalysis } from "./tables/analysisTable";
import { type Api, type RowOfRoute, stretchOf } from "./wire/api";
import type { Durations } from "./wire/wire.generated";

/** What the rows of a flat profile may be; "" is a name. */
export const PROFILE_BY = [
  "name",
  "group",
  "role",
  "file",
  "caller",
  "module",
  "thread",
  "process",
  "rank",
  "step",
  "phase",
] as const;
export type ProfileBy = (typeof PROFILE_BY)[number];
export const profileBy = (text: string): ProfileBy => PROFILE_BY.find((by) => by === text) ?? "name";

/** The flat profile by one of them, as a table. */
export const fetchFlatProfile = async (
  api: Api,
  range: TimeRange,
  by: ProfileBy,
  signal: AbortSignal,
): Promise<AnalysisTable> => decodeAnalysis(await api.table("window/profile", { ...stretchOf(range), by }, signal));

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
    signal,
  );

/** Spans of some locations, to keep: how many there are in all, and how many locations were too full. */
type KeptSpans = {
  readonly rows: readonly RowOfRoute<"window/spans">[];
  readonly count: number;
  readonly skipped: number;
};

/** Locations that the server takes in one question. */
const MOST_LOCATIONS = 256;

export async function fetchSpansIn(api: Api, locations: readonly number[], range: TimeRange): Promise<KeptSpans> {
  const asked = locations.slice(0, MOST_LOCATIONS);
  const table = await api.table("window/spans", { ...stretchOf(range), locations: asked.join() });
  const skipped = table.number("skipped") + locations.length - asked.length;
  return { rows: table.rowsOf(), count: table.number("count"), skipped };
}
