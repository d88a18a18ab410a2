import { describe, expect, test } from "vitest";
import { byPiece, type Step } from "../../data/runSteps";

import { barAt, barPlace, bars, barTexts, CUT_AT_MEDIANS, median, scaleTop, stepsIn, stretchOf } from "./stripBars";

const step = (number: number, durationNs: number, more: Partial<Step> = {}): Step => ({
  process: 0,
  step: number,
  startNs: number * 100,
  durationNs,
  class: "train",
  classRank: 0,
  outlier: false,
  cause: "",
  count: 1,
  parts: byPiece(() => 0),
  detail: "all",
  loop: 0,
  warmUp: false,
  ...more,
});
const calm = Array.from({ length: 100 }, (_, i) => step(i, 50));

describe("bars", () => {
  test("one for each step while there is room, all steps shared out where there is not", () => {
    expect(bars(calm, 1000)).toHaveLength(100);
    const few = bars(calm, 60);
    expect(few).toHaveLength(30);
    expect(few[0]?.from).toBe(0);
    expect(few.at(-1)?.to).toBe(100);
    for (const [i, bar] of few.entries()) if (i) expect(bar.from).toBe(few[i - 1]?.to);
  });
  test("an outlier is seen even where a longer step shares its bar", () => {
    const steps = calm.map((s) => (s.step === 41 ? step(41, 60, { outlier: true }) : s.step === 42 ? step(42, 90) : s));
    expect(bars(steps, 20).some((b) => b.shown.step === 41)).toBe(true);
  });
  test("one stall does not flatten the rest: it is cut, with a mark", () => {
    const steps = [...calm, step(100, 5000, { outlier: true })];
    expect(scaleTop(steps)).toBe(50 * CUT_AT_MEDIANS);
    expect(bars(steps, 1000).at(-1)).toMatchObject({ tall: 1, cut: true });
    expect(bars(steps, 1000)[0]).toMatchObject({ tall: 1 / CUT_AT_MEDIANS, cut: false });
  });
});

test("the pixel names the bar, at both ends too", () => {
  expect([barAt(-5, 100, 10), barAt(0, 100, 10), barAt(55, 100, 10), barAt(100, 100, 10)]).toEqual([0, 0, 5, 9]);
});

test("a window covers the steps it touches", () => {
  expect(stepsIn(calm, { startNs: 120, endNs: 300 })).toEqual([1, 3]);
  expect(stepsIn(calm, { startNs: 160, endNs: 190 })).toEqual([2, 2]);
  expect(stretchOf(calm, 1, 3)).toEqual({ startNs: 100, endNs: 250 });
  expect(stretchOf(calm, 5, 5)).toBeUndefined();
});

test("the middle value", () => expect(median([3, 1, 2])).toBe(2));

describe("a few bars", () => {
  const few = [step(3, 346_000_000), step(4, 365_000_000), step(5, 900_000)];
  const texts = (widePx: number) => barTexts(bars(few, 900), widePx, scaleTop(few));
  test("carry their durations and their steps", () =>
    expect(texts(300)?.[1]).toEqual({ value: "365 ms", step: "step 4" }));
  test("carry what there is room for: a number alone only in the unit of the axis", () => {
    expect(texts(30)?.map((one) => one.value)).toEqual(["346", "365", ""]);
    expect(texts(30)?.[0]?.step).toBe("3");
    expect(texts(12)?.[0]).toEqual({ value: "", step: "" });
  });
  test("are no wider than a bar; many have no texts and fill the width", () => {
    const [left, wide] = barPlace(300, 3);
    expect(left * 2 + wide).toBe(300);
    expect(wide).toBeLessThan(100);
    expect(barTexts(bars(calm, 1000), 10, 50)).toBeUndefined();
    expect(barPlace(10, 100)).toEqual([0, 9]);
  });
});
