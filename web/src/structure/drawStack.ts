// Draws the iteration stack: cells, the usual step above them, facts about each row beside them; on top what is chosen.

import { CHROME, classColor, css, extraColor, outlierColor, partColor, type Theme } from "../base/color";
import { contextOf } from "../base/visibleText";
import type { Stack } from "../data/iterationStack";
import type { StackMetric, StackSort } from "../state/address";
import type { ColumnGroup } from "./columnGroups";
import { missingBefore } from "./stackGrid";
import { cellColors, columnsOfPixels, paintCells } from "./stackPixels";

/** Widths and heights around the cells, in CSS pixels. */
export const FRAME = { left: 92, right: 16, top: 93, bottom: 6 } as const;
/** Lines of headings of groups: parts, and, where there are any, modules. */
export const HEADING_HEIGHT = 24;
const LABEL_FONT = "11px system-ui, sans-serif";
const FLOOR = FRAME.top - 9;
const BAR = { left: 46, width: 40 } as const;
const CUT_AT_MEDIANS = 3;
/** A region at more positions than this is marked above the cells only. */
const MOST_LINES = 6;

export type StackScene = {
  readonly stack: Stack;
  readonly metric: StackMetric;
  readonly sort: StackSort;
  readonly theme: Theme;
  readonly width: number;
  readonly height: number;
  readonly pixelRatio: number;
  readonly edges: Float64Array;
  readonly rowHeight: number;
  readonly parts: readonly ColumnGroup[];
  /** Empty where no column lies in a module. */
  readonly modules: readonly ColumnGroup[];
  /** The middle step time, which bars are drawn in proportion to. */
  readonly usualNs: number;
};

/** Draws everything that does not follow the pointer. */
export function drawStack(context: CanvasRenderingContext2D, scratch: OffscreenCanvas, scene: StackScene): void {
  context.font = LABEL_FONT;
  context.textBaseline = "middle";
  drawUsualStep(context, scene);
  drawCells(context, scratch, scene);
  drawBands(context, scene);
  drawRowFacts(context, scene);
  context.fillStyle = CHROME[scene.theme].grid;
  context.fillRect(FRAME.left - 1, FRAME.top, 1, scene.rowHeight * scene.stack.step.length);
}

/** Above the cells: which part of the step a column belongs to, and how long it usually takes. */
function drawUsualStep(context: CanvasRenderingContext2D, scene: StackScene): void {
  const { stack, edges, theme, metric } = scene;
  for (const { from, to, part } of scene.parts) {
    const [left, right] = [FRAME.left + (edges[from] ?? 0), FRAME.left + (edges[to] ?? 0)];
    context.fillStyle = css(partColor(part, theme));
    context.fillRect(left, FLOOR + 2, Math.max(1, right - left - 1), 4);
  }
  const head = HEADING_HEIGHT * (scene.modules.length ? 2 : 1);
  const values = stack.positions.map((p) => (metric === "gap" ? p.median_gap_ns : p.median_ns));
  const highest = Math.max(1, ...values);
  // Roots, so that the short ones are seen beside the long ones.
  stack.positions.forEach((position, i) => {
    const [left, right] = [FRAME.left + (edges[i] ?? 0), FRAME.left + (edges[i + 1] ?? 0)];
    const tall = Math.max(1, (FLOOR - head - 2) * Math.sqrt((values[i] ?? 0) / highest));
    context.fillStyle = css(partColor(position.part, theme));
    context.globalAlpha = 0.55;
    context.fillRect(left, FLOOR - tall, Math.max(0.6, right - left - (right - left > 4 ? 1 : 0)), tall);
  });
  context.globalAlpha = 1;
}

function drawCells(context: CanvasRenderingContext2D, scratch: OffscreenCanvas, scene: StackScene): void {
  const { stack, edges, pixelRatio, rowHeight, theme } = scene;
  const rows = stack.step.length;
  const across = edges.at(-1) ?? 0;
  const widthPx = Math.round(across * pixelRatio);
  const lines = contextOf(scratch);
  if (!rows || widthPx < 1 || !lines) return;
  scratch.width = widthPx;
  scratch.height = rows;
  const image = new ImageData(widthPx, rows);
  const pixels = columnsOfPixels(edges, widthPx);
  paintCells(new Uint32Array(image.data.buffer), stack.cells, rows, stack.positions.length, pixels, cellColors(theme));
  lines.putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(scratch, 0, 0, widthPx, rows, FRAME.left, FRAME.top, across, rows * rowHeight);
  context.imageSmoothingEnabled = true;
}

/** Lines between the bands: threads and GPUs. */
function drawBands(context: CanvasRenderingContext2D, { parts, edges, theme, height }: StackScene): void {
  context.fillStyle = CHROME[theme].textWeak;
  parts.forEach(({ band, from }, i) => {
    if (i > 0 && parts[i - 1]?.band !== band)
      context.fillRect(Math.round(FRAME.left + (edges[from] ?? 0)) - 1, 0, 1, height - FRAME.bottom);
  });
}

