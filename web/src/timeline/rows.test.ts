import { describe, expect, test } from "vitest";
import type { Location, Run, Series } from "../data/run";
import { HEIGHTS, layoutRows, metricRows, openByDefault, totalHeight, visibleRows } from "./rows";

const location = (number: number, process: number, spanCount: number): Location => ({
  location: number,
  process,
  name: `thread ${number}`,
  threadId: 100 + number,
  spanCount,
});
const series = (number: number, metric: string, unit: string, highest = 1): Series => ({
  series: number,
  metric,
  unit,
  process: 0,
  lowest: 0,
  highest,
});
const run: Run = {
  meta: {
    name: "a.strobe",
    program: "a.py",
    command: [],
    host: "",
    python: "",
    ended: "",
    started_unix_ns: 0,
    start_ns: 0,
    end_ns: 10,
    span_count: 0,
    folded_count: 0,
    folded_processes: [],
    size_bytes: 0,
    tile_cells: 4,
  },
  bounds: { startNs: 0, endNs: 10 },
  processes: [
    { process: 0, pid: 7, main: true, title: "a.py" },
    { process: 1, pid: 8, main: false, title: "a.py" },
    { process: 2, pid: 9, main: false, title: "a.py" },
  ],
  locations: [location(0, 0, 50), location(1, 0, 900), location(2, 0, 0), location(3, 1, 5000)],
};

describe("rows", () => {
  test("follow each other without gaps, process by process, without empty threads and processes", () => {
    const rows = layoutRows(run, [series(0, "cpu main", "cores")], [], [], new Map());
    expect(rows.map((r) => r.key)).toEqual([
      "process-0",
      "metric-0-cores",
      "location-0",
      "location-1",
      "process-1",
      "location-3",
    ]);
    for (const [i, row] of rows.entries())
      expect(row.top).toBe(i ? (rows[i - 1]?.top ?? 0) + (rows[i - 1]?.height ?? 0) : 0);
    expect(totalHeight(rows)).toBe(2 * HEIGHTS.process + HEIGHTS.metric + 3 * HEIGHTS.flat);
  });
  test("an open location is as tall as it is deep", () => {
    const rows = layoutRows(run, [], [1], [], new Map([[1, 9]]));
    expect(rows.find((r) => r.key === "location-1")?.height).toBe(9 * HEIGHTS.depth + HEIGHTS.nestedPadding);
  });
  test("only those on the screen are drawn", () => {
    const rows = layoutRows(run, [], [], [], new Map());
    const shown = visibleRows(rows, HEIGHTS.process + 1, HEIGHTS.flat);
    expect(shown.map((r) => r.key)).toEqual(["location-0", "location-1"]);
  });
});

test("a process shows its main metrics, and the others when asked", () => {
  const all = [series(0, "switches", "1/s"), series(1, "rss", "bytes"), series(2, "cpu", "cores")];
  const keys = (measured: number[]) =>
    layoutRows(run, all, [], measured, new Map()).flatMap((r) => (r.kind === "metric" ? r.unit : []));
  expect(keys([])).toEqual(["cores", "bytes"]);
  expect(keys([0])).toEqual(["cores", "bytes", "1/s"]);
});

test("the busiest thread of the started program is open at first, not a busier child", () =>
  expect(openByDefault(run)).toEqual([1]));

test("series of a unit share a row; those that never moved from zero are left out", () => {
  const found = metricRows(0, [
    series(0, "a", "cores"),
    series(1, "b", "cores"),
    series(2, "rss", "bytes"),
    series(3, "c", "1/s", 0),
  ]);
  expect(found.map((m) => [m.title, m.series.length, m.stacked])).toEqual([
    ["CPU", 2, true],
    ["Memory", 1, false],
  ]);
});
