import { describe, expect, test } from "vitest";
import type { Link } from "../../data/wire/wire.generated";

import type { LocationRow, Row } from "../rows/rowLayout";
import { arrowsOf, messageArrows, rowOfLocation, standsFor } from "./drawLinks";

const location = (number: number, process: number) => ({
  location: number,
  process,
  name: `l${number}`,
  kind: "thread",
  threadId: number,
  spanCount: 1,
});
const row = (number: number, process: number, top: number, more: object = {}): Row =>
  ({
    kind: "location",
    location: location(number, process),
    open: false,
    depths: 1,
    key: `l${number}`,
    top,
    height: 20,
    level: 0,
    ...more,
  }) as Row & LocationRow;
const locations = [5, 15, 25, 35, 45, 55, 65, 75, 85, 95];
const stands = (one: Row, at: number): boolean => standsFor(one, at, Math.floor(at / 10), () => locations);
const rows = [
  row(0, 0, 0),
  row(1, 0, 20, { open: true, depths: 3 }),
  row(10, 1, 40, { stands: { title: "rank 1", process: { process: 1 }, count: 2 } }),
];
const ground = { window: { startNs: 0, endNs: 100 }, width: 1000, height: 60, scrollTop: 10, rows };
const link = (kind: string, way: Link["way"], at: number, startNs: number, depth = 0): Link => ({
  kind,
  way,
  inside: false,
  location: at,
  start_ns: startNs,
  duration_ns: 10,
  depth,
  name: "x",
  group: "compute",
});
const span = { location: 0, start_ns: 20, duration_ns: 5, depth: 4 };

describe("the rows of the ends of links", () => {
  test("are those of their location", () => expect(rowOfLocation(rows, 1, stands)).toBe(rows[1]));
  test("are folded processes where the location has none", () => expect(rowOfLocation(rows, 11, stands)).toBe(rows[2]));
  test("are rows of many ranks where these stand for it", () => {
    const of = (number: number, open = false): Row =>
      ({ ...row(0, 0, 0), kind: "ranks", place: 0, rowLevel: 1, number, open }) as unknown as Row;
    expect(rowOfLocation([of(0), of(1)], 85, stands)).toMatchObject({ number: 1 });
    expect(rowOfLocation([of(0), of(1, true)], 85, stands)).toBeUndefined();
  });
  test("may not be there", () => expect(rowOfLocation(rows, 20, stands)).toBeUndefined());
});

describe("arrows", () => {
  const arrows = (one: Link) => arrowsOf(span, [one], rows, stands, ground);
  test("point from the begin of a cause to that of what follows", () => {
    expect(arrows(link("launch", "to", 1, 50, 2))).toEqual([
      // The row of the span is closed: its depth does not count.
      { from: { x: 200, y: -0.5 }, to: { x: 500, y: 54 }, inside: false, headless: false },
    ]);
    expect(arrows(link("launch", "from", 1, 5, 0))[0]).toMatchObject({
      from: { x: 50, y: 20 },
      to: { x: 200, y: -0.5 },
    });
  });
  test("of messages end where the receive does", () => {
    expect(arrows(link("message", "to", 10, 30))[0]).toMatchObject({ from: { x: 200 }, to: { x: 400, y: 39.5 } });
    expect(arrows(link("message", "from", 10, 5))[0]).toMatchObject({ from: { x: 50 }, to: { x: 250 } });
  });
  test("have no head between those who met", () =>
    expect(arrows(link("collective", "with", 1, 22))[0]?.headless).toBe(true));
  test("are left out where the other end has no row", () => expect(arrows(link("launch", "to", 20, 1))).toEqual([]));
});

test("a message is a line from when it was sent to when it had come, between the middles of both rows", () => {
  const lines = { count: 2, from_location: [0, 0], sent_ns: [20, 30], to_location: [11, 999], received_ns: [40, 50] };
  expect(messageArrows(lines, rows, stands, ground)).toEqual([
    { from: { x: 200, y: 0 - 10 + 9.5 }, to: { x: 400, y: 40 - 10 + 9.5 }, inside: true, headless: false },
  ]);
});
