// What lies under a point of the tracks: a span where spans are known, else the region that fills the cell.

import type { Group } from "../../base/kinds.generated";
import { length, type TimeRange } from "../../base/time";
import { toNs } from "../../base/viewport";
import type { Place } from "../../data/spans";
import { NO_REGION, tileRange } from "../../data/tiles/cells";
import { type CellSource, depthTop, type Ground, placedRows } from "../drawing/scene";
import { type PlacedRow, runs } from "../pixels/cellPainter";
import { HEIGHTS, type Row } from "../rows/rowLayout";

/** What was hit. `exact`: a single span with its true ends; otherwise a stretch of cells in which a region dominates. */
export type Hit = {
  readonly location: number;
  readonly depth: number;
  readonly range: TimeRange;
  readonly name: string;
  readonly group: Group;
  readonly exact: boolean;
  /** Where the server finds the span. */
  readonly place: Place;
};

export type Pointed = Omit<Ground, "height"> & Pick<CellSource, "tiles" | "tileCells" | "store">;

/** Spans thinner than this many pixels are still hit. */
const REACH = 2;

export const rowAt = ({ rows, scrollTop }: Pick<Ground, "rows" | "scrollTop">, y: number): Row | undefined =>
  rows.find((row) => y >= row.top - scrollTop && y < row.top - scrollTop + row.height);

/** What lies under a point, in CSS pixels from the corner of the tracks. */
export function hitTest(ground: Pointed, x: number, y: number): Hit | undefined {
  const row = rowAt(ground, y);
  if (row?.kind !== "location") return undefined;
  const { location } = row.location;
  const ns = toNs(x, ground.window, ground.width);
  if (!row.open) return hitCells(ground, placedRows(ground, location), location, 0, ns, x, true);
  const depth = Math.floor((y - (row.top - ground.scrollTop) - depthTop(0)) / HEIGHTS.depth);
  if (depth < 0) return undefined;
  const key = ground.tiles.find((k) => ns < tileRange(k, ground.tileCells).endNs);
  const found = key && ground.store.stack(location, key);
  if (!found) return undefined;
  if (found.stack.kind === "cells") {
    const cells = found.stack.depths[depth];
    return cells && hitCells(ground, [{ key: found.key, row: cells }], location, depth, ns, x, false);
  }
  const { spans } = found.stack;
  const reachNs = (REACH * length(ground.window)) / ground.width;
  let best: number | undefined;
  let bestAway = reachNs;
  for (let i = 0; i < spans.count; i++) {
    if (spans.depth[i] !== depth) continue;
    const startNs = spans.startNs[i] ?? 0;
    const endNs = startNs + (spans.durationNs[i] ?? 0);
    const away = ns < startNs ? startNs - ns : ns > endNs ? ns - endNs : 0;
    if (away < bestAway || (away === 0 && bestAway === 0)) {
      best = i;
      bestAway = away;
    }
  }
  if (best === undefined) return undefined;
  const startNs = spans.startNs[best] ?? 0;
  const range = { startNs, endNs: startNs + Math.max(1, spans.durationNs[best] ?? 0) };
  const place = { location, range, depth, region: spans.region[best] ?? NO_REGION };
  const [name, group] = [spans.name[best] ?? "", spans.group[best] ?? "other"];
  return { location, depth, range, name, group, exact: true, place };
}

function hitCells(
  { window, width, tileCells }: Pointed,
  rows: readonly PlacedRow[],
  location: number,
  depth: number,
  ns: number,
  x: number,
  flat: boolean,
): Hit | undefined {
  const pixel = { startNs: toNs(Math.floor(x), window, width), endNs: toNs(Math.floor(x) + 1, window, width) };
  const run = runs(rows, window, tileCells, 0).find((r) => ns >= r.startNs && ns < r.endNs);
  const entry = run?.palette[run.entry];
  if (!run || !entry) return undefined;
  const place = {
    location,
    range: pixel,
    ...(flat ? {} : { depth }),
    ...(entry.region === NO_REGION ? {} : { region: entry.region }),
  };
  const range = { startNs: run.startNs, endNs: run.endNs };
  return { location, depth, range, name: entry.name, group: entry.group, exact: false, place };
}