/** Beside the cells: number, class and time of each step; at the right what it does beyond the usual path. */
function drawRowFacts(context: CanvasRenderingContext2D, scene: StackScene): void {
  const { stack, rowHeight, usualNs, theme, edges } = scene;
  const chrome = CHROME[theme];
  const right = FRAME.left + (edges.at(-1) ?? 0);
  const mostExtra = Math.max(1, ...stack.extra);
  const tall = Math.max(1, rowHeight - (rowHeight > 3 ? 1 : 0));
  let labelled = Number.NEGATIVE_INFINITY;
  stack.step.forEach((step, row) => {
    const top = FRAME.top + row * rowHeight;
    const outlier = stack.outlier[row] ?? false;
    const share = Math.min(1, (stack.step_ns[row] ?? 0) / (usualNs * CUT_AT_MEDIANS));
    context.fillStyle = css(outlier ? outlierColor(theme) : classColor(stack.class_rank[row] ?? 0, theme));
    context.fillRect(BAR.left, top, Math.max(2, BAR.width * share), tall);
    const extra = stack.extra[row] ?? 0;
    if (extra > 0) {
      context.fillStyle = css(extraColor(theme));
      context.fillRect(right + 3, top, 4 + (FRAME.right - 8) * Math.sqrt(extra / mostExtra), Math.max(1.5, tall));
    }
    if (top + rowHeight / 2 - labelled < 15) return;
    labelled = top + rowHeight / 2;
    context.fillStyle = chrome.textWeak;
    context.textAlign = "right";
    context.fillText(String(step), BAR.left - 6, Math.max(FRAME.top + 5, labelled));
    context.textAlign = "left";
  });
  if (scene.sort !== "time") return;
  context.strokeStyle = chrome.textWeak;
  context.setLineDash([3, 3]);
  for (const row of missingBefore(stack.step, stack.count)) {
    const y = Math.round(FRAME.top + row * rowHeight) + 0.5;
    context.beginPath();
    context.moveTo(BAR.left, y);
    context.lineTo(right, y);
    context.stroke();
  }
  context.setLineDash([]);
}

export type Cursor = { readonly row: number; readonly column: number };

export type Marks = {
  readonly cursor: Cursor | undefined;
  readonly step: number | undefined;
  readonly lit: ReadonlySet<string>;
};

/** Draws what is chosen or under the pointer. */
export function drawMarks(context: CanvasRenderingContext2D, scene: StackScene, marks: Marks): void {
  const { edges, rowHeight, stack, theme } = scene;
  const chrome = CHROME[theme];
  const bottom = FRAME.top + rowHeight * stack.step.length;
  const right = FRAME.left + (edges.at(-1) ?? 0);
  context.fillStyle = chrome.accent;
  const columns = stack.positions.filter((position) => marks.lit.has(position.name)).length;
  if (columns)
    stack.positions.forEach((position, i) => {
      if (!marks.lit.has(position.name)) return;
      const [left, until] = [FRAME.left + (edges[i] ?? 0), FRAME.left + (edges[i + 1] ?? 0)];
      context.globalAlpha = 1;
      context.fillRect(left, FRAME.top - 8, Math.max(1.5, until - left - 0.5), 6);
      if (columns > MOST_LINES) return;
      context.globalAlpha = 0.5;
      context.fillRect(Math.round(left) - 1, FRAME.top, 1, bottom - FRAME.top);
      context.fillRect(Math.round(until), FRAME.top, 1, bottom - FRAME.top);
    });
  context.globalAlpha = 1;
  const chosen = marks.step === undefined ? -1 : rowOf(stack, marks.step);
  if (chosen >= 0) {
    const top = FRAME.top + chosen * rowHeight;
    const tall = Math.max(2, rowHeight);
    // Two lines and two arrows: a frame would hide the neighbours of a row that is two pixels high.
    context.fillRect(BAR.left, top - 1, right - BAR.left, 1);
    context.fillRect(BAR.left, top + tall, right - BAR.left, 1);
    for (const [x, way] of [
      [BAR.left - 1, 1],
      [right + 1, -1],
    ] as const) {
      context.beginPath();
      context.moveTo(x, top + tall / 2);
      context.lineTo(x - 7 * way, top + tall / 2 - 5);
      context.lineTo(x - 7 * way, top + tall / 2 + 5);
      context.fill();
    }
  }
  const { cursor } = marks;
  if (!cursor) return;
  const left = FRAME.left + (edges[cursor.column] ?? 0);
  const wide = Math.max(1, (edges[cursor.column + 1] ?? 0) - (edges[cursor.column] ?? 0));
  const top = FRAME.top + cursor.row * rowHeight;
  context.fillStyle = chrome.gridStrong;
  context.fillRect(left, HEADING_HEIGHT, wide, bottom - HEADING_HEIGHT);
  context.fillRect(BAR.left, top, right - BAR.left, Math.max(1, rowHeight));
  context.strokeStyle = chrome.text;
  context.lineWidth = 1;
  context.strokeRect(left - 0.5, top - 0.5, wide + 1, Math.max(2, rowHeight) + 1);
}

/** The row that shows a step, or the one whose steps it is among (rows in order of time); -1 where none does. */
export function rowOf(stack: Stack, step: number): number {
  const exact = stack.step.indexOf(step);
  if (exact >= 0 || !stack.count.some((count) => count > 1)) return exact;
  let begun = 0;
  for (let row = 0; row < stack.count.length; row++) {
    begun += stack.count[row] ?? 1;
    if (step < begun) return row;
  }
  return -1;
}
