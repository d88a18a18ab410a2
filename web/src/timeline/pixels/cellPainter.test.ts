import { describe, expect, test } from "vitest";
import { CHROME, contrast, type Rgb, regionColor } from "../../base/color";
import type { CellRow } from "../../data/tiles/cells";
import { Painter, type PlacedRow, runs } from "./cellPainter";
import { Mappings } from "./pixelMapping";

const palette = [
  { region: 4, name: "aten::mm", group: "compute" },
  { region: 9, name: "next", group: "data" },
] as const;
const row = (index: number[], share?: number[]): CellRow => ({
  palette,
  index: Uint8Array.from(index),
  marks: [],
  share: Uint8Array.from(share ?? index.map((byte) => (byte ? 255 : 0))),
});
const placed = (tile: number, r: CellRow, level = 0): PlacedRow => ({ key: { level, tile }, row: r });
const rgb = (pixel: number): Rgb => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
const MM = regionColor("compute", "aten::mm", "dark");
const NEXT = regionColor("data", "next", "dark");

function paint(widthPx: number, startNs: number, endNs: number, rows: PlacedRow[], fill = 0): Uint32Array {
  const out = new Uint32Array(widthPx).fill(fill);
  new Painter("dark", new Mappings(4)).paint(out, { startNs, endNs }, rows);
  return out;
}

describe("the painter", () => {
  test("gives each pixel the colour of its cell, and nothing where nothing ran", () => {
    const out = paint(4, 0, 4, [placed(0, row([1, 0, 2, 1]))]);
    expect([...out].map((p) => (p === 0 ? "none" : rgb(p).join()))).toEqual([
      MM.join(),
      "none",
      NEXT.join(),
      MM.join(),
    ]);
  });
  test("lets the cell that fills most of the pixel win", () => {
    expect(rgb(paint(1, 0, 2, [placed(0, row([1, 2, 0, 0], [40, 250, 0, 0]))])[0] ?? 0)).not.toEqual(MM);
    const busy = paint(1, 0, 2, [placed(0, row([0, 1, 0, 0], [0, 255, 0, 0]))]);
    expect(rgb(busy[0] ?? 0)).toEqual(MM);
  });
  test("draws a small share fainter, but never invisible", () => {
    const [full = 0, faint = 0] = paint(2, 0, 2, [placed(0, row([1, 1, 0, 0], [255, 3, 0, 0]))]);
    expect(rgb(full)).toEqual(MM);
    expect(rgb(faint)).not.toEqual(MM);
    expect(contrast(rgb(faint), CHROME.dark.background)).toBeGreaterThan(1.25);
  });
  test("puts tiles side by side and stretches a coarser one", () => {
    const out = paint(8, 0, 8, [placed(0, row([1, 1, 0, 0], [255, 255, 0, 0]), 1)]);
    expect([...out].map((p) => p !== 0)).toEqual([true, true, true, true, false, false, false, false]);
    expect([...paint(8, 0, 8, [placed(1, row([2, 2, 2, 2]))])].map((p) => p !== 0)).toEqual([
      ...Array(4).fill(false),
      ...Array(4).fill(true),
    ]);
  });
  test("leaves pixels that no tile covers", () => {
    expect([...paint(8, 0, 8, [placed(0, row([0, 0, 0, 0]))], 77)]).toEqual([0, 0, 0, 0, 77, 77, 77, 77]);
  });
});

test("marks of thin rows are two pixels in the colour of what is marked, unless that is wide enough to be seen", () => {
  const marked: CellRow = {
    ...row([0, 0, 0, 0]),
    marks: [
      { from: 1, to: 2, entry: palette[1] },
      { from: 2, to: 4, entry: palette[0] },
    ],
  };
  const out = new Uint32Array(40);
  new Painter("dark", new Mappings(4)).paintMarks(out, { startNs: 0, endNs: 4 }, [placed(0, marked)]);
  expect([...out].flatMap((pixel, px) => (pixel ? [[px, rgb(pixel).join()]] : []))).toEqual([
    [14, NEXT.join()],
    [15, NEXT.join()],
  ]);
});

describe("runs of equal cells", () => {
  test("end where cells are filled too little for a name", () => {
    const rows = [placed(0, row([1, 1, 1, 1], [200, 200, 10, 200]))];
    const ends = (leastShare: number) => runs(rows, { startNs: 0, endNs: 4 }, 4, 0, leastShare).map((r) => r.endNs);
    expect(ends(0)).toEqual([4]);
    expect(ends(128)).toEqual([2, 4]);
  });
  test("join across tiles, and short ones are left out", () => {
    const rows = [placed(0, row([2, 0, 1, 1])), placed(1, row([1, 1, 0, 2]))];
    const found = runs(rows, { startNs: 0, endNs: 8 }, 4, 2);
    expect(found.map((r) => [r.startNs, r.endNs, r.palette[r.entry]?.name])).toEqual([[2, 6, "aten::mm"]]);
  });
});
