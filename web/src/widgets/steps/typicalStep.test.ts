import { expect, test } from "vitest";
import type { Detail } from "../../base/kinds.generated";
import { byPiece, type Step } from "../../data/runSteps";

import { typicalStep } from "./typicalStep";

const step = (number: number, durationNs: number, detail: Detail = "all", name = "train"): Step => ({
  process: 0,
  step: number,
  startNs: number * 1000,
  durationNs,
  class: name,
  classRank: 0,
  outlier: false,
  cause: "",
  count: 1,
  parts: { ...byPiece(() => 0), rest: durationNs },
  detail,
  loop: 0,
  warmUp: number === 0,
});

test("the step in detail that is nearest to the median, of the same class and no warm-up", () => {
  const steps = [step(0, 100), step(1, 90), step(2, 101, "part"), step(3, 104), step(4, 100, "all", "validation")];
  expect(typicalStep(steps, "train", 100)?.step).toBe(3);
  expect(typicalStep(steps, "validation", 5)?.step).toBe(4);
  expect(typicalStep(steps.slice(0, 1), "train", 100)).toBeUndefined();
});
