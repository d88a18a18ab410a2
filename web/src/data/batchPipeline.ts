// The data pipeline of the processes that train: a verdict each, and the stages that a batch meets. Means of one step.

import { type AnalysisTable, columnOf, fetchAnalysis, numberIn, textIn } from "./analysisTable";
import type { Api } from "./wire/api";
import { WireError } from "./wire/decoders";

export type Stage = {
  readonly stage: string;
  readonly doneBy: string;
  /** Time that it works in a step, all workers together; undefined where it was not recorded. */
  readonly timeNs: number | undefined;
  /** Time of the step that only it accounts for. */
  readonly exposedNs: number;
  /** Part of its time that it works, 0 to 1; of the queue: that a batch was ready. */
  readonly utilisation: number | undefined;
  readonly bottleneck: boolean;
};

export type Pipeline = {
  readonly process: number;
  readonly rank: number | undefined;
  readonly verdict: string;
  /** not, moderately, or highly. */
  readonly inputBound: string;
  readonly durationNs: number;
  readonly waitNs: number;
  readonly copyNs: number;
  /** 0: the loop fetches itself; undefined: not recorded. */
  readonly workers: number | undefined;
  readonly fetchNs: number | undefined;
  /** Batches that were asked for, and how often none was ready. */
  readonly asked: number | undefined;
  readonly empty: number | undefined;
  readonly neededWorkers: number | undefined;
  readonly predictedNs: number;
  readonly bestNs: number;
  readonly advice: string;
  readonly stages: readonly Stage[];
};

export type Pipelines = {
  readonly of: readonly Pipeline[];
  readonly about: string;
  /** Why there is none. */
  readonly note: string;
};

const stageAt = (table: AnalysisTable, row: number): Stage => ({
  stage: textIn(table, "stage", row),
  doneBy: textIn(table, "done_by", row),
  timeNs: numberIn(table, "time_ns", row),
  exposedNs: numberIn(table, "exposed_ns", row) ?? 0,
  utilisation: numberIn(table, "utilisation", row),
  bottleneck: columnOf(table, "bottleneck")?.values[row] === true,
});

/** Fetches verdicts and stages of all processes that train. */
export async function fetchPipelines(api: Api): Promise<Pipelines> {
  const [table, stages] = await Promise.all([
    fetchAnalysis(api, "data_pipeline", { form: "verdict" }),
    fetchAnalysis(api, "data_pipeline", { form: "stages" }),
  ]);
  const rowsOf = (of: AnalysisTable): number[] => Array.from({ length: of.rows }, (_, row) => row);
  const of = rowsOf(table).map((row): Pipeline => {
    const number = (name: string): number | undefined => numberIn(table, name, row);
    const process = number("process");
    if (process === undefined) throw new WireError("a row of data_pipeline has no process");
    return {
      process,
      rank: number("rank"),
      verdict: textIn(table, "verdict", row),
      inputBound: textIn(table, "input_bound", row),
      durationNs: number("duration_ns") ?? 0,
      waitNs: number("wait_ns") ?? 0,
      copyNs: number("copy_ns") ?? 0,
      workers: number("workers"),
      fetchNs: number("fetch_ns"),
      asked: number("asked"),
      empty: number("empty"),
      neededWorkers: number("needed_workers"),
      predictedNs: number("predicted_step_ns") ?? 0,
      bestNs: number("best_step_ns") ?? 0,
      advice: textIn(table, "advice", row),
      stages: rowsOf(stages)
        .filter((each) => numberIn(stages, "process", each) === process)
        .map((each) => stageAt(stages, each)),
    };
  });
  return { of, about: table.about, note: table.note };
}
