import { expect, test } from "vitest";
import type { EngineGap } from "../../data/engine";
import { gapsByClass, gapWords } from "./engineWords";

const gap = (changes: Partial<EngineGap>): EngineGap => ({
  process: 0,
  rank: undefined,
  class: "decode",
  where: "between",
  cause: "scheduler",
  idleNs: 100,
  gaps: 1,
  function: "",
  line: "",
  ...changes,
});

test("words name where, why and in which code", () => {
  expect(gapWords(gap({ function: "schedule", line: "sched.py:7" }))).toBe(
    "between steps: the scheduler, schedule (sched.py:7)",
  );
  expect(gapWords(gap({ where: "inside", cause: "launch" }))).toBe("in the step: until the next launch");
  expect(gapWords(gap({ cause: "" }))).toBe("between steps: not recorded");
});

test("gaps are summed by class, and by rank where there are several", () => {
  const all = [gap({ where: "inside", idleNs: 300 }), gap({}), gap({ class: "mixed", idleNs: 5 }), gap({ idleNs: 1 })];
  expect(gapsByClass(all).map(({ name, idleNs, of }) => [name, idleNs, of.map((one) => one.idleNs)])).toEqual([
    ["decode", 401, [100, 300]],
    ["mixed", 5, [5]],
  ]);
  expect(gapsByClass([gap({ rank: 0 }), gap({ rank: 1, process: 1 })]).map(({ name }) => name)).toEqual([
    "rank 0 decode",
    "rank 1 decode",
  ]);
});
