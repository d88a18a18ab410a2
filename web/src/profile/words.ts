// The call tree in words: what canvases say of themselves, and what tooltips say of a node. Pure.

import { formatCount, formatQuantity, formatShare, plural } from "../base/quantity";
import type { ProfileMeasure } from "../base/state";
import { formatDuration } from "../base/time";
import type { CallTree } from "../data/callTree";
import { type Flame, selfOf, totalsOf } from "./flame";

export const MEASURE_TITLES: Readonly<Record<ProfileMeasure, string>> = { host: "Host time", gpu: "GPU time" };
/** The same inside of a sentence. */
export const MEASURE_NAMES: Readonly<Record<ProfileMeasure, string>> = { host: "host time", gpu: "GPU time" };

/** A weight of a tree: a time, or what stands in for it. */
export function amount(tree: CallTree, value: number): string {
  const { unit } = tree.about;
  if (!unit) return formatDuration(value);
  return unit === "bytes"
    ? formatQuantity(value, unit)
    : `${formatCount(value)} ${value === 1 ? unit.replace(/s$/, "") : unit}`;
}

/** "65.2 ms, 31 % of all; 12.1 ms self; 148 calls". */
export function nodeFacts(tree: CallTree, node: number, measure: ProfileMeasure, allNs: number): string {
  const total = totalsOf(tree, measure)[node] ?? 0;
  const self = selfOf(tree, node, measure);
  const calls = tree.calls[node] ?? 0;
  const parts = [
    `${amount(tree, total)}, ${formatShare(allNs ? total / allNs : 0)} of all`,
    ...(measure === "host" || tree.device[node] ? [`${amount(tree, self)} self`] : []),
    ...(calls ? [plural(calls, "call")] : []),
  ];
  return parts.join("; ");
}

/** The widest roots of a flame, in words. */
export function flameSummary(tree: CallTree, flame: Flame, title: string): string {
  const roots = flame.children.subarray(flame.childrenFrom[flame.count], flame.childrenFrom[flame.count + 1]);
  const widest = [...roots].sort((a, b) => (flame.weight[b] ?? 0) - (flame.weight[a] ?? 0)).slice(0, 3);
  const said = widest.map((node) => {
    const share = formatShare(flame.total ? (flame.weight[node] ?? 0) / flame.total : 0);
    return `${tree.names[flame.of[node] ?? 0]} ${share}`;
  });
  const more = roots.length > said.length ? `, and ${formatCount(roots.length - said.length)} more` : "";
  return `${title}: ${amount(tree, flame.total)} in ${plural(flame.children.length, "call path")}; outermost ${said.join(", ")}${more}`;
}
