import { describe, expect, test } from "vitest";
import type { FlowNode, Level, Structure } from "../data/wire/wire.generated";

import { inOrder, tripsText } from "./LoopTree";
import { flowOf, linesOf, MOST_NODES, readingOrder, withFlow } from "./shownFlow";

const level = (id: number, parent: number, share: number, count = 100): Level => ({
  id,
  name: `level ${id}`,
  marker: "m",
  count,
  in_detail: undefined,
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
  kept_steps: undefined,
});

describe("the graph of what is in detail", () => {
  const every = structure([node(0, 100, 500), node(1, 100, 500)], []);
  const flow = { nodes: [node(0, 10, 50)], edges: [], overflow: false, holds: [] };
  test("is compared with the steps in detail, so that what all of them do is not rare", () => {
    const shown = flowOf(withFlow({ ...every, kept_steps: 10 }, flow), false);
    expect(shown.nodes.map((one) => [one.node.count, one.rare])).toEqual([[10, false]]);
    expect(flowOf({ ...every, graph: flow }, false).nodes[0]?.rare).toBe(true);
  });
  test("stands only for operators", () => {
    expect(withFlow({ ...every, stream: "calls" }, flow).graph.nodes).toHaveLength(2);
    expect(withFlow(every, { ...flow, nodes: [] }).graph.nodes).toHaveLength(2);
  });
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
  test("gives how often a loop runs in the one around it", () =>
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
    const flow = flowOf(structure([node(0, 100, 5), node(1, 90, 5), node(2, 10, 5)], edges), false);
    expect(flow.edges.map((one) => one.rare)).toEqual([false, true, false]);
    expect(flow.nodes.map((one) => one.rare)).toEqual([false, false, true]);
    expect(flow.edges[0]?.width).toBeGreaterThan(flow.edges[1]?.width ?? 9);
    expect(flow.nodes[0]?.share).toBeCloseTo(1 / 3);
  });
  test("shows what the steps do, and only if asked for what comes before and after them", () => {
    const nodes = [{ ...node(0, 1, 5), level: -1 }, node(1, 100, 5), node(2, 100, 5), node(3, 1, 5)];
    const edge = (source: number, target: number, count: number) => ({
      source,
      target,
      count,
      time_ns: 0,
      back: false,
    });
    const edges = [edge(0, 1, 1), edge(1, 1, 50), edge(1, 2, 99), edge(2, 1, 99), edge(2, 3, 1)];
    const shown = (whole: boolean) => {
      const flow = flowOf(structure(nodes, edges), whole);
      return [flow.nodes.map((one) => one.node.id), flow.edges.map(({ edge: { source, target } }) => [source, target])];
    };
    expect(shown(false)).toEqual([
      [1, 2],
      [
        [1, 2],
        [2, 1],
      ],
    ]);
    expect(shown(true)[0]).toEqual([0, 1, 2, 3]);
    expect(flowOf(structure(nodes, edges), false).nodes[0]?.foot).toMatch(/^⟳ 100 ×/);
  });
  test("is read from where the step begins along what is done most often, side paths after what they leave", () => {
    const edge = (source: number, target: number, count: number) => ({
      source,
      target,
      count,
      time_ns: 0,
      back: false,
    });
    const nodes = [0, 1, 2, 3, 4].map((id) => node(id, 100, 1));
    // 3 begins: 3 → 4 → 0 → 1 → 3, and at times 4 → 2 → 0.
    const edges = [edge(0, 1, 99), edge(1, 3, 99), edge(3, 4, 99), edge(4, 0, 90), edge(4, 2, 9), edge(2, 0, 9)];
    expect(readingOrder(nodes, edges, 3)).toEqual([3, 4, 0, 1, 2]);
    expect(readingOrder(nodes, [], 7)).toEqual([0, 1, 2, 3, 4]);
    const begins = { ...node(3, 100, 1), group: "data" as const };
    const flow = flowOf(structure([...nodes.slice(0, 3), begins, node(4, 100, 1)], edges), false);
    expect(flow.nodes[0]?.node.id).toBe(3);
    expect(flow.edges.filter((one) => one.up).map((one) => [one.edge.source, one.edge.target])).toEqual([
      [1, 3],
      [2, 0],
    ]);
  });
  test("leaves the shortest nodes out where there are too many, with their edges", () => {
    const nodes = Array.from({ length: MOST_NODES + 5 }, (_, i) => node(i, 10, 1000 - i));
    const edges = nodes
      .slice(1)
      .map((one) => ({ source: one.id - 1, target: one.id, count: 10, time_ns: 0, back: false }));
    const flow = flowOf(structure(nodes, edges), true);
    expect([flow.nodes.length, flow.left, flow.edges.length]).toEqual([MOST_NODES, 5, MOST_NODES - 1]);
  });
});
