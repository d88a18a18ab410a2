import { expect, test } from "vitest";
import { css, regionColor } from "../../base/color";
import { Inks } from "./spanColors";

test("an ink is its region's colour, the same object each time, and another one in another group", () => {
  const inks = new Inks("light");
  expect(inks.get("compute", "aten::mm").fill).toBe(css(regionColor("compute", "aten::mm", "light")));
  expect(inks.get("compute", "aten::mm")).toBe(inks.get("compute", "aten::mm"));
  expect(inks.get("data", "aten::mm").fill).not.toBe(inks.get("compute", "aten::mm").fill);
});

test("remembering is bounded", () => {
  const inks = new Inks("dark");
  const first = inks.get("host", "first");
  for (let i = 0; i < 25_000; i++) inks.get("host", `f${i}`);
  expect(inks.get("host", "first")).not.toBe(first);
  expect(inks.get("host", "first")).toEqual(first);
});
