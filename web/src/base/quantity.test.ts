import { expect, test } from "vitest";
import { formatCount, formatQuantity, formatShare, plural } from "./quantity";

test.each([
  [0, "bytes", "0 B"],
  [1_234_000, "bytes", "1.23 MB"],
  [56_700_000, "bytes/s", "56.7 MB/s"],
  [1.5, "cores", "1.50 cores"],
  [740, "1/s", "740/s"],
  [12_340, "1/s", "12.3 k/s"],
])("%d %s is written %s", (value, unit, text) => expect(formatQuantity(value, unit)).toBe(text));

test("counts, shares and words", () => {
  expect([formatCount(999), formatCount(1_180_000)]).toEqual(["999", "1 180 000"]);
  expect([formatShare(0), formatShare(0.0004), formatShare(0.042), formatShare(0.31), formatShare(1)]).toEqual([
    "0 %",
    "<0.1 %",
    "4.2 %",
    "31 %",
    "100 %",
  ]);
  expect([plural(1, "span"), plural(2, "process"), plural(1200, "span")]).toEqual([
    "1 span",
    "2 processes",
    "1 200 spans",
  ]);
});
