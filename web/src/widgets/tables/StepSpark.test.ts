import { expect, test } from "vitest";
import type { StepBar } from "../../data/tables/overSteps";
import { sparkPaths, sparkWords } from "./StepSpark";

const bar = (firstStep: number, lastStep: number, inDetail: number, stepNs: number | undefined): StepBar => ({
  row: 0,
  firstStep,
  lastStep,
  inDetail,
  stepNs,
});

test("bars begin at zero; a step that is not in detail has a foot instead", () => {
  const bars = [bar(0, 0, 1, 1000), bar(1, 1, 0, undefined), bar(2, 2, 1, 4000), bar(3, 3, 1, 0)];
  expect(sparkPaths(bars)).toEqual({
    known: "M0 1V0.75h0.85V1zM2 1V0h0.85V1zM3 1V1h0.85V1z",
    unknown: "M1 1V0.84h0.85V1z",
  });
  expect(sparkWords(bars)).toBe("0 ns to 4.00 µs a step; most in step 2; 1 step not in detail");
});

test("bars of several steps are means", () => {
  expect(sparkWords([bar(0, 3, 2, 3000), bar(4, 7, 4, 1000)])).toBe(
    "1.00 µs to 3.00 µs a step, means of neighbouring steps; most in steps 0 to 3; 2 steps not in detail",
  );
  expect(sparkWords([bar(0, 3, 0, undefined)])).toBe("no step was kept in detail");
});
