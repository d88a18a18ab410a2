// Draws the tracks: cells as pixels, few spans as rectangles with names, metrics as lines; on top what is chosen.

import { CHROME, css, outlierColor, type Theme } from "../../base/color";
import { length, type TimeRange, ticks } from "../../base/time";
import { toPx } from "../../base/viewport";
import { tileRange } from "../../data/tiles/cells";
import type { Spans } from "../../data/tiles/locationTiles";
import { LABEL_SHARE, type PlacedRow, runs } from "../pixels/cellPainter";
import type { PaintedRow } from "../pixels/paintedLines";
import { transfer } from "../pixels/pixelMapping";
import { HEIGHTS, type LocationRow, type Row } from "../rows/rowLayout";
import { criticalBoxes, drawCritical } from "./drawCritical";
import { foldedRows, foldedStretches, hatch } from "./drawFolded";
import { drawSteps } from "./drawHeader";
import { arrowsOf, drawArrows, drawGap, messageArrows } from "./drawLinks";
import { drawLost } from "./drawLost";
import { drawMarks, NOTCHED } from "./drawMarks";
import { drawMetric } from "./drawMetrics";
import { drawNoteBands } from "./drawNotes";
import { drawRasters } from "./drawRadarAndSummary";
import { joinNames, LABEL_FONT, labelLeft, NARROWEST_LABEL, type Named } from "./labels";
import {
  type Band,
  bandOf,
  depthTop,
  type Ground,
  type Highlights,
  LINED,
  type PlacedLine,
  placedRows,
  type RowContent,
  type Scene,
  type Tools,
} from "./scene";
import type { Ink } from "./spanColors";
import type { Pen } from "./svgSurface";

/** Rows that are not so tall have no names in them. */
const NAMED = 12;
const FOLDED = "statistics only";
/** Steps that are narrower than this on average are not drawn as bands: they would be a grey haze. */
const NARROWEST_BAND = 14;

/** Draws a scene. Returns how deep each open location was seen to be. */
export function drawTracks(context: Pen, scene: Scene, tools: Tools): Map<number, number> {
  const { width, height, pixelRatio, window, rows, scrollTop } = scene;
  const chrome = CHROME[tools.theme];
  context.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
  context.fillStyle = css(chrome.background);
  context.fillRect(0, 0, width, height);
  drawBands(context, scene, tools.theme);
  drawGrid(context, scene, tools.theme);
  const depths = new Map<number, number>();
  for (const row of rows) {
    const top = row.top - scrollTop;
    context.fillStyle = chrome.band;
    if (row.kind === "process" || row.kind === "host" || row.kind === "system")
      context.fillRect(0, top, width, row.height);
    context.fillStyle = chrome.grid;
    if (row.height >= LINED) context.fillRect(0, top + row.height - 1, width, 1);
    if (row.kind === "metric")
      drawMetric(context, row, scene.readings, window, { left: 0, top, width, height: row.height }, tools.theme);
    if (row.kind === "steps") {
      const steps = { steps: scene.stepsOf.get(row.process) ?? [], window, width };
      drawSteps(context, steps, { top: top + 2, tall: row.height - 5 }, tools.labels, tools.theme);
    }
    if (row.kind === "location" && row.open)
      depths.set(row.location.location, drawNested(context, scene, tools, row, top));
  }
  if (scene.radar) scene.kept.cells.lines.clear();
  else drawFlat(context, scene, tools);
  drawRasters(context, scene, tools);
  drawMarks(context, scene, tools);
  drawFolded(context, scene, tools);
  drawLost(context, scene.losses, scene, css(outlierColor(tools.theme)));
  if (scene.critical?.parts.length) drawCritical(context, criticalBoxes(scene.critical, scene), scene, tools.theme);
  for (const gap of scene.gaps) drawGap(context, gap, scene, tools.theme);
  drawNoteBands(context, scene, tools.theme);
  drawChosen(context, scene, tools.theme);
  if (scene.messages) {
    const { lines, rows: all, stands } = scene.messages;
    drawArrows(context, messageArrows(lines, all, stands, scene), tools.theme);
  }
  if (scene.linked) {
    const { span, links, rows: all, stands } = scene.linked;
    drawArrows(context, arrowsOf(span, links, all, stands, scene), tools.theme);
  }
  return depths;
}

