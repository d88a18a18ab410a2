// What the flow graph looks like before it is laid out: which nodes are shown, how wide an edge is, which paths are rare. Pure.

import { middleCut, shortName } from "../base/names";
import { formatCount, formatShare } from "../base/quantity";
import type { FlowEdge, FlowNode, Structure } from "../data/structure";

/** More nodes than a person follows: the ones that take least time are left out. */
export const MOST_NODES = 60;
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

/** Decides what is shown of a graph, and how. */
export function flowOf({ graph, levels }: Structure): Flow {
  const total = graph.nodes.reduce((sum, node) => sum + node.time_ns, 0);
  const counts = new Map(levels.map((level) => [level.id, level.count]));
  const usual = levels.find((level) => level.is_step)?.count ?? Math.max(1, ...graph.nodes.map((node) => node.count));
  const kept = [...graph.nodes].sort((a, b) => b.time_ns - a.time_ns || b.count - a.count).slice(0, MOST_NODES);
  const shown = new Set(kept.map((node) => node.id));
  const nodes = graph.nodes
    .filter((node) => shown.has(node.id))
    .map((node): ShownNode => {
      const lines = linesOf(node);
      const foot = `${formatCount(node.count)} ×  ·  ${formatShare(total ? node.time_ns / total : 0)}`;
      const letters = Math.max(foot.length * 0.9, ...lines.map((line) => line.length));
      return {
        node,
        lines,
        foot,
        share: total ? node.time_ns / total : 0,
        heat: 0,
        rare: node.count < RARE_NODE * Math.min(usual, counts.get(node.level) ?? usual),
        width: Math.max(84, Math.round(letters * 6.4) + 22),
        height: (lines.length + 1) * LINE + 11,
      };
    });
  const byId = new Map(nodes.map((one) => [one.node.id, one]));
  const warmest = Math.max(1e-9, ...nodes.map((one) => one.share));
  const drawn = graph.edges.filter((edge) => shown.has(edge.source) && shown.has(edge.target));
  const most = Math.max(1, ...drawn.map((edge) => edge.count));
  const longest = Math.max(1, ...drawn.map((edge) => edge.time_ns));
  const edges = drawn.map((edge): ShownEdge => {
    const [from, to] = [byId.get(edge.source), byId.get(edge.target)];
    const rare =
      from?.rare || to?.rare || edge.count < RARE_EDGE * Math.min(from?.node.count ?? 0, to?.node.count ?? 0);
    const width = 1 + (4.5 * Math.log1p(edge.count)) / Math.log1p(most);
    return { edge, width, share: edge.time_ns / longest, rare: rare === true };
  });
  return {
    nodes: nodes.map((one) => ({ ...one, heat: one.share / warmest })),
    edges,
    left: graph.nodes.length - nodes.length,
  };
}
