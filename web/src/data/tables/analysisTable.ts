// What an analysis answers: its columns with their units and meanings, as the server describes them; and the spans behind a row.

import type { TimeRange } from "../../base/time";
import { type Api, aboutOf, type Parameters } from "../wire/api";
import { type ArrowField, ArrowTable } from "../wire/arrowTable";
import type { TableOption } from "../wire/wire.generated";

export type Column = {
  readonly name: string;
  /** The name without the unit, which the cells show. */
  readonly title: string;
  readonly unit: string;
  readonly meaning: string;
  /** Wanted only where there is room. */
  readonly extra: boolean;
} & (
  | { readonly kind: "number"; readonly whole: boolean; readonly values: Float64Array }
  | { readonly kind: "text"; readonly values: readonly string[] }
  | { readonly kind: "flag"; readonly values: readonly boolean[] }
);

export type AnalysisTable = {
  readonly columns: readonly Column[];
  readonly rows: number;
  /** Rows of the whole table: the page is sent only so many. */
  readonly total: number;
  readonly question: string;
  readonly about: string;
  /** Why the table is empty. */
  readonly note: string;
  readonly options: readonly TableOption[];
};

function decodeColumn(table: ArrowTable, { name, kind, metadata }: ArrowField): Column[] {
  const about = {
    name,
    title: name.replace(/_(ns|bytes)$/, "").replaceAll("_", " "),
    unit: metadata("unit"),
    meaning: metadata("meaning"),
    extra: metadata("extra") !== "",
  };
  if (kind === "whole" || kind === "real")
    return [{ ...about, kind: "number", whole: kind === "whole", values: table.numbers(name) }];
  if (kind === "text") return [{ ...about, kind: "text", values: table.texts(name) }];
  if (kind === "flag") return [{ ...about, kind: "flag", values: table.flags(name) }];
  return []; // lists have no cell
}

export const decodeAnalysis = (table: ArrowTable): AnalysisTable => ({
  columns: table.fields.flatMap((field) => decodeColumn(table, field)),
  rows: table.rows,
  total: Number(table.metadata("rows") ?? table.rows),
  question: table.metadata("question") ?? "",
  about: table.metadata("about") ?? "",
  note: table.metadata("note") ?? "",
  options: aboutOf("table", table.metadata("options") ?? "[]"),
});

export const columnOf = (table: AnalysisTable, name: string): Column | undefined =>
  table.columns.find((column) => column.name === name);

/** A number of a row; undefined where there is none, or no such column. */
export function numberIn(table: AnalysisTable, name: string, row: number): number | undefined {
  const column = columnOf(table, name);
  const value = column?.kind === "number" ? column.values[row] : undefined;
  return value === undefined || Number.isNaN(value) ? undefined : value;
}

/** A text of a row; "" where there is none, or no such column. */
export function textIn(table: AnalysisTable, name: string, row: number): string {
  const column = columnOf(table, name);
  return column?.kind === "text" ? (column.values[row] ?? "") : "";
}

/** Asks an analysis, with its options. */
export const fetchAnalysis = async (api: Api, name: string, options: Parameters = {}): Promise<AnalysisTable> =>
  decodeAnalysis(await api.analysis(name, options));

/** Asks a query in SQL. */
export const fetchQuery = async (api: Api, query: string, signal?: AbortSignal): Promise<AnalysisTable> =>
  decodeAnalysis(new ArrowTable(new Uint8Array(await (await api.ask("sql", { query }, signal)).arrayBuffer())));

/** Address of the same answer as a file. */
export function fileAddress(name: string, options: Parameters, form: "csv" | "json", route = `table/${name}`): string {
  const fields = Object.entries({ ...options, as: form }).map(([key, value]) => [key, String(value)]);
  return `api/${route}?${new URLSearchParams(fields)}`;
}

/** The stretch of time that a row is about, if its columns have one. */
export function stretchOf(table: AnalysisTable, row: number): TimeRange | undefined {
  const at = (name: string): number | undefined => numberIn(table, name, row);
  const startNs = at("start_ns") ?? at("first_ns");
  const durationNs = at("duration_ns") ?? at("step_ns");
  const endNs = at("end_ns") ?? at("last_ns") ?? (durationNs === undefined ? undefined : (startNs ?? 0) + durationNs);
  return startNs === undefined || endNs === undefined || endNs <= startNs ? undefined : { startNs, endNs };
}
