// Numbers other than times, written for people: bytes in powers of 1000, cores, rates, shares, counts.

const BYTES = [
  ["TB", 1e12],
  ["GB", 1e9],
  ["MB", 1e6],
  ["kB", 1e3],
] as const;

const threeDigits = (value: number): string => value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);

/** A value with its unit: "1.25 GB", "3.20 cores", "12.0 MB/s". */
export function formatQuantity(value: number, unit: string): string {
  const bytes = unit === "bytes" || unit === "bytes/s";
  if (bytes) {
    const rate = unit === "bytes/s" ? "/s" : "";
    const [name, size] = BYTES.find(([, s]) => value >= s) ?? ["B", 1];
    return `${size === 1 ? Math.round(value) : threeDigits(value / size)} ${name}${rate}`;
  }
  if (unit === "1/s") return `${value >= 1000 ? `${threeDigits(value / 1000)} k` : Math.round(value)}/s`;
  return `${threeDigits(value)} ${unit}`.trim();
}

/** A whole number in groups of three digits: "1 180 000". */
export const formatCount = (value: number): string =>
  Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, " ");

/** "1 span", "1 180 spans", "2 processes". */
export const plural = (count: number, word: string): string =>
  `${formatCount(count)} ${word}${count === 1 ? "" : word.endsWith("s") ? "es" : "s"}`;

/** "12 spans" where all are shown, else "3 of 12 spans". */
export const shownOf = (shown: number, all: number, word: string): string =>
  shown === all ? plural(all, word) : `${formatCount(shown)} of ${plural(all, word)}`;

/** A share from 0 to 1 in percent: "31 %", "4.2 %". */
export const formatShare = (share: number): string => {
  const percent = 100 * share;
  if (percent > 0 && percent < 0.05) return "<0.1 %";
  return `${percent >= 9.95 || percent === 0 ? Math.round(percent) : percent.toFixed(1)} %`;
};
