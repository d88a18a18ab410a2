import { expect, test } from "vitest";
import { type Described, parseFilter } from "./rowFilter";

const row = (rank: number | undefined, host: string, name: string, kind = "thread"): Described => ({
  rank,
  host,
  process: `rank ${rank} 4711`,
  name,
  kind,
});
const rows = [
  row(3, "n01", "main thread"),
  row(3, "n01", "stream 7", "stream"),
  row(12, "n02", "loader"),
  row(undefined, "n02", "stream 20", "stream"),
];
const left = (text: string): number[] => rows.flatMap((one, i) => (parseFilter(text)?.(one) === false ? [] : [i]));

test.each([
  ["", [0, 1, 2, 3]],
  ["rank:3", [0, 1]],
  ["rank:0-2,10-12", [2]],
  ["host:n02 -stream", [2]],
  ["STREAM", [1, 3]],
  ["stream:2", [3]],
  ["thread:", [0, 2]],
  ["kind:stream host:n01", [1]],
  ["process:4711 -rank:3", [2, 3]],
  ["rank:x", []],
  ["- ", [0, 1, 2, 3]],
  ["nothing-like-it", []],
])("'%s' leaves rows %s", (text, expected) => expect(left(text)).toEqual(expected));

test("a filter without any part is none", () => expect(parseFilter("  - ")).toBeUndefined());
