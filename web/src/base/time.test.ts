import { describe, expect, test } from "vitest";
import { formatDuration, formatMoment, ticks } from "./time";

describe("durations", () => {
  test.each([
    [0, "0 ns"],
    [999, "999 ns"],
    [1_000, "1.00 µs"],
    [12_340, "12.3 µs"],
    [999_600, "1.00 ms"],
    [123_400_000, "123 ms"],
    [1_500_000_000, "1.50 s"],
    [125_000_000_000, "2 min 05 s"],
    [7_260_000_000_000, "2 h 01 min"],
    [-1_500_000, "−1.50 ms"],
  ])("%d ns is written %s", (ns, text) => expect(formatDuration(ns)).toBe(text));
});

describe("moments", () => {
  test("are as fine as their resolution asks", () => {
    expect(formatMoment(12_340_125_000, 1_000)).toBe("12.340 125 s");
    expect(formatMoment(12_340_125_000, 100_000_000)).toBe("12.3 s");
    expect(formatMoment(0, 1e9)).toBe("0 s");
  });
});

describe("ruler ticks", () => {
  test("stand at round times, far enough apart, inside the range", () => {
    const range = { startNs: 123, endNs: 1_000_123 };
    const { stepNs, major, minor } = ticks(range, 1000, 100);
    expect(stepNs).toBe(100_000);
    expect(major).toEqual([100_000, 200_000, 300_000, 400_000, 500_000, 600_000, 700_000, 800_000, 900_000, 1_000_000]);
    expect(minor.every((t) => t >= range.startNs && t <= range.endNs && t % stepNs !== 0)).toBe(true);
  });
  test("never fall below one nanosecond", () => {
    expect(ticks({ startNs: 0, endNs: 4 }, 1000).stepNs).toBeGreaterThanOrEqual(1);
  });
});
