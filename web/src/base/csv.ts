// Tables as text for spreadsheets, and what their files are called. Pure.
import { formatDuration, formatMoment, length, type TimeRange } from "./time";

type CellValue = string | number | boolean | undefined;

/** A cell of CSV (RFC 4180): quoted where it must be; what a spreadsheet would run as a formula is a text. */
export function csvCell(value: CellValue): string {
  if (value === undefined || (typeof value === "number" && Number.isNaN(value))) return "";
  if (typeof value !== "string") return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export const csvText = (rows: readonly (readonly CellValue[])[]): string =>
  rows.map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");

/** "train-7.strobe", "timeline", a window, "png": train-7_timeline_12.3s-50ms.png (when it begins, and how long it is). */
export function fileName(trace: string, what: string, window: TimeRange, ending: string): string {
  const plain = (text: string): string => text.replace(/[^\p{L}\p{N}.-]+/gu, "");
  const stem = plain(trace.replace(/\.strobe$/, "")) || "trace";
  const at = plain(formatMoment(window.startNs, length(window) / 100));
  return `${stem}_${what}_${at}-${plain(formatDuration(length(window)))}.${ending}`;
}
