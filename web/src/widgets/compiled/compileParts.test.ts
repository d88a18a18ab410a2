import { expect, test } from "vitest";
import type { Compilation } from "../../data/compilations";
import { compileParts } from "./compileParts";

const compiled = (changes: Partial<Compilation>): Compilation => ({
  process: 0,
  rank: undefined,
  startNs: 0,
  step: undefined,
  compileId: "0/0",
  function: "forward",
  again: false,
  backward: false,
  durationNs: 100,
  runShare: 0.1,
  causes: "",
  place: "",
  ...changes,
});

test("what is compiled for the first time and again are parts of the run, with the rest of it", () => {
  const rows = [
    compiled({}),
    compiled({ backward: true, durationNs: 300, runShare: 0.3 }),
    compiled({ again: true, durationNs: 200, runShare: 0.2 }),
  ];
  expect(compileParts(rows).map(({ title, ns, share }) => [title, ns, Number(share.toFixed(6))])).toEqual([
    ["compiled for the first time (2)", 400, 0.4],
    ["compiled again (1)", 200, 0.2],
    ["the rest of the run", 400, 0.4],
  ]);
});

test("there is no part of what did not happen, and no bar without the length of the run", () => {
  expect(compileParts([compiled({})]).map(({ name }) => name)).toEqual(["first", "rest"]);
  expect(compileParts([compiled({ runShare: undefined })])).toEqual([]);
  expect(compileParts([])).toEqual([]);
});
