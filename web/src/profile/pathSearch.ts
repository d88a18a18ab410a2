// Search in the tree of calls: words of names, as in the search over spans. Pure.

import type { CallTree } from "../data/callTree";
import type { ProfileMeasure } from "../state/address";
import { widths } from "./flameLayout";

/** `conv -backward group:compute`: all parts must hold. What only spans have (durations, roles) is not looked at. */
function matcher(query: string): ((name: string, group: string) => boolean) | undefined {
  const parts = query
    .toLowerCase()
    .split(/\s+/)
    .filter((part) => part && !/^(dur|paradigm|role):/.test(part));
  if (!parts.length) return undefined;
  return (name, group) => {
    const lower = name.toLowerCase();
    return parts.every((part) => {
      if (part.startsWith("group:")) return group === part.slice("group:".length);
      return part.startsWith("-") && part.length > 1 ? !lower.includes(part.slice(1)) : lower.includes(part);
    });
  };
}

export type Matches = {
  /** 1 for nodes of the tree that match. */
  readonly nodes: Uint8Array;
  readonly count: number;
  /** What matching nodes cost with all that they call, each moment once, as a part of everything. */
  readonly share: number;
};

/** What of a tree a query matches; undefined where it asks for nothing. */
export function findIn(tree: CallTree, query: string, measure: ProfileMeasure): Matches | undefined {
  const matches = matcher(query);
  if (!matches) return undefined;
  const nodes = new Uint8Array(tree.count);
  const inside = new Uint8Array(tree.count);
  const width = widths(tree, measure);
  let [count, found, all] = [0, 0, 0];
  for (let i = 0; i < tree.count; i++) {
    const parent = tree.parent[i] ?? -1;
    const around = parent >= 0 && inside[parent] === 1;
    const here = (width[i] ?? 0) > 0 && matches(tree.name[i] ?? "", tree.group[i] ?? "other");
    if (here) {
      nodes[i] = 1;
      count++;
      if (!around) found += width[i] ?? 0;
    }
    inside[i] = around || here ? 1 : 0;
    if (parent < 0) all += width[i] ?? 0;
  }
  return { nodes, count, share: all ? found / all : 0 };
}
