// Cells: the pixels of a timeline as the server sends them, in tiles that are aligned to the trace's zero (server/pictures/cell_tiles.py).

import { GROUPS, type Group } from "../../base/kinds.generated";
import { length, type TimeRange } from "../../base/time";
import { readBody } from "../wire/binaryBody";
import { choice, flag, list, number, object, orElse, text, WireError } from "../wire/decoders";

/** What a byte of a cell means. */
export type PaletteEntry = { readonly region: number; readonly name: string; readonly group: Group };
/** Entry i is what byte i + 1 means; byte 0 is "nothing ran". */
export type Palette = readonly PaletteEntry[];

/** One row of cells: the palette index of each cell, and how much of the cell the region fills, in 255ths (0 where nothing ran). */
export type CellRow = {
  readonly palette: Palette;
  readonly index: Uint8Array;
  readonly share: Uint8Array;
  /** What is rare but important. */
  readonly marks: readonly Mark[];
};

/** Neighbouring cells [from, to) with the same mark: the palette's entry of the longest exceptional span in them. */
export type Mark = { readonly from: number; readonly to: number; readonly entry: PaletteEntry };

/** Region id of marks that stand for a gap. */
export const GAP = 0xfffffffe;

/** Region id of entries that stand for many rare regions. */
export const NO_REGION = 0xffffffff;

/** The marks of a row, from one byte for each cell: few, so they are kept as stretches. */
export function marksOf(bytes: Uint8Array, palette: Palette): Mark[] {
  const found: Mark[] = [];
  for (let from = 0; from < bytes.length; ) {
    let to = from + 1;
    while (to < bytes.length && bytes[to] === bytes[from]) to++;
    const entry = palette[(bytes[from] ?? 0) - 1];
    if (entry) found.push({ from, to, entry });
    from = to;
  }
  return found;
}

/** The entries of a palette are triples of region, name and group. */
export const palette = (value: unknown, path: string): PaletteEntry[] =>
  list((entry, place) => {
    const [region, name, group]: unknown[] = Array.isArray(entry) ? entry : [];
    return {
      region: number(region, `${place}.region`),
      name: text(name, `${place}.name`),
      group: choice(GROUPS)(group, `${place}.group`),
    };
  })(value, path);

const decodeHeader = object({ rows: number, palette, shares: orElse(flag, false), marks: orElse(flag, false) });

/** Decodes a body of `tileCells` cells per row into its rows, from top to bottom. */
export function decodeCells(body: ArrayBuffer, tileCells: number): CellRow[] {
  const { header: sent, at } = readBody(body, "STC1", "cells");
  const header = decodeHeader(sent, "cells");
  const size = header.rows * tileCells;
  const parts = 1 + Number(header.shares) + Number(header.marks);
  if (body.byteLength !== at + size * parts) throw new WireError("cells: the body is cut");
  return Array.from({ length: header.rows }, (_, row) => {
    const index = new Uint8Array(body, at + row * tileCells, tileCells);
    const share = header.shares ? new Uint8Array(body, at + size + row * tileCells, tileCells) : filled(index);
    const marks = header.marks
      ? marksOf(new Uint8Array(body, at + (parts - 1) * size + row * tileCells, tileCells), header.palette)
      : [];
    return { palette: header.palette, index, share, marks };
  });
}

/** Cells without shares are full. */
const filled = (index: Uint8Array): Uint8Array => index.map((byte) => (byte === 0 ? 0 : 255));

/** A tile's place: cells of 2^level ns, number `tile` from the trace's zero. */
export type TileKey = { readonly level: number; readonly tile: number };

/** The level whose cells are the widest that are not wider than a pixel: one to two cells in each pixel. */
export function levelFor(window: TimeRange, widthPx: number): number {
  return Math.max(0, Math.floor(Math.log2(Math.max(1, length(window) / Math.max(1, widthPx)))));
}

/** The time that a tile covers. */
export function tileRange({ level, tile }: TileKey, tileCells: number): TimeRange {
  const widthNs = tileCells * 2 ** level;
  return { startNs: tile * widthNs, endNs: (tile + 1) * widthNs };
}

/** The tiles of a level that a window touches, from left to right. */
export function tilesIn(window: TimeRange, level: number, tileCells: number): TileKey[] {
  const widthNs = tileCells * 2 ** level;
  const first = Math.max(0, Math.floor(window.startNs / widthNs));
  const last = Math.max(first, Math.ceil(window.endNs / widthNs) - 1);
  return Array.from({ length: last - first + 1 }, (_, i) => ({ level, tile: first + i }));
}

/** A missing tile is replaced by a coarser one up to this many levels above. */
const COARSER = 30;

/** A tile, and those around it on the levels above, the finest first. */
export function* coarser(key: TileKey): Generator<TileKey> {
  yield key;
  for (let up = 1; up <= COARSER; up++) yield { level: key.level + up, tile: Math.floor(key.tile / 2 ** up) };
}
