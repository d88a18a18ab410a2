import { describe, expect, test } from "vitest";
import type { TimeRange } from "../base/time";
import type { CellRow } from "../data/cells";
import { type LineOf, Lines } from "./lines";
import { Painter } from "./painter";
import { Mappings } from "./pixels";

const CELLS = 64;
const WIDTH = 40;
const names = ["a", "b", "c", "d", "e", "f", "g"];
const palette = names.map((name, region) => ({ region, name, group: "compute" as const }));

/** A row of cells that is like no other. */
const rowOf = (seed: number): CellRow => {
  const index = Uint8Array.from({ length: CELLS }, (_, i) => (i * i * 7 + i * seed + seed) % (names.length + 1));
  return { palette, index, share: index.map((byte, i) => (byte ? 60 + ((i * 37) % 195) : 0)), marks: [] };
};
const lineOf = (key: number, row = rowOf(key)): LineOf => ({
  key,
  marked: false,
  placed: [{ key: { level: 0, tile: 0 }, row }],
});
const many = (count: number): LineOf[] => Array.from({ length: count }, (_, i) => lineOf(i));
const painter = (): Painter => new Painter("dark", new Mappings(CELLS));

/** What a picture that is painted at once looks like. */
function atOnce(window: TimeRange, rows: readonly LineOf[]): number[] {
  const lines = new Lines(() => 0);
  lines.update(painter(), window, WIDTH, rows);
  expect(lines.exact).toBe(true);
  return [...lines.pixels];
}

/** A clock that tells that time is up whenever it is read. */
const hurried = (): (() => number) => {
  let now = 0;
  return () => {
    now += 1000;
    return now;
  };
};

describe("the lines of a pane", () => {
  const rows = many(200);
  const start = { startNs: 0, endNs: 40 };
  const next = { startNs: 4, endNs: 40 };

  test("are all painted in the first frame where there is nothing to stretch, and not again while nothing changes", () => {
    const lines = new Lines(() => 0);
    const one = painter();
    expect(lines.update(one, start, WIDTH, rows)).toBe(true);
    expect(lines.exact).toBe(true);
    expect(
      lines.update(
        one,
        start,
        WIDTH,
        many(200).map((line, i) => ({ ...line, placed: rows[i]?.placed ?? [] })),
      ),
    ).toBe(false);
  });

  test("a frame without time paints some and stretches the others; after some frames at rest all are exact", () => {
    const lines = new Lines(hurried());
    const one = painter();
    lines.update(one, start, WIDTH, rows);
    const before = [...lines.pixels];
    lines.update(one, next, WIDTH, rows);
    expect(lines.exact).toBe(false);
    const whole = atOnce(next, rows);
    const right = rows.filter((_, i) =>
      lines.pixels.subarray(i * WIDTH, (i + 1) * WIDTH).every((p, px) => p === whole[i * WIDTH + px]),
    );
    expect(right.length).toBeGreaterThan(30);
    expect(right.length).toBeLessThan(150);
    // The last line was stretched: each of its pixels shows what was on the screen at its moment.
    const last = lines.pixels.subarray(199 * WIDTH);
    for (let px = 0; px < WIDTH; px++) expect(last[px]).toBe(before[199 * WIDTH + Math.floor(4 + (px + 0.5) * 0.9)]);
    let frames = 0;
    for (; !lines.exact && frames < 10; frames++) lines.update(one, next, WIDTH, rows);
    expect(frames).toBeGreaterThan(1);
    expect([...lines.pixels]).toEqual(whole);
  });

  test("what comes into sight at the edges is never blank, however little time there is", () => {
    const lines = new Lines(hurried());
    const one = painter();
    const full = many(200).map((line) =>
      lineOf(line.key, { ...rowOf(1), index: new Uint8Array(CELLS).fill(3), share: new Uint8Array(CELLS).fill(255) }),
    );
    lines.update(one, { startNs: 10, endNs: 30 }, WIDTH, full);
    lines.update(one, { startNs: 5, endNs: 35 }, WIDTH, full);
    lines.update(one, { startNs: 20, endNs: 50 }, WIDTH, full);
    expect(new Set(lines.pixels).size).toBe(1);
    // Another place altogether: nothing is known of it.
    lines.update(one, { startNs: 51, endNs: 60 }, WIDTH, full);
    expect(new Set(lines.pixels).size).toBe(1);
  });

  test("a line whose tile has come is painted anew, and only that one; rows that change their order keep their pixels", () => {
    const lines = new Lines(() => 0);
    const asked: CellRow[] = [];
    const one = painter();
    const paint = one.paint.bind(one);
    one.paint = (out, window, placed, ...more) => {
      asked.push(...placed.map(({ row }) => row));
      paint(out, window, placed, ...more);
    };
    lines.update(one, start, WIDTH, rows);
    asked.length = 0;
    const finer = lineOf(7, rowOf(99));
    const changed = rows.map((line) => (line.key === 7 ? finer : line));
    lines.update(one, start, WIDTH, changed);
    expect(asked).toEqual([finer.placed[0]?.row]);
    asked.length = 0;
    const turned = [...changed].reverse().slice(20);
    lines.update(one, start, WIDTH, turned);
    expect(asked).toEqual([]);
    expect([...lines.pixels]).toEqual(atOnce(start, turned));
  });

  test("another width or theme forgets all", () => {
    const lines = new Lines(hurried());
    lines.update(painter(), start, WIDTH, rows);
    lines.update(painter(), start, WIDTH / 2, many(3));
    expect(lines.pixels.length).toBe((3 * WIDTH) / 2);
    expect(lines.exact).toBe(true);
  });
});
