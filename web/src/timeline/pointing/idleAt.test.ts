import { expect, test } from "vitest";
import { emptyAround } from "./idleAt";

const window = { startNs: 0, endNs: 100 };
const busy = [
  { startNs: 10, endNs: 20 },
  { startNs: 50, endNs: 60 },
];

test.each([
  [5, { startNs: 0, endNs: 10 }],
  [10, undefined],
  [19.9, undefined],
  [20, { startNs: 20, endNs: 50 }],
  [35, { startNs: 20, endNs: 50 }],
  [80, { startNs: 60, endNs: 100 }],
])("around %d nothing runs in %j", (at, range) => expect(emptyAround(busy, at, window)).toEqual(range));
test("an empty row is empty as far as the window reaches", () => expect(emptyAround([], 3, window)).toEqual(window));
