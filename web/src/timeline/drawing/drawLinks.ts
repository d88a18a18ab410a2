// Draws what hangs on the selection: arrows to the other ends of its links, and idle gaps.

import { CHROME, css, type Theme } from "../../base/color";
import { formatDuration, length } from "../../base/time";
import { toPx } from "../../base/viewport";
import type { Link, MessageLines } from "../../data/wire/wire.generated";
import { FANOUT, type Row } from "../rows/rowLayout";
import { bandOf, type Ground, type LinkedSpan, type ShownGap, type Stands } from "./scene";
import type { Pen } from "./svgSurface";

/** The row that shows a location, or one that stands for it; of all rows, also those that are scrolled away. */
export const rowOfLocation = (rows: readonly Row[], location: number, stands: Stands): Row | undefined =>
  rows.find((row) => row.kind === "location" && !row.stands && row.location.location === location) ??
  rows.find((row) => stands(row, location));

/** Whether a folded process, or a row of ranks whose place has these locations in order, stands for a location. */
export function standsFor(
  row: Row,
  location: number,
  process: number | undefined,
  locationsOf: (place: number) => readonly number[],
): boolean {
  if (row.kind === "location") return row.stands?.process.process === process && process !== undefined;
  if (row.kind !== "ranks" || row.open) return false;
  const at = locationsOf(row.place).indexOf(location);
  return at >= 0 && Math.floor(at / FANOUT ** row.rowLevel) === row.number;
}

/** A line from one end of a link to the other, in CSS pixels of the pane. `away`: its far end is not on the screen. */
export type Arrow = {
  readonly from: { readonly x: number; readonly y: number };
  readonly to: { readonly x: number; readonly y: number };
  readonly inside: boolean;
  readonly headless: boolean;
};

/**
 * The arrows of a span's links. What follows points from the begin of what caused it to its own; a message leaves where
 * the send begins and comes in where the receive ends, as in Vampir; collectives are joined where both begin.
 */
export function arrowsOf(
  span: LinkedSpan,
  links: readonly Link[],
  rows: readonly Row[],
  stands: Stands,
  ground: Ground,
): Arrow[] {
  const { window, width, scrollTop } = ground;
  const point = (end: LinkedSpan, atEnd: boolean): { x: number; y: number } | undefined => {
    const row = rowOfLocation(rows, end.location, stands);
    if (!row) return undefined;
    const place = row.kind === "location" ? bandOf(row, row.open ? end.depth : 0) : { top: 0, height: row.height };
    const ns = end.start_ns + (atEnd ? end.duration_ns : 0);
    return { x: toPx(ns, window, width), y: row.top - scrollTop + place.top + place.height / 2 };
  };
  return links.flatMap((link) => {
    const message = link.kind === "message";
    const [source, target] = link.way === "from" ? [link, span] : [span, link];
    const from = point(source, false);
    const to = point(target, message);
    return from && to ? [{ from, to, inside: link.inside, headless: link.way === "with" }] : [];
  });
}

/** The lines of messages: from the row of the sender, when it was sent, to that of the receiver, when it had come. */
export function messageArrows(
  messages: MessageLines,
  rows: readonly Row[],
  stands: Stands,
  { window, width, scrollTop }: Ground,
): Arrow[] {
  const middles = new Map<number, number | undefined>();
  const middleOf = (location: number): number | undefined => {
    if (!middles.has(location)) {
      const row = rowOfLocation(rows, location, stands);
      const band = row?.kind === "location" ? bandOf(row, 0) : { top: 0, height: row?.height ?? 0 };
      middles.set(location, row && row.top - scrollTop + band.top + band.height / 2);
    }
    return middles.get(location);
  };
  return messages.sent_ns.flatMap((sentNs, i) => {
    const [from, to] = [middleOf(messages.from_location[i] ?? -1), middleOf(messages.to_location[i] ?? -1)];
    if (from === undefined || to === undefined) return [];
    const x = [sentNs, messages.received_ns[i] ?? sentNs].map((ns) => toPx(ns, window, width));
    return [{ from: { x: x[0] ?? 0, y: from }, to: { x: x[1] ?? 0, y: to }, inside: true, headless: false }];
  });
}

/** Far outside of the screen a line is the same from here on, in CSS pixels. */
const FAR = 4000;
const HEAD = 6;

/** Draws arrows as curves that leave and come in along time. */
export function drawArrows(context: Pen, arrows: readonly Arrow[], theme: Theme): void {
  const chrome = CHROME[theme];
  const near = (x: number): number => Math.min(FAR, Math.max(-FAR, x));
  for (const [style, lineWidth] of [
    [css(chrome.background), 4],
    [chrome.accent, 1.6],
  ] as const) {
    context.strokeStyle = style;
    context.fillStyle = style;
    for (const { from, to, inside, headless } of arrows) {
      const [x1, x2] = [near(from.x), near(to.x)];
      const bend = Math.max(18, Math.min(120, Math.abs(x2 - x1) / 2));
      context.lineWidth = inside ? lineWidth * 0.7 : lineWidth;
      context.beginPath();
      context.moveTo(x1, from.y);
      context.bezierCurveTo(x1 + bend, from.y, x2 - bend, to.y, x2 - (headless ? 0 : HEAD / 2), to.y);
      context.stroke();
      if (headless) continue;
      context.beginPath();
      context.moveTo(x2, to.y);
      context.lineTo(x2 - HEAD, to.y - HEAD * 0.6);
      context.lineTo(x2 - HEAD, to.y + HEAD * 0.6);
      context.closePath();
      context.fill();
    }
  }
}

const LABEL_ROOM = 60;

/** Draws a gap as a frame with its length; a pointed-at one is thinner than the selected one. */
export function drawGap(context: Pen, gap: ShownGap, ground: Ground, theme: Theme): void {
  const row = ground.rows.find((one) => one.kind === "location" && one.location.location === gap.location);
  if (!row) return;
  const chrome = CHROME[theme];
  const left = Math.max(-4, toPx(gap.range.startNs, ground.window, ground.width));
  const right = Math.min(ground.width + 4, toPx(gap.range.endNs, ground.window, ground.width));
  if (right < 0 || left > ground.width) return;
  const top = row.top - ground.scrollTop;
  const tall = Math.min(row.height, 24) - 3;
  const wide = Math.max(2, right - left);
  context.strokeStyle = gap.selected ? chrome.accent : chrome.textWeak;
  context.lineWidth = gap.selected ? 2 : 1;
  if (gap.selected) {
    context.fillStyle = chrome.accentFill;
    context.fillRect(left, top + 1, wide, tall);
  }
  context.strokeRect(left + 0.5, top + 1.5, Math.max(1, wide - 1), tall);
  const text = `${gap.cause ? `${gap.cause}  ` : "idle  "}${formatDuration(length(gap.range))}`;
  if (!gap.selected || Math.min(right, ground.width) - Math.max(left, 0) < LABEL_ROOM + 5 * text.length) return;
  context.fillStyle = chrome.text;
  context.fillText(text, Math.max(left, 0) + 6, top + 1 + tall / 2);
}
