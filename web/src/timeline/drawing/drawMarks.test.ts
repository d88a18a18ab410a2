import { expect, test } from "vitest";
import type { CellRow, Mark, PaletteEntry, TileKey } from "../../data/tiles/cells";
import type { Row } from "../rows/rowLayout";
import { drawMarks, markAt, marksOfRow } from "./drawMarks";
import type { CellSource, Scene, Tools } from "./scene";
import type { Pen } from "./svgSurface";

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
const ground = (...tiles: CellRow[]): CellSource => ({
  tiles: tiles.map((_, tile) => ({ level: 0, tile })),
  tileCells: 100,
  // Only what marks are looked up in.
  store: { row: (_: number, key: TileKey) => ({ key, row: tiles[key.tile] }) } as unknown as CellSource["store"],
  rasters: undefined as unknown as CellSource["rasters"],
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

/** Where the points of the notches of a row lie, of a scene of 1000 pixels. */
function notches(marks: readonly Mark[]): number[] {
  const points: number[] = [];
  const ignored = (): void => undefined;
  const pen = { beginPath: ignored, moveTo: ignored, closePath: ignored, stroke: ignored, fill: ignored };
  // The last line of a notch leads to its point.
  const lineTo = (x: number, y: number): void => void (y > 0 && points.push(x));
  const scene = { ...ground(cells(...marks)), rows: [row], scrollTop: 0, width: 1000 };
  drawMarks(
    { ...pen, lineTo } as unknown as Pen,
    { ...scene, window: { startNs: 0, endNs: 100 } } as unknown as Scene,
    { inks: { get: () => ({ fill: "red" }) }, theme: "light" } as unknown as Tools,
  );
  return points;
}

test("notches point at what is marked; a row that is marked all over shows the rarest of each stretch", () => {
  const every = (step: number): Mark[] =>
    Array.from({ length: Math.ceil(100 / step) }, (_, i) => ({ from: i * step, to: i * step + 1, entry: stall }));
  expect(notches(every(50))).toEqual([5, 505]);
  // Stretches of 32 ns are the next power of two above 192 pixels.
  expect(notches(every(2))).toEqual([5, 325, 645, 965]);
  const rare: Mark = { from: 51, to: 52, entry: { region: 8, name: "checkpoint", group: "data" } };
  expect(notches([...every(2), rare].sort((a, b) => a.from - b.from))).toEqual([5, 515, 645, 965]);
});
