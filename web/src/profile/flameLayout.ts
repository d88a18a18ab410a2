// Flame graphs: who is inside of whom, how wide each is, and what of it is on the screen. Pure.

import { firstThat } from "../base/search";
import type { CallTree } from "../data/callTree";
import type { ProfileMeasure } from "../state/address";

/** Nodes with a weight; each lies inside of its parent, beside its siblings, without a gap to the one before. */
export type Flame = {
  readonly count: number;
  /** -1 at a root. */
  readonly parent: Int32Array;
  /** The node of the tree of calls whose name, group and kind it has. */
  readonly of: Int32Array;
  /** Width, and where it begins, in ns. */
  readonly weight: Float64Array;
  readonly start: Float64Array;
  readonly depth: Int32Array;
  /** Children of node i that have any width: `children` from `childrenFrom[i]` up to `childrenFrom[i + 1]`, by start; of the root: i = count. */
  readonly children: Int32Array;
  readonly childrenFrom: Int32Array;
  readonly total: number;
  readonly deepest: number;
};

/** The cost of a node with all that it calls, from the server. */
export const totalsOf = (tree: CallTree, measure: ProfileMeasure): Float64Array =>
  measure === "gpu" ? tree.gpuNs : tree.totalNs;

/** What a node costs alone. */
export const selfOf = (tree: CallTree, node: number, measure: ProfileMeasure): number =>
  measure === "host" ? (tree.selfNs[node] ?? 0) : tree.device[node] ? (tree.gpuNs[node] ?? 0) : 0;

/**
 * How wide nodes are drawn: at least as wide as what is below them. That is their total, except where a total does not hold its parts:
 * functions that call each other in a circle, or a caller that was left out of the chosen steps.
 */
export function widths(tree: CallTree, measure: ProfileMeasure): Float64Array {
  const totals = totalsOf(tree, measure);
  const inside = new Float64Array(tree.count);
  const width = new Float64Array(tree.count);
  for (let i = tree.count - 1; i >= 0; i--) {
    const own = measure === "host" ? Math.max(0, tree.selfNs[i] ?? 0) : 0;
    width[i] = Math.max(totals[i] ?? 0, (inside[i] ?? 0) + own);
    const parent = tree.parent[i] ?? -1;
    if (parent >= 0) inside[parent] = (inside[parent] ?? 0) + (width[i] ?? 0);
  }
  return width;
}

/** Lays nodes out; children by weight (the heaviest first), or in the order of their numbers. Parents come before children. */
function layOut(parent: Int32Array, of: Int32Array, weight: Float64Array, heaviestFirst: boolean): Flame {
  const count = parent.length;
  const childrenFrom = new Int32Array(count + 2);
  const slot = (node: number): number => (node < 0 ? count : node);
  const shown = Int32Array.from({ length: count }, (_, i) => i).filter((i) => (weight[i] ?? 0) > 0);
  for (const node of shown) {
    const at = slot(parent[node] ?? -1) + 1;
    childrenFrom[at] = (childrenFrom[at] ?? 0) + 1;
  }
  for (let i = 0; i <= count; i++) childrenFrom[i + 1] = (childrenFrom[i + 1] ?? 0) + (childrenFrom[i] ?? 0);
  const next = childrenFrom.slice();
  const children = new Int32Array(shown.length);
  if (heaviestFirst) shown.sort((a, b) => (weight[b] ?? 0) - (weight[a] ?? 0) || a - b);
  for (const node of shown) {
    const at = slot(parent[node] ?? -1);
    children[next[at] ?? 0] = node;
    next[at] = (next[at] ?? 0) + 1;
  }
  const start = new Float64Array(count);
  const depth = new Int32Array(count);
  let deepest = 0;
  let total = 0;
  const place = (node: number, from: number, level: number): number => {
    let at = from;
    for (let i = childrenFrom[node] ?? 0; i < (childrenFrom[node + 1] ?? 0); i++) {
      const child = children[i] ?? 0;
      start[child] = at;
      depth[child] = level;
      at += weight[child] ?? 0;
      deepest = Math.max(deepest, level);
    }
    return at;
  };
  total = place(count, 0, 0);
  for (let i = 0; i < count; i++) place(i, start[i] ?? 0, (depth[i] ?? 0) + 1);
  return { count, parent, of, weight, start, depth, children, childrenFrom, total, deepest };
}

