import { describe, expect, test } from "vitest";
import { capital, middleCut, shortName } from "./names";

describe("names for people", () => {
  test.each([
    ["autograd::engine::evaluate_function: AddmmBackward0", "AddmmBackward0"],
    ["autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", "AccumulateGrad"],
    ["enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "next batch"],
    ["Optimizer.zero_grad#SGD.zero_grad", "SGD.zero_grad"],
    ["aten::conv2d", "conv2d"],
    ["my_own.function", "my_own.function"],
    ["a aten::b", "a aten::b"],
  ])("%s is %s", (name, short) => expect(shortName(name)).toBe(short));
  test("are cut in the middle, to the length asked for", () => {
    expect(middleCut("short", 5)).toBe("short");
    const cut = middleCut("a_long_name_of_a_function_v2", 12);
    expect(cut).toHaveLength(12);
    expect(cut).toMatch(/^a_long_…n_v2$/);
  });
});

test.each([
  ["validation: 2 of 59 steps", "Validation: 2 of 59 steps"],
  ["the loop waits", "The loop waits"],
  ["load itself takes 1 ms", "load itself takes 1 ms"],
  ["train_step takes more", "train_step takes more"],
  ["aten::mm is slow", "aten::mm is slow"],
])("%s begins as it should", (text, sentence) => expect(capital(text)).toBe(sentence));
