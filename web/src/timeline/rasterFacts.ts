// The tooltip of a row made of rasters.

import { GROUP_TITLES } from "../base/color";
import { GROUPS, type Group } from "../base/kinds.generated";
import { formatQuantity, formatShare } from "../base/quantity";
import type { TimelineModel } from "./model/timelineModel";
import { Mappings } from "./pixels/pixelMapping";
import { sample } from "./pixels/rasterPainter";
import { measureTitle } from "./rows/radarMeasure";
import { placedRasters, sourceOf } from "./rows/rasterSources";
import type { Row } from "./rows/rowLayout";

type Fact = { readonly name: string; readonly value: string; readonly group: Group | undefined };

/** Shares of groups at a pixel, the largest first, or the number that the radar shows there; undefined for other rows. */
export function rasterFacts(model: TimelineModel, row: Row, x: number): readonly Fact[] | undefined {
  const radar = model.rows.radar.peek();
  const source = sourceOf(row, model.rows.places.peek(), radar);
  if (!source) return undefined;
  const placed = placedRasters(source, model.rasters, model.tiles.peek());
  const window = model.time.shown.peek();
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
