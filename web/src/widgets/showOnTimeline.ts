// From a span or range somewhere on the page to the same on the timeline.

import type { TimeRange } from "../base/time";
import type { Run } from "../data/run";
import type { Session } from "../data/session";
import type { Hit } from "../data/spanHits";
import type { State } from "../state/address";
import { trailAfter } from "../state/zoomTrail";

/** Room around a span when jumping to it: so many times its own length on both sides. */
const ROOM = 3;
/** Room around a range, as a share of its length. */
const RANGE_ROOM = 0.08;

/** Opens the timeline at a range, with some room around it, and with other `changes` of the page's state. */
export function showRange(session: Session, { startNs, endNs }: TimeRange, changes: Partial<State> = {}): void {
  const room = Math.max(1, (endNs - startNs) * RANGE_ROOM);
  const window = { startNs: Math.max(0, Math.round(startNs - room)), endNs: Math.round(endNs + room) };
  session.update({ page: "timeline", window, trail: [undefined], ...changes }, "push");
}

/** Opens the timeline with a span chosen, in a window around it. */
export function jumpTo(
  session: Session,
  run: Run,
  hit: Pick<Hit, "location" | "startNs" | "depth" | "durationNs">,
): void {
  const size = Math.max(hit.durationNs, 200);
  const startNs = Math.max(run.bounds.startNs, hit.startNs - ROOM * size);
  const window = { startNs, endNs: Math.min(run.bounds.endNs, hit.startNs + (1 + ROOM) * size) };
  const { location, startNs: at, depth } = hit;
  const { state } = session;
  const trail = trailAfter(state.value.trail, state.value.window, window, run.bounds);
  session.update({ page: "timeline", window, trail, selection: { location, startNs: at, depth } }, "push");
}
