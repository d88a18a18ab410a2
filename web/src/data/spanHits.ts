// Spans that were found somewhere: by a search, behind a row of a table, behind a call path.
import type { Group } from "../base/kinds.generated";
import type { SpanKey } from "../state/address";
import type { Api, Parameters } from "./wire/api";

/** A span that was found: enough to list it, and to go there. */
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
    api.table("search/spans", { text: query }, signal),
    api.table("search/density", { text: query, bins }, signal),
  ]);
  return {
    count: spans.number("count"),
    totalNs: spans.number("total_ns"),
    hits: spans.rowsOf(),
    density: density.columns().count,
  };
}

/** The spans behind a row of a table. */
export type Behind = {
  readonly count: number;
  readonly totalNs: number;
  readonly first: Hit | undefined;
  /** Longest first. */
  readonly longest: readonly Hit[];
};

/** Fetches the spans that cells of a row describe. */
export async function fetchBehind(api: Api, cells: Parameters, signal?: AbortSignal): Promise<Behind> {
  const table = await api.table("behind", cells, signal);
  const [first, ...longest] = table.rowsOf();
  return { count: table.number("count"), totalNs: table.number("total_ns"), first, longest };
}

/** The longest spans of a call path, and how many there are; those that were folded are none. */
export type NodeSpans = { readonly count: number; readonly hits: readonly Hit[] };

export async function fetchNodeSpans(api: Api, parameters: Parameters): Promise<NodeSpans> {
  const table = await api.table("tree/spans", parameters);
  return { count: table.number("count"), hits: table.rowsOf() };
}
