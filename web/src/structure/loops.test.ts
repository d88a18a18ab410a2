import { describe, expect, test } from "vitest";
import type { FlowNode, Level, Structure } from "../data/structure";
import { flowOf, linesOf, MOST_NODES } from "./flow";
import { inOrder, tripsText } from "./LoopTree";

const level = (id: number, parent: number, share: number, count = 100): Level => ({
  id,
  name: `level ${id}`,
  marker: "m",
  count,
  parent,
  trips: [1, 1, 1],
  spine: 10,
  coverage: 1,
  cvn: 0,
  score: 1,
  is_step: id === 0,
  time_ns: 1,
  share,
  first_ns: 0,
  last_ns: 1,
});
const node = (id: number, count: number, time_ns: number, members: string[] = [`op${id}`]): FlowNode => ({
  id,
  name: members[0] ?? "",
  group: "compute",
  count,
  time_ns,
  level: 0,
  members,
});
const structure = (nodes: FlowNode[], edges: Structure["graph"]["edges"]): Structure => ({
  process: 0,
  stream: "operators",
  confidence: "high",
  reason: "",
  streams: [],
  levels: [level(0, -1, 1)],
  graph: { nodes, edges, overflow: false },
  loops: [],
  expression: "",
});

describe("the tree of loops", () => {
  test("lists each loop before those in it, the longest first", () => {
    const levels = [level(3, 1, 0.2), level(1, -1, 0.9), level(2, 1, 0.5), level(4, 99, 0.1)];
    expect(inOrder(levels).map(({ level: { id }, depth }) => [id, depth])).toEqual([
      [1, 0],
      [2, 1],
      [3, 1],
      [4, 0],
    ]);
  });
  test("tells how often a loop runs in the one around it", () =>
    expect([tripsText([12, 12, 12]), tripsText([5, 6, 7])]).toEqual(["12 ×", "5–7 ×"]));
});

describe("the flow graph", () => {
  test("shows all names of a short chain and the ends of a long one", () => {
    expect(linesOf(node(0, 1, 1, ["aten::a", "aten::b"]))).toEqual(["a", "b"]);
    expect(linesOf(node(0, 1, 1, [..."abcdefg"]))).toEqual(["a", "b", "… 4 more …", "g"]);
  });
  test("draws a path dashed that few iterations take, and wide edges where many do", () => {
    const edges = [
      { source: 0, target: 1, count: 90, time_ns: 10, back: false },
      { source: 0, target: 2, count: 10, time_ns: 10, back: false },
      { source: 1, target: 0, count: 99, time_ns: 10, back: true },
    ];
    const flow = flowOf(structure([node(0, 100, 5), node(1, 90, 5), node(2, 10, 5)], edges));
    expect(flow.edges.map((one) => one.rare)).toEqual([false, true, false]);
    expect(flow.nodes.map((one) => one.rare)).toEqual([false, false, true]);
    expect(flow.edges[0]?.width).toBeGreaterThan(flow.edges[1]?.width ?? 9);
    expect(flow.nodes[0]?.share).toBeCloseTo(1 / 3);
  });
  test("leaves the shortest nodes out where there are too many, with their edges", () => {
    const nodes = Array.from({ length: MOST_NODES + 5 }, (_, i) => node(i, 10, 1000 - i));
    const edges = nodes
      .slice(1)
      .map((one) => ({ source: one.id - 1, target: one.id, count: 10, time_ns: 0, back: false }));
    const flow = flowOf(structure(nodes, edges));
    expect([flow.nodes.length, flow.left, flow.edges.length]).toEqual([MOST_NODES, 5, MOST_NODES - 1]);
  });
});
