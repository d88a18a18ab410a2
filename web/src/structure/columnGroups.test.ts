import { expect, test } from "vitest";
import type { Position } from "../data/wire/wire.generated";
import { columnGroups, toggled } from "./columnGroups";

const column = (position: number, band: string, part: Position["part"], module = "", count = 1): Position => ({
  position,
  count,
  name: "x",
  group: "other",
  part,
  band,
  module,
  folded: count > 1,
  median_ns: 1,
  median_gap_ns: 0,
  present: 1, // biome-ignore format: a line
});
const positions = [
  column(0, "main thread", "data_wait"),
  column(1, "main thread", "forward", "conv1"),
  column(2, "main thread", "forward", "layer1"),
  column(3, "main thread", "forward", "layer1"),
  column(4, "GPU 0", "forward", "", 8),
  column(12, "main thread", "rest"),
];

test("neighbours of a band and part are a group, without the end of the step", () =>
  expect(columnGroups(positions, false).map(({ key, from, to }) => [key, from, to])).toEqual([
    ["0_1", 0, 1],
    ["1_4", 1, 4],
    ["4_12", 4, 5],
  ]));

test("a module is a group in its part", () =>
  expect(columnGroups(positions, true).map(({ key, module }) => [key, module])).toEqual([
    ["0_1", ""],
    ["1_2", "conv1"],
    ["2_4", "layer1"],
    ["4_12", ""],
  ]));

test("a folded group is known as one, and can be unfolded", () => {
  expect(
    columnGroups(positions, false)
      .filter(({ folded }) => folded)
      .map(({ key }) => key),
  ).toEqual(["4_12"]);
  expect(toggled(["4_12"], "4_12")).toEqual([]);
});

test("what lies in a group is folded with it", () => expect(toggled(["2_4", "4_12"], "1_4")).toEqual(["4_12", "1_4"]));
