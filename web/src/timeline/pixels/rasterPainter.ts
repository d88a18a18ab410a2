// Rasters to pixels: shares of groups as a stack, or where a row is too thin as its largest one; one number as heat.

import { CHROME, groupColor, pack, radarColor, type Theme } from "../../base/color";
import { GROUPS } from "../../base/kinds.generated";
import type { TimeRange } from "../../base/time";
import type { Raster } from "../../data/tiles/rasters";
import type { PlacedRaster } from "../rows/rasterSources";
import type { Mappings } from "./pixelMapping";

/** Rows with fewer device pixels show their largest group instead of a stack. */
const STACKED = 5;

/** Room to add up in: thousands of rows are sampled for a picture. */
let sums = new Float64Array(0);
let weights = new Float64Array(0);

/** Which planes of a raster hold anything. */
const filledPlanes = new WeakMap<Raster, readonly boolean[]>();
function fills(raster: Raster, plane: number, cells: number): boolean {
  let filled = filledPlanes.get(raster);
  if (!filled) {
    filled = Array.from({ length: raster.planes }, (_, at) =>
      raster.values.subarray(at * cells, (at + 1) * cells).some((value) => value !== 0),
    );
    filledPlanes.set(raster, filled);
  }
  return filled[plane] ?? false;
}

/**
 * The mean of a plane's cells in each pixel from `begin` to `end`, 0 to 255; of several rasters of one tile by their weight.
 * `known`: cells of 0 are unknown and do not count. Written into `means`, which is returned.
 */
export function sample(
  placed: readonly PlacedRaster[],
  plane: number,
  window: TimeRange,
  widthPx: number,
  mappings: Mappings,
  known = false,
  begin = 0,
  end = widthPx,
  means: Uint8Array = new Uint8Array(widthPx),
): Uint8Array {
  means.fill(0, begin, end);
  if (!placed.some(({ raster }) => fills(raster, plane, mappings.tileCells))) return means;
  if (sums.length < widthPx) {
    sums = new Float64Array(widthPx);
    weights = new Float64Array(widthPx);
  }
  sums.fill(0, begin, end);
  weights.fill(0, begin, end);
  const offset = plane * mappings.tileCells;
  for (const { key, raster, weight } of placed) {
    const { from, to, first, weights: covered } = mappings.get(key, window, widthPx);
    const { values } = raster;
    const [left, middle, right] = covered;
    const last = Math.min(to, end);
    for (let px = Math.max(from, begin), i = px - from; px < last; px++, i++) {
      const cell = offset + (first[i] as number);
      const [a, b, c] = [values[cell] as number, values[cell + 1] as number, values[cell + 2] as number];
      let [l, m, r] = [left[i] as number, middle[i] as number, right[i] as number];
      if (known) {
        if (a === 0) l = 0;
        if (b === 0) m = 0;
        if (c === 0) r = 0;
      }
      sums[px] = (sums[px] as number) + (a * l + b * m + c * r) * weight;
      weights[px] = (weights[px] as number) + (l + m + r) * weight;
    }
  }
  for (let px = begin; px < end; px++) {
    const weight = weights[px] as number;
    if (weight > 0) means[px] = Math.round((sums[px] as number) / weight);
  }
  return means;
}

/** Paints rasters in the colours of a theme. */
export class RasterPainter {
  private readonly groups: Uint32Array;
  private readonly heats: Uint32Array;

  constructor(
    readonly theme: Theme,
    private readonly mappings: Mappings,
  ) {
    this.groups = Uint32Array.from(GROUPS, (group) => pack(groupColor(group, theme)));
    this.heats = Uint32Array.from({ length: 256 }, (_, value) => pack(radarColor(value / 255, theme)));
  }

  /** The means of each plane, while a row is painted. */
  private planes: readonly Uint8Array[] = [];

  /** Writes pixels [begin, end) of `tall` lines: group shares from below, in the order of the groups; what is not filled stays transparent. */
  stack(
    out: Uint32Array,
    tall: number,
    window: TimeRange,
    placed: readonly PlacedRaster[],
    begin = 0,
    end = out.length / tall,
  ): void {
    const widthPx = out.length / tall;
    if (this.planes[0]?.length !== widthPx) this.planes = GROUPS.map(() => new Uint8Array(widthPx));
    const planes = this.planes.map((means, plane) =>
      sample(placed, plane, window, widthPx, this.mappings, false, begin, end, means),
    );
    if (tall < STACKED) this.largest(out, tall, planes, begin, end);
    else
      for (let px = begin; px < end; px++) {
        let sum = 0;
        let y = tall - 1;
        for (let plane = 0; plane < planes.length; plane++) {
          sum += planes[plane]?.[px] ?? 0;
          const top = tall - Math.round((Math.min(255, sum) * tall) / 255);
          const color = this.groups[plane] as number;
          for (; y >= top; y--) out[y * widthPx + px] = color;
        }
      }
  }

  private largest(out: Uint32Array, tall: number, planes: readonly Uint8Array[], begin: number, end: number): void {
    const widthPx = out.length / tall;
    for (let px = begin; px < end; px++) {
      let best = 0;
      let most = 0;
      for (let plane = 0; plane < planes.length; plane++) {
        const value = (planes[plane] as Uint8Array)[px] as number;
        if (value > most) {
          most = value;
          best = plane;
        }
      }
      // As strong as it fills the pixel, but never invisible.
      const alpha = most === 0 ? 0 : 96 + Math.round((159 * most) / 255);
      const color = ((this.groups[best] as number) & 0xffffff) | (alpha << 24);
      for (let y = 0; y < tall; y++) out[y * widthPx + px] = most === 0 ? 0 : color >>> 0;
    }
  }

  /** Writes pixels [begin, end) of `tall` lines of one number as heat; where nothing is known, they stay transparent. */
  heat(
    out: Uint32Array,
    tall: number,
    window: TimeRange,
    placed: readonly PlacedRaster[],
    plane: number,
    known: boolean,
    begin = 0,
    end = out.length / tall,
  ): void {
    const widthPx = out.length / tall;
    const values = sample(placed, plane, window, widthPx, this.mappings, known, begin, end);
    for (let px = begin; px < end; px++) {
      const value = values[px] as number;
      if (known && value === 0) continue;
      out[px] = this.heats[value] as number;
    }
    for (let y = 1; y < tall; y++) out.copyWithin(y * widthPx + begin, begin, end);
  }
}

/** What lies behind a stack: drawn so that 100 % is seen to be 100 %. */
export const stackGround = (theme: Theme): string => CHROME[theme].band;
