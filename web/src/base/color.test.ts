import { describe, expect, test } from "vitest";
import { contrast, groupColor, hash, type Rgb, regionColor, SHADES, textOn, toRgb } from "./color";
import { GROUPS } from "./kinds.generated";

const parse = (text: string): Rgb => {
  const [r = 0, g = 0, b = 0] = (text.match(/\d+/g) ?? []).map(Number);
  return [r, g, b];
};
// Machado, Oliveira, Fernandes 2009, severity 1, applied to linear light.
const DEUTERANOPIA = [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881];
function asDeuteranope(rgb: Rgb): Rgb {
  const [r, g, b] = rgb.map((x) => (x / 255) ** 2.2) as [number, number, number];
  const row = (i: number) =>
    (DEUTERANOPIA[i] ?? 0) * r + (DEUTERANOPIA[i + 1] ?? 0) * g + (DEUTERANOPIA[i + 2] ?? 0) * b;
  const byte = (x: number) => 255 * Math.min(1, Math.max(0, x)) ** (1 / 2.2);
  return [byte(row(0)), byte(row(3)), byte(row(6))];
}
const distance = (a: Rgb, b: Rgb) => Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);

describe("colours", () => {
  test("OKLCH becomes the sRGB of its reference", () => {
    expect(toRgb({ l: 1, c: 0, h: 0 })).toEqual([255, 255, 255]);
    expect(toRgb({ l: 0.627955, c: 0.257683, h: 29.234 })).toEqual([255, 0, 0]);
  });
  test("a name has one colour, and names of a group differ in lightness", () => {
    expect(regionColor("compute", "aten::mm", "dark")).toEqual(regionColor("compute", "aten::mm", "dark"));
    const names = Array.from({ length: 60 }, (_, i) => `aten::op${i}`);
    expect(new Set(names.map((n) => hash(n) % SHADES)).size).toBe(SHADES);
    expect(new Set(names.map((n) => regionColor("compute", n, "dark").join())).size).toBe(SHADES);
  });
  test.each(["dark", "light"] as const)("groups stay apart in %s, for deuteranopes too", (theme) => {
    for (const a of GROUPS)
      for (const b of GROUPS)
        if (a < b) {
          expect(distance(groupColor(a, theme), groupColor(b, theme)), `${a} ${b}`).toBeGreaterThan(40);
          const seen = distance(asDeuteranope(groupColor(a, theme)), asDeuteranope(groupColor(b, theme)));
          expect(seen, `${a} ${b} without green cones`).toBeGreaterThan(18);
        }
  });
  test("labels on every shade reach WCAG AA", () => {
    for (const theme of ["dark", "light"] as const)
      for (const group of GROUPS)
        for (let i = 0; i < 40; i++) {
          const color = regionColor(group, `name${i}`, theme);
          expect(contrast(color, parse(textOn(color))), `${group} ${theme}`).toBeGreaterThanOrEqual(4.5);
        }
  });
});
