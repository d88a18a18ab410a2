// The steps of a serving engine: what its classes compute, why its GPUs are idle in them, and what its layers take.

import type { Api } from "./wire/api";
import type { ArrowTable, RowOf } from "./wire/arrowTable";
import type { EngineRow } from "./wire/wire.generated";

/** Columns of the analysis `serving` by class: means of a step. */
const CLASS = {
  process: "number",
  rank: "number?",
  class: "text",
  steps: "number",
  requests: "number?",
  tokens: "number?",
  prefill_tokens: "number?",
  duration_ns: "number",
  gpu_ns: "number?",
  gpu_ns_per_token: "number?",
  tokens_per_second: "number?",
} as const;
type EngineClass = RowOf<typeof CLASS>;

/** Columns of the same analysis by gap: how long a GPU is idle in a step of a class, by cause. */
const GAP = {
  process: "number",
  rank: "number?",
  class: "text",
  /** between: before the first kernel of a step; inside: between two of its kernels. */
  where: "text",
  /** "": nothing of the host was recorded. */
  cause: "text",
  idle_ns: "number",
  gaps: "number",
  function: "text",
  line: "text",
} as const;
export type EngineGap = RowOf<typeof GAP>;

/** Columns of the same analysis by layer. */
const LAYER = {
  process: "number",
  rank: "number?",
  class: "text",
  layer: "text",
  gpu_ns: "number?",
  attention_ns: "number?",
  matrix_product_ns: "number?",
  communication_ns: "number?",
} as const;
export type EngineLayer = RowOf<typeof LAYER>;

type Rows<Row> = { readonly rows: readonly Row[]; readonly note: string };

async function ask<Row>(api: Api, by: string, read: (table: ArrowTable) => readonly Row[]): Promise<Rows<Row>> {
  const table = await api.analysis("serving", { by });
  return { rows: read(table), note: table.metadata("note") ?? "" };
}

/** The same as a row of the summary, which pages show alike. */
const summaryRow = (row: EngineClass): EngineRow => ({
  rank: row.rank,
  step_class: row.class,
  steps: row.steps,
  requests: row.requests,
  tokens: row.tokens,
  prefill_tokens: row.prefillTokens,
  duration_ns: row.durationNs,
  gpu_ns: row.gpuNs,
  gpu_ns_per_token: row.gpuNsPerToken,
  tokens_per_second: row.tokensPerSecond,
});

export const fetchClasses = (api: Api): Promise<Rows<EngineRow>> =>
  ask(api, "class", (table) => table.rowsAs(CLASS).map(summaryRow));
export const fetchGaps = (api: Api): Promise<Rows<EngineGap>> => ask(api, "gap", (table) => table.rowsAs(GAP));
export const fetchLayers = (api: Api): Promise<Rows<EngineLayer>> => ask(api, "layer", (table) => table.rowsAs(LAYER));
