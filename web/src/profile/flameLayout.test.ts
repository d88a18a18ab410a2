import { describe, expect, test } from "vitest";
import { type CallTree, frameOf, frameOfRegion, nodeOfFrame, partOf, regionOfFrame } from "../data/callTree";
import { INITIAL } from "../state/address";
import { beside, boxes, calleesOf, callersOf, type Flame, flameOf, nodeAt, outermostOf, spanOf } from "./flameLayout";
import { findIn } from "./pathSearch";
import { regionRows, sortRegions } from "./regionRows";
import { flameSummary, nodeFacts } from "./treeWords";

type Row = readonly [name: string, parent: number, total: number, self: number, gpu?: number, device?: number];

/** A tree by hand: regions are numbered by name, call paths by row. */
function treeOf(rows: readonly Row[], unit = ""): CallTree {
  const regions = [...new Set(rows.map(([name]) => name))];
  return {
    count: rows.length,
    parent: Int32Array.from(rows, (row) => row[1]),
    callPath: Int32Array.from(rows, (row, i) => (row[5] ? row[1] : i)),
    region: Int32Array.from(rows, (row) => regions.indexOf(row[0])),
    device: Float64Array.from(rows, (row) => row[5] ?? 0),
    calls: Float64Array.from(rows, () => 2),
    totalNs: Float64Array.from(rows, (row) => row[2]),
    selfNs: Float64Array.from(rows, (row) => row[3]),
    gpuNs: Float64Array.from(rows, (row) => row[4] ?? 0),
    name: rows.map((row) => row[0]),
    group: rows.map(() => "compute"),
    file: rows.map(() => ""),
    line: new Float64Array(rows.length),
    about: { about: "", note: "", nodes: rows.length, unit },
  };
}

// main 100: a 30 (b 10), c 60 (b 20, a 25 (b 5)); kernels below b's calls and below c.
const TREE = treeOf([
  ["main", -1, 100, 10, 47],
  ["a", 0, 30, 20, 7],
  ["b", 1, 10, 10, 7],
  ["c", 0, 60, 15, 40],
  ["b", 3, 20, 20, 0],
  ["a", 3, 25, 20, 0],
  ["b", 5, 5, 5, 0],
  ["gemm", 2, 0, 0, 7, 1],
  ["gemm", 3, 0, 0, 40, 1],
]);

const placed = (tree: CallTree, flame: Flame): string[] =>
  Array.from(flame.children, (node) => {
    const name = tree.name[flame.of[node] ?? 0];
    return `${name} ${flame.depth[node]} ${flame.start[node]}+${flame.weight[node]}`;
  }).sort();

describe("the tree of calls as a flame", () => {
  test("is laid out with the heaviest to the left, or in order", () => {
    expect(placed(TREE, flameOf(TREE, "host", true))).toEqual(
      ["main 0 0+100", "c 1 0+60", "a 1 60+30", "a 2 0+25", "b 2 25+20", "b 2 60+10", "b 3 0+5"].sort(),
    );
    expect(placed(TREE, flameOf(TREE, "host", false))).toEqual(
      ["main 0 0+100", "a 1 0+30", "b 2 0+10", "c 1 30+60", "b 2 30+20", "a 2 50+25", "b 3 50+5"].sort(),
    );
  });
  test("of GPU time holds what was launched, and nothing else", () =>
    expect(placed(TREE, flameOf(TREE, "gpu", true))).toEqual(
      ["main 0 0+47", "c 1 0+40", "gemm 2 0+40", "a 1 40+7", "b 2 40+7", "gemm 3 40+7"].sort(),
    ));
  test("is as wide as its parts where a total does not hold them", () => {
    const circle = treeOf([
      ["f", -1, 10, 2],
      ["g", 0, 9, 9],
    ]);
    expect(flameOf(circle, "host", true).total).toBe(11);
  });
  test("counts a function that calls itself once, for its callers and callees too", () => {
    const tree = treeOf([
      ["main", -1, 10, 1],
      ["f", 0, 9, 4],
      ["f", 1, 5, 2],
      ["g", 2, 3, 3],
    ]);
    const [main = 0, f = 0] = tree.region;
    expect(outermostOf(tree, f)).toEqual([1]);
    expect(regionRows(tree, "host").find((row) => row.region === f)).toMatchObject({ totalNs: 9, selfNs: 6, calls: 4 });
    expect(placed(tree, calleesOf(tree, f, "host"))).toEqual(["f 0 0+9", "f 1 0+5", "g 2 0+3"]);
    expect(placed(tree, callersOf(tree, f, "host"))).toEqual(["f 0 0+9", "main 1 0+9"]);
    expect(outermostOf(tree, main)).toEqual([0]);
  });
});

describe("the sandwich", () => {
  const b = TREE.region[2] ?? -1;
  test("merges callers by their way to the root, with what is on their account", () =>
    expect(placed(TREE, callersOf(TREE, b, "host"))).toEqual(
      ["b 0 0+35", "c 1 0+20", "main 2 0+20", "a 1 20+15", "main 2 20+10", "c 2 30+5", "main 3 30+5"].sort(),
    ));
  test("merges callees from wherever the function is called", () => {
    const a = TREE.region[1] ?? -1;
    expect(placed(TREE, calleesOf(TREE, a, "host"))).toEqual(["a 0 0+55", "b 1 0+15"].sort());
    expect(placed(TREE, calleesOf(TREE, b, "gpu"))).toEqual(["b 0 0+7", "gemm 1 0+7"]);
  });
  test("has a row for each function, sorted as is wished", () => {
    const rows = (by: "name" | "self" | "total", down: boolean, measure: "host" | "gpu" = "host") =>
      sortRegions(regionRows(TREE, measure), { by, down }).map((row) => `${row.name} ${row.selfNs} ${row.totalNs}`);
    expect(rows("self", true)).toEqual(["a 40 55", "b 35 35", "c 15 60", "main 10 100"]);
    expect(rows("name", false)[0]).toBe("a 40 55");
    expect(rows("total", true, "gpu")).toEqual(["gemm 47 47", "main 0 47", "c 0 40", "a 0 7", "b 0 7"]);
  });
});

