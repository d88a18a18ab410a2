import { describe, expect, test } from "vitest";
import { trailAfter } from "./zoomTrail";

const run = { startNs: 0, endNs: 1_000_000 };

describe("the breadcrumb", () => {
  const half = { startNs: 0, endNs: 500_000 };
  const tenth = { startNs: 100_000, endNs: 200_000 };
  test("begins with the whole run and grows with each zoom in", () => {
    expect(trailAfter([], undefined, half, run)).toEqual([undefined]);
    expect(trailAfter([undefined], half, tenth, run)).toEqual([undefined, half]);
  });
  test("does not grow by panning, or by a tiny zoom", () => {
    expect(trailAfter([undefined, half], tenth, { startNs: 300_000, endNs: 400_000 }, run)).toEqual([undefined, half]);
    expect(trailAfter([undefined], half, { startNs: 0, endNs: 450_000 }, run)).toEqual([undefined]);
  });
  test("shrinks by zooming out, and is empty at the whole run", () => {
    expect(trailAfter([undefined, half, tenth], { startNs: 100_000, endNs: 110_000 }, half, run)).toEqual([undefined]);
    expect(trailAfter([undefined, half], tenth, undefined, run)).toEqual([]);
    expect(trailAfter([undefined, half], tenth, run, run)).toEqual([]);
  });
  test("has the whole run once, also where the address has its bounds", () => {
    expect(trailAfter([], run, tenth, run)).toEqual([undefined]);
  });
});
