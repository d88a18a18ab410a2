// Draws the rows that are made of rasters: summaries, rows of many ranks, the radar.

import { CHROME } from "../../base/color";
import { GROUPS } from "../../base/kinds.generated";
import type { PaintedRow } from "../pixels/paintedLines";
import { transfer } from "../pixels/pixelMapping";
import { stackGround } from "../pixels/rasterPainter";
import { placedRasters, type RasterRow, sourceOf } from "../rows/rasterSources";
import { LABEL_FONT } from "./labels";
import type { Scene, Tools } from "./scene";
import type { Pen } from "./svgSurface";

/** A summary has lines at these shares. */
const LINES = [0.25, 0.5, 0.75];
/** Rows as tall as this have their share written at their lines, in CSS pixels. */
const WRITTEN = 60;

/** Room above and below a row's picture, in CSS pixels. A radar has none: it is one picture of all its rows. */
const paddingOf = ({ height, kind }: RasterRow, radar: boolean): number =>
  radar ? 0 : kind === "summary" ? 8 : height >= 18 ? 3 : height >= 6 ? 1 : 0;

/** The plane of the radar's measure in group shares; undefined where it is none of them. */
const planeOf = (radar: string | undefined): number | undefined => {
  const plane = GROUPS.findIndex((group) => radar === `group.${group}`);
  return plane < 0 ? undefined : plane;
};

/** Draws the rows of a scene that are made of rasters. */
export function drawRasters(context: Pen, scene: Scene, tools: Tools): void {
  const rows = scene.rows.flatMap((row) => {
    const source = sourceOf(row, scene.places, scene.radar);
    return source ? [{ row: row as RasterRow, source }] : [];
  });
  if (!rows.length) {
    scene.kept.rasters.lines.clear();
    return;
  }
  const { pixelRatio, window, scrollTop, width } = scene;
  const widthPx = Math.round(width * pixelRatio);
  const places = rows.map(({ row }) => {
    const padding = paddingOf(row, scene.radar !== undefined);
    const top = Math.round((row.top - scrollTop + padding) * pixelRatio);
    const bottom = Math.round((row.top - scrollTop + row.height - padding - (row.height >= 6 ? 1 : 0)) * pixelRatio);
    return { top, tall: Math.max(1, bottom - top) };
  });
  const total = places.reduce((sum, place) => sum + place.tall, 0);
  if (widthPx < 1) return;
  const plane = planeOf(scene.radar);
  const metric = scene.radar?.startsWith("metric.") ?? false;
  const wanted = rows.map(({ row, source }, i): PaintedRow => {
    const tall = places[i]?.tall ?? 1;
    const placed = placedRasters(source, scene.rasters, scene.tiles);
    const heat = row.kind === "location" ? 0 : row.kind !== "summary" ? plane : undefined;
    const known = row.kind === "location" && metric;
    return {
      key: row.key,
      tall,
      from: [heat, known, ...placed.flatMap(({ key, raster, weight }) => [raster, weight, key.level, key.tile])],
      paint: (out, begin, end) => {
        if (heat === undefined) tools.rasters.stack(out, tall, window, placed, begin, end);
        else tools.rasters.heat(out, tall, window, placed, heat, known, begin, end);
      },
    };
  });
  const { lines, canvas: scratch } = scene.kept.rasters;
  if (lines.update(tools.rasters, window, widthPx, wanted)) transfer(lines.pixels, widthPx, total, scratch);
  context.imageSmoothingEnabled = false;
  let line = 0;
  rows.forEach(({ row }, i) => {
    const { top, tall } = places[i] ?? { top: 0, tall: 1 };
    const [y, high] = [top / pixelRatio, tall / pixelRatio];
    if (row.kind === "summary" || row.kind === "gpu") {
      context.fillStyle = stackGround(tools.theme);
      context.fillRect(0, y, width, high);
    }
    context.drawImage(scratch, 0, line, widthPx, tall, 0, y, width, high);
    line += tall;
    if (row.kind === "summary") drawLines(context, tools, y, high, width);
  });
}

function drawLines(context: Pen, { theme }: Tools, top: number, high: number, width: number): void {
  const chrome = CHROME[theme];
  context.font = LABEL_FONT;
  context.textBaseline = "middle";
  for (const share of LINES) {
    const y = Math.round(top + high * (1 - share));
    context.fillStyle = `rgb(${chrome.background.join(" ")} / 45%)`;
    context.fillRect(0, y, width, 1);
    if (high < WRITTEN) continue;
    const text = `${100 * share} %`;
    const wide = context.measureText(text).width + 8;
    context.fillStyle = `rgb(${chrome.background.join(" ")} / 72%)`;
    context.fillRect(width - wide - 2, y - 8, wide, 16);
    context.fillStyle = chrome.text;
    context.fillText(text, width - wide + 2, y + 0.5);
  }
}
