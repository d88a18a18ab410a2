// Spans that were found somewhere: by a search, behind a row of a table, behind a call path.
import type { Group } from "../base/kinds.generated";
import type { SpanKey } from "../state/address";
import type { Api, Parameters } from "./wire/api";
import type { RouteTable } from "./wire/arrowTable";
import type { TABLES } from "./wire/wire.generated";

/** A span that was found: enough to list it, and to go there. */
export type Hit = SpanKey & { readonly durationNs: number; readonly name: string; readonly group: Group };

/** Spans that were found, the longest first, and how many there are in all. */
export type Hits = { readonly count: number; readonly totalNs: number; readonly hits: readonly Hit[] };

const hitsOf = (table: RouteTable<(typeof TABLES)["tree/spans"]>): Hits => ({
  count: table.number("count"),
  totalNs: table.number("total_ns"),
  hits: table.rowsOf(),
});

export type Found = Hits & { readonly density: Float64Array };

/** Searches the whole run: the longest hits, how many there are in all, and how many start in each of `bins` parts of the run. */
export async function fetchSearch(api: Api, query: string, bins: number, signal?: AbortSignal): Promise<Found> {
  const [spans, density] = await Promise.all([
    api.table("search/spans", { text: query }, signal),
    api.table("search/density", { text: query, bins }, signal),
  ]);
  return { ...hitsOf(spans), density: density.columns().count };
}

/** The spans behind a row of a table: the first one, and the longest. */
export type Behind = Omit<Hits, "hits"> & { readonly first: Hit | undefined; readonly longest: readonly Hit[] };

/** Fetches the spans that cells of a row describe. */
export async function fetchBehind(api: Api, cells: Parameters, signal?: AbortSignal): Promise<Behind> {
  const { hits, ...sums } = hitsOf(await api.table("behind", cells, signal));
  const [first, ...longest] = hits;
  return { ...sums, first, longest };
}

/** Fetches the longest spans of a call path, and how many there are; those that were folded are none. */
export const fetchNodeSpans = async (api: Api, parameters: Parameters): Promise<Hits> =>
  hitsOf(await api.table("tree/spans", parameters));