/** The tree of calls as it is: merged by call path. */
export function flameOf(tree: CallTree, measure: ProfileMeasure, heaviestFirst: boolean): Flame {
  const same = Int32Array.from({ length: tree.count }, (_, i) => i);
  return layOut(tree.parent, same, widths(tree, measure), heaviestFirst);
}

/** Whether a node lies in no other one of its region: with these, recursion counts once. */
export function isOutermost(tree: CallTree, node: number): boolean {
  const region = tree.region[node];
  for (let up = tree.parent[node] ?? -1; up >= 0; up = tree.parent[up] ?? -1)
    if (tree.region[up] === region) return false;
  return true;
}

export const outermostOf = (tree: CallTree, region: number): number[] =>
  [...tree.region.keys()].filter((node) => tree.region[node] === region && isOutermost(tree, node));

/** Collects nodes by their way from the root: ways with the same regions are one node, and their weights add up. */
class Merged {
  private readonly known = new Map<string, number>();
  private readonly parent: number[] = [];
  private readonly of: number[] = [];
  private readonly weight: number[] = [];

  constructor(private readonly tree: CallTree) {}

  add(parent: number, node: number, weight: number): number {
    const key = `${parent}/${this.tree.region[node]}`;
    let at = this.known.get(key);
    if (at === undefined) {
      at = this.parent.length;
      this.known.set(key, at);
      this.parent.push(parent);
      this.of.push(node);
      this.weight.push(0);
    }
    this.weight[at] = (this.weight[at] ?? 0) + weight;
    return at;
  }

  get flame(): Flame {
    return layOut(Int32Array.from(this.parent), Int32Array.from(this.of), Float64Array.from(this.weight), true);
  }
}

/** Who calls a function: the function at the root, inside it its callers with what of its time is on their account. */
export function callersOf(tree: CallTree, region: number, measure: ProfileMeasure): Flame {
  const width = widths(tree, measure);
  const merged = new Merged(tree);
  for (const node of outermostOf(tree, region)) {
    let at = -1;
    for (let up = node; up >= 0; up = tree.parent[up] ?? -1) at = merged.add(at, up, width[node] ?? 0);
  }
  return merged.flame;
}

/** What a function calls, from wherever it is called. */
export function calleesOf(tree: CallTree, region: number, measure: ProfileMeasure): Flame {
  const width = widths(tree, measure);
  const merged = new Merged(tree);
  const place = new Int32Array(tree.count).fill(-1);
  for (const node of outermostOf(tree, region)) place[node] = merged.add(-1, node, width[node] ?? 0);
  for (let i = 0; i < tree.count; i++) {
    const parent = tree.parent[i] ?? -1;
    const above = parent >= 0 ? (place[parent] ?? -1) : -1;
    if (above >= 0) place[i] = merged.add(above, i, width[i] ?? 0);
  }
  return merged.flame;
}

/** A node on the screen, or (`node` -1) neighbours that are too narrow to be seen one by one; in CSS pixels. */
export type Box = { readonly node: number; readonly depth: number; readonly left: number; readonly right: number };

/** What the width of the screen shows, in ns from the left end of the flame. */
export type Span = { readonly from: number; readonly to: number };

/** Nodes narrower than this are drawn together with their narrow neighbours, in CSS pixels. */
const NARROWEST = 0.7;

