import { describe, expect, test } from "vitest";
import type { Pipeline } from "../data/batchPipeline";
import { boundWith, gainSentence, queueSentence, verdictSentence } from "./pipelineWords";

const MS = 1e6;
const bound: Pipeline = {
  process: 0,
  rank: undefined,
  verdict: "data processing",
  inputBound: "highly",
  durationNs: 100 * MS,
  waitNs: 40 * MS,
  copyNs: 5 * MS,
  workers: 1,
  fetchNs: 90 * MS,
  asked: 50,
  empty: 45,
  neededWorkers: 2,
  predictedStepNs: 80 * MS,
  bestStepNs: 60 * MS,
  advice: "",
  stages: [],
};

describe("the verdict as a sentence", () => {
  test.each([
    [{}, "Batches are not ready in time: the loop waits 40.0 ms (40 %) of a step on average for its data."],
    [
      { verdict: "data transmission", copyNs: 41 * MS },
      "Copying batches to the GPU holds the step up for 41.0 ms (41 %).",
    ],
    [
      { verdict: "data transmission" },
      "Batches are ready, but reach the loop late: it waits 40.0 ms (40 %) of a step on average for its data.",
    ],
    [
      { verdict: "neither", waitNs: MS },
      "The data pipeline keeps up: the loop waits 1.00 ms (1.0 %) of a step on average for its data.",
    ],
  ])("%j", (change, sentence) => expect(verdictSentence({ ...bound, ...change })).toBe(sentence));
});

test("the gain is what is expected, and what is possible at best", () => {
  expect(gainSentence(bound)).toBe(
    "With 2 workers or more, a step is expected to take 80.0 ms: 20 % less, at best 40 %.",
  );
  expect(gainSentence({ ...bound, neededWorkers: undefined })).toMatch(/^With enough workers, /);
  expect(gainSentence({ ...bound, verdict: "neither" })).toBe("");
});

test("the queue is full, empty at times, or unknown", () => {
  expect(queueSentence(bound)).toBe("empty 45 of 50 times");
  expect(queueSentence({ ...bound, empty: 0 })).toBe("a batch was ready all 50 times");
  expect(queueSentence({ ...bound, asked: undefined, empty: undefined })).toBe("how full it was is not in this trace");
});

test("with n workers a step takes what the slowest stage takes", () => {
  expect(boundWith(bound, 1)).toBe(90 * MS);
  expect(boundWith(bound, 2)).toBe(60 * MS);
  expect(boundWith({ ...bound, fetchNs: undefined }, 2)).toBeUndefined();
});
