// Stretches of time in which spans are lost to damage, and how they are drawn: hatched, in the row of their thread.

import { toPx } from "../../base/viewport";
import type { LostStretch } from "../../data/wire/wire.generated";
import type { Row } from "../rows/rowLayout";
import { hatch } from "./drawFolded";
import { rowOfLocation } from "./drawLinks";
import type { Box, Ground, Losses } from "./scene";
import type { Pen } from "./svgSurface";

/** In CSS pixels: a shorter stretch is drawn, and pointed at, as wide as this. */
const NARROWEST = 6;

type Placed = { readonly stretch: LostStretch; readonly row: Row; readonly box: Box };

/** Where the lost stretches of a window are, on the rows that are on the screen. */
export function lostBoxes({ lost, stands }: Losses, ground: Ground): Placed[] {
  return lost.flatMap((stretch) => {
    const left = Math.max(0, toPx(stretch.start_ns, ground.window, ground.width));
    const right = Math.min(ground.width, toPx(stretch.end_ns, ground.window, ground.width));
    const row = right >= 0 && left <= ground.width && rowOfLocation(ground.rows, stretch.location, stands);
    if (!row) return [];
    const begin = Math.max(0, Math.min(left, ground.width - NARROWEST));
    const box = {
      left: begin,
      top: row.top - ground.scrollTop,
      width: Math.max(NARROWEST, right - begin),
      height: row.height - 1,
    };
    return [{ stretch, row, box }];
  });
}

/** The lost stretches under a point of a row. */
export const lostAt = (losses: Losses, ground: Ground, row: Row, x: number): LostStretch[] =>
  lostBoxes(losses, ground)
    .filter((each) => each.row === row && x >= each.box.left && x <= each.box.left + each.box.width)
    .map(({ stretch }) => stretch);

/** Hatches them, with a line at each end. */
export function drawLost(context: Pen, losses: Losses, ground: Ground, color: string): void {
  for (const { box } of lostBoxes(losses, ground)) {
    hatch(context, box, color);
    context.fillStyle = color;
    context.fillRect(box.left, box.top, 1, box.height);
    context.fillRect(box.left + box.width - 1, box.top, 1, box.height);
  }
}
