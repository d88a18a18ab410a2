import { describe, expect, test } from "vitest";
import type { Series } from "../../data/readings";
import type { Location, Process, Run } from "../../data/run";
import { ROWS_VIEW, type RowsView } from "../../state/rowsState";
import {
  type Ask,
  HEIGHTS,
  hiddenLocations,
  layoutRows,
  metricRows,
  openByDefault,
  pinnedRows,
  totalHeight,
  visibleRows,
} from "./rowLayout";

const location = (number: number, process: number, spanCount: number): Location => ({
  location: number,
  process,
  name: `thread ${number}`,
  kind: "thread",
  threadId: 100 + number,
  spanCount,
});
const series = (number: number, metric: string, unit: string, highest = 1): Series => ({
  series: number,
  metric,
  unit,
  process: 0,
  location: undefined,
  lowest: 0,
  highest,
});
const child = (process: number): Process => ({
  process,
  pid: 7 + process,
  main: process === 0,
  title: "a.py",
  host: "",
  rank: undefined,
});
const run: Run = {
  meta: {
    name: "a.strobe",
    program: "a.py",
    command: [],
    host: "",
    python: "",
    ended: "",
    running: false,
    started_unix_ns: 0,
    start_ns: 0,
    end_ns: 10,
    span_count: 0,
    folded_count: 0,
    folded_processes: [],
    sampled: [],
    flight_recorder: false,
    size_bytes: 0,
    tile_cells: 4,
    lost: [],
  },
  bounds: { startNs: 0, endNs: 10 },
  processes: [child(0), child(1), child(2)],
  locations: [location(0, 0, 50), location(1, 0, 900), location(2, 0, 0), location(3, 1, 5000)],
};
/** Ranks on hosts of four, each with a main thread (its number twice) and a stream. */
const ranks = (count: number): Run => ({
  ...run,
  processes: Array.from({ length: count }, (_, rank) => ({
    ...child(rank),
    rank,
    host: `n${Math.floor(rank / 4)}`,
    pid: 1000 + rank,
  })),
  locations: Array.from({ length: count }, (_, rank) => [
    { ...location(2 * rank, rank, 900), name: "stream 7", kind: "stream" as const },
    { ...location(2 * rank + 1, rank, 10), name: "main thread", threadId: 1000 + rank },
  ]).flat(),
});
const ask = (of: Run, view: Partial<RowsView> = {}, more: Partial<Ask> = {}): Ask => ({
  run: of,
  series: [],
  open: [],
  measured: [],
  depths: new Map(),
  view: { ...ROWS_VIEW, ...view },
  heightPx: 600,
  measure: "",
  amounts: new Map(),
  places: [],
  stepped: [],
  order: undefined,
  ...more,
});
const keys = (asked: Ask): string[] => layoutRows(asked).map((row) => row.key);

describe("rows", () => {
  test("follow each other without gaps, process by process, without empty threads and processes", () => {
    const rows = layoutRows(ask(run, {}, { series: [series(0, "cpu main", "cores")] }));
    expect(rows.map((r) => r.key)).toEqual(["p0", "m0.cores", "l0", "l1", "p1", "l3"]);
    for (const [i, row] of rows.entries())
      expect(row.top).toBe(i ? (rows[i - 1]?.top ?? 0) + (rows[i - 1]?.height ?? 0) : 0);
    expect(totalHeight(rows)).toBe(2 * HEIGHTS.process + HEIGHTS.metric + 3 * HEIGHTS.flat);
  });
  test("an open location is as tall as it is deep", () => {
    const rows = layoutRows(ask(run, {}, { open: [1], depths: new Map([[1, 9]]) }));
    expect(rows.find((r) => r.key === "l1")?.height).toBe(9 * HEIGHTS.depth + HEIGHTS.nestedPadding);
  });
  test("only those on the screen are drawn", () => {
    const rows = layoutRows(ask(run));
    const shown = visibleRows(rows, HEIGHTS.process + 1, HEIGHTS.flat);
    expect(shown.map((r) => r.key)).toEqual(["l0", "l1"]);
    const many = layoutRows(ask(ranks(100), { folds: "all", fit: false }));
    for (const [top, height] of [
      [0, 500],
      [333, 1],
      [1200, 700],
      [-50, 90],
      [1e6, 9],
    ] as const)
      expect(visibleRows(many, top, height)).toEqual(
        many.filter((row) => row.top + row.height > top && row.top < top + height),
      );
  });
});

