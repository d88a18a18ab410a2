import { expect, test } from "vitest";

import type { Row } from "../rows/rowLayout";
import { lostAt, lostBoxes } from "./drawLost";

const thread = (number: number, top: number): Row => ({
  kind: "location",
  location: { location: number, process: 0, name: "", kind: "thread", threadId: number, spanCount: 1 },
  open: false,
  depths: 0,
  level: 1,
  key: `location-${number}`,
  top,
  height: 20,
});
const [first, second] = [thread(0, 0), thread(1, 20)];
const ground = { window: { startNs: 0, endNs: 1000 }, width: 1000, height: 40, scrollTop: 0, rows: [first, second] };
const lost = [
  { location: 1, start_ns: 100, end_ns: 300, spans: 7 },
  { location: 0, start_ns: 500, end_ns: 500, spans: 1 },
  { location: 0, start_ns: 2000, end_ns: 3000, spans: 2 },
];
const losses = { lost, stands: () => false };

test("a lost stretch lies in the row of its thread; what is short is wide enough to be seen", () => {
  expect(lostBoxes(losses, ground).map(({ box }) => box)).toEqual([
    { left: 100, top: 20, width: 200, height: 19 },
    { left: 500, top: 0, width: 6, height: 19 },
  ]);
});

test("what is pointed at is the stretch of that row", () => {
  expect(lostAt(losses, ground, second, 200).map((each) => each.spans)).toEqual([7]);
  expect(lostAt(losses, ground, first, 200)).toEqual([]);
});