describe("what is on the screen", () => {
  const flame = flameOf(TREE, "host", true);
  test("is cut at the edges, and only of the depths that are seen", () => {
    const seen = boxes(flame, spanOf(flame, 1), 300, 0, 9).map(({ node, left, right }) => [node, left, right]);
    expect(seen).toEqual([
      [0, 0, 300],
      [1, 0, 300],
      [2, 0, 100],
    ]);
    expect(
      boxes(flame, spanOf(flame, -1), 100, 2, 2)
        .map((box) => box.node)
        .sort(),
    ).toEqual([2, 4, 5]);
  });
  test("joins what is too narrow, and does not look into it", () => {
    const many: Row[] = [["main", -1, 3000, 0]];
    for (let i = 0; i < 1000; i++) many.push([`f${i}`, 0, 2, 0], ["inside", 1 + 2 * i, 2, 2]);
    many.push(["wide", 0, 1000, 1000]);
    const wide = flameOf(treeOf(many), "host", true);
    expect(boxes(wide, spanOf(wide, -1), 300, 0, 9)).toEqual([
      { node: 0, depth: 0, left: 0, right: 300 },
      { node: 2001, depth: 1, left: 0, right: 100 },
      { node: -1, depth: 1, left: 100, right: 300 },
    ]);
  });
  test("is met by the pointer", () => {
    expect(nodeAt(flame, 61, 2)).toBe(2);
    expect(nodeAt(flame, 75, 2)).toBe(-1);
    expect(nodeAt(flame, 99, 1)).toBe(-1);
    expect(nodeAt(flame, 0, 0)).toBe(0);
  });
  test("can be walked by keys", () => {
    expect(beside(flame, -1, "down")).toBe(0);
    expect(beside(flame, 0, "down")).toBe(3);
    expect(beside(flame, 3, "right")).toBe(1);
    expect(beside(flame, 3, "left")).toBeUndefined();
    expect(beside(flame, 1, "up")).toBe(0);
    expect(beside(flame, 0, "up")).toBe(-1);
    expect(beside(flame, 6, "down")).toBeUndefined();
  });
});

describe("search and words", () => {
  test("give the share of everything that lies inside of the matches, each moment once", () => {
    expect(findIn(TREE, "B", "host")).toMatchObject({ count: 3, share: 0.35 });
    expect(findIn(TREE, "a -main", "host")).toMatchObject({ count: 2, share: 0.55 });
    expect(findIn(TREE, "group:compute", "host")?.share).toBe(1);
    expect(findIn(TREE, "gemm", "host")?.count).toBe(0);
    expect(findIn(TREE, "gemm", "gpu")).toMatchObject({ count: 2, share: 1 });
    expect(findIn(TREE, " dur:>1ms ", "host")).toBeUndefined();
  });
  test("describe a picture and a node", () => {
    expect(flameSummary(TREE, flameOf(TREE, "host", true), "Left heavy")).toBe(
      "Left heavy: 100 ns in 7 call paths; outermost main 100 %",
    );
    expect(nodeFacts(TREE, 3, "host", 100)).toBe("60 ns, 60 % of all; 15 ns self; 2 calls");
    expect(nodeFacts(TREE, 3, "gpu", 47)).toBe("40 ns, 85 % of all; 2 calls");
    expect(nodeFacts(treeOf([["f", -1, 3000, 1]], "samples"), 0, "host", 3000)).toBe(
      "3 000 samples, 100 % of all; 1 sample self; 2 calls",
    );
  });
});

describe("the address", () => {
  test("names a call path, what it launched, or a function", () => {
    for (const node of [0, 6, 7, 8]) expect(nodeOfFrame(TREE, frameOf(TREE, node))).toBe(node);
    expect(frameOf(TREE, 8)).toBe(`p3.${TREE.region[8]}`);
    expect(regionOfFrame(TREE, frameOf(TREE, 5))).toBe(TREE.region[5]);
    expect(regionOfFrame(TREE, frameOfRegion(3))).toBe(3);
    expect(nodeOfFrame(TREE, "p999")).toBe(-1);
    expect(nodeOfFrame(TREE, "nonsense")).toBe(-1);
    expect(regionOfFrame(TREE, "")).toBe(-1);
  });
  test("asks for a part of the run as the server names it", () => {
    const state = { ...INITIAL, step: 4, window: { startNs: 5, endNs: 9 }, level: "x" };
    const ask = (part: string, place = "") => partOf({ ...state, profile: { ...INITIAL.profile, part, place } });
    expect(ask("")).toEqual({});
    expect(ask("step", "l3")).toEqual({ step: 4, level: "x", locations: 3 });
    expect(ask("window", "p1")).toEqual({ start_ns: 5, end_ns: 9, processes: 1 });
    expect(ask("class.a-b")).toEqual({ class: "a-b", level: "x" });
    expect(partOf({ ...INITIAL, profile: { ...INITIAL.profile, part: "step" } })).toEqual({});
  });
});
