// The breadcrumb of zooms: which windows lead to the one on the screen. Pure.
import { length, type TimeRange } from "../base/time";

/** Zooming in by less than this is not a step of the breadcrumb. */
const CRUMB_FACTOR = 1.5;

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
  const inside = (crumb: TimeRange | undefined): boolean => crumb !== undefined && length(crumb) < length(bounds);
  if (!to || !inside(to)) return [];
  const wider = (crumb: TimeRange | undefined): boolean => length(crumb ?? bounds) >= length(to) * CRUMB_FACTOR;
  const between = [...trail, from].filter((crumb) => inside(crumb) && wider(crumb));
  // Zooming out passes windows that were left before: what came after them does not lead here.
  const ways = between.filter((crumb, i) =>
    between.slice(0, i).every((c) => length(c ?? bounds) > length(crumb ?? bounds)),
  );
  return [undefined, ...ways];
}
