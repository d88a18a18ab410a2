import { expect, test } from "vitest";
import type { AnalysisTable, Column } from "../../data/tables/analysisTable";
import { splitAt, splitsOf } from "./stepDivisions";

const numbers = (name: string, values: number[]): Column => ({
  name,
  title: name,
  unit: "",
  meaning: "",
  extra: false,
  kind: "number",
  whole: true,
  values: Float64Array.from(values),
});
const tableOf = (...columns: Column[]): AnalysisTable => ({
  columns,
  rows: columns[0]?.values.length ?? 0,
  total: 0,
  question: "",
  about: "",
  note: "",
  options: [],
});
const PARTS = ["kernel", "other"];
const table = tableOf(
  numbers("rank", [0, 1, Number.NaN]),
  numbers("process", [0, 1, 2]),
  numbers("start_ns", [100, 100, 300]),
  numbers("duration_ns", [10, 30, 20]),
  numbers("kernel_ns", [10, 25, 5]),
  numbers("other_ns", [0, 5, 15]),
);

test("a row each rank, without parts that take no time", () =>
  expect(splitsOf(table, PARTS, 8)[0]).toEqual({
    process: 0,
    rank: 0,
    steps: undefined,
    durationNs: 10,
    parts: [{ name: "kernel", ns: 10 }],
  }));

test("of too many ranks those with the longest steps, longest first", () =>
  expect(splitsOf(table, PARTS, 2).map(({ rank }) => rank)).toEqual([1, undefined]));

test("a step is found by its process and its middle", () => {
  const parts = splitAt(table, PARTS, 1, 115)?.parts;
  expect(parts).toEqual([
    { name: "kernel", ns: 25 },
    { name: "other", ns: 5 },
  ]);
  expect(splitAt(table, PARTS, 1, 130)).toBeUndefined();
  expect(splitAt(table, PARTS, 3, 115)).toBeUndefined();
});

test("of steps that overlap, the later one counts", () => {
  const overlapping = tableOf(
    numbers("process", [0, 0]),
    numbers("start_ns", [0, 100]),
    numbers("duration_ns", [150, 100]),
    numbers("kernel_ns", [1, 2]),
  );
  expect(splitAt(overlapping, ["kernel"], 0, 120)?.parts).toEqual([{ name: "kernel", ns: 2 }]);
});