/** The boxes of the depths [firstDepth, lastDepth] inside of a span. What is inside of too narrow ones is not even looked at. */
export function boxes(flame: Flame, span: Span, widthPx: number, firstDepth: number, lastDepth: number): Box[] {
  const scale = widthPx / Math.max(Number.MIN_VALUE, span.to - span.from);
  const found: Box[] = [];
  const add = (node: number, depth: number, from: number, to: number): void => {
    const [left, right] = [Math.max(0, (from - span.from) * scale), Math.min(widthPx, (to - span.from) * scale)];
    if (depth >= firstDepth && right > left) found.push({ node, depth, left, right });
  };
  const waiting = [flame.count];
  for (let parent = waiting.pop(); parent !== undefined; parent = waiting.pop()) {
    const depth = parent === flame.count ? 0 : (flame.depth[parent] ?? 0) + 1;
    const last = flame.childrenFrom[parent + 1] ?? 0;
    let narrowFrom = Number.NaN;
    let at = firstEndingAfter(flame, flame.childrenFrom[parent] ?? 0, last, span.from);
    for (; at < last; at++) {
      const child = flame.children[at] ?? 0;
      const from = flame.start[child] ?? 0;
      const weight = flame.weight[child] ?? 0;
      if (from >= span.to) break;
      if (weight * scale < NARROWEST) {
        if (Number.isNaN(narrowFrom)) narrowFrom = from;
        continue;
      }
      if (!Number.isNaN(narrowFrom)) add(-1, depth, narrowFrom, from);
      narrowFrom = Number.NaN;
      add(child, depth, from, from + weight);
      if (depth < lastDepth) waiting.push(child);
    }
    const end = flame.children[at - 1];
    if (!Number.isNaN(narrowFrom) && end !== undefined)
      add(-1, depth, narrowFrom, (flame.start[end] ?? 0) + (flame.weight[end] ?? 0));
  }
  return found;
}

/** The first of siblings that reaches beyond a place: they lie in order. */
function firstEndingAfter(flame: Flame, first: number, last: number, at: number): number {
  const endOf = (node: number): number => (flame.start[node] ?? 0) + (flame.weight[node] ?? 0);
  return first + firstThat(last - first, (i) => endOf(flame.children[first + i] ?? 0) > at);
}

/** The node of a depth at a place, -1 where there is none. */
export function nodeAt(flame: Flame, at: number, depth: number): number {
  let parent = flame.count;
  for (let level = 0; level <= depth; level++) {
    const last = flame.childrenFrom[parent + 1] ?? 0;
    const found = firstEndingAfter(flame, flame.childrenFrom[parent] ?? 0, last, at);
    const node = flame.children[found] ?? -1;
    if (found >= last || (flame.start[node] ?? 0) > at) return -1;
    parent = node;
  }
  return parent;
}

/** What the screen shows when a node is zoomed to; all of it where none is (-1). */
export const spanOf = (flame: Flame, node: number): Span =>
  node < 0 || !(flame.weight[node] ?? 0)
    ? { from: 0, to: Math.max(1, flame.total) }
    : { from: flame.start[node] ?? 0, to: (flame.start[node] ?? 0) + (flame.weight[node] ?? 0) };

/** The children of a node; of the root: below 0. */
export function childrenOf({ children, childrenFrom, count }: Flame, node: number): Int32Array {
  const at = node < 0 ? count : node;
  return children.subarray(childrenFrom[at], childrenFrom[at + 1]);
}

export type Step = "up" | "down" | "left" | "right";

/** The node beside, around or inside another one: for those who walk by keys. -1 is the whole; undefined: there is none. */
export function beside(flame: Flame, node: number, step: Step): number | undefined {
  if (step === "down") {
    const inside = [...childrenOf(flame, node)];
    return inside.sort((a, b) => (flame.weight[b] ?? 0) - (flame.weight[a] ?? 0))[0];
  }
  if (node < 0) return undefined;
  const parent = flame.parent[node] ?? -1;
  if (step === "up") return parent;
  const siblings = childrenOf(flame, parent);
  return siblings[siblings.indexOf(node) + (step === "left" ? -1 : 1)];
}
