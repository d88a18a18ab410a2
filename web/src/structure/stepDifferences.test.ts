import { describe, expect, test } from "vitest";
import type { Iteration, Position } from "../data/wire/wire.generated";

import { columnValue, comparedWith, differences } from "./stepDifferences";

const position = (at: number, name: string, median: number, gap: number, count = 1): Position => ({
  position: at,
  count,
  name,
  group: "compute",
  part: "forward",
  band: "main thread",
  module: "",
  folded: false,
  median_ns: median,
  median_gap_ns: gap,
  present: 1,
});
const step: Iteration = {
  step: 7,
  start_ns: 0,
  step_ns: 1000,
  class: "train",
  path: 0,
  duration_ns: [100, undefined, 300, undefined],
  gap_ns: [0, undefined, 500, 10],
  offset_ns: [0, undefined, 600, 1000],
  extra_count: 1,
  extras: [{ name: "validate", group: "host", start_ns: 5, duration_ns: 90, before: 2 }],
};
const positions = [position(0, "wait", 100, 0), position(1, "conv", 50, 5, 2), position(3, "end", 0, 12)];

describe("a step in words", () => {
  test.each([
    [100, 100, "as usual"],
    [210, 100, "2.1 × usual"],
    [8900, 100, "89 × usual"],
    [40, 100, "40 % of usual"],
    [0, 0, "as usual"],
  ])("%d where %d is usual: %s", (value, usual, text) => expect(comparedWith(value, usual)).toBe(text));
  test("a column of several positions is their sum, of those that are there", () => {
    expect(columnValue(step.duration_ns, positions[1] as Position)).toBe(300);
    expect(columnValue(step.duration_ns, positions[2] as Position)).toBeUndefined();
  });
  test("the largest differences come first, whatever they are", () =>
    expect(differences(step, positions, 4).map((d) => [d.kind, d.name, d.column, d.excessNs])).toEqual([
      ["gap", "conv", 1, 495],
      ["duration", "conv", 1, 250],
      ["extra", "validate", 1, 90],
      ["gap", "end", 2, -2],
    ]));
});
