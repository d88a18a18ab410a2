import { expect, test } from "vitest";
import type { Wait } from "../../data/rankWaits";
import type { AnalysisTable } from "../../data/tables/analysisTable";
import { factorsOf, longestOf, sideOfRanks, sumsByState, tilesOf, titleOf, total } from "./waitSums";

const wait = (state: string, rank: number, awaitedRank: number, waitNs: number, maxNs = waitNs): Wait => ({
  ...{ state, rank, awaitedRank, waitNs, maxNs },
  ...{ location: rank, timeNs: 0 },
});
const WAITS = [
  wait("late_sender", 0, 1, 700, 100),
  wait("wrong_order", 0, 1, 300),
  wait("wait_at_barrier", 0, 2, 500, 400),
  wait("wait_at_barrier", 1, 2, 600),
];

test("states are summed, the largest first, each with its longest wait", () => {
  const sums = sumsByState(WAITS).map(({ state, ns, longest }) => [state, ns, longest.rank, longest.maxNs]);
  expect(sums).toEqual([
    ["wait_at_barrier", 1100, 1, 600],
    ["late_sender", 700, 0, 100],
    ["wrong_order", 300, 0, 300],
  ]);
  expect(longestOf(WAITS).waitNs).toBe(600);
});

test("a total counts no wait twice: wrong order is a part of late sender", () => expect(total(WAITS)).toBe(1800));

test("a tile has the waits of its ranks, and none has those of unknown ranks", () => {
  const { placeOf } = sideOfRanks([0, 1, 2]);
  const waits = [...WAITS, wait("late_sender", 9, 0, 1)];
  const tiles = tilesOf(waits, 3, ({ rank, awaitedRank }) => [placeOf(awaitedRank), placeOf(rank)]);
  // Rows are waiting ranks: 0 * 3 + 1, 0 * 3 + 2, 1 * 3 + 2.
  expect([...tiles].map(([at, own]) => [at, total(own)])).toEqual([
    [1, 700],
    [2, 500],
    [5, 600],
  ]);
});

test("up to 256 ranks have a tile each, more share them with their neighbours", () => {
  const ranks = (count: number): number[] => Array.from({ length: count }, (_, i) => 10 * i);
  const each = sideOfRanks(ranks(256));
  expect([each.count, each.placeOf(2550), each.placeOf(5), each.nameOf(255)]).toEqual([256, 255, -1, "rank 2550"]);
  const shared = sideOfRanks(ranks(600)); // three a tile
  expect([shared.count, shared.placeOf(20), shared.placeOf(30)]).toEqual([200, 0, 1]);
  expect([shared.nameOf(0), shared.nameOf(199)]).toEqual(["ranks 0 to 20", "ranks 5970 to 5990"]);
});

test("factors are below the one that they explain, and unknown ones have no value", () => {
  const about = { title: "", unit: "", meaning: "", extra: false };
  const table: AnalysisTable = {
    columns: [
      { ...about, name: "parent", kind: "text", values: ["", "whole", "part", "whole"] },
      { ...about, name: "factor", kind: "text", values: ["whole", "part", "part_of_part", "other"] },
      { ...about, name: "value", kind: "number", whole: false, values: Float64Array.of(0.4, 0.5, Number.NaN, 0.8) },
    ],
    ...{ rows: 4, total: 4, question: "", about: "", note: "", options: [] },
  };
  expect(factorsOf(table).map(({ name, value, depth }) => [name, value, depth])).toEqual([
    ["whole", 0.4, 0],
    ["part", 0.5, 1],
    ["part_of_part", undefined, 2],
    ["other", 0.8, 1],
  ]);
});

test("names are words", () =>
  expect(["late_sender", "late_gpu", "mpi_load_balance", "gpu_copy_efficiency"].map(titleOf)).toEqual([
    "late sender",
    "late GPU",
    "MPI load balance",
    "GPU copy efficiency",
  ]));
