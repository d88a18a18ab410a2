// What the flow graph looks like before it is laid out: which nodes are shown, how wide an edge is, which paths are rare. Pure.

import { middleCut, shortName } from "../base/names";
import { formatCount, formatShare } from "../base/quantity";
import type { FlowEdge, FlowNode, OpenedFlow, Structure } from "../data/wire/wire.generated";

/** More nodes than a person follows: the ones that take least time are left out. */
export const MOST_NODES = 60;
/** Work of fewer than this share of the steps is left out. */
const LEAST_SHARE = 0.02;
/** Of the iterations of its loop, or of what leaves a node, so few take a rare path. */
const RARE_NODE = 0.5;
const RARE_EDGE = 0.2;
const LONGEST_NAME = 30;
const LINE = 15;

export type ShownNode = {
  readonly node: FlowNode;
  /** Lines of text: names, of a long chain the first and the last. */
  readonly lines: readonly string[];
  readonly foot: string;
  /** Share of the time of all nodes, and the same as a part of the largest. */
  readonly share: number;
  readonly heat: number;
  readonly rare: boolean;
  readonly width: number;
  readonly height: number;
};

export type ShownEdge = {
  readonly edge: FlowEdge;
  /** Against the order in which the nodes are read: back to the head of a loop. */
  readonly up: boolean;
  readonly width: number;
  readonly share: number;
  readonly rare: boolean;
};

export type Flow = {
  readonly nodes: readonly ShownNode[];
  readonly edges: readonly ShownEdge[];
  readonly left: number;
};

/** Names of a node: all of a short chain, the ends of a long one. */
export function linesOf({ name, members }: FlowNode): string[] {
  const names = (members.length ? members : [name]).map((member) => middleCut(shortName(member), LONGEST_NAME));
  if (names.length <= 4) return names;
  return [names[0] ?? "", names[1] ?? "", `… ${names.length - 3} more …`, names.at(-1) ?? ""];
}

/**
 * Nodes in the order in which a person reads a step: from where it begins along the transitions that are taken most often, then what was
 * passed by. A layout by cycles alone would begin anywhere: every node of a loop lies before and behind every other one.
 */
export function readingOrder(nodes: readonly FlowNode[], edges: readonly FlowEdge[], start: number): number[] {
  const ways = new Map<number, FlowEdge[]>(nodes.map((node) => [node.id, []]));
  for (const edge of edges) if (ways.has(edge.target)) ways.get(edge.source)?.push(edge);
  for (const out of ways.values()) out.sort((a, b) => b.count - a.count);
  const order: number[] = [];
  const seen = new Set<number>();
  const walk = (from: number): void => {
    for (let at: number | undefined = from; at !== undefined; ) {
      seen.add(at);
      order.push(at);
      at = ways.get(at)?.find((edge) => !seen.has(edge.target))?.target;
    }
  };
  if (ways.has(start)) walk(start);
  while (order.length < nodes.length) {
    // The earliest node with something left to see, so that a side path stands beside what it leaves.
    const left = order.flatMap((at) => ways.get(at) ?? []).find((edge) => !seen.has(edge.target));
    const next = left?.target ?? nodes.find((node) => !seen.has(node.id))?.id;
    if (next === undefined) break;
    walk(next);
  }
  return order;
}

/** The node that a step begins with: where it waits for data, else what follows its marker most often, else the first one. */
function startOf({ graph, levels }: Structure, usual: number): number {
  const near = (count: number): number => Math.abs(count - usual);
  const waits = graph.nodes.filter((node) => node.group === "data" && near(node.count) <= 0.2 * usual);
  const [wait] = waits.sort((a, b) => near(a.count) - near(b.count));
  if (wait) return wait.id;
  const marker = levels.find((level) => level.is_step)?.marker;
  const marked = graph.nodes.find((node) => node.members.includes(marker ?? ""));
  const next = graph.edges.filter((edge) => edge.source === marked?.id).sort((a, b) => b.count - a.count)[0];
  return next?.target ?? graph.nodes[0]?.id ?? 0;
}

