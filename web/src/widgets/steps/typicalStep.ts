import type { Step } from "../../data/runSteps";
// The step that a picture of "one step" stands for: a real one to look at.

/** The step in detail whose duration is nearest to the median of its class; undefined where none is in detail. */
export function typicalStep(steps: readonly Step[], name: string, medianNs: number): Step | undefined {
  let best: Step | undefined;
  for (const step of steps) {
    if (step.class !== name || step.detail !== "all" || step.warmUp) continue;
    if (!best || Math.abs(step.durationNs - medianNs) < Math.abs(best.durationNs - medianNs)) best = step;
  }
  return best;
}