describe("the rows of a process", () => {
  const on = (number: number, kind: Location["kind"], device?: number): Location => ({
    ...location(number, 0, 5),
    kind,
    ...(device !== undefined && { device }),
  });
  const gpus: Run = {
    ...run,
    processes: [{ ...child(0), pid: 102 }],
    locations: [
      on(0, "thread"),
      on(1, "thread"),
      on(2, "thread"),
      on(3, "stream", 1),
      on(4, "task"),
      on(5, "stream", 0),
      on(6, "task", 0),
      on(7, "stream", 0),
    ],
  };
  const order = { main: new Set([2]), backward: new Set([1]), system: new Set([4]) };
  test("are the main thread, those of the backward pass, others; GPUs above their streams; system last and folded", () => {
    const planned = keys(ask(gpus, {}, { order }));
    expect(planned).toEqual(["p0", "l2", "l1", "l0", "d0.0", "l5", "l7", "l6", "d0.1", "l3", "y0"]);
    const flipped = keys(ask(gpus, { flipped: ["y0", "d0.0"] }, { order }));
    expect(flipped).toEqual(["p0", "l2", "l1", "l0", "d0.0", "d0.1", "l3", "y0", "l4"]);
    const row = layoutRows(ask(gpus, {}, { order })).find(({ key }) => key === "d0.0");
    expect(row?.kind === "gpu" && row.members, "its streams, not what it waits for").toEqual([5, 7]);
  });
  test("begin with the main thread also before their order has come", () => {
    expect(keys(ask(gpus))).toEqual(["p0", "l2", "l0", "l1", "l4", "d0.0", "l5", "l7", "l6", "d0.1", "l3"]);
  });
  test("have the memory of a GPU below it, and no memory of a few bytes", () => {
    const memory = [series(0, "GPU 0: allocated", "bytes", 5e9), series(1, "allocated", "bytes", 8)];
    const planned = keys(ask(gpus, {}, { order, series: memory }));
    expect(planned.slice(0, 6)).toEqual(["p0", "l2", "l1", "l0", "d0.0", "m0.GPU 0 bytes"]);
  });
});

describe("the tree", () => {
  test("has hosts where there are several, and folds many processes into their main threads", () => {
    expect(keys(ask(ranks(8))).slice(0, 5)).toEqual(["n0", "p0", "l1", "l0", "p1"]);
    const rows = layoutRows(ask(ranks(20)));
    expect(rows.slice(0, 6).map((r) => r.key)).toEqual(["n0", "p0", "p1", "p2", "p3", "n1"]);
    const [, first] = rows;
    expect(first?.kind === "location" && first.location.location).toBe(1);
    expect(first?.kind === "location" && first.stands?.title).toBe("rank 0");
  });
  test("has steps where several processes have their own", () => {
    expect(keys(ask(ranks(3), {}, { stepped: [1, 2] })).slice(0, 5)).toEqual(["p0", "l1", "l0", "p1", "t1"]);
    expect(keys(ask(ranks(3), {}, { stepped: [1] }))).not.toContain("t1");
    expect(pinnedRows(ask(ranks(3), { pinned: ["t2", "t0"] }, { stepped: [1, 2] }))).toMatchObject([
      { kind: "steps", title: "rank 2 · steps" },
    ]);
  });
  test("is flipped where a row is, and folded or unfolded as a whole", () => {
    expect(keys(ask(ranks(20), { flipped: ["p1", "n0"] })).slice(0, 3)).toEqual(["n0", "n1", "p4"]);
    expect(keys(ask(ranks(20), { flipped: ["p1"] })).slice(1, 6)).toEqual(["p0", "p1", "l3", "l2", "p2"]);
    expect(keys(ask(ranks(8), { folds: "all" }))).toEqual(["n0", "n1"]);
    expect(layoutRows(ask(ranks(8), { folds: "all" }))[1]).toMatchObject({ folded: true, members: [9, 11, 13, 15] });
    expect(keys(ask(ranks(8), { folds: "all", flipped: ["n1"] }))).toEqual(["n0", "n1", "p4", "p5", "p6", "p7"]);
    expect(keys(ask(ranks(20), { folds: "none" })).slice(0, 4)).toEqual(["n0", "p0", "l1", "l0"]);
  });
  test("ends at the filter, which hides threads and the processes left without any", () => {
    const asked = ask(ranks(20), { filter: "rank:2-3,17 stream" });
    expect(keys(asked)).toEqual(["n0", "p2", "p3", "n4", "p17"]);
    const [, shown] = layoutRows(asked);
    expect(shown?.kind === "location" && shown.location.name).toBe("stream 7");
    expect(hiddenLocations(asked)).toBe(40 - 3);
    expect(hiddenLocations(ask(ranks(20)))).toBe(0);
  });
  test("is in the order of the names of hosts where that is asked for, numbers as numbers", () => {
    const of = ranks(12);
    const names = ["n10", "n9", "n2"];
    const mixed = { ...of, processes: of.processes.map((p, i) => ({ ...p, host: names[Math.floor(i / 4)] ?? "" })) };
    const hosts = (view: Partial<RowsView>) =>
      layoutRows(ask(mixed, view)).flatMap((row) => (row.kind === "host" ? row.host : []));
    expect(hosts({})).toEqual(["n10", "n9", "n2"]);
    expect(hosts({ sort: "host" })).toEqual(["n2", "n9", "n10"]);
  });
});

