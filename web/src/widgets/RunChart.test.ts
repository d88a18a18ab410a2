import { expect, test } from "vitest";
import { stackedUp } from "./RunChart";

test("each column lies on those below it, and a gap is one of all above it", () =>
  expect(
    stackedUp([
      [1, 2, undefined],
      [0.5, undefined, 1],
      [0, 1, 1],
    ]),
  ).toEqual([
    [1, 2, undefined],
    [1.5, undefined, undefined],
    [1.5, undefined, undefined],
  ]));
