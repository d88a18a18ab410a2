// Cells to pixels: a row of cells becomes one row of RGBA pixels by table look-up. The cost is the canvas's pixels, not the trace's spans.
import { CHROME, dimmed, groupColor, mix, pack, regionColor, type Theme } from "../../base/color";
import { length, type TimeRange } from "../../base/time";
import { type CellRow, GAP, type Palette, type PaletteEntry, type TileKey, tileRange } from "../../data/tiles/cells";
import type { Mappings } from "./pixelMapping";

/** Shares are drawn in 2^this many strengths of colour, from faint to full. */
const STRENGTH_BITS = 4;
const STRENGTHS = 2 ** STRENGTH_BITS;
/** The colour of a region that fills almost nothing of its pixel: still to be seen. */
const FAINTEST = 0.38;

/** What is wider than this is seen without a mark, in pixels. */
export const NARROW = 12;

/** A tile's row, and where the tile lies. */
export type PlacedRow = { readonly key: TileKey; readonly row: CellRow };

/** Whole numbers, since they are compared millions of times. A cell in which nothing ran loses to any other that the pixel touches. */
const weigh = (share: number, covered: number): number => ((share << 10) | 1) * covered;

/** Paints rows of cells. Keeps the colour table of each palette it met, for as long as the palette lives. */
export class Painter {
  private readonly tables = new WeakMap<Palette, Uint32Array>();
  private readonly markColors = new WeakMap<PaletteEntry, number>();

  constructor(
    readonly theme: Theme,
    readonly mappings: Mappings,
    /** Where a region is chosen, by its name, the others are dimmed. */
    readonly chosen = "",
  ) {}

  /**
   * Writes one row of `out.length` pixels that shows `window`. In a pixel that several cells share, the cell that fills most of the
   * pixel wins. Where no tile lies, pixels stay as they are; where nothing ran, they become transparent. Only pixels [begin, end).
   */
  paint(out: Uint32Array, window: TimeRange, rows: readonly PlacedRow[], begin = 0, end = out.length): void {
    for (const { key, row } of rows) {
      const { from, to, first, weights } = this.mappings.get(key, window, out.length);
      const [left, middle, right] = weights;
      const { index, share } = row;
      const table = this.table(row.palette);
      const last = Math.min(to, end);
      // A thousand rows of two thousand pixels are painted in a frame: every look-up here is made two million times.
      for (let px = Math.max(from, begin), i = px - from; px < last; px++, i++) {
        const cell = first[i] as number;
        let best = cell;
        let most = weigh(share[cell] as number, left[i] as number);
        const second = weigh(share[cell + 1] as number, middle[i] as number);
        if (second > most) {
          best = cell + 1;
          most = second;
        }
        if (weigh(share[cell + 2] as number, right[i] as number) > most) best = cell + 2;
        out[px] = table[
          ((index[best] as number) << STRENGTH_BITS) | ((share[best] as number) >> (8 - STRENGTH_BITS))
        ] as number;
      }
    }
  }

  /** Writes the marks of a row that is too thin for notches: two pixels wide, where what they mark is narrow. */
  paintMarks(out: Uint32Array, window: TimeRange, rows: readonly PlacedRow[]): void {
    const widthPx = out.length;
    for (const { key, row } of rows) {
      if (!row.marks.length) continue;
      const { startNs } = tileRange(key, this.mappings.tileCells);
      const perNs = widthPx / length(window);
      for (const { from, to, entry } of row.marks) {
        const left = (startNs + from * 2 ** key.level - window.startNs) * perNs;
        const right = (startNs + to * 2 ** key.level - window.startNs) * perNs;
        const x = Math.round((left + right) / 2);
        if (right - left > NARROW || x < 1 || x >= widthPx) continue;
        const color = this.markColor(entry);
        out[x - 1] = color;
        out[x] = color;
      }
    }
  }

  private markColor(entry: PaletteEntry): number {
    const known = this.markColors.get(entry);
    if (known !== undefined) return known;
    const { group, name } = entry;
    const dim = this.chosen !== "" && this.chosen !== name;
    const gap = mix(CHROME[this.theme].background, groupColor("other", this.theme), 0.75);
    const color = pack(entry.region === GAP ? gap : dimmed(regionColor(group, name, this.theme), dim, this.theme));
    this.markColors.set(entry, color);
    return color;
  }

  private table(palette: Palette): Uint32Array {
    const known = this.tables.get(palette);
    if (known) return known;
    const table = new Uint32Array((palette.length + 1) * STRENGTHS);
    const background = CHROME[this.theme].background;
    palette.forEach((entry, i) => {
      const dim = this.chosen !== "" && this.chosen !== entry.name;
      const color = dimmed(regionColor(entry.group, entry.name, this.theme), dim, this.theme);
      for (let s = 0; s < STRENGTHS; s++) {
        const strength = FAINTEST + (1 - FAINTEST) * (s / (STRENGTHS - 1));
        table[(i + 1) * STRENGTHS + s] = pack(mix(background, color, strength));
      }
    });
    this.tables.set(palette, table);
    return table;
  }
}

/** A stretch of equal cells on the screen: what a label is written on, and what the pointer meets. */
export type Run = {
  readonly startNs: number;
  readonly endNs: number;
  readonly entry: number;
  readonly palette: Palette;
};

/** Cells filled less than this carry no name: their colour is too faint to write on, and they are mostly empty. In 255ths. */
export const LABEL_SHARE = 128;

/** Stretches of equal cells that are at least `shortestNs` long, inside a window; cells filled less than `leastShare` are gaps. */
export function runs(
  rows: readonly PlacedRow[],
  window: TimeRange,
  tileCells: number,
  shortestNs: number,
  leastShare = 0,
): Run[] {
  const found: Run[] = [];
  let open: Run | undefined;
  const close = (): void => {
    if (open && open.endNs - open.startNs >= shortestNs) found.push(open);
    open = undefined;
  };
  for (const { key, row } of rows) {
    const range = tileRange(key, tileCells);
    const cellNs = 2 ** key.level;
    const first = Math.max(0, Math.floor((window.startNs - range.startNs) / cellNs));
    const end = Math.min(tileCells, Math.ceil((window.endNs - range.startNs) / cellNs));
    for (let cell = first; cell < end; cell++) {
      const byte = (row.share[cell] ?? 0) < leastShare ? 0 : (row.index[cell] ?? 0);
      const startNs = range.startNs + cell * cellNs;
      const region = row.palette[byte - 1]?.region;
      if (open && byte !== 0 && open.endNs === startNs && open.palette[open.entry]?.region === region) {
        open = { ...open, endNs: startNs + cellNs };
      } else {
        close();
        if (byte !== 0) open = { startNs, endNs: startNs + cellNs, entry: byte - 1, palette: row.palette };
      }
    }
  }
  close();
  return found;
}
