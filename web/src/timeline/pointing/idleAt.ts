// Where nothing runs on a row, as far as the picture shows it: what a pointer over an empty place means. Pure.
import type { TimeRange } from "../../base/time";
import { toNs } from "../../base/viewport";
import { tileRange } from "../../data/tiles/cells";
import { placedRows } from "../drawing/scene";
import { runs } from "../pixels/cellPainter";
import { type Pointed, rowAt } from "./hitTest";

export type Idle = { readonly location: number; readonly range: TimeRange; readonly at: number };

/** The stretch around a moment that none of some stretches holds, inside of a window; undefined where one holds it. */
export function emptyAround(busy: Iterable<TimeRange>, at: number, window: TimeRange): TimeRange | undefined {
  let { startNs, endNs } = window;
  for (const one of busy) {
    if (one.startNs <= at && at < one.endNs) return undefined;
    if (one.endNs <= at) startNs = Math.max(startNs, one.endNs);
    else endNs = Math.min(endNs, one.startNs);
  }
  return { startNs, endNs };
}

/** The empty place under a point; undefined where something runs, or outside the rows of threads and streams. */
export function idleAt(ground: Pointed, x: number, y: number): Idle | undefined {
  const row = rowAt(ground, y);
  if (row?.kind !== "location") return undefined;
  const { location, sampled } = row.location;
  if (sampled) return undefined; // between samples nobody looked
  const at = toNs(x, ground.window, ground.width);
  const range = emptyAround(row.open ? outermost(ground, location) : shown(ground, location), at, ground.window);
  return range && { location, range, at };
}

function* shown({ window, tileCells, ...ground }: Pointed, location: number): Generator<TimeRange> {
  const placed = placedRows(ground, location);
  // Where no cells have come, or the row shows something else, nothing is known.
  if (placed.length) yield* runs(placed, window, tileCells, 0);
  else yield window;
}

/** The stretches that the outermost spans of a location take. */
function* outermost({ tiles, store, tileCells, window }: Pointed, location: number): Generator<TimeRange> {
  for (const key of tiles) {
    const found = store.stack(location, key);
    if (!found) {
      yield tileRange(key, tileCells); // Nothing is known of it yet.
    } else if (found.stack.kind === "cells") {
      const [line] = found.stack.depths;
      if (line) yield* runs([{ key: found.key, row: line }], window, tileCells, 0);
    } else {
      const { spans } = found.stack;
      for (let i = 0; i < spans.count; i++) {
        const startNs = spans.startNs[i] ?? 0;
        if (spans.depth[i] === 0) yield { startNs, endNs: startNs + (spans.durationNs[i] ?? 0) };
      }
    }
  }
}
