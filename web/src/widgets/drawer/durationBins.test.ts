import { expect, test } from "vitest";
import { between, howRead, placeOf } from "./durationBins";

const edges = [1, 10, 100, 1000];

test.each([
  [1, 0],
  [10, 1 / 3],
  [1000, 1],
  [0, 0],
  [5000, 1],
])("%d ns lies at %d", (ns, place) => expect(placeOf(ns, edges)).toBeCloseTo(place, 9));
test("equal durations lie in the middle", () => expect(placeOf(7, [7, 7])).toBe(0.5));

test.each([
  [0.4, 0.5, { startNs: 10, endNs: 100 }],
  [0.9, 0.1, { startNs: 1, endNs: 1000 }],
  [1 / 3, 2 / 3, { startNs: 10, endNs: 100 }],
  [-1, 2, { startNs: 1, endNs: 1000 }],
  [1, 1, { startNs: 100, endNs: 1000 }],
])("from %d to %d are %j", (from, to, range) => expect(between(from, to, edges)).toEqual(range));
test("of no bins none is chosen", () => expect(between(0, 1, [])).toBeUndefined());

test("it is explained how it was computed", () => {
  expect(howRead({ read_share: 1, executions: 5 })).toContain("all executions");
  expect(howRead({ read_share: 0.0421, executions: 1000 })).toMatch(/^of 1.000: .* in 4.2 % of the time/);
});
