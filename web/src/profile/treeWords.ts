// The call tree in words: descriptions of canvases, and tooltips of nodes. Pure.

import { formatCount, formatQuantity, formatShare, plural } from "../base/quantity";
import { formatDuration } from "../base/time";
import type { CallTree } from "../data/callTree";
import type { ProfileMeasure } from "../state/address";
import { childrenOf, type Flame, selfOf, totalsOf } from "./flameLayout";

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
  const roots = childrenOf(flame, -1);
  const widest = [...roots].sort((a, b) => (flame.weight[b] ?? 0) - (flame.weight[a] ?? 0)).slice(0, 3);
  const outermost = widest.map((node) => {
    const share = formatShare(flame.total ? (flame.weight[node] ?? 0) / flame.total : 0);
    return `${tree.name[flame.of[node] ?? 0]} ${share}`;
  });
  const more = roots.length > outermost.length ? `, and ${formatCount(roots.length - outermost.length)} more` : "";
  return `${title}: ${amount(tree, flame.total)} in ${plural(flame.children.length, "call path")}; outermost ${outermost.join(", ")}${more}`;
}
