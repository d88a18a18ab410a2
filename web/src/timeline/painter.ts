// Cells to pixels: a row of cells becomes one row of RGBA pixels by table look-up. The cost is the canvas's pixels, not the trace's spans.
import { CHROME, dimmed, type Rgb, regionColor, type Theme } from "../base/color";
import { length, type TimeRange } from "../base/time";
import { type CellRow, type Palette, type TileKey, tileRange } from "../data/cells";

/** Shares are drawn in this many strengths of colour, from faint to full. */
const STRENGTHS = 16;
/** The colour of a region that fills almost nothing of its pixel: still to be seen. */
const FAINTEST = 0.38;

/** A tile's row, and where the tile lies. */
export type PlacedRow = { readonly key: TileKey; readonly row: CellRow };

const pack = ([r, g, b]: Rgb): number => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0; // little endian RGBA
const mix = (a: Rgb, b: Rgb, share: number): Rgb => [
  Math.round(a[0] + (b[0] - a[0]) * share),
  Math.round(a[1] + (b[1] - a[1]) * share),
  Math.round(a[2] + (b[2] - a[2]) * share),
];

/** Paints rows of cells. Keeps the colour table of each palette it met, for as long as the palette lives. */
export class Painter {
  private readonly tables = new WeakMap<Palette, Uint32Array>();

  constructor(
    readonly theme: Theme,
    private readonly tileCells: number,
    /** Where a region is chosen, by its name, the others are dimmed. */
    readonly chosen = "",
  ) {}

  /**
   * Writes one row of `out.length` pixels that shows `window`. In a pixel that several cells share, the cell that fills most of the
   * pixel wins. Where no tile lies, pixels stay as they are; where nothing ran, they become transparent.
   */
  paint(out: Uint32Array, window: TimeRange, rows: readonly PlacedRow[]): void {
    const widthPx = out.length;
    const pxNs = length(window) / widthPx;
    for (const { key, row } of rows) {
      const range = tileRange(key, this.tileCells);
      const cellNs = 2 ** key.level;
      const from = Math.max(0, Math.floor((range.startNs - window.startNs) / pxNs));
      const to = Math.min(widthPx, Math.ceil((range.endNs - window.startNs) / pxNs));
      const table = this.table(row.palette);
      const { index, share } = row;
      const last = this.tileCells - 1;
      for (let px = from; px < to; px++) {
        const left = (window.startNs + px * pxNs - range.startNs) / cellNs;
        const right = left + pxNs / cellNs;
        const first = Math.max(0, Math.floor(left));
        const end = Math.min(last, Math.ceil(right) - 1);
        let best = 0;
        let bestWeight = -1;
        let bestShare = 255;
        for (let cell = first; cell <= end; cell++) {
          const byte = index[cell] ?? 0;
          const filled = byte === 0 ? 0 : share ? (share[cell] ?? 0) : 255;
          const weight = filled * (Math.min(right, cell + 1) - Math.max(left, cell));
          if (weight > bestWeight) {
            best = byte;
            bestWeight = weight;
            bestShare = filled;
          }
        }
        if (bestWeight < 0) continue;
        out[px] = best === 0 ? 0 : (table[best * STRENGTHS + ((bestShare * STRENGTHS) >> 8)] ?? 0);
      }
    }
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
      const byte = row.share && (row.share[cell] ?? 0) < leastShare ? 0 : (row.index[cell] ?? 0);
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
