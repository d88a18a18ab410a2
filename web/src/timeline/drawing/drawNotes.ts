// Notes on the timeline: a flag on the ruler, and a band through the tracks, stronger in the row that a note is on.

import { CHROME, type Theme } from "../../base/color";
import type { TimeRange } from "../../base/time";
import { toPx } from "../../base/viewport";
import { rangeOf } from "../../data/notes";
import type { Note } from "../../data/wire/wire.generated";
import type { Ground, Highlights } from "./scene";
import type { Pen } from "./svgSurface";

/** Of a flag, in CSS pixels. */
export const FLAG = { width: 9, height: 8 } as const;

/** Where the flags stand that are on the screen, from the left edge; of a note that began before, at the edge. */
export const flagsOf = (
  notes: readonly Note[],
  window: TimeRange,
  width: number,
): readonly { readonly note: Note; readonly x: number }[] =>
  notes.flatMap((note) => {
    const [left, right] = [toPx(note.start_ns, window, width), toPx(note.end_ns, window, width)];
    return right < 0 || left > width ? [] : [{ note, x: Math.max(0, Math.round(left)) }];
  });

/** The note whose flag is at a place on the ruler; of several, the one that is drawn last. */
export const noteAt = (notes: readonly Note[], x: number, window: TimeRange, width: number): Note | undefined =>
  flagsOf(notes, window, width).findLast((flag) => x >= flag.x - 2 && x <= flag.x + FLAG.width + 2)?.note;

type Scene = Pick<Ground, "window" | "width"> & Pick<Highlights, "notes">;

/** Draws flags at the top of the ruler, on poles of a height. */
export function drawFlags(context: Pen, { notes, window, width }: Scene, tall: number, theme: Theme): void {
  context.fillStyle = CHROME[theme].note;
  for (const { x } of flagsOf(notes, window, width)) {
    context.fillRect(x, 0, 1, tall);
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x + FLAG.width, FLAG.height / 2);
    context.lineTo(x, FLAG.height);
    context.fill();
  }
}

/** Draws the bands. */
export function drawNoteBands(context: Pen, scene: Ground & Pick<Highlights, "notes">, theme: Theme): void {
  const { notes, window, width, height, rows, scrollTop } = scene;
  const chrome = CHROME[theme];
  for (const note of notes) {
    const { startNs, endNs } = rangeOf(note);
    const left = Math.max(-1, toPx(startNs, window, width));
    const wide = Math.max(1, Math.min(width + 1, toPx(endNs, window, width)) - left);
    if (left + wide < 0 || left > width) continue;
    context.fillStyle = chrome.noteFill;
    context.fillRect(left, 0, wide, height);
    const row = rows.find((one) => one.kind === "location" && one.location.location === note.location);
    if (row) context.fillRect(left, row.top - scrollTop, wide, row.height);
    context.fillStyle = chrome.note;
    context.fillRect(Math.round(left), 0, 1, height);
    if (endNs > startNs) context.fillRect(Math.round(left + wide) - 1, 0, 1, height);
  }
}
