// Pictures of many rows as the server sends them (server/pictures/row_rasters.py): group shares of rows that stand for many, and one number per cell.
import type { Api } from "../wire/api";
import { readBody } from "../wire/binaryBody";
import { flag, number, object, orElse, text, WireError } from "../wire/decoders";
import { type Mark, marksOf, palette } from "./cells";
import { RowStore } from "./rowStore";

/** One row of a tile: the cells of each plane, one plane after the other. */
export type Raster = {
  readonly planes: number;
  readonly values: Uint8Array;
  readonly marks: readonly Mark[];
  /** What the values 1 and 255 of a metric mean. */
  readonly low: number;
  readonly high: number;
  readonly unit: string;
};

const KEPT = 6000;
/** Rows that one answer holds. */
export const AT_ONCE = 128;

const decodeHeader = object({
  rows: number,
  planes: number,
  palette: orElse(palette, []),
  marks: orElse(flag, false),
  low: orElse(number, 0),
  high: orElse(number, 0),
  unit: orElse(text, ""),
});

/** Decodes a body into its rows, from top to bottom. */
export function decodeRasters(body: ArrayBuffer, tileCells: number): Raster[] {
  const { header, at } = readBody(body, "STR1", "rows");
  const { rows, planes, palette, marks, ...meaning } = decodeHeader(header, "rows");
  const size = planes * tileCells;
  if (body.byteLength !== at + rows * (size + (marks ? tileCells : 0))) throw new WireError("rows: the body is cut");
  return Array.from({ length: rows }, (_, row) => ({
    planes,
    values: new Uint8Array(body, at + row * size, size),
    marks: marks ? marksOf(new Uint8Array(body, at + rows * size + row * tileCells, tileCells), palette) : [],
    ...meaning,
  }));
}

/** Stretches of numbers that follow each other, as long as one answer holds. */
export function inStretches(members: readonly number[]): number[][] {
  const stretches: number[][] = [];
  for (const member of [...members].sort((a, b) => a - b)) {
    const last = stretches.at(-1);
    if (last && member === (last.at(-1) ?? 0) + 1 && last.length < AT_ONCE) last.push(member);
    else stretches.push([member]);
  }
  return stretches;
}

/** Fetches rasters and remembers them. */
export type RasterStore = RowStore<Raster>;
export const rasterStore = (
  api: Api,
  tileCells: number,
  changed: () => void,
  failed: (sentence: string) => void,
): RasterStore =>
  new RowStore(api, async (response) => decodeRasters(await response.arrayBuffer(), tileCells), KEPT, changed, failed);

/** How much of a measure each location has in a stretch of time, by location. */
export async function fetchValues(api: Api, of: string, startNs: number, endNs: number) {
  const { location, value } = (await api.table("rows/values", { of, start_ns: startNs, end_ns: endNs })).columns();
  return new Map([...location].flatMap((at, i) => (Number.isNaN(value[i]) ? [] : [[at, value[i] ?? 0] as const])));
}
