import { describe, expect, test } from "vitest";
import { byPiece, type Step } from "../../data/runSteps";

import { binsOf, filterSteps, histogramOf, partsOf, sortSteps } from "./stepLists";

const step = (number: number, durationNs: number, more: Partial<Step> = {}): Step => ({
  process: 0,
  step: number,
  startNs: number * 1000,
  durationNs,
  class: "train",
  classRank: 0,
  outlier: false,
  cause: "",
  count: 1,
  parts: { ...byPiece(() => 0), data_wait: durationNs },
  detail: "all",
  loop: 0,
  warmUp: false,
  ...more,
});
const steps = [
  step(0, 100),
  step(1, 300, { outlier: true, cause: "data_wait" }),
  step(2, 110, { detail: "none" }),
  step(3, 500, { class: "train+validation", classRank: 1 }),
  step(4, 120),
];
const everything = { classes: [], outliers: false, detailed: false };

describe("a list of steps", () => {
  test("shows what passes the filter", () => {
    const numbers = (filter: object) => filterSteps(steps, { ...everything, ...filter }).map((s) => s.step);
    expect(numbers({})).toEqual([0, 1, 2, 3, 4]);
    expect(numbers({ classes: ["train+validation"] })).toEqual([3]);
    expect(numbers({ outliers: true })).toEqual([1]);
    expect(numbers({ detailed: true })).toEqual([0, 1, 3, 4]);
    expect(numbers({ classes: ["train"], outliers: true, detailed: true })).toEqual([1]);
  });
  test("is sorted by what each step exceeds its own class by", () => {
    const medians = new Map([
      ["train", 115],
      ["train+validation", 500],
    ]);
    const order = (by: "step" | "duration" | "delta", down: boolean) =>
      sortSteps(steps, { by, down }, medians).map((s) => s.step);
    expect(order("delta", true)).toEqual([1, 4, 3, 2, 0]);
    expect(order("duration", false)).toEqual([0, 2, 4, 1, 3]);
    expect(order("step", true)).toEqual([4, 3, 2, 1, 0]);
  });
});

describe("pictures of all steps", () => {
  test("bars hold the mean of their steps, and do not hide an outlier", () => {
    const bins = binsOf(steps, 2);
    expect(bins.map((bin) => [bin.from, bin.to, bin.parts.data_wait])).toEqual([
      [0, 2, 200],
      [2, 5, (110 + 500 + 120) / 3],
    ]);
    expect(bins.map((bin) => bin.outlier?.step)).toEqual([1, undefined]);
    expect(binsOf(steps, 100)).toHaveLength(5);
  });
  test("a histogram counts every step once, in its class", () => {
    const found = histogramOf([...steps, step(5, 100, { count: 7 })], 4);
    expect(found.classes.map((one) => [one.name, one.counts.reduce((a, b) => a + b, 0)])).toEqual([
      ["train", 11],
      ["train+validation", 1],
    ]);
    expect([found.lowNs, found.highNs, found.classes[1]?.counts[3], found.most]).toEqual([100, 500, 1, 10]);
    expect(histogramOf([step(0, 50)], 4).most).toBe(1);
  });
  test("parts without time are not drawn", () =>
    expect(partsOf({ ...byPiece(() => 0), forward: 5, optimizer: 2 })).toEqual([
      { phase: "forward", ns: 5 },
      { phase: "optimizer", ns: 2 },
    ]));
  test("of a step without passes the kinds of its rest are drawn, and what is not known last", () =>
    expect(partsOf({ ...byPiece(() => 0), rest: 1, communication: 7, host: 2 })).toEqual([
      { phase: "communication", ns: 7 },
      { phase: "host", ns: 2 },
      { phase: "rest", ns: 1 },
    ]));
});
