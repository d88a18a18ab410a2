// Which cells of a tile lie in which pixels of a picture: for all rows the same, so it is made once. Pixels onto a canvas.

import { length, type TimeRange } from "../../base/time";
import { contextOf } from "../../base/visibleText";
import { type TileKey, tileRange } from "../../data/tiles/cells";

/** What a cell weighs that lies in a pixel as a whole. */
const WHOLE_CELL = 256;

type Mapping = {
  /** The pixels that the tile reaches into. */
  readonly from: number;
  readonly to: number;
  /**
   * Of each of them the first of three neighbouring cells, and how much of the pixel each of the three covers. A pixel is at least as
   * wide as a cell, and less than twice as wide: it touches three at the most.
   */
  readonly first: Uint16Array;
  readonly weights: readonly [Uint16Array, Uint16Array, Uint16Array];
};

/** Remembers the mappings of the last picture. */
export class Mappings {
  private readonly known = new Map<number, Mapping>();
  private madeFor = [0, 0, 0];

  constructor(readonly tileCells: number) {}

  get(key: TileKey, window: TimeRange, widthPx: number): Mapping {
    const [startNs, endNs, width] = this.madeFor;
    if (window.startNs !== startNs || window.endNs !== endNs || widthPx !== width) {
      this.known.clear();
      this.madeFor = [window.startNs, window.endNs, widthPx];
    }
    // Asked for every row of every picture: a number is found faster than a name, and levels are fewer than 64.
    const name = key.tile * 64 + key.level;
    const known = this.known.get(name);
    if (known) return known;
    const made = this.make(key, window, widthPx);
    this.known.set(name, made);
    return made;
  }

  private make(key: TileKey, window: TimeRange, widthPx: number): Mapping {
    const range = tileRange(key, this.tileCells);
    const pxNs = length(window) / widthPx;
    const cellNs = 2 ** key.level;
    const from = Math.min(widthPx, Math.max(0, Math.floor((range.startNs - window.startNs) / pxNs)));
    const to = Math.max(from, Math.min(widthPx, Math.ceil((range.endNs - window.startNs) / pxNs)));
    const count = to - from;
    const first = new Uint16Array(count);
    const weights = [new Uint16Array(count), new Uint16Array(count), new Uint16Array(count)] as const;
    for (let i = 0; i < count; i++) {
      const left = (window.startNs + (from + i) * pxNs - range.startNs) / cellNs;
      const right = left + pxNs / cellNs;
      // The three must lie in the tile, also at its end.
      const cell = Math.min(Math.max(0, Math.floor(left)), this.tileCells - 3);
      first[i] = cell;
      weights.forEach((weight, at) => {
        const covered = Math.min(right, cell + at + 1) - Math.max(left, cell + at);
        weight[i] = Math.ceil(WHOLE_CELL * Math.max(0, covered));
      });
    }
    return { from, to, first, weights };
  }
}

/** Puts lines of pixels onto a canvas, which is made as large as they are where it is smaller. */
export function transfer(
  pixels: Uint32Array<ArrayBuffer>,
  widthPx: number,
  lines: number,
  onto: OffscreenCanvas,
): void {
  if (widthPx < 1 || lines < 1) return;
  if (onto.width < widthPx) onto.width = widthPx;
  if (onto.height < lines) onto.height = lines;
  const bytes = new Uint8ClampedArray(pixels.buffer, 0, 4 * widthPx * lines);
  contextOf(onto)?.putImageData(new ImageData(bytes, widthPx, lines), 0, 0);
}
