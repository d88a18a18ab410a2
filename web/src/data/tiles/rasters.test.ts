import { describe, expect, test } from "vitest";
import { decodeRasters, inStretches } from "./rasters";

function body(header: object, cells: number[]): ArrayBuffer {
  const text = new TextEncoder().encode(JSON.stringify(header));
  const out = new Uint8Array(8 + text.length + cells.length);
  out.set(new TextEncoder().encode("STR1"));
  new DataView(out.buffer).setUint32(4, text.length, true);
  out.set(text, 8);
  out.set(cells, 8 + text.length);
  return out.buffer;
}

describe("a body of rows", () => {
  test("becomes rows of planes, with their marks", () => {
    const palette = [[3, "stall", "sync"]];
    const cells = [1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 1, 0];
    const [first, second] = decodeRasters(body({ rows: 2, planes: 2, marks: true, palette }, cells), 2);
    expect([...(second?.values ?? [])]).toEqual([5, 6, 7, 8]);
    expect(first?.marks.map(({ from, to, entry }) => [from, to, entry.name])).toEqual([[1, 2, "stall"]]);
    expect(second?.marks.map(({ from, to }) => [from, to])).toEqual([[0, 1]]);
  });
  test("has the meaning of its values", () =>
    expect(
      decodeRasters(body({ rows: 1, planes: 1, marks: false, low: -3, high: 27, unit: "W" }, [9, 9]), 2),
    ).toMatchObject([{ low: -3, high: 27, unit: "W", marks: [] }]));
  test.each([
    ["foreign", new ArrayBuffer(16)],
    ["cut", body({ rows: 2, planes: 1, marks: false }, [1, 2, 3])],
  ])("is refused when it is %s", (_, bytes) => expect(() => decodeRasters(bytes, 2)).toThrow(/rows/));
});

test("numbers that follow each other are asked for as one stretch, as long as an answer holds", () => {
  expect(inStretches([9, 3, 4, 5, 11])).toEqual([[3, 4, 5], [9], [11]]);
  expect(inStretches(Array.from({ length: 130 }, (_, i) => i)).map((one) => one.length)).toEqual([128, 2]);
});
