// Functions of a tree of calls, wherever they are called: the table of the sandwich. Pure.

import type { Group } from "../base/kinds.generated";
import type { CallTree } from "../data/callTree";
import type { ProfileMeasure } from "../state/address";
import { isOutermost, selfOf, totalsOf } from "./flameLayout";

export type RegionRow = {
  readonly region: number;
  /** One of its nodes: name, group, file and line are those of that. */
  readonly node: number;
  readonly name: string;
  readonly group: Group;
  readonly calls: number;
  /** With all that it calls; a call inside of one of the same function counts once. */
  readonly totalNs: number;
  readonly selfNs: number;
};

/** A row for every function that has any time in a measure. */
export function regionRows(tree: CallTree, measure: ProfileMeasure): RegionRow[] {
  type Sums = { -readonly [K in keyof RegionRow]: RegionRow[K] };
  const rows = new Map<number, Sums>();
  const totals = totalsOf(tree, measure);
  for (let i = 0; i < tree.count; i++) {
    const region = tree.region[i] ?? 0;
    let row = rows.get(region);
    if (!row) {
      const [name, group] = [tree.name[i] ?? "", tree.group[i] ?? "other"];
      row = { region, node: i, name, group, calls: 0, totalNs: 0, selfNs: 0 };
      rows.set(region, row);
    }
    row.calls += tree.calls[i] ?? 0;
    row.selfNs += selfOf(tree, i, measure);
    if (isOutermost(tree, i)) row.totalNs += totals[i] ?? 0;
  }
  return [...rows.values()].filter((row) => row.totalNs > 0 || row.selfNs > 0);
}

export const REGION_ORDERS = ["name", "calls", "self", "total"] as const;
export type RegionOrder = { readonly by: (typeof REGION_ORDERS)[number]; readonly down: boolean };

/** Sorts rows; of equal ones those with more self time first. */
export function sortRegions(rows: readonly RegionRow[], { by, down }: RegionOrder): RegionRow[] {
  const compare = {
    name: (a: RegionRow, b: RegionRow) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
    calls: (a: RegionRow, b: RegionRow) => a.calls - b.calls,
    self: (a: RegionRow, b: RegionRow) => a.selfNs - b.selfNs,
    total: (a: RegionRow, b: RegionRow) => a.totalNs - b.totalNs,
  }[by];
  const sign = down ? -1 : 1;
  return [...rows].sort((a, b) => sign * compare(a, b) || b.selfNs - a.selfNs || a.region - b.region);
}
