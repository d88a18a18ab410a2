// The critical path of a step over the tracks: an outline around every span that it goes through.

import { CHROME, css, type Theme } from "../../base/color";
import { toPx } from "../../base/viewport";
import type { CriticalPath } from "../../data/runSteps";
import { type Box, bandOf, type Ground } from "./scene";
import type { Pen } from "./svgSurface";

/** The boxes around the path's parts on the screen; what is narrower than a pixel has one. */
export function criticalBoxes(path: CriticalPath, { rows, window, width, scrollTop }: Omit<Ground, "height">): Box[] {
  const found = new Map(
    rows.flatMap((row) => (row.kind === "location" ? [[row.location.location, row] as const] : [])),
  );
  return path.parts.flatMap((part) => {
    const row = found.get(part.location);
    const left = Math.max(-4, toPx(part.startNs, window, width));
    const right = Math.min(width + 4, toPx(part.startNs + part.durationNs, window, width));
    if (!row || right < 0 || left > width) return [];
    const { top, height } = bandOf(row, part.depth);
    return [{ left, top: row.top - scrollTop + top, width: Math.max(1, right - left), height }];
  });
}

/** Outlines boxes; those too narrow for an outline are filled. */
export function drawCritical(context: Pen, boxes: readonly Box[], theme: Theme): void {
  const chrome = CHROME[theme];
  for (const { left, top, width, height } of boxes) {
    context.fillStyle = chrome.accent;
    if (width < 4) context.fillRect(left, top, width, height);
    else {
      // Light inside of dark (or dark inside of light), so that it stands out from any colour of a span.
      context.lineWidth = 1;
      context.strokeStyle = css(chrome.background);
      context.strokeRect(left + 2.5, top + 2.5, Math.max(0, width - 5), height - 5);
      context.lineWidth = 2;
      context.strokeStyle = chrome.accent;
      context.strokeRect(left + 1, top + 1, width - 2, height - 2);
    }
  }
}
