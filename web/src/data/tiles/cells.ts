// Cells: the pixels of a timeline as the server sends them, in tiles that are aligned to the trace's zero (server/tiles.py).

import { isGroup } from "../../base/color";
import type { Group } from "../../base/kinds.generated";
import { length, type TimeRange } from "../../base/time";
import { WireError } from "../wire/decoders";

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

const MAGIC = 0x31435453; // "STC1", little endian

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

export function decodePalette(value: unknown): PaletteEntry[] {
  if (!Array.isArray(value)) throw new WireError("cells: no palette");
  return value.map((entry: unknown) => {
    const [region, name, group]: unknown[] = Array.isArray(entry) ? entry : [];
    if (typeof region !== "number" || typeof name !== "string" || typeof group !== "string" || !isGroup(group))
      throw new WireError("cells: a palette entry is not [region, name, group]");
    return { region, name, group };
  });
}

/** Decodes a body of `tileCells` cells per row into its rows, from top to bottom. */
export function decodeCells(body: ArrayBuffer, tileCells: number): CellRow[] {
  const view = new DataView(body);
  if (body.byteLength < 8 || view.getUint32(0, true) !== MAGIC) throw new WireError("cells: not a body of cells");
  const headerBytes = view.getUint32(4, true);
  const header: unknown = JSON.parse(new TextDecoder().decode(new Uint8Array(body, 8, headerBytes)));
  if (typeof header !== "object" || header === null || !("rows" in header) || typeof header.rows !== "number")
    throw new WireError("cells: the header has no number of rows");
  const palette = decodePalette("palette" in header ? header.palette : undefined);
  const withShares = "shares" in header && header.shares === true;
  const withMarks = "marks" in header && header.marks === true;
  const size = header.rows * tileCells;
  const at = 8 + headerBytes;
  const parts = 1 + Number(withShares) + Number(withMarks);
  if (body.byteLength !== at + size * parts) throw new WireError("cells: the body is cut");
  return Array.from({ length: header.rows }, (_, row) => {
    const index = new Uint8Array(body, at + row * tileCells, tileCells);
    const share = withShares ? new Uint8Array(body, at + size + row * tileCells, tileCells) : filled(index);
    const marks = withMarks
      ? marksOf(new Uint8Array(body, at + (parts - 1) * size + row * tileCells, tileCells), palette)
      : [];
    return { palette, index, share, marks };
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
