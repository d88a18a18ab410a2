import { describe, expect, test } from "vitest";
import { around, clamp, pan, SHORTEST_NS, toNs, toPx, zoom } from "./viewport";

const run = { startNs: 0, endNs: 1_000_000 };

describe("zooming", () => {
  test("keeps the moment under the cursor where it is", () => {
    const before = { startNs: 200_000, endNs: 600_000 };
    const after = zoom(before, 0.5, 300_000, run);
    expect(after.endNs - after.startNs).toBe(200_000);
    expect(toPx(300_000, after, 1000)).toBeCloseTo(toPx(300_000, before, 1000), 6);
  });
  test("out ends at the whole run, in at the shortest window", () => {
    expect(zoom({ startNs: 400_000, endNs: 600_000 }, 100, 500_000, run)).toEqual(run);
    const shortest = zoom({ startNs: 10, endNs: 210 }, 1e-6, 100, run);
    expect(shortest.endNs - shortest.startNs).toBe(SHORTEST_NS);
  });
});

test("panning stops at the ends of the run and keeps the length", () => {
  expect(pan({ startNs: 0, endNs: 100_000 }, -3, run)).toEqual({ startNs: 0, endNs: 100_000 });
  expect(pan({ startNs: 0, endNs: 100_000 }, 0.5, run)).toEqual({ startNs: 50_000, endNs: 150_000 });
  expect(pan({ startNs: 850_000, endNs: 950_000 }, 9, run)).toEqual({ startNs: 900_000, endNs: 1_000_000 });
});

test("a window around a span holds all of it, inside the run", () => {
  expect(around({ startNs: 500_000, endNs: 510_000 }, run)).toEqual({ startNs: 499_200, endNs: 510_800 });
  expect(around({ startNs: 0, endNs: 10_000 }, run).startNs).toBe(0);
});

test("a run shorter than the shortest window is still shown", () => {
  expect(clamp({ startNs: 0, endNs: 20 }, { startNs: 0, endNs: 20 })).toEqual({ startNs: 0, endNs: SHORTEST_NS });
});

test("pixels and time are each other's inverse", () => {
  const window = { startNs: 123, endNs: 77_123 };
  expect(toNs(toPx(5_000, window, 900), window, 900)).toBeCloseTo(5_000, 6);
});
