// The server's answers about a stretch of time: its flat profile, durations of a region, bars of processes, its spans.

import type { TimeRange } from "../base/time";
import type { BarsBy } from "../state/drawerState";
import { type AnalysisTable, decodeAnalysis } from "./analysisTable";
import type { Api, RowOfRoute } from "./wire/api";
import type { Bars, Durations } from "./wire/wire.generated";

const stretchOf = ({ startNs, endNs }: TimeRange) => ({
  start_ns: Math.max(0, Math.floor(startNs)),
  end_ns: Math.max(1, Math.ceil(endNs)),
});

/** The flat profile, as a table. */
export const fetchFlatProfile = async (api: Api, range: TimeRange, signal: AbortSignal): Promise<AnalysisTable> =>
  decodeAnalysis(await api.table("window/profile", stretchOf(range), signal));

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

/** Where the time of each process went, and clusters of those that are alike (0: as many as stand out). */
export const fetchBars = (
  api: Api,
  range: TimeRange,
  by: BarsBy,
  clusters: number,
  signal: AbortSignal,
): Promise<Bars> => api.json("window/bars", { ...stretchOf(range), by, clusters }, signal);

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
