import { describe, expect, test } from "vitest";
import { asRanges, barOrder, differences, longestBar } from "./barOrder";

const bars = [
  { process: 0, cluster: 0, distance: 0, ns: [5, 5] },
  { process: 1, cluster: 1, distance: 0, ns: [1, 30] },
  { process: 2, cluster: 0, distance: 0, ns: [10, 2] },
];
const order = (sort: "cluster" | "rank" | "time") => barOrder(bars, sort).map((bar) => bar.process);

describe("bars of processes", () => {
  test("are in the order that is wanted", () => {
    expect(order("cluster")).toEqual([0, 2, 1]);
    expect(order("rank")).toEqual([0, 1, 2]);
    expect(order("time")).toEqual([1, 2, 0]);
  });
  test("share a scale", () => expect(longestBar(bars)).toBe(31));
  test("of nothing have a width", () => expect(longestBar([])).toBe(1));
});

test("clusters list what their members do otherwise", () => {
  const differs = [
    { name: "load", group: "data" as const, mean_ns: 7e6, others_ns: 1e6 },
    { name: "mm", group: "compute" as const, mean_ns: 1e6, others_ns: 2e6 },
  ];
  expect(differences({ size: 1, members: [1], typical: 1, farthest: 0, ns: [], differs })).toEqual([
    "load: 7.00 ms (others 1.00 ms, +6.00 ms)",
    "mm: 1.00 ms (others 2.00 ms, −1.00 ms)",
  ]);
});

test.each([
  [[], ""],
  [[3], "3"],
  [[0, 1, 2, 3, 7, 9, 10], "0–3, 7, 9, 10"],
])("%j are %s", (numbers, text) => expect(asRanges(numbers)).toBe(text));