describe("the views", () => {
  test("master has a row for each process and no metrics", () => {
    const of = ranks(3);
    expect(keys(ask(of, { preset: "master" }, { series: [series(0, "cpu", "cores")] }))).toEqual(["p0", "p1", "p2"]);
  });
  test("process has one location with its nesting: the busiest of the program, or the chosen one", () => {
    const of = ranks(3);
    const shown = (view: Partial<RowsView>) => layoutRows(ask(of, { preset: "process", ...view }));
    expect(shown({})).toMatchObject([{ key: "l0", open: true }]);
    expect(shown({ location: 5 })).toMatchObject([{ key: "l5", open: true }]);
    expect(shown({ location: 99 })).toEqual([]);
  });
  test("counters are all metrics of the processes that the filter leaves", () => {
    const all = [0, 1, 2].flatMap((process) => [
      { ...series(2 * process, "cpu", "cores"), process },
      { ...series(2 * process + 1, "switches", "1/s"), process },
    ]);
    const asked = ask(ranks(3), { preset: "counter", filter: "rank:1-2" }, { series: all });
    expect(keys(asked)).toEqual(["p1", "m1.cores", "m1.1/s", "p2", "m2.cores", "m2.1/s"]);
  });
  test("rows that share the screen are whole pixels tall, and never less than one", () => {
    const heights = (count: number, heightPx: number) =>
      new Set(layoutRows(ask(ranks(count), { fit: true, folds: "all" }, { heightPx })).map((row) => row.height));
    expect([...heights(200, 600)]).toEqual([3]);
    expect([...heights(200, 150)]).toEqual([1]);
    expect([...heights(4, 600)]).toEqual([HEIGHTS.flat]);
  });
});

describe("rows of many ranks", () => {
  const of = ranks(1000);
  const places = [
    { title: "main thread", kind: "thread", locations: of.processes.map((p) => 2 * p.process + 1) },
    { title: "stream 7", kind: "stream", locations: of.processes.map((p) => 2 * p.process) },
  ];
  const shown = (view: Partial<RowsView>, heightPx = 600, more: Partial<Ask> = {}) =>
    layoutRows(ask(of, view, { heightPx, places, ...more }));
  test("stand for 8, 64, ... of them until all fit on the screen", () => {
    const fine = shown({});
    expect(fine).toHaveLength(125);
    expect(fine[8]).toMatchObject({ key: "g0.1.8", title: "ranks 64–71", count: 8, height: 4 });
    const coarse = shown({}, 300);
    expect(coarse).toHaveLength(16);
    expect(coarse.at(-1)).toMatchObject({ title: "ranks 960–999", count: 40, rowLevel: 2 });
    expect(shown({ folds: "none" }).map((row) => row.kind === "ranks" && row.placeTitle)).toEqual([
      ...Array(16).fill("main thread"),
      ...Array(16).fill("stream 7"),
    ]);
  });
  test("open into those of the next finer level, down to single threads", () => {
    const keys = shown({ flipped: ["g0.2.15", "g0.1.121"] }, 300).map((row) => row.key);
    expect(keys.slice(15, 20)).toEqual(["g0.2.15", "g0.1.120", "g0.1.121", "l1937", "l1939"]);
    expect(keys.slice(-3)).toEqual(["g0.1.122", "g0.1.123", "g0.1.124"]);
    const single = shown({ flipped: ["g0.2.15", "g0.1.121"] }, 300).find((row) => row.key === "l1937");
    expect(single).toMatchObject({ of: "rank 968", level: 2 });
  });
  test("are not there where rows fit, are filtered or sorted by what they have, or measures do not add up", () => {
    expect(shown({}, 1200)[0]).toMatchObject({ kind: "location", height: 1 });
    expect(shown({ filter: "rank:3" })[0]?.key).toBe("p3");
    expect(shown({ sort: "value", sortAt: 5 })[0]?.kind).toBe("location");
    expect(shown({ preset: "radar" }, 600, { measure: "metric.power" })[0]?.kind).toBe("location");
    expect(shown({ preset: "radar" }, 600, { measure: "group.sync" })[0]?.kind).toBe("ranks");
  });
  test("and a summary has a row for each place, of those that the filter leaves", () => {
    expect(shown({ preset: "summary" })).toMatchObject([
      { title: "main thread", count: 1000, some: undefined },
      { title: "stream 7", count: 1000, some: undefined },
    ]);
    expect(shown({ preset: "summary", filter: "rank:5-6 main" })).toMatchObject([{ count: 2, some: [11, 13] }]);
  });
});

