// Trace times are integers of nanoseconds since the trace's zero. A double holds them exactly for 104 days, so they are plain numbers.

/** A stretch of trace time, [startNs, endNs). */
export type TimeRange = { readonly startNs: number; readonly endNs: number };

/** Length of a range in nanoseconds. */
export const length = (range: TimeRange): number => range.endNs - range.startNs;

export const sameRange = (a: TimeRange, b: TimeRange): boolean => a.startNs === b.startNs && a.endNs === b.endNs;

const UNITS = [
  { name: "s", ns: 1e9 },
  { name: "ms", ns: 1e6 },
  { name: "µs", ns: 1e3 },
  { name: "ns", ns: 1 },
] as const;

/** A duration in three significant digits with its unit: "12.3 ms", "2 min 05 s". */
export function formatDuration(ns: number): string {
  const sign = ns < 0 ? "−" : "";
  const size = Math.abs(ns);
  if (size >= 60e9) {
    const seconds = Math.round(size / 1e9);
    const minutes = Math.floor(seconds / 60);
    if (minutes >= 60) return `${sign}${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
    return `${sign}${minutes} min ${String(seconds % 60).padStart(2, "0")} s`;
  }
  // 999.6 µs is "1.00 ms", not "1000 µs": choose the unit after rounding.
  const unit = UNITS.find((u) => size >= u.ns * 0.9995) ?? UNITS[3];
  const value = size / unit.ns;
  if (unit.name === "ns") return `${sign}${Math.round(value)} ns`;
  const digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${sign}${value.toFixed(digits)} ${unit.name}`;
}

/** A moment since the trace's zero, in seconds, written so finely that neighbours `resolutionNs` apart differ: "12.340 125 s". */
export function formatMoment(ns: number, resolutionNs: number): string {
  const digits = Math.min(9, Math.max(0, Math.ceil(9 - Math.log10(Math.max(1, resolutionNs)) - 1e-9)));
  const [whole = "0", fraction = ""] = (Math.abs(ns) / 1e9).toFixed(digits).split(".");
  const grouped = fraction.replace(/(\d{3})(?=\d)/g, "$1 ");
  return `${ns < 0 ? "−" : ""}${whole}${grouped ? `.${grouped}` : ""} s`;
}

/** Marks of a time ruler: `major` ones carry a label, `minor` ones stand between them; all in trace nanoseconds. */
type Ticks = { readonly stepNs: number; readonly major: readonly number[]; readonly minor: readonly number[] };

/** Ruler marks at 1, 2 or 5 times a power of ten, at least `gapPx` pixels apart on a ruler of `widthPx` pixels. */
export function ticks(range: TimeRange, widthPx: number, gapPx = 110): Ticks {
  const wanted = (length(range) / Math.max(1, widthPx)) * gapPx;
  const power = 10 ** Math.floor(Math.log10(Math.max(1, wanted)));
  const stepNs = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= wanted) ?? 10 * power;
  const minorNs = Math.max(1, stepNs / (stepNs / power === 2 ? 4 : 5));
  const major: number[] = [];
  const minor: number[] = [];
  const first = Math.ceil(range.startNs / minorNs);
  const last = Math.floor(range.endNs / minorNs);
  const perMajor = Math.round(stepNs / minorNs);
  for (let i = first; i <= last; i++) (i % perMajor === 0 ? major : minor).push(i * minorNs);
  return { stepNs, major, minor };
}
