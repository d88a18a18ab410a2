// What an analysis answers: its columns with their units and meanings, as the server describes them; and the spans behind a row.
import type { Api, Parameters } from "./api";
import { decodeGroup } from "./run";
import type { Hit } from "./spans";
import { type ArrowField, type ArrowTable, list, object, text } from "./wire";

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

const decodeOptions = list(object({ name: text, help: text, choices: list(text), value: text }));
export type TableOption = ReturnType<typeof decodeOptions>[number];

export type AnalysisTable = {
  readonly columns: readonly Column[];
  readonly rows: number;
  /** Rows of the whole table: the page is sent only so many. */
  readonly total: number;
  readonly question: string;
  readonly about: string;
  /** Why there are no rows. */
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
  options: decodeOptions(JSON.parse(table.metadata("options") ?? "[]"), "options"),
});

/** Asks an analysis, with its options. */
export const fetchAnalysis = async (api: Api, name: string, options: Parameters = {}): Promise<AnalysisTable> =>
  decodeAnalysis(await api.arrow(`table/${name}`, options));

/** Address of the same answer as a file. */
export function fileAddress(name: string, options: Parameters, form: "csv" | "json"): string {
  const fields = Object.entries({ ...options, as: form }).map(([key, value]) => [key, String(value)]);
  return `api/table/${name}?${new URLSearchParams(fields)}`;
}

/** The spans behind a row of a table. */
export type Behind = {
  readonly count: number;
  readonly totalNs: number;
  readonly first: Hit | undefined;
  /** Longest first. */
  readonly longest: readonly Hit[];
};

/** Fetches the spans that cells of a row describe. */
export async function fetchBehind(api: Api, cells: Parameters, signal?: AbortSignal): Promise<Behind> {
  const table = await api.arrow("behind", cells, signal);
  const found = { count: Number(table.metadata("count") ?? 0), totalNs: Number(table.metadata("total_ns") ?? 0) };
  if (table.rows === 0) return { ...found, first: undefined, longest: [] };
  const [location, start, depth] = [table.numbers("location"), table.numbers("start_ns"), table.numbers("depth")];
  const [duration, names, groups] = [table.numbers("duration_ns"), table.texts("name"), table.texts("group")];
  const [first, ...longest] = Array.from({ length: table.rows }, (_, i) => ({
    location: location[i] ?? 0,
    startNs: start[i] ?? 0,
    depth: depth[i] ?? 0,
    durationNs: duration[i] ?? 0,
    name: names[i] ?? "",
    group: decodeGroup(groups[i] ?? ""),
  }));
  return { ...found, first, longest };
}
