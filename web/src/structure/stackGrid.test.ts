import { describe, expect, test } from "vitest";
import { columnAt, columnEdges, missingBefore, rowHeight, runsOf } from "./stackGrid";

describe("columns", () => {
  test("are equally wide, or as wide as their time, and fill the width exactly", () => {
    expect([...columnEdges([1, 98, 1], 300, "equal")]).toEqual([0, 100, 200, 300]);
    const wide = columnEdges([0, 96, 0], 300, "time");
    expect(wide[3]).toBeCloseTo(300);
    expect([wide[1], (wide[3] ?? 0) - (wide[2] ?? 0)]).toEqual([2, 2]);
  });
  test("share too little room fairly", () => {
    const edges = columnEdges(Array(1000).fill(1), 500, "time");
    expect(edges[1000]).toBeCloseTo(500);
    expect(edges[500]).toBeCloseTo(250);
  });
  test("are found under the pointer", () => {
    const edges = columnEdges([1, 1, 2], 400, "equal");
    expect([0, 133, 134, 399, 5000, -5].map((x) => columnAt(edges, x))).toEqual([0, 0, 1, 2, 2, 0]);
  });
  test("of folded groups are wide enough to be pressed, and the others share the rest", () => {
    expect([...columnEdges([5, 1, 1], 272, "equal", [true, false, false])]).toEqual([0, 72, 172, 272]);
    expect([...columnEdges([5, 5], 300, "time", [true, true])]).toEqual([0, 150, 300]);
  });
  test("without any time are equally wide", () => expect([...columnEdges([0, 0], 100, "time")]).toEqual([0, 50, 100]));
});

test("rows fill the height, few and many", () => {
  expect(rowHeight(1000, 500)).toBe(0.5);
  expect(rowHeight(4, 500)).toBe(125);
});

test("runs join what is equal and neighbours", () =>
  expect(runsOf(["a", "a", "b", "a"])).toEqual([
    { from: 0, to: 2, item: "a" },
    { from: 2, to: 3, item: "b" },
    { from: 3, to: 4, item: "a" },
  ]));

test("missing steps are found where each row is one step", () => {
  expect(missingBefore([0, 1, 5, 6, 9], [1, 1, 1, 1, 1])).toEqual([2, 4]);
  expect(missingBefore([0, 14, 25], [10, 10, 10])).toEqual([]);
});