/** The loops with another graph: that of operators, where there are any, and with counts of steps to match. */
export function withFlow(structure: Structure, flow: OpenedFlow): Structure {
  if (structure.stream !== "operators" || !flow.nodes.length) return structure;
  const { kept_steps: kept } = structure;
  const levels = structure.levels.map((level) =>
    level.is_step && kept !== undefined ? { ...level, count: kept } : level,
  );
  return { ...structure, levels, graph: flow };
}

/** Decides what is shown of a graph, and how: what the steps do, or the whole run with its beginning and its end. */
export function flowOf(structure: Structure, whole: boolean): Flow {
  const { graph, levels } = structure;
  const total = graph.nodes.reduce((sum, node) => sum + node.time_ns, 0);
  const counts = new Map(levels.map((level) => [level.id, level.count]));
  const usual = levels.find((level) => level.is_step)?.count ?? Math.max(1, ...graph.nodes.map((node) => node.count));
  const least = whole ? 0 : Math.max(1, LEAST_SHARE * usual);
  const of = graph.nodes.filter((node) => node.count >= least && (whole || !levels.length || node.level >= 0));
  const again = new Set(graph.edges.filter((edge) => edge.source === edge.target).map((edge) => edge.source));
  const kept = of.sort((a, b) => b.time_ns - a.time_ns || b.count - a.count).slice(0, MOST_NODES);
  const shown = new Set(kept.map((node) => node.id));
  const nodes = graph.nodes
    .filter((node) => shown.has(node.id))
    .map((node): ShownNode => {
      const lines = linesOf(node);
      const foot = `${again.has(node.id) ? "⟳ " : ""}${formatCount(node.count)} ×  ·  ${formatShare(total ? node.time_ns / total : 0)}`;
      const letters = Math.max(foot.length * 0.9, ...lines.map((line) => line.length));
      return {
        node,
        lines,
        foot,
        share: total ? node.time_ns / total : 0,
        heat: 0,
        rare: node.count < RARE_NODE * Math.min(usual, counts.get(node.level) ?? usual),
        // With room for the sign that opens it.
        width: Math.max(84, Math.round(letters * 7) + 38),
        height: (lines.length + 1) * LINE + 11,
      };
    });
  const byId = new Map(nodes.map((one) => [one.node.id, one]));
  const warmest = Math.max(1e-9, ...nodes.map((one) => one.share));
  // A node that follows itself has a sign; an edge from a node to itself only stands in the way.
  const drawn = graph.edges.filter(
    (edge) => shown.has(edge.source) && shown.has(edge.target) && edge.source !== edge.target && edge.count >= least,
  );
  const order = readingOrder(
    nodes.map((one) => one.node),
    drawn,
    startOf(structure, usual),
  );
  const place = new Map(order.map((id, at) => [id, at]));
  const most = Math.max(1, ...drawn.map((edge) => edge.count));
  const longest = Math.max(1, ...drawn.map((edge) => edge.time_ns));
  const edges = drawn.map((edge): ShownEdge => {
    const [from, to] = [byId.get(edge.source), byId.get(edge.target)];
    const rare =
      from?.rare || to?.rare || edge.count < RARE_EDGE * Math.min(from?.node.count ?? 0, to?.node.count ?? 0);
    const width = 1 + (4.5 * Math.log1p(edge.count)) / Math.log1p(most);
    const up = (place.get(edge.source) ?? 0) > (place.get(edge.target) ?? 0);
    return { edge, up, width, share: edge.time_ns / longest, rare: rare === true };
  });
  const read = [...nodes].sort((a, b) => (place.get(a.node.id) ?? 0) - (place.get(b.node.id) ?? 0));
  return {
    nodes: read.map((one) => ({ ...one, heat: one.share / warmest })),
    edges,
    left: graph.nodes.length - nodes.length,
  };
}