/** Steps as faint vertical bands behind everything, where they are wide enough to be seen. */
function drawBands(context: Pen, scene: Ground & Pick<RowContent, "steps">, theme: Theme): void {
  const { window, width, height, steps } = scene;
  const chrome = CHROME[theme];
  const shown = steps.filter((s) => s.startNs <= window.endNs && s.startNs + s.durationNs >= window.startNs);
  if (!shown.length || width / shown.length < NARROWEST_BAND || shown.some((s) => s.count > 1)) return;
  for (const step of shown) {
    const left = toPx(step.startNs, window, width);
    const right = toPx(step.startNs + step.durationNs, window, width);
    if (step.step % 2 === 0) {
      context.fillStyle = chrome.band;
      context.fillRect(left, 0, right - left, height);
    }
    context.fillStyle = chrome.gridStrong;
    context.fillRect(Math.round(left), 0, 1, height);
  }
}

/** Steps that were kept as statistics only hold no spans: they are hatched, so that nobody takes them for idle. */
function drawFolded(context: Pen, scene: Ground & RowContent, { theme, labels }: Tools): void {
  const { window, width } = scene;
  const chrome = CHROME[theme];
  context.font = LABEL_FONT;
  context.textBaseline = "middle";
  const locations = foldedRows(scene.rows, scene.foldedProcesses);
  for (const stretch of foldedStretches(scene.steps, window)) {
    const left = Math.max(0, toPx(stretch.startNs, window, width));
    const wide = Math.min(width, toPx(stretch.endNs, window, width)) - left;
    for (const row of locations)
      hatch(context, { left, top: row.top - scene.scrollTop, width: wide, height: row.height - 1 }, chrome.gridStrong);
    const room = context.measureText(FOLDED).width + 14;
    const first = locations.find((row) => row.kind === "location" && row.open) ?? locations[0];
    if (!first || labels.fit(FOLDED, wide - 20) !== FOLDED) continue;
    // Below what goes on through all steps, such as the function that holds the loop.
    const middle = first.top - scene.scrollTop + first.height - 14;
    context.fillStyle = css(chrome.background);
    context.fillRect(left + (wide - room) / 2, middle - 9, room, 18);
    context.fillStyle = chrome.textWeak;
    context.fillText(FOLDED, left + (wide - room) / 2 + 7, middle + 0.5);
  }
}

function drawGrid(context: Pen, { window, width, height }: Ground, theme: Theme): void {
  context.fillStyle = CHROME[theme].grid;
  for (const at of ticks(window, width).major) context.fillRect(Math.round(toPx(at, window, width)), 0, 1, height);
}

function drawFlat(context: Pen, scene: Scene, tools: Tools): void {
  const { pixelRatio, scrollTop, window, kept } = scene;
  const flat = scene.rows.filter((row): row is Row & LocationRow => row.kind === "location" && !row.open);
  const widthPx = Math.round(scene.width * pixelRatio);
  if (widthPx < 1) return;
  const rows = flat.map((row): PaintedRow => {
    const { location } = row.location;
    const { placed, from } = placedOnce(scene, location);
    const marked = row.height < NOTCHED;
    const paint = (out: Uint32Array, begin: number, end: number): void => {
      tools.painter.paint(out, window, placed, begin, end);
      // Marks are two pixels wide: at an edge that comes into sight they wait until the whole row is painted.
      if (marked && end - begin === widthPx) tools.painter.paintMarks(out, window, placed);
    };
    // With its marks among its cells it is another row than without them.
    return { key: marked ? location : `${location} notched`, tall: 1, from, paint };
  });
  const { lines, canvas } = kept.cells;
  if (lines.update(tools.painter, window, widthPx, rows)) transfer(lines.pixels, widthPx, flat.length, canvas);
  showLines(context, canvas, scene, flat.length, (i) => {
    const row = flat[i];
    if (!row) return undefined;
    const place = bandOf(row, 0);
    return { top: row.top - scrollTop + place.top, height: place.height };
  });
  context.font = LABEL_FONT;
  context.textBaseline = "middle";
  for (const row of flat) {
    if (row.height < NAMED) continue;
    const middle = row.top - scrollTop + row.height / 2;
    const placed = dedupe(placedOnce(scene, row.location.location).placed);
    for (const named of namesOfRuns(scene, placed)) drawLabel(context, tools, named, middle);
  }
  context.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
}

/** The same; looked up once for all pictures of the same tiles. */
function placedOnce(scene: Scene, location: number): PlacedLine {
  const { kept, tiles, version } = scene;
  if (kept.placed.tiles !== tiles || kept.placed.version !== version) kept.placed = { tiles, version, of: new Map() };
  const known = kept.placed.of.get(location);
  if (known) return known;
  const placed = placedRows(scene, location);
  const line = { placed, from: placed.flatMap(({ key, row }) => [row, key.level, key.tile]) };
  kept.placed.of.set(location, line);
  return line;
}

/** A coarser tile that stands in for two finer ones must count once. */
function dedupe(rows: readonly PlacedRow[]): PlacedRow[] {
  return rows.filter((r, i) => i === 0 || r.row !== rows[i - 1]?.row);
}

