// The critical path of a step over the tracks: a ribbon through every span that it goes through, all else dimmed.

import { CHROME, type Theme } from "../../base/color";
import { grouped } from "../../base/grouped";
import { toPx } from "../../base/viewport";
import type { CriticalPath } from "../../data/runSteps";
import { type Box, bandOf, type Ground } from "./scene";
import type { Pen } from "./svgSurface";

/** The boxes around the path's parts on the screen, in order of time; what is narrower than a pixel has one. */
export function criticalBoxes(path: CriticalPath, { rows, window, width, scrollTop }: Omit<Ground, "height">): Box[] {
  const found = new Map(
    rows.flatMap((row) => (row.kind === "location" ? [[row.location.location, row] as const] : [])),
  );
  const inTime = [...path.parts].sort((a, b) => a.startNs - b.startNs);
  return inTime.flatMap((part) => {
    const row = found.get(part.location);
    const left = Math.max(-4, toPx(part.startNs, window, width));
    const right = Math.min(width + 4, toPx(part.startNs + part.durationNs, window, width));
    if (!row || right < 0 || left > width) return [];
    const { top, height } = bandOf(row, part.depth);
    return [{ left, top: row.top - scrollTop + top, width: Math.max(1, right - left), height }];
  });
}

/** What lies beside boxes of which none are in each other's way, as few rectangles as there are boxes and bands. */
export function besideBoxes(boxes: readonly Box[], width: number, height: number): Box[] {
  const bands = [...grouped(boxes, ({ top }) => top)].sort(([a], [b]) => a - b);
  const found: Box[] = [];
  let y = 0;
  for (const [top, band] of bands) {
    const tall = band[0]?.height ?? 0;
    if (top > y) found.push({ left: 0, top: y, width, height: top - y });
    let x = 0;
    for (const box of [...band].sort((a, b) => a.left - b.left)) {
      if (box.left > x) found.push({ left: x, top, width: box.left - x, height: tall });
      x = Math.max(x, box.left + box.width);
    }
    if (x < width) found.push({ left: x, top, width: width - x, height: tall });
    y = top + tall;
  }
  if (y < height) found.push({ left: 0, top: y, width, height: height - y });
  return found;
}

/** More boxes than this are not joined: their lines would cover what they join. */
const MOST_JOINED = 300;
const RIBBON = 3;

/** Dims all but the boxes, underlines each, and joins those that follow each other. */
export function drawCritical(context: Pen, boxes: readonly Box[], { width, height }: Ground, theme: Theme): void {
  const chrome = CHROME[theme];
  context.fillStyle = `rgb(${chrome.background.join(" ")} / 62%)`;
  for (const { left, top, width: wide, height: tall } of besideBoxes(boxes, width, height))
    context.fillRect(left, top, wide, tall);
  context.fillStyle = chrome.accent;
  for (const { left, top, width: wide, height: tall } of boxes) {
    if (wide < 2 * RIBBON) context.fillRect(left, top, wide, tall);
    else {
      context.fillRect(left, top, wide, RIBBON - 1);
      context.fillRect(left, top + tall - RIBBON + 1, wide, RIBBON - 1);
    }
  }
  if (boxes.length > MOST_JOINED) return;
  context.strokeStyle = chrome.accent;
  context.lineWidth = RIBBON - 1;
  context.beginPath();
  boxes.forEach((box, i) => {
    const next = boxes[i + 1];
    if (!next || next.top === box.top) return;
    context.moveTo(Math.min(box.left + box.width, next.left), box.top + box.height / 2);
    context.lineTo(next.left, next.top + next.height / 2);
  });
  context.stroke();
}
