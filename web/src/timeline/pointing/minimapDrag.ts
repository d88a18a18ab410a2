// What dragging on the minimap does to the window: its edges zoom, it moves as a whole, elsewhere it comes. Pure.

import { length, type TimeRange } from "../../base/time";
import { clamp } from "../../base/viewport";

/** What a press took hold of. `draw`: a new window, where the whole run is shown and there is nothing to move. */
export type Grip = "start" | "end" | "move" | "draw";

/** What a press at a moment takes hold of; edges are held from `reachNs` away. */
export function gripAt(at: number, { startNs, endNs }: TimeRange, bounds: TimeRange, reachNs: number): Grip {
  if (endNs - startNs >= length(bounds)) return "draw";
  const [toStart, toEnd] = [Math.abs(at - startNs), Math.abs(at - endNs)];
  // Of a window narrower than both reaches, only what lies outside of it is an edge.
  const inside = at > startNs && at < endNs && endNs - startNs < 3 * reachNs;
  if (inside || Math.min(toStart, toEnd) > reachNs) return "move";
  return toStart < toEnd ? "start" : "end";
}

/** The window after dragging from one moment to another; a press outside of it brings its middle there first. */
export function draggedWindow(grip: Grip, before: TimeRange, from: number, to: number, bounds: TimeRange): TimeRange {
  const ends = (a: number, b: number): TimeRange =>
    clamp({ startNs: Math.min(a, b), endNs: Math.max(a, b, Math.min(a, b) + 1) }, bounds);
  if (grip === "draw") return ends(from, to);
  if (grip === "start") return ends(to, before.endNs);
  if (grip === "end") return ends(before.startNs, to);
  const outside = from < before.startNs || from > before.endNs;
  const by = to - (outside ? before.startNs + length(before) / 2 : from);
  return clamp({ startNs: before.startNs + by, endNs: before.endNs + by }, bounds);
}