/** Paints rows of cells with one transfer of pixels: one line of it for each, stretched to its height. */
function paintRows(
  context: Pen,
  scene: Scene,
  { painter }: Tools,
  rows: readonly (readonly PlacedRow[])[],
  place: (row: number) => Band | undefined,
): void {
  const widthPx = Math.round(scene.width * scene.pixelRatio);
  if (!rows.length || widthPx < 1) return;
  const pixels = new Uint32Array(widthPx * rows.length);
  for (const [i, row] of rows.entries())
    painter.paint(pixels.subarray(i * widthPx, (i + 1) * widthPx), scene.window, row);
  transfer(pixels, widthPx, rows.length, scene.kept.nested);
  showLines(context, scene.kept.nested, scene, rows.length, place);
}

/** Draws painted lines, each stretched to the height of its row. */
function showLines(
  context: Pen,
  shown: OffscreenCanvas,
  { width, pixelRatio }: Scene,
  count: number,
  place: (row: number) => Band | undefined,
): void {
  const widthPx = Math.round(width * pixelRatio);
  if (widthPx < 1) return;
  context.imageSmoothingEnabled = false;
  for (let i = 0; i < count; ) {
    const at = place(i);
    let end = i + 1;
    // Rows that touch are drawn at once: of a thousand thin ones each would cost as much as its pixels.
    while (at && end < count && touches(at, place(end), end - i)) end++;
    if (at) context.drawImage(shown, 0, i, widthPx, end - i, 0, at.top, width, at.height * (end - i));
    i = end;
  }
}

/** Whether a row is as tall as the first one and lies `rows` of them below it. */
const touches = (first: Band, next: Band | undefined, rows: number): boolean =>
  next?.height === first.height && next.top === first.top + rows * first.height;

function drawNested(context: Pen, scene: Scene, tools: Tools, row: Row & LocationRow, top: number): number {
  const { width, window, tiles, store, tileCells } = scene;
  let depths = 1;
  const seen = new Set<string>();
  const names: Named[][] = [];
  const cells: PlacedRow[][] = [];
  for (const key of tiles) {
    const found = store.stack(row.location.location, key);
    if (found?.stack.kind === "cells")
      found.stack.depths.forEach((line, depth) => {
        cells[depth] = [...(cells[depth] ?? []), { key: found.key, row: line }];
      });
  }
  // Cells first, and over all tiles at once: a region that reaches over two tiles is one picture with one name.
  if (cells.length) {
    const rows = Array.from(cells, (line) => dedupe(line ?? []));
    depths = rows.length;
    paintRows(context, scene, tools, rows, (d) => ({ top: top + depthTop(d), height: HEIGHTS.depth - 1 }));
    for (const [depth, placed] of rows.entries()) names[depth] = namesOfRuns(scene, placed);
  }
  for (const key of tiles) {
    const found = store.stack(row.location.location, key);
    if (found?.stack.kind !== "spans") continue;
    const range = tileRange(key, tileCells);
    // Whole device pixels: a clip through a pixel would leave a seam between tiles.
    const snap = (px: number): number => Math.round(px * scene.pixelRatio) / scene.pixelRatio;
    const left = snap(Math.max(0, toPx(range.startNs, window, width)));
    const right = snap(Math.min(width, toPx(range.endNs, window, width)));
    context.save();
    context.beginPath();
    context.rect(left, top, right - left, row.height);
    context.clip();
    depths = Math.max(depths, drawSpans(context, scene, tools, found.stack.spans, top, { left, right }));
    context.restore();
    addNamesOfSpans(names, scene, found.stack.spans, seen);
  }
  // Names last: the next tile's part of a span would cover what reaches into it.
  context.font = LABEL_FONT;
  context.textBaseline = "middle";
  names.forEach((named, depth) => {
    const middle = top + depthTop(depth) + (HEIGHTS.depth - 1) / 2;
    for (const one of joinNames(named)) drawLabel(context, tools, one, middle);
  });
  return depths;
}

/** Stretches of a row of cells that may carry a name. */
function namesOfRuns({ window, width, tileCells }: Scene, placed: readonly PlacedRow[]): Named[] {
  const shortestNs = (NARROWEST_LABEL * length(window)) / width;
  return runs(placed, window, tileCells, shortestNs, LABEL_SHARE).flatMap((run) => {
    const entry = run.palette[run.entry];
    const [left, right] = [toPx(run.startNs, window, width), toPx(run.endNs, window, width)];
    return entry ? [{ left, right, name: entry.name, group: entry.group, exact: false }] : [];
  });
}

