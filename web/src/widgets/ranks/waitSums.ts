// Sums of waits by state and by tile of a picture, what caused them, and the factors of an efficiency as a tree.
import { grouped } from "../../base/grouped";
import type { Wait } from "../../data/rankWaits";
import { type AnalysisTable, numberIn, textIn } from "../../data/tables/analysisTable";

/** States whose waits are a part of those of another one: no total counts them. */
export const PART_OF: Readonly<Record<string, string>> = { wrong_order: "late_sender", late_complete: "early_wait" };
/** More tiles in a line are too small to see. */
const MOST_TILES = 256;

/** "late_sender" is "late sender". */
export const titleOf = (name: string): string =>
  name.replaceAll("_", " ").replace(/\b(mpi|gpu)\b/, (text) => text.toUpperCase());

/** Waits in a state, in ns, and of them the sum that has the longest single one. */
export type StateSum = { readonly state: string; readonly ns: number; readonly longest: Wait };

export const longestOf = (waits: readonly Wait[]): Wait => waits.reduce((a, b) => (b.maxNs > a.maxNs ? b : a));

/** Sums by state, the largest first. */
export const sumsByState = (waits: readonly Wait[]): StateSum[] =>
  [...grouped(waits, ({ state }) => state)]
    .map(([state, own]) => ({ state, ns: own.reduce((ns, { waitNs }) => ns + waitNs, 0), longest: longestOf(own) }))
    .sort((a, b) => b.ns - a.ns);

/** All waits in ns, each once. */
export const total = (waits: readonly Wait[]): number =>
  waits.reduce((ns, { state, waitNs }) => ns + (state in PART_OF ? 0 : waitNs), 0);

/** The side of a picture that has ranks: neighbours share a tile where there are too many. `placeOf`: the tile of a rank, or -1. */
export function sideOfRanks(ranks: readonly number[]) {
  const size = Math.max(1, Math.ceil(ranks.length / MOST_TILES));
  const places = new Map<number | undefined, number>(ranks.map((rank, i) => [rank, Math.floor(i / size)]));
  const nameOf = (tile: number): string => {
    const own = ranks.slice(tile * size, (tile + 1) * size);
    return own.length === 1 ? `rank ${own[0]}` : `ranks ${own[0]} to ${own.at(-1)}`;
  };
  return {
    count: Math.ceil(ranks.length / size),
    placeOf: (rank: number | undefined) => places.get(rank) ?? -1,
    nameOf,
  };
}

/** Waits by the number of their tile, row * columns + column; those whose column or row is -1 are left out. */
export function tilesOf(
  waits: readonly Wait[],
  columns: number,
  placeOf: (wait: Wait) => readonly [column: number, row: number],
): ReadonlyMap<number, readonly Wait[]> {
  const placed = waits.filter((wait) => Math.min(...placeOf(wait)) >= 0);
  return grouped(placed, (wait) => {
    const [column, row] = placeOf(wait);
    return row * columns + column;
  });
}

/** A factor of an efficiency; `value` is undefined where it is not known. */
export type Factor = { readonly name: string; readonly value: number | undefined; readonly depth: number };

/** The factors in their order, with the number of those above each. */
export function factorsOf(table: AnalysisTable): Factor[] {
  const depths = new Map<string, number>();
  return Array.from({ length: table.rows }, (_, row) => {
    const name = textIn(table, "factor", row);
    const depth = (depths.get(textIn(table, "parent", row)) ?? -1) + 1;
    depths.set(name, depth);
    return { name, value: numberIn(table, "value", row), depth };
  });
}

/** What made a rank late, and what that cost all others: those that waited for it, and those that waited for these. */
export type Cause = {
  readonly rank: number | undefined;
  readonly name: string;
  readonly directNs: number;
  readonly onNs: number;
  readonly location: number;
  readonly timeNs: number;
};

/** The first causes, in their order; waits without a known cause are left out. */
export function causesOf(table: AnalysisTable, most: number): Cause[] {
  const number = (name: string, row: number) => numberIn(table, name, row) ?? 0;
  return Array.from({ length: table.rows }, (_, row) => ({
    rank: numberIn(table, "rank", row),
    name: textIn(table, "cause", row),
    directNs: number("direct_ns", row),
    onNs: number("long_term_ns", row),
    location: number("location", row),
    timeNs: number("time_ns", row),
  }))
    .filter(({ directNs, onNs }) => directNs + onNs > 0)
    .slice(0, most);
}
