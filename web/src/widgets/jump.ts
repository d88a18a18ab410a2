// From a span somewhere on the page to the same span on the timeline.
import { trailAfter } from "../base/trail";
import type { Run } from "../data/run";
import type { Session } from "../data/session";
import type { Hit } from "../data/spans";

/** Room around a span when jumping to it: so many times its own length on both sides. */
const ROOM = 3;

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
