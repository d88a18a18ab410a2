import { expect, test } from "vitest";
import type { CellRow, Mark, PaletteEntry, TileKey } from "../data/cells";
import type { Scene, Tools } from "./draw";
import { drawMarks, type MarkGround, markAt, marksOfRow } from "./marks";
import type { Pen } from "./pen";
import type { Row } from "./rows";

const stall: PaletteEntry = { region: 3, name: "stall", group: "sync" };
const cells = (...marks: Mark[]): CellRow => ({
  palette: [],
  index: new Uint8Array(100),
  share: new Uint8Array(100),
  marks,
});
const row: Row = {
  kind: "location",
  location: { location: 5, process: 0, name: "", kind: "thread", threadId: 1, spanCount: 1 },
  open: false,
  depths: 1,
  key: "l5",
  top: 0,
  height: 20,
  level: 0,
};
const ground = (...tiles: CellRow[]): MarkGround => ({
  tiles: tiles.map((_, tile) => ({ level: 0, tile })),
  tileCells: 100,
  // Only what marks are looked up in.
  store: { row: (_: number, key: TileKey) => ({ key, row: tiles[key.tile] }) } as unknown as MarkGround["store"],
  rasters: undefined as unknown as MarkGround["rasters"],
  places: [],
  radar: undefined,
});

test("a mark that reaches over two tiles is one, and two of one tile are two", () => {
  const scene = ground(
    cells({ from: 10, to: 12, entry: stall }, { from: 98, to: 100, entry: stall }),
    cells({ from: 0, to: 3, entry: stall }),
  );
  expect(marksOfRow(scene, row).map(({ range }) => [range.startNs, range.endNs])).toEqual([
    [10, 12],
    [98, 103],
  ]);
});

test("the pointer meets the nearest mark within its reach, unless what is marked is wide enough to be seen", () => {
  const scene = {
    ...ground(cells({ from: 10, to: 11, entry: stall }, { from: 40, to: 80, entry: stall })),
    width: 200,
  };
  const at = (x: number, endNs = 100) => markAt({ ...scene, window: { startNs: 0, endNs } }, row, x)?.entry.name;
  expect(at(21)).toBe("stall");
  expect(at(24)).toBe("stall");
  expect(at(30)).toBeUndefined();
  expect(at(120)).toBeUndefined();
  expect(at(12, 1000)).toBe("stall");
});

test("a row that is marked all over shows no notches until one zooms in", () => {
  const everywhere = Array.from({ length: 50 }, (_, i): Mark => ({ from: i * 2, to: i * 2 + 1, entry: stall }));
  const notches = (endNs: number): number => {
    let drawn = 0;
    const pen = { fillRect: () => drawn++ } as unknown as Pen;
    const scene = { ...ground(cells(...everywhere)), rows: [{ ...row, height: 6 }], scrollTop: 0, width: 1000 };
    const tools = { inks: { get: () => ({ fill: "red" }) }, theme: "light" } as unknown as Tools;
    drawMarks(pen, { ...scene, window: { startNs: 0, endNs } } as unknown as Scene, tools);
    return drawn;
  };
  expect(notches(100)).toBe(0);
});

test("some notches on a row are drawn, each as a bar where the row is thin", () => {
  const bars: number[] = [];
  const pen = { fillRect: (x: number) => bars.push(x) } as unknown as Pen;
  const some = cells({ from: 10, to: 11, entry: stall }, { from: 60, to: 61, entry: stall });
  const scene = {
    ...ground(some),
    rows: [{ ...row, height: 6 }],
    scrollTop: 0,
    width: 1000,
    window: { startNs: 0, endNs: 100 },
  } as unknown as Scene;
  drawMarks(pen, scene, { inks: { get: () => ({ fill: "red" }) }, theme: "light" } as unknown as Tools);
  expect(bars).toEqual([104, 604]);
});
