import { describe, expect, test } from "vitest";
import type { TimeRange } from "../../base/time";
import type { CellRow } from "../../data/tiles/cells";
import { Painter } from "./cellPainter";
import { Lines, type PaintedRow } from "./paintedLines";
import { Mappings } from "./pixelMapping";

const CELLS = 64;
const WIDTH = 40;
const names = ["a", "b", "c", "d", "e", "f", "g"];
const palette = names.map((name, region) => ({ region, name, group: "compute" as const }));

/** A row of cells that is like no other. */
const rowOf = (seed: number): CellRow => {
  const index = Uint8Array.from({ length: CELLS }, (_, i) => (i * i * 7 + i * seed + seed) % (names.length + 1));
  return { palette, index, share: index.map((byte, i) => (byte ? 60 + ((i * 37) % 195) : 0)), marks: [] };
};
const one = new Painter("dark", new Mappings(CELLS));
const placed = (row: CellRow) => [{ key: { level: 0, tile: 0 }, row }];
type Rows = (window: TimeRange) => PaintedRow[];
/** Rows as they are wanted for a window; `painted` hears which were painted. */
const rowsOf =
  (rows: ReadonlyMap<number, CellRow>, painted?: number[]): Rows =>
  (window) =>
    [...rows].map(([key, row]) => ({
      key,
      tall: 1,
      from: [row],
      paint: (out, begin, end) => {
        painted?.push(key);
        one.paint(out, window, placed(row), begin, end);
      },
    }));
const many = (count: number) => new Map(Array.from({ length: count }, (_, i) => [i, rowOf(i)]));

/** What a picture that is painted at once looks like. */
function atOnce(window: TimeRange, rows: Rows): number[] {
  const lines = new Lines(() => 0);
  lines.update(one, window, WIDTH, rows(window));
  expect(lines.exact).toBe(true);
  return [...lines.pixels];
}

/** A clock on which time is up whenever it is read. */
const hurried = (): (() => number) => {
  let now = 0;
  return () => {
    now += 1000;
    return now;
  };
};

describe("the lines of a pane", () => {
  const rows = rowsOf(many(200));
  const start = { startNs: 0, endNs: 40 };
  const next = { startNs: 4, endNs: 40 };

  test("are all painted in the first frame where there is nothing to stretch, and not again while nothing changes", () => {
    const lines = new Lines(() => 0);
    expect(lines.update(one, start, WIDTH, rows(start))).toBe(true);
    expect(lines.exact).toBe(true);
    expect(lines.update(one, start, WIDTH, rows(start))).toBe(false);
  });

  test("a frame without time paints some and stretches the others; after some frames at rest all are exact", () => {
    const lines = new Lines(hurried());
    lines.update(one, start, WIDTH, rows(start));
    for (let frame = 0; !lines.exact; frame++) {
      lines.update(one, start, WIDTH, rows(start));
      expect(frame).toBeLessThan(20);
    }
    const before = [...lines.pixels];
    lines.update(one, next, WIDTH, rows(next));
    expect(lines.exact).toBe(false);
    const whole = atOnce(next, rows);
    const stretched = (line: number, px: number) => before[line * WIDTH + Math.floor(4 + (px + 0.5) * 0.9)];
    const is = (line: number, what: (px: number) => number | undefined): boolean =>
      Array.from({ length: WIDTH }, (_, px) => px).every((px) => lines.pixels[line * WIDTH + px] === what(px));
    const all = Array.from({ length: 200 }, (_, line) => line);
    const painted = all.filter((line) => is(line, (px) => whole[line * WIDTH + px]));
    // Each pixel of the others shows what was on the screen at its moment.
    const others = all.filter((line) => is(line, (px) => stretched(line, px)));
    expect(painted.length).toBeGreaterThan(10);
    expect(others.length).toBeGreaterThan(100);
    expect(new Set([...painted, ...others]).size).toBe(200);
    let frames = 0;
    for (; !lines.exact && frames < 20; frames++) lines.update(one, next, WIDTH, rows(next));
    expect(frames).toBeGreaterThan(1);
    expect([...lines.pixels]).toEqual(whole);
  });

  test("what comes into sight at the edges is never blank, however little time there is", () => {
    const lines = new Lines(hurried());
    const full = { ...rowOf(1), index: new Uint8Array(CELLS).fill(3), share: new Uint8Array(CELLS).fill(255) };
    const same = rowsOf(new Map(Array.from({ length: 200 }, (_, i) => [i, full])));
    // The last is another place altogether: nothing is known of it.
    for (const [startNs, endNs] of [
      [10, 30],
      [5, 35],
      [20, 50],
      [51, 60],
    ] as const) {
      const window = { startNs, endNs };
      lines.update(one, window, WIDTH, same(window));
      expect(new Set(lines.pixels).size).toBe(1);
    }
  });

  test("a row whose tile has come is painted anew, and only that one; rows that change their order keep their pixels", () => {
    const lines = new Lines(() => 0);
    const known = many(200);
    lines.update(one, start, WIDTH, rowsOf(known)(start));
    const painted: number[] = [];
    known.set(7, rowOf(99));
    lines.update(one, start, WIDTH, rowsOf(known, painted)(start));
    expect(painted).toEqual([7]);
    const turned = new Map([...known].reverse().slice(20));
    lines.update(one, start, WIDTH, rowsOf(turned, painted)(start));
    expect(painted).toEqual([7]);
    expect([...lines.pixels]).toEqual(atOnce(start, rowsOf(turned)));
  });

  test("another width, painter or height of a row is painted at once", () => {
    const lines = new Lines(hurried());
    const plain = (tall: number, color: number): PaintedRow => ({
      key: "row",
      tall,
      from: [color],
      paint: (out) => out.fill(color),
    });
    lines.update(one, start, WIDTH, [plain(3, 7)]);
    expect([...lines.pixels]).toEqual(Array(3 * WIDTH).fill(7));
    lines.update(one, start, WIDTH, [plain(2, 8)]);
    expect([...lines.pixels]).toEqual(Array(2 * WIDTH).fill(8));
    lines.update({}, start, WIDTH / 2, [plain(2, 9)]);
    expect([...lines.pixels]).toEqual(Array(WIDTH).fill(9));
  });
});
