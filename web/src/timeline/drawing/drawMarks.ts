// Marks: what is rare but important stays visible however far one zooms out, as a notch at the top of its row.

import { CHROME, css } from "../../base/color";
import { length, type TimeRange } from "../../base/time";
import { toPx } from "../../base/viewport";
import { GAP, type Mark, type PaletteEntry, tileRange } from "../../data/tiles/cells";
import { NARROW } from "../pixels/cellPainter";
import { placedRasters, sourceOf } from "../rows/rasterSources";
import type { Row } from "../rows/rowLayout";
import { type CellSource, type Ground, placedRows, type Tools } from "./scene";
import type { Pen } from "./svgSurface";

/** Rows that are not so tall have no room for a notch, in CSS pixels: threads have their marks painted among their cells. */
export const NOTCHED = 10;
/** A row whose notches would be nearer to each other than this on average shows the rarest of each stretch, of at least so many pixels. */
const SPARSE = 48;
const STRETCH = 192;
/** Half the width of a notch, and how far the pointer reaches, in CSS pixels. */
const HALF = 3;
const REACH = 5;

/** A mark on the screen: of a row, between two moments. */
export type PlacedMark = { readonly range: TimeRange; readonly entry: PaletteEntry };

export function marksOfRow(scene: CellSource, row: Row): PlacedMark[] {
  const found: PlacedMark[] = [];
  const add = (key: { readonly level: number; readonly tile: number }, marks: readonly Mark[]): void => {
    const { startNs } = tileRange(key, scene.tileCells);
    const cellNs = 2 ** key.level;
    for (const { from, to, entry } of marks) {
      const last = found.at(-1);
      const range = { startNs: startNs + from * cellNs, endNs: startNs + to * cellNs };
      // One that reaches over two tiles is one.
      if (last && last.range.endNs === range.startNs && last.entry.region === entry.region)
        found[found.length - 1] = { entry, range: { startNs: last.range.startNs, endNs: range.endNs } };
      else found.push({ entry, range });
    }
  };
  if (row.kind === "location" && !scene.radar)
    for (const { key, row: cells } of placedRows(scene, row.location.location)) add(key, cells.marks);
  if (row.kind === "ranks") {
    const source = sourceOf(row, scene.places, scene.radar);
    if (source) for (const { key, raster } of placedRasters(source, scene.rasters, scene.tiles)) add(key, raster.marks);
  }
  return found;
}

/** Draws the notches of all rows of a scene. */
export function drawMarks(context: Pen, scene: Ground & CellSource, { inks, theme }: Tools): void {
  const { window, width, scrollTop } = scene;
  const chrome = CHROME[theme];
  for (const row of scene.rows) {
    if (row.kind === "location" && row.height < NOTCHED) continue;
    const narrow = marksOfRow(scene, row).filter(({ range }) => {
      const [left, right] = [toPx(range.startNs, window, width), toPx(range.endNs, window, width)];
      return right >= 0 && left <= width && right - left <= NARROW;
    });
    const few = apart(narrow, window, width);
    for (const { x, entry } of few.length * SPARSE > width
      ? apart(rarest(narrow, window, width), window, width)
      : few) {
      const color = entry.region === GAP ? chrome.textWeak : inks.get(entry.group, entry.name).fill;
      notch(context, x, row.top - scrollTop, row.height, color, css(chrome.background));
    }
  }
}

type Notch = { readonly x: number; readonly entry: PaletteEntry };

/** Notches of marks, without those that would cover the one before. */
function apart(marks: readonly PlacedMark[], window: TimeRange, width: number): Notch[] {
  const notches: Notch[] = [];
  let drawnTo = -HALF;
  for (const { range, entry } of marks) {
    const x = Math.round(toPx((range.startNs + range.endNs) / 2, window, width));
    if (x - HALF < drawnTo) continue;
    drawnTo = x + HALF;
    notches.push({ x, entry });
  }
  return notches;
}

/** Of many marks one for each stretch of time: of the region that is marked least often in the row. Stretches stay while one pans. */
function rarest(marks: readonly PlacedMark[], window: TimeRange, width: number): PlacedMark[] {
  const often = new Map<number, number>();
  for (const { entry } of marks) often.set(entry.region, (often.get(entry.region) ?? 0) + 1);
  const stretchNs = 2 ** Math.ceil(Math.log2((STRETCH * length(window)) / width));
  const found = new Map<number, PlacedMark>();
  for (const mark of marks) {
    const stretch = Math.floor(mark.range.startNs / stretchNs);
    const known = found.get(stretch);
    if (!known || (often.get(mark.entry.region) ?? 0) < (often.get(known.entry.region) ?? 0)) found.set(stretch, mark);
  }
  return [...found.values()];
}

/** A triangle that points at the moment; on thin rows a bar of half their height, so that what ran is seen, too. */
function notch(context: Pen, x: number, top: number, height: number, color: string, background: string): void {
  context.fillStyle = color;
  if (height < NOTCHED) {
    context.fillRect(x - 1, top, 2, Math.max(1, Math.floor(height / 2)));
    return;
  }
  context.strokeStyle = background;
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(x - HALF, top);
  context.lineTo(x + HALF, top);
  context.lineTo(x, top + 5);
  context.closePath();
  context.stroke();
  context.fill();
}

/** The mark under a point of a row; none where what it marks is wide enough to be seen by itself. */
export function markAt(
  scene: CellSource & Pick<Ground, "window" | "width">,
  row: Row,
  x: number,
): PlacedMark | undefined {
  const { window, width } = scene;
  let best: PlacedMark | undefined;
  let bestAway = REACH;
  for (const mark of marksOfRow(scene, row)) {
    const [left, right] = [toPx(mark.range.startNs, window, width), toPx(mark.range.endNs, window, width)];
    const away = Math.abs((left + right) / 2 - x);
    if (right - left <= NARROW && away < bestAway) {
      best = mark;
      bestAway = away;
    }
  }
  return best;
}
