import { describe, expect, test } from "vitest";
import type { AnalysisTable, Column } from "../../data/tables/analysisTable";
import { TABLE_VIEW } from "../../state/address";
import { cellsOf, cellText, orderOf, rowKey, rowOf, shownColumns, typeShares } from "./tableRows";

const about = { title: "", meaning: "", extra: false };
const numbers = (name: string, values: number[], unit = "", more = {}): Column => ({
  ...about,
  name,
  unit,
  kind: "number",
  whole: true,
  values: Float64Array.from(values),
  ...more,
});
const texts = (name: string, values: string[], more = {}): Column => ({
  ...about,
  name,
  unit: "",
  kind: "text",
  values,
  ...more,
});
const tableOf = (...columns: Column[]): AnalysisTable => ({
  columns,
  rows: columns[0]?.values.length ?? 0,
  total: columns[0]?.values.length ?? 0,
  question: "",
  about: "",
  note: "",
  options: [],
});

const NONE = Number.NaN;
const table = tableOf(
  numbers("rank", [0, 0, 1, 1]),
  numbers("device", [NONE, NONE, NONE, NONE]),
  texts("name", ["aten::add", "aten::mm", "aten::add", ""]),
  texts("type", ["add", "mm", "add", ""]),
  numbers("avg_ns", [1500, 250_000, NONE, 40], "ns", { whole: false }),
  numbers("sent_bytes", [1_250_000, 0, 3, 4], "bytes", { extra: true }),
  numbers("share", [0.314, 1, 0, NONE], "", { whole: false }),
);
const column = (name: string): Column => table.columns.find((one) => one.name === name) as Column;

describe("a cell", () => {
  test.each([
    ["avg_ns", 1, "250 µs"],
    ["avg_ns", 2, ""],
    ["sent_bytes", 0, "1.25 MB"],
    ["share", 0, "31 %"],
    ["rank", 3, "1"],
    ["name", 0, "aten::add"],
  ])("%s of row %i is %j", (name, row, text) => expect(cellText(column(name), row)).toBe(text));
  test("of a number without a unit has four digits", () =>
    expect(cellText(numbers("calls_per_step", [2 / 3], "", { whole: false }), 0)).toBe("0.6667"));
});

describe("the order of rows", () => {
  const order = (view = {}): number[] => orderOf(table, { ...TABLE_VIEW, ...view });
  test("is the server's unless another was chosen", () => expect(order()).toEqual([0, 1, 2, 3]));
  test("puts what is missing last, both ways", () => {
    expect(order({ sort: "avg_ns", down: true })).toEqual([1, 0, 3, 2]);
    expect(order({ sort: "avg_ns", down: false })).toEqual([3, 0, 1, 2]);
    expect(order({ sort: "name" })).toEqual([0, 2, 1, 3]);
    expect(order({ sort: "name", down: true })).toEqual([1, 0, 2, 3]);
  });
  test("keeps equal rows in the server's order", () =>
    expect(order({ sort: "rank", down: true })).toEqual([2, 3, 0, 1]));
  test("has only rows with all words, in any of their texts, whatever the case", () => {
    expect(order({ find: "ADD aten" })).toEqual([0, 2]);
    expect(order({ find: "add mm" })).toEqual([]);
  });
  test("has only rows of a type", () => expect(order({ inside: "mm" })).toEqual([1]));
  test("does not fail where the column is gone", () => expect(order({ sort: "gone" })).toEqual([0, 1, 2, 3]));
});

describe("the columns", () => {
  const names = (all: boolean, also: string[] = []): string[] => shownColumns(table, all, also).map(({ name }) => name);
  test("leave out what is rarely wanted, and places that are all the same", () =>
    expect(names(false)).toEqual(["rank", "name", "type", "avg_ns", "share"]));
  test("leave out those without a single value", () => {
    const [full, empty, none] = [texts("name", ["add"]), texts("reason", [""]), numbers("size_bytes", [NONE])];
    const shown = (all: boolean): string[] => shownColumns(tableOf(full, empty, none), all).map(({ name }) => name);
    expect(shown(false)).toEqual(["name"]);
    expect(shown(true)).toEqual(["name", "reason", "size_bytes"]);
  });
  test("come back when they are asked for", () => {
    expect(names(false, ["sent_bytes"])).toContain("sent_bytes");
    expect(names(true)).toHaveLength(7);
  });
});

describe("a row", () => {
  test("is found again by its key, with other numbers and in another order", () => {
    const again = tableOf(numbers("rank", [1, 0]), numbers("device", [NONE, NONE]), texts("name", ["aten::add", "aten::add"]), texts("type", ["add", "add"]), numbers("avg_ns", [9, 9])); // biome-ignore format: a row each
    expect(rowOf(again, rowKey(table, 0))).toBe(1);
    expect(rowOf(again, rowKey(table, 2))).toBe(0);
    expect(rowOf(again, rowKey(table, 1))).toBe(-1);
  });
  test("has a short key, however long its name", () => {
    const long = tableOf(texts("name", ["void kernel<".padEnd(5000, "x"), "void kernel<".padEnd(5001, "x")]));
    expect(rowKey(long, 0).length).toBeLessThan(20);
    expect([rowOf(long, rowKey(long, 0)), rowOf(long, rowKey(long, 1))]).toEqual([0, 1]);
  });
  test.each(["", "[", '["x"]', "null", "7"])("is not found by nonsense: %j", (key) =>
    expect(rowOf(table, key)).toBe(-1),
  );
  test("gives the cells that a question names, those without a value empty", () =>
    expect(cellsOf(table, 0, ["name", "rank", "device", "gone"])).toEqual({
      name: "aten::add",
      rank: "0",
      device: "",
    }));
});

test("types have their shares of the time of all GPUs; what has no type is in none of them", () => {
  const byType = tableOf(
    texts("type", ["matrix product", "copy", "", "copy"]),
    numbers("device", [0, 0, 0, 1]),
    numbers("total_ns", [500, 100, 300, 100], "ns"),
  );
  expect(typeShares(byType)).toEqual([
    { type: "matrix product", share: 0.5 },
    { type: "copy", share: 0.2 },
  ]);
});

test("operators that only kernels name are divided by their time on GPUs", () => {
  const none = [Number.NaN, Number.NaN];
  const byType = tableOf(texts("type", ["dot", "add"]), numbers("self_ns", none), numbers("device_self_ns", [1, 3]));
  expect(typeShares(byType)).toEqual([
    { type: "add", share: 0.75 },
    { type: "dot", share: 0.25 },
  ]);
});

test("a hundred thousand rows are put in order at once", () => {
  const many = 100_000;
  const big = tableOf(
    texts(
      "name",
      Array.from({ length: many }, (_, i) => `aten::op${i}`),
    ),
    numbers(
      "total_ns",
      Array.from({ length: many }, (_, i) => (i * 7919) % many),
    ),
  );
  const order = orderOf(big, { ...TABLE_VIEW, sort: "total_ns", down: true, find: "op" });
  expect(order).toHaveLength(many);
  expect(order.slice(0, 2).map((row) => (row * 7919) % many)).toEqual([many - 1, many - 2]);
});
