import { describe, expect, test } from "vitest";
import { csvCell, csvText, fileName } from "./csv";

describe("CSV", () => {
  test.each([
    ["plain", "plain"],
    ['the "a, b"', '"the ""a, b"""'],
    ["two\nlines", '"two\nlines"'],
    ["=HYPERLINK(1)", "'=HYPERLINK(1)"],
    ["@x", "'@x"],
    [-3, "-3"],
    [1e21, "1e+21"],
    [Number.NaN, ""],
    [undefined, ""],
    [true, "true"],
  ])("writes %j as %s", (value, text) => expect(csvCell(value)).toBe(text));
  test("ends every line", () => expect(csvText([["a", 1], ["b"]])).toBe("a,1\r\nb\r\n"));
});

test("names of files have the trace, what it is, and the window", () => {
  expect(fileName("train 7.strobe", "timeline", { startNs: 12.3e9, endNs: 12.35e9 }, "png")).toBe(
    "train7_timeline_12.3000s-50.0ms.png",
  );
  expect(fileName("../..", "spans", { startNs: 0, endNs: 60e9 }, "csv")).toBe("...._spans_0.0s-1min00s.csv");
});
