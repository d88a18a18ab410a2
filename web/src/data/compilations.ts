// What torch.compile compiled in a run: each compilation with its time and causes.

import type { Api } from "./wire/api";
import type { RowOf } from "./wire/arrowTable";

/** Columns of the analysis `compile` by compilation. */
const COMPILATION = {
  process: "number",
  rank: "number?",
  start_ns: "number",
  /** That the middle of it lies in; undefined outside of every step. */
  step: "number?",
  /** PyTorch's number: frame/compilation. */
  compile_id: "text",
  function: "text",
  again: "flag",
  backward: "flag",
  duration_ns: "number",
  run_share: "number?",
  /** "": compiled for the first time, to one graph. */
  causes: "text",
  place: "text",
} as const;
export type Compilation = RowOf<typeof COMPILATION>;

export type Compilations = { readonly rows: readonly Compilation[]; readonly note: string };

/** Fetches the compilations, those that take the longest first. */
export async function fetchCompilations(api: Api): Promise<Compilations> {
  const table = await api.analysis("compile", { by: "compilation" });
  return { rows: table.rowsAs(COMPILATION), note: table.metadata("note") ?? "" };
}
