// The data pipeline of the processes that train: a verdict each, and the stages that a batch meets. Means of one step.

import type { Api } from "./wire/api";
import type { RowOf } from "./wire/arrowTable";

/** Columns of the analysis `data_pipeline` by stage. */
const STAGE = {
  process: "number",
  stage: "text",
  done_by: "text",
  /** Time that it works in a step, all workers together; undefined where it was not recorded. */
  time_ns: "number?",
  /** Time of the step that only it accounts for. */
  exposed_ns: "number",
  /** Part of its time that it works, 0 to 1; of the queue: that a batch was ready. */
  utilisation: "number?",
  bottleneck: "flag",
} as const;
export type Stage = RowOf<typeof STAGE>;

/** Columns of the same analysis by process. */
const VERDICT = {
  process: "number",
  rank: "number?",
  verdict: "text",
  /** not, moderately, or highly. */
  input_bound: "text",
  duration_ns: "number",
  wait_ns: "number",
  copy_ns: "number",
  /** 0: the loop fetches itself; undefined: not recorded. */
  workers: "number?",
  fetch_ns: "number?",
  /** Batches that were asked for, and how often none was ready. */
  asked: "number?",
  empty: "number?",
  needed_workers: "number?",
  predicted_step_ns: "number",
  best_step_ns: "number",
  advice: "text",
} as const;
export type Pipeline = RowOf<typeof VERDICT> & { readonly stages: readonly Stage[] };

export type Pipelines = {
  readonly of: readonly Pipeline[];
  readonly about: string;
  /** Why there is none. */
  readonly note: string;
};

/** Fetches verdicts and stages of all processes that train. */
export async function fetchPipelines(api: Api): Promise<Pipelines> {
  const [table, stages] = await Promise.all([
    api.analysis("data_pipeline", { form: "verdict" }),
    api.analysis("data_pipeline", { form: "stages" }),
  ]);
  const known = stages.rowsAs(STAGE);
  const of = table.rowsAs(VERDICT).map((row) => ({
    ...row,
    stages: known.filter(({ process }) => process === row.process),
  }));
  return { of, about: table.metadata("about") ?? "", note: table.metadata("note") ?? "" };
}
