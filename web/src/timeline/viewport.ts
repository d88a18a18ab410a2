// Windows of time: zooming, panning, and the way between time and pixels. Pure arithmetic.
import { length, type TimeRange } from "../base/time";

/** Nobody needs to see less than this many nanoseconds at once. */
export const SHORTEST_NS = 100;

/** Moves and shrinks a window so that it lies inside the bounds and is not too short; its ends become whole nanoseconds. */
export function clamp(window: TimeRange, bounds: TimeRange): TimeRange {
  const size = Math.min(Math.max(length(window), SHORTEST_NS), Math.max(length(bounds), SHORTEST_NS));
  const start = Math.min(
    Math.max(window.startNs, bounds.startNs),
    bounds.startNs + Math.max(length(bounds), size) - size,
  );
  return { startNs: Math.round(start), endNs: Math.round(start + size) };
}

/** Makes the window `factor` times as long (below 1: zooms in), keeping `anchorNs` at its place on the screen. */
export function zoom(window: TimeRange, factor: number, anchorNs: number, bounds: TimeRange): TimeRange {
  const size = Math.min(Math.max(length(window) * factor, SHORTEST_NS), length(bounds));
  const real = size / length(window);
  return clamp(
    { startNs: anchorNs - (anchorNs - window.startNs) * real, endNs: anchorNs + (window.endNs - anchorNs) * real },
    bounds,
  );
}

/** Moves the window by a part of its own length: 0.5 is half a screen to the right. */
export function pan(window: TimeRange, screens: number, bounds: TimeRange): TimeRange {
  const by = screens * length(window);
  return clamp({ startNs: window.startNs + by, endNs: window.endNs + by }, bounds);
}

/** A window around a stretch of time, with a little room on both sides. */
export function around(range: TimeRange, bounds: TimeRange, room = 0.08): TimeRange {
  const by = Math.max(length(range), 1) * room;
  return clamp({ startNs: range.startNs - by, endNs: range.endNs + by }, bounds);
}

/** Zooming in by less than this is no step of the breadcrumb. */
export const CRUMB_FACTOR = 1.5;

/**
 * The breadcrumb after going from one window to another (`undefined` is the whole run): the windows that lead here, each clearly wider
 * than the next, the first one always the whole run.
 */
export function trailAfter(
  trail: readonly (TimeRange | undefined)[],
  from: TimeRange | undefined,
  to: TimeRange | undefined,
  bounds: TimeRange,
): (TimeRange | undefined)[] {
  if (!to) return [];
  const wider = (crumb: TimeRange | undefined): boolean => length(crumb ?? bounds) >= length(to) * CRUMB_FACTOR;
  const between = [...trail, from].filter((crumb) => crumb && wider(crumb));
  // Zooming out passes windows that were left before: what came after them is no way here.
  const ways = between.filter((crumb, i) =>
    between.slice(0, i).every((c) => length(c ?? bounds) > length(crumb ?? bounds)),
  );
  return [undefined, ...ways];
}

/** A moment's place in pixels from the left edge. */
export const toPx = (ns: number, window: TimeRange, widthPx: number): number =>
  ((ns - window.startNs) / length(window)) * widthPx;

/** The moment under a pixel. */
export const toNs = (px: number, window: TimeRange, widthPx: number): number =>
  window.startNs + (px / Math.max(1, widthPx)) * length(window);
