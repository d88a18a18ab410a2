// Which rows of a table are shown, in which order, and the text of their cells. Pure.
import { hash } from "../../base/color";
import { grouped } from "../../base/grouped";
import { formatCount, formatQuantity, formatShare } from "../../base/quantity";
import { formatDuration } from "../../base/time";
import { type AnalysisTable, type Column, columnOf, numberIn, textIn } from "../../data/tables/analysisTable";
import type { TableView } from "../../state/address";

/** Shares are numbers from 0 to 1 and are written in percent. */
export const isShare = ({ name }: Column): boolean => /(^|_)(share|occupancy|efficiency|utilisation|gain)$/.test(name);

/** A bar for each share shows where the time is; how far all rows together have come is a number. */
export const hasBar = (column: Column): boolean => isShare(column) && !column.name.startsWith("cumulative_");

/** Columns that name a GPU or rank: of no interest where there is one. */
const PLACES: ReadonlySet<string> = new Set(["rank", "process", "device"]);

/** The text of a cell; "" for null. */
export function cellText(column: Column, row: number): string {
  if (column.kind === "text") return column.values[row] ?? "";
  if (column.kind === "flag") return column.values[row] ? "yes" : "no";
  const value = column.values[row] ?? Number.NaN;
  if (Number.isNaN(value)) return "";
  if (isShare(column)) return formatShare(value);
  if (column.unit === "ns") return formatDuration(value);
  if (column.unit) return formatQuantity(value, column.unit);
  return column.whole || Math.abs(value) >= 1000 ? formatCount(value) : `${Number(value.toPrecision(4))}`;
}

/** The columns that are shown: unless asked for, not those that are rarely wanted, nor those in which nothing differs, or is. */
export function shownColumns(table: AnalysisTable, all: boolean, also: readonly string[] = []): Column[] {
  if (all) return [...table.columns];
  const alike = (column: Column): boolean =>
    PLACES.has(column.name) && new Set(column.kind === "number" ? column.values : []).size < 2;
  const empty = ({ kind, values }: Column): boolean =>
    kind !== "flag" && table.rows > 0 && [...values].every(isMissing);
  return table.columns.filter(
    (column) => (!column.extra || also.includes(column.name)) && !alike(column) && !empty(column),
  );
}

const keyColumns = (table: AnalysisTable): readonly Column[] =>
  table.columns.filter((column) => column.kind === "text" || PLACES.has(column.name));

/**
 * A row by what it is about: all its texts, and whose it is. Stays the same when numbers change, and is short, as it stands in the address:
 * names of kernels have thousands of characters.
 */
export function rowKey(table: AnalysisTable, row: number): string {
  const text = JSON.stringify(keyColumns(table).map((column) => cellText(column, row)));
  return `${hash(text).toString(36)}-${hash(`row ${text}`).toString(36)}`;
}

const rowsByKey = new WeakMap<AnalysisTable, ReadonlyMap<string, number>>();

/** The row with a key, -1 where there is none. */
export function rowOf(table: AnalysisTable, key: string): number {
  if (!key) return -1;
  const known =
    rowsByKey.get(table) ?? new Map(Array.from({ length: table.rows }, (_, row) => [rowKey(table, row), row]));
  rowsByKey.set(table, known);
  return known.get(key) ?? -1;
}

const isMissing = (value: unknown): boolean => value === "" || Number.isNaN(value);

/** Row numbers in the order of a view, of the rows that pass its filters; what is missing comes last. */
export function orderOf(table: AnalysisTable, view: TableView): number[] {
  const words = view.find.toLowerCase().split(/\s+/).filter(Boolean);
  const texts = table.columns.filter((column) => column.kind === "text");
  const type = columnOf(table, "type");
  const passes = (row: number): boolean => {
    if (view.inside && (type?.kind !== "text" || type.values[row] !== view.inside)) return false;
    if (!words.length) return true;
    const text = texts
      .map((column) => column.values[row] ?? "")
      .join("\n")
      .toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const rows = Array.from({ length: table.rows }, (_, row) => row).filter(passes);
  const by = columnOf(table, view.sort);
  if (!by) return rows;
  const sign = view.down ? -1 : 1;
  return rows.sort((a, b) => {
    const [x = "", y = ""] = [by.values[a], by.values[b]];
    const missing = Number(isMissing(x)) - Number(isMissing(y));
    return missing || sign * (x < y ? -1 : x > y ? 1 : 0);
  });
}

export type TypeShare = { readonly type: string; readonly share: number };

/** Times that rows are divided by; the first one that a table has. */
const TIMES = ["self_ns", "device_self_ns", "total_ns"] as const;

/** The types of a table by type with their shares of all time in it, highest first; rows without a type are left out. */
export function typeShares(table: AnalysisTable): TypeShare[] {
  const rows = Array.from({ length: table.rows }, (_, row) => row);
  const time = TIMES.find((name) => rows.some((row) => numberIn(table, name, row) !== undefined));
  const sum = (of: readonly number[]): number =>
    of.reduce((all, row) => all + ((time && numberIn(table, time, row)) ?? 0), 0);
  const whole = sum(rows);
  return [...grouped(rows, (row) => textIn(table, "type", row))]
    .map(([type, of]) => ({ type, share: sum(of) / whole }))
    .filter(({ type, share }) => type && share > 0)
    .sort((a, b) => b.share - a.share);
}

export const highest = (column: Column): number =>
  column.kind === "number" ? column.values.reduce((most, value) => (value > most ? value : most), 0) : 0;

/** Cells of a row as text for a question to the server; empty where there is nothing in a cell. */
export function cellsOf(table: AnalysisTable, row: number, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const column = columnOf(table, name);
      if (!column) return [];
      const value = column.values[row];
      return [[name, value === undefined || Number.isNaN(value) ? "" : String(value)]];
    }),
  );
}
