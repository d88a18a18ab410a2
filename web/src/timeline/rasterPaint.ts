// Rasters to pixels: shares of groups as a stack, or where a row is too thin as its largest one; one number as heat.
import { CHROME, GROUPS, groupColor, radarColor, type Theme } from "../base/color";
import type { TimeRange } from "../base/time";
import type { PlacedRaster } from "./families";
import { pack } from "./painter";
import type { Mappings } from "./pixels";

/** Rows with fewer device pixels show their largest group instead of a stack. */
const STACKED = 5;

/**
 * The mean of a plane's cells in each pixel, 0 to 255; of several rasters of one tile by their weight.
 * `known`: cells of 0 are unknown and do not count.
 */
export function sample(
  placed: readonly PlacedRaster[],
  plane: number,
  window: TimeRange,
  widthPx: number,
  mappings: Mappings,
  known = false,
): Uint8Array {
  const sums = new Float64Array(widthPx);
  const weights = new Float64Array(widthPx);
  for (const { key, raster, weight } of placed) {
    const { from, to, first, weights: covered } = mappings.get(key, window, widthPx);
    const offset = plane * mappings.tileCells;
    for (let px = from, i = 0; px < to; px++, i++) {
      for (let at = 0; at < 3; at++) {
        const value = raster.values[offset + (first[i] as number) + at] as number;
        const part = (covered[at]?.[i] as number) * weight;
        if (known && value === 0) continue;
        sums[px] = (sums[px] as number) + value * part;
        weights[px] = (weights[px] as number) + part;
      }
    }
  }
  return Uint8Array.from(sums, (sum, px) =>
    (weights[px] as number) > 0 ? Math.round(sum / (weights[px] as number)) : 0,
  );
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

  /** Writes `tall` rows of pixels: group shares from below, in the order of the groups; what is not filled stays transparent. */
  stack(out: Uint32Array, tall: number, window: TimeRange, placed: readonly PlacedRaster[]): void {
    const widthPx = out.length / tall;
    const planes = GROUPS.map((_, plane) => sample(placed, plane, window, widthPx, this.mappings));
    if (tall < STACKED) this.largest(out, tall, planes);
    else
      for (let px = 0; px < widthPx; px++) {
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

  private largest(out: Uint32Array, tall: number, planes: readonly Uint8Array[]): void {
    const widthPx = out.length / tall;
    for (let px = 0; px < widthPx; px++) {
      let best = 0;
      let most = 0;
      for (let plane = 0; plane < planes.length; plane++) {
        const value = planes[plane]?.[px] ?? 0;
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

  /** Writes `tall` rows of pixels of one number as heat; where nothing is known, they stay transparent. */
  heat(
    out: Uint32Array,
    tall: number,
    window: TimeRange,
    placed: readonly PlacedRaster[],
    plane: number,
    known: boolean,
  ): void {
    const widthPx = out.length / tall;
    const values = sample(placed, plane, window, widthPx, this.mappings, known);
    for (let px = 0; px < widthPx; px++) {
      const value = values[px] as number;
      if (known && value === 0) continue;
      out[px] = this.heats[value] as number;
    }
    for (let y = 1; y < tall; y++) out.copyWithin(y * widthPx, 0, widthPx);
  }
}

/** What lies behind a stack: drawn so that 100 % is seen to be 100 %. */
export const stackGround = (theme: Theme): string => CHROME[theme].band;
