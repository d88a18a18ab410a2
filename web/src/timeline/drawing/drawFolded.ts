// Stretches of time of which only statistics were kept, and how they are drawn.

import type { TimeRange } from "../../base/time";
import type { Step } from "../../data/runSteps";
import type { Row } from "../rows/rowLayout";
import type { Box } from "./scene";
import type { Pen } from "./svgSurface";

type ThreadRow = Extract<Row, { kind: "location" | "gpu" }>;

/** Neighbouring steps without spans as one stretch each, as far as a window shows them. */
export function foldedStretches(steps: readonly Step[], window: TimeRange): TimeRange[] {
  const found: { startNs: number; endNs: number }[] = [];
  for (const step of steps) {
    const [startNs, endNs] = [step.startNs, step.startNs + step.durationNs];
    if (step.detail !== "none" || endNs < window.startNs || startNs > window.endNs) continue;
    const last = found.at(-1);
    // Between two steps lies what counts to neither: a microsecond of the loop itself.
    if (last && startNs - last.endNs < step.durationNs / 10) last.endNs = endNs;
    else found.push({ startNs, endNs });
  }
  return found;
}

/** The threads and GPUs that hold no spans there; those of a process that kept everything do, for example a worker of a loader. */
export const foldedRows = (rows: readonly Row[], processes: readonly number[]): ThreadRow[] =>
  rows
    .filter((row) => row.kind === "location" || row.kind === "gpu")
    .filter((row) => processes.includes(row.kind === "gpu" ? row.process : row.location.process));

const GAP = 9;

/** Fills a rectangle with oblique lines. */
export function hatch(context: Pen, { left, top, width, height }: Box, color: string): void {
  if (width <= 0) return;
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  context.strokeStyle = color;
  context.lineWidth = 1;
  context.beginPath();
  // Lines lie still while the rectangle's edges move.
  for (let x = Math.floor((left - height) / GAP) * GAP; x < left + width; x += GAP) {
    context.moveTo(x, top + height);
    context.lineTo(x + height, top);
  }
  context.stroke();
  context.restore();
}