test("rows are in the order of what they have, most first, those without at the end", () => {
  const amounts = new Map([
    [1, 5],
    [3, 50],
    [7, 20],
  ]);
  expect(keys(ask(ranks(5), { preset: "master", sort: "time" }, { amounts }))).toEqual(["p1", "p3", "p0", "p2", "p4"]);
});

test("pinned rows are there wherever they lie, and keys of nothing are passed over", () => {
  const measured = [{ ...series(0, "rss", "bytes"), process: 3 }];
  const pinned = ["l1", "p2", "m3.bytes", "l999", "p777", "m1.none", "n0", "x5"];
  const rows = pinnedRows(ask(ranks(200), { pinned }, { series: measured }));
  expect(rows.map((row) => [row.key, row.top])).toEqual([
    ["l1", 0],
    ["p2", HEIGHTS.flat],
    ["m3.bytes", 2 * HEIGHTS.flat],
  ]);
});

test("a process shows its main metrics, and the others when asked", () => {
  const all = [series(0, "switches", "1/s"), series(1, "rss", "bytes", 1e9), series(2, "cpu", "cores")];
  const units = (measured: number[]) =>
    layoutRows(ask(run, {}, { series: all, measured })).flatMap((r) => (r.kind === "metric" ? r.unit : []));
  expect(units([])).toEqual(["cores", "bytes"]);
  expect(units([0])).toEqual(["cores", "bytes", "1/s"]);
});

test("each GPU has rows of its own; its load and memory are shown before all is asked for", () => {
  const all = [
    series(0, "resident memory", "bytes", 1e9),
    series(1, "GPU 0: memory used", "bytes", 1e9),
    series(2, "GPU 0: utilisation", "%"),
    series(3, "GPU 0: SM activity", "%"),
    series(4, "GPU 1: utilisation", "%"),
    series(5, "GPU 1: power", "W"),
  ];
  const rows = (measured: number[]) =>
    layoutRows(ask(run, {}, { series: all, measured })).flatMap((r) =>
      r.kind === "metric" ? [[r.key, r.title, r.series.length]] : [],
    );
  const shown = [
    ["m0.bytes", "Memory", 1],
    ["m0.GPU 0 bytes", "GPU 0 memory", 1],
    ["m0.GPU 0 %", "GPU 0 load", 2],
    ["m0.GPU 1 %", "GPU 1 load", 1],
  ];
  expect(rows([])).toEqual(shown);
  expect(rows([0])).toEqual([...shown, ["m0.GPU 1 W", "GPU 1 power", 1]]);
});

test("the busiest thread of the started program is open at first, not a busier child", () =>
  expect(openByDefault(run)).toEqual([1]));

test("series of a unit share a row; those that never moved from zero are left out", () => {
  const found = metricRows(0, [
    series(0, "a", "cores"),
    series(1, "b", "cores"),
    series(2, "rss", "bytes"),
    series(3, "c", "1/s", 0),
    series(4, "main thread waits for a core", "cores"),
    series(5, "compute threads wait for a core", "cores"),
    series(6, "cpu user", "cores"),
    series(7, "cpu system", "cores"),
    series(8, "machine idle", "cores"),
    series(9, "system time main thread", "cores"),
    { ...series(10, "cpu", "cores"), location: 3 },
  ]);
  expect(found.map((m) => [m.title, m.series.length, m.stacked])).toEqual([
    ["CPU", 2, true],
    ["Memory", 1, false],
    ["Waiting for a core", 2, true],
    ["CPU by kind", 2, true],
    ["CPU of the machine", 1, true],
    ["System time", 1, true],
  ]);
});
