import { expect, test } from "vitest";
import type { Row } from "../rows/rowLayout";
import { besideBoxes, criticalBoxes } from "./drawCritical";

const location = (number: number, top: number): Row => ({
  kind: "location",
  location: { location: number, process: 0, name: "", kind: "thread", threadId: 1, spanCount: 1 },
  open: true,
  depths: 2,
  level: 1,
  key: `location-${number}`,
  top,
  height: 40,
});
const part = (at: number, depth: number, startNs: number, durationNs: number) => ({
  location: at,
  depth,
  startNs,
  durationNs,
});
const boxes = (...parts: ReturnType<typeof part>[]) =>
  criticalBoxes(
    { about: "", step: "1", parts },
    {
      rows: [location(3, 100), location(4, 140)],
      window: { startNs: 1000, endNs: 2000 },
      width: 500,
      scrollTop: 60,
    },
  );

test("a part has a box at its time, in its row, at its depth", () =>
  expect(boxes(part(4, 1, 1200, 300))).toEqual([{ left: 100, top: 140 - 60 + 2 + 17, width: 150, height: 16 }]));
test("what is narrower than a pixel has one", () => expect(boxes(part(3, 0, 1500, 0))[0]?.width).toBe(1));
test("what reaches beyond the screen is cut a little outside of it", () =>
  expect(boxes(part(3, 0, 0, 10_000))).toEqual([{ left: -4, top: 42, width: 508, height: 16 }]));
test("what is before or after the window, or in a row that is not there, has none", () =>
  expect(boxes(part(3, 0, 100, 50), part(3, 0, 2500, 50), part(9, 0, 1500, 50))).toEqual([]));
test("boxes are in order of time, so that the ribbon follows the path", () =>
  expect(boxes(part(4, 0, 1600, 100), part(3, 0, 1200, 100)).map(({ left }) => left)).toEqual([100, 300]));
test("what is beside the boxes and the boxes cover everything once", () => {
  const path = [
    { left: 10, top: 20, width: 30, height: 10 },
    { left: 60, top: 20, width: 40, height: 10 },
    { left: -4, top: 40, width: 20, height: 10 },
  ];
  const count = Array.from({ length: 100 * 60 }, () => 0);
  for (const { left, top, width, height } of [...path, ...besideBoxes(path, 100, 60)])
    for (let y = top; y < top + height; y++)
      for (let x = Math.max(0, left); x < left + width; x++) count[y * 100 + x] = (count[y * 100 + x] ?? 0) + 1;
  expect([...new Set(count)]).toEqual([1]);
});
