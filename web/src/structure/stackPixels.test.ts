import { describe, expect, test } from "vitest";
import { contrast, relativeColor } from "../base/color";
import { ABSENT, USUAL } from "../data/iterationStack";
import { columnEdges } from "./stackGrid";
import { cellColors, columnsOfPixels, farthest, paintCells } from "./stackPixels";

describe("cells on pixels", () => {
  test("every pixel shows the columns that lie on it", () => {
    expect([...columnsOfPixels(columnEdges([1, 1], 2, "equal"), 4)]).toEqual([0, 1, 0, 1, 1, 2, 1, 2]);
    expect([...columnsOfPixels(columnEdges([1, 1, 1, 1], 2, "equal"), 2)]).toEqual([0, 2, 2, 4]);
  });
  test("of several columns the one that stands out most is seen", () => {
    const cells = new Uint8Array([ABSENT, USUAL, USUAL - 90, USUAL + 60]);
    expect(farthest(cells, 0, 4)).toBe(USUAL - 90);
    expect(farthest(cells, 0, 2)).toBe(USUAL);
    expect(farthest(cells, 0, 1)).toBe(ABSENT);
  });
  test("a picture has a line for each row", () => {
    const colors = cellColors("dark");
    const out = new Uint32Array(6);
    paintCells(out, new Uint8Array([USUAL, 255, ABSENT, 1]), 2, 2, new Uint32Array([0, 1, 0, 1, 1, 2]), colors);
    expect([...out]).toEqual([USUAL, USUAL, 255, ABSENT, ABSENT, 1].map((byte) => colors[byte]));
  });
  test.each(["dark", "light"] as const)("slower, usual, faster and absent look different in %s", (theme) => {
    const colors = cellColors(theme);
    expect(new Set([1, USUAL, 255, ABSENT].map((byte) => colors[byte])).size).toBe(4);
    expect(contrast(relativeColor(1, theme), relativeColor(0, theme))).toBeGreaterThan(3);
    expect(contrast(relativeColor(-1, theme), relativeColor(0, theme))).toBeGreaterThan(3);
  });
});
