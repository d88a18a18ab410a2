import { describe, expect, test } from "vitest";
import { joinNames, Labels, labelLeft, NARROWEST_LABEL, type Named } from "./labels";

const labels = new Labels((text) => text.length * 6);

describe("a name on a span", () => {
  test("is written in full where it fits, shortened where it does not, left out where nothing readable would remain", () => {
    expect(labels.fit("aten::mm", 80)).toBe("aten::mm");
    expect(labels.fit("aten::convolution_backward", 80)).toMatch(/^aten::\w+…$/);
    expect(labels.fit("aten::mm", NARROWEST_LABEL - 1)).toBeUndefined();
  });
  test("never is wider than its span", () => {
    for (let wide = NARROWEST_LABEL; wide < 300; wide += 7)
      expect((labels.fit("enumerate(DataLoader)", wide) ?? "").length * 6).toBeLessThan(wide);
  });
  test("stays on the screen when its span begins left of it", () => expect(labelLeft(-500)).toBe(labelLeft(0)));
});

test("what reaches from cells into spans is named once, neighbours of one name each have theirs", () => {
  const named = (left: number, right: number, exact: boolean, name = "step"): Named => ({
    left,
    right,
    name,
    group: "host",
    exact,
  });
  expect(joinNames([named(0, 100, false), named(-50, 300, true)])).toEqual([named(-50, 300, true)]);
  expect(joinNames([named(0, 100, false), named(99, 300, true)])).toEqual([named(0, 300, false)]);
  expect(joinNames([named(100, 200, true), named(0, 100, true)])).toHaveLength(2);
  expect(joinNames([named(0, 100, false), named(100, 200, true, "other")])).toHaveLength(2);
});
