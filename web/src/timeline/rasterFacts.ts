// What a row made of rasters says under the pointer.
import { GROUP_TITLES, GROUPS, type Group } from "../base/color";
import { formatQuantity, formatShare } from "../base/quantity";
import { placedRasters, sourceOf } from "./families";
import { measureTitle } from "./measure";
import type { TimelineModel } from "./model";
import { Mappings } from "./pixels";
import { sample } from "./rasterPaint";
import type { Row } from "./rows";

export type Fact = { readonly name: string; readonly value: string; readonly group: Group | undefined };

/** Shares of groups at a pixel, the largest first, or the number that the radar shows there; undefined for other rows. */
export function rasterFacts(model: TimelineModel, row: Row, x: number): readonly Fact[] | undefined {
  const radar = model.radar.peek();
  const source = sourceOf(row, model.data.places.peek(), radar);
  if (!source) return undefined;
  const placed = placedRasters(source, model.rasters, model.tiles.peek());
  const window = model.window.peek();
  const width = Math.max(1, Math.round(model.size.peek().width));
  const mappings = new Mappings(model.run.meta.tile_cells);
  const at = Math.min(width - 1, Math.max(0, Math.floor(x)));
  const sampled = (plane: number, known: boolean): number =>
    sample(placed, plane, window, width, mappings, known)[at] ?? 0;
  if (row.kind === "location" && radar) {
    const metric = radar.startsWith("metric.");
    const value = sampled(0, metric);
    const { low = 0, high = 1, unit = "" } = placed[0]?.raster ?? {};
    const text = metric
      ? value === 0
        ? "not measured"
        : formatQuantity(low + ((value - 1) / 254) * (high - low), unit)
      : formatShare(value / 255);
    return [{ name: measureTitle(radar), value: text, group: undefined }];
  }
  return GROUPS.map((group, plane) => ({ group, share: sampled(plane, false) / 255 }))
    .filter(({ share }) => share > 0)
    .sort((a, b) => b.share - a.share)
    .map(({ group, share }) => ({ name: GROUP_TITLES[group], value: formatShare(share), group }));
}
