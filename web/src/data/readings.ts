// What was measured over time: series, and their readings in a window.
import type { TimeRange } from "../base/time";
import { pixels } from "./runSteps";
import type { Api, RowOfRoute } from "./wire/api";

export type Series = Pick<
  RowOfRoute<"series">,
  "series" | "metric" | "unit" | "process" | "location" | "lowest" | "highest"
>;

/** "GPU 0" of a metric of a GPU; undefined for those of processes. */
export const gpuOf = (series: Pick<Series, "metric">): string | undefined => /^(GPU \d+): /.exec(series.metric)?.[1];

export const fetchSeries = async (api: Api): Promise<Series[]> => (await api.table("series", {})).rowsOf();

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
  const stretch = { start_ns: window.startNs, end_ns: window.endNs };
  const table = await api.table("readings", { series: wanted.join(), ...stretch, width: pixels(widthPx) }, signal);
  const { series, timeNs, low, high, mean } = table.columns();
  const found = new Map<number, Readings>();
  for (let from = 0; from < table.rows; ) {
    let to = from;
    while (to < table.rows && series[to] === series[from]) to++;
    const part = (column: Float64Array): Float64Array => column.subarray(from, to);
    found.set(series[from] ?? 0, { timeNs: part(timeNs), low: part(low), high: part(high), mean: part(mean) });
    from = to;
  }
  return found;
}