/** Rectangles of spans, each at least one device pixel wide; spans that fall onto a pixel already painted are skipped. */
function drawSpans(
  context: Pen,
  { window, width, pixelRatio }: Scene,
  { inks }: Tools,
  spans: Spans,
  top: number,
  clip: { readonly left: number; readonly right: number },
): number {
  const narrowest = 1 / pixelRatio;
  const paintedTo: number[] = [];
  let deepest = 0;
  for (let i = 0; i < spans.count; i++) {
    const depth = spans.depth[i] ?? 0;
    deepest = Math.max(deepest, depth + 1);
    const startNs = spans.startNs[i] ?? 0;
    const left = toPx(startNs, window, width);
    const right = toPx(startNs + (spans.durationNs[i] ?? 0), window, width);
    if (right < clip.left || left > clip.right || right < (paintedTo[depth] ?? -1)) continue;
    const from = Math.max(left, clip.left - 2);
    const wide = Math.max(narrowest, Math.min(right, clip.right + 2) - from);
    const ink = inks.get(spans.group[i] ?? "other", spans.name[i] ?? "");
    context.fillStyle = ink.fill;
    // A hairline between neighbours, where there is room for one.
    const shown = wide > 3 ? wide - 0.75 : wide;
    context.fillRect(from, top + depthTop(depth), shown, HEIGHTS.depth - 1);
    if (spans.complete[i] === 0) drawCut(context, ink, from + wide, top + depthTop(depth));
    if (wide <= narrowest) paintedTo[depth] = from + narrowest;
  }
  return deepest;
}

/** A torn right edge: the span was still open when recording ended. */
function drawCut(context: Pen, ink: Ink, right: number, top: number): void {
  context.fillStyle = ink.text;
  for (let y = 0; y < HEIGHTS.depth - 1; y += 4) context.fillRect(right - 3, top + y, 2, 2);
}

/** Adds the spans of a tile that may carry a name; one that reaches over two tiles comes with both and counts once. */
function addNamesOfSpans(names: Named[][], { window, width }: Ground, spans: Spans, seen: Set<string>): void {
  for (let i = 0; i < spans.count; i++) {
    const startNs = spans.startNs[i] ?? 0;
    const left = toPx(startNs, window, width);
    const right = toPx(startNs + (spans.durationNs[i] ?? 0), window, width);
    if (right - left < NARROWEST_LABEL || right < 0 || left > width) continue;
    const depth = spans.depth[i] ?? 0;
    const id = `${depth}/${startNs}`;
    if (seen.has(id)) continue;
    seen.add(id);
    const named = { left, right, name: spans.name[i] ?? "", group: spans.group[i] ?? "other", exact: true };
    names[depth] = [...(names[depth] ?? []), named];
  }
}

function drawLabel(context: Pen, { labels, inks }: Tools, named: Named, middle: number): void {
  const text = labels.fit(named.name, named.right - Math.max(0, named.left));
  if (text === undefined) return;
  context.fillStyle = inks.get(named.group, named.name).text;
  context.fillText(text, labelLeft(named.left), middle + 0.5);
}

function drawChosen(context: Pen, scene: Ground & Highlights, theme: Theme): void {
  const { window, width, height, scrollTop, rows, selection, hovered, range, pointerX } = scene;
  const chrome = CHROME[theme];
  if (range) {
    const left = toPx(range.startNs, window, width);
    const right = toPx(range.endNs, window, width);
    context.fillStyle = chrome.accentFill;
    context.fillRect(left, 0, right - left, height);
    context.fillStyle = chrome.accent;
    context.fillRect(left, 0, 1, height);
    context.fillRect(right - 1, 0, 1, height);
  }
  const outline = (location: number, depth: number, span: TimeRange, style: string, lineWidth: number): void => {
    const row = rows.find((r): r is Row & LocationRow => r.kind === "location" && r.location.location === location);
    if (!row) return;
    const left = Math.max(-4, toPx(span.startNs, window, width));
    const right = Math.min(width + 4, toPx(span.endNs, window, width));
    if (right < -4 || left > width + 4) return;
    const { top, height: tall } = bandOf(row, depth);
    context.strokeStyle = style;
    context.lineWidth = lineWidth;
    context.strokeRect(left - 0.5, row.top - scrollTop + top - 0.5, Math.max(3, right - left) + 0.5, tall + 1);
  };
  if (hovered) outline(hovered.location, hovered.depth, hovered.range, chrome.text, 1);
  if (selection) {
    const { location, depth, startNs, durationNs } = selection;
    outline(location, depth, { startNs, endNs: startNs + durationNs }, css(chrome.background), 4);
    outline(location, depth, { startNs, endNs: startNs + durationNs }, chrome.accent, 2);
  }
  if (pointerX !== undefined) {
    context.fillStyle = chrome.gridStrong;
    context.fillRect(Math.round(pointerX), 0, 1, height);
  }
}
