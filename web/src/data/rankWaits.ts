// How long ranks waited for each other, in sums over the whole run: by rank, and by pair of ranks.
import type { Api } from "./wire/api";
import type { RowOf } from "./wire/arrowTable";

const LONGEST = { max_ns: "number", location: "number", time_ns: "number" } as const;
const SUMS = { state: "text", rank: "number?", wait_ns: "number", ...LONGEST } as const;

/** Waits of a rank in a state; of pairs, for another rank. `maxNs`, `location`, `timeNs`: the longest, and where and when it began. */
export type Wait = RowOf<typeof SUMS> & { readonly awaitedRank?: number | undefined };

export type RankWaits = {
  readonly byRank: readonly Wait[];
  readonly byPair: readonly Wait[];
  readonly note: string;
  /** Sums by pair that were not sent: the shortest. */
  readonly left: number;
};

export async function fetchWaits(api: Api): Promise<RankWaits> {
  const ask = (by: string) => api.analysis("waits", { by });
  const [ranks, pairs] = await Promise.all([ask("rank"), ask("pair")]);
  const certain = ({ waitNs }: Wait): boolean => waitNs > 0;
  return {
    byRank: ranks.rowsAs(SUMS).filter(certain),
    byPair: pairs.rowsAs({ ...SUMS, awaited_rank: "number?" }).filter(certain),
    note: ranks.metadata("note") ?? "",
    left: Number(pairs.metadata("rows") ?? pairs.rows) - pairs.rows,
  };
}
