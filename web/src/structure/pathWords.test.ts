import { expect, test } from "vitest";
import { pathSentence } from "./pathWords";

const facts = {
  aligned: 0.81,
  usual_steps: 30,
  paths: 3,
  absent: [{ name: "aten::relu", steps: 9 }],
  extra: [{ name: "aten::dropout", steps: 1 }],
};

test("names what steps lack and have in addition, with how many steps", () =>
  expect(pathSentence({ path_facts: facts, shown: 40 })).toBe(
    "81 % of the cells are filled: 30 of 40 steps take the usual path, of 3 paths; some steps lack relu (9 steps); some have more: dropout (1 step).",
  ));

test("is silent where nearly all cells are filled, or nothing can be compared", () => {
  expect(pathSentence({ path_facts: { ...facts, aligned: 0.96 }, shown: 40 })).toBe("");
  expect(pathSentence({ path_facts: facts, shown: 1 })).toBe("");
});
