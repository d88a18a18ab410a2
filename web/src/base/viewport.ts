// Windows of time: zooming, panning, and the way between time and pixels. Pure arithmetic.
import { length, type TimeRange } from "./time";

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

/** A moment's place in pixels from the left edge. */
export const toPx = (ns: number, window: TimeRange, widthPx: number): number =>
  ((ns - window.startNs) / length(window)) * widthPx;

/** The moment under a pixel. */
export const toNs = (px: number, window: TimeRange, widthPx: number): number =>
  window.startNs + (px / Math.max(1, widthPx)) * length(window);
