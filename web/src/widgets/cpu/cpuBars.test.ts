import { expect, test } from "vitest";
import type { AnalysisTable } from "../../data/tables/analysisTable";
import { cpuBars } from "./cpuBars";

const about = { unit: "", meaning: "", extra: false };
const texts = (name: string, values: readonly string[]) => ({
  ...about,
  name,
  title: name,
  kind: "text" as const,
  values,
});
const shares = (name: string, values: readonly number[]) => ({
  ...about,
  name: `${name}_share`,
  title: name,
  kind: "number" as const,
  whole: false,
  values: Float64Array.from(values),
});

const table: AnalysisTable = {
  columns: [
    texts("what", ["machine", "process", "threads", "thread"]),
    texts("name", ["node", "", "compute threads", "main"]),
    texts("class", ["train", "train", "train", "train"]),
    shares("user", [0.5, 0.25, 0.1, 0.6]),
    shares("system", [0.25, 0.25, 0.1, 0.1]),
    shares("waiting", [Number.NaN, 2, 1.5, 0.2]),
    shares("idle", [0.25, 0.5, Number.NaN, 0.1]),
  ],
  rows: 4,
  total: 4,
  question: "",
  about: "",
  note: "",
  options: [],
};

test("bars are of rows whose kinds add up; waits of a process are beside the time of its cores", () => {
  const bars = cpuBars(table, 9);
  expect(bars.map(({ title }) => title)).toEqual([
    "machine · node · train",
    "process · train",
    "thread · main · train",
  ]);
  for (const { shares: of } of bars) expect(of.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
});

test("of many rows only the first have a bar", () => expect(cpuBars(table, 1)).toHaveLength(1));
