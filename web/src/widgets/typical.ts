// The step that a picture of "one step" stands for: a real one to look at.
import type { Step } from "../data/run";

/** The step in detail whose duration is nearest to the median of its class; undefined where none is in detail. */
export function typicalStep(steps: readonly Step[], className: string, medianNs: number): Step | undefined {
  let best: Step | undefined;
  for (const step of steps) {
    if (step.className !== className || step.detail !== "all" || step.warmUp) continue;
    if (!best || Math.abs(step.durationNs - medianNs) < Math.abs(best.durationNs - medianNs)) best = step;
  }
  return best;
}
