import { describe, expect, test } from "vitest";
import { groupColor, type Rgb, radarColor } from "../../base/color";
import { GROUPS } from "../../base/kinds.generated";
import type { Raster } from "../../data/tiles/rasters";
import { familiesOf, type PlacedRaster } from "../rows/rasterSources";
import type { Row } from "../rows/rowLayout";
import { Mappings } from "./pixelMapping";
import { RasterPainter, sample } from "./rasterPainter";

const CELLS = 4;
const raster = (...planes: number[][]): Raster => ({
  planes: planes.length,
  values: Uint8Array.from(planes.flat()),
  marks: [],
  low: 0,
  high: 1,
  unit: "",
});
const placed = (one: Raster, weight = 1, tile = 0): PlacedRaster => ({ key: { level: 0, tile }, raster: one, weight });
const rgb = (pixel: number): Rgb => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
const whole = { startNs: 0, endNs: CELLS };

describe("a pixel of a raster", () => {
  test("is the mean of its cells by how much of it they cover", () => {
    const one = [placed(raster([0, 100, 200, 40]))];
    expect([...sample(one, 0, whole, 4, new Mappings(CELLS))]).toEqual([0, 100, 200, 40]);
    expect([...sample(one, 0, whole, 2, new Mappings(CELLS))]).toEqual([50, 120]);
    expect([...sample(one, 0, { startNs: 0.5, endNs: 2.5 }, 1, new Mappings(CELLS))]).toEqual([100]);
  });
  test("does not count what is unknown, where zero means that", () =>
    expect([...sample([placed(raster([0, 100, 0, 0]))], 0, whole, 2, new Mappings(CELLS), true)]).toEqual([100, 0]));
  test("is the mean of several rasters by their weight", () => {
    const both = [placed(raster([0, 0, 0, 0]), 1), placed(raster([100, 100, 100, 100]), 3)];
    expect([...sample(both, 0, whole, 4, new Mappings(CELLS))]).toEqual([75, 75, 75, 75]);
  });
});

describe("a row of shares", () => {
  const planes = GROUPS.map((group) =>
    group === "data" ? [51, 0, 255, 0] : group === "sync" ? [102, 0, 0, 10] : [0, 0, 0, 0],
  );
  test("is a stack from below, as tall as its groups are", () => {
    const out = new Uint32Array(4 * 10);
    new RasterPainter("dark", new Mappings(CELLS)).stack(out, 10, whole, [placed(raster(...planes))]);
    const column = (px: number) => Array.from({ length: 10 }, (_, y) => out[y * 4 + px] ?? 0).reverse();
    const [data, sync] = [groupColor("data", "dark").join(), groupColor("sync", "dark").join()];
    const names = (px: number) => column(px).map((pixel) => (pixel === 0 ? "" : rgb(pixel).join()));
    expect(names(0)).toEqual([...Array(2).fill(data), ...Array(4).fill(sync), ...Array(4).fill("")]);
    expect(names(1)).toEqual(Array(10).fill(""));
    expect(names(2)).toEqual(Array(10).fill(data));
  });
  test("shows its largest group where it is too thin for a stack, fainter where it fills less", () => {
    const out = new Uint32Array(4);
    new RasterPainter("dark", new Mappings(CELLS)).stack(out, 1, whole, [placed(raster(...planes))]);
    expect(out[1]).toBe(0);
    const strength = (px: number) => (out[px] ?? 0) >>> 24;
    expect(rgb(out[0] ?? 0)).toEqual(groupColor("sync", "dark"));
    expect(strength(2)).toBe(255);
    expect(strength(3)).toBeLessThan(strength(0));
    expect(strength(3)).toBeGreaterThan(60);
  });
});

test("heat has the colour of its value, and none where nothing is known", () => {
  const out = new Uint32Array(4 * 2);
  const painter = new RasterPainter("light", new Mappings(CELLS));
  painter.heat(out, 2, whole, [placed(raster([0, 255, 128, 1]))], 0, true);
  expect(out[0]).toBe(0);
  expect(rgb(out[1] ?? 0)).toEqual(radarColor(1, "light"));
  expect([...out.subarray(4)]).toEqual([...out.subarray(0, 4)]);
});

test("rows are asked for together: neighbours of one level in one question, locations of the radar in another", () => {
  const place = { key: "", top: 0, height: 1, level: 0 };
  const ranks = (rowLevel: number, number: number): Row => ({
    ...place,
    kind: "ranks",
    title: "",
    place: 2,
    placeTitle: "",
    rowLevel,
    number,
    count: 8,
    open: false,
  });
  const host: Row = { ...place, kind: "host", host: "n1", folded: true, count: 2, members: [4, 9] };
  const [hosts] = familiesOf([host, { ...host, folded: false }], [], undefined);
  expect(hosts?.parameters(hosts.members)).toEqual({ locations: "4,9" });
  expect(familiesOf([host], [], "metric.power")).toEqual([]);
  const families = familiesOf([ranks(1, 7), ranks(1, 8), ranks(1, 30), ranks(2, 0)], [], undefined);
  const asked = families.flatMap((family) =>
    family.chunks(family.members).map((chunk) => [family.question, family.parameters(chunk)]),
  );
  expect(asked).toEqual([
    ["rows/cells", { place: 2, row_level: 1, first: 7, count: 2 }],
    ["rows/cells", { place: 2, row_level: 1, first: 30, count: 1 }],
    ["rows/cells", { place: 2, row_level: 2, first: 0, count: 1 }],
  ]);
});
