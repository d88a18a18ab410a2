// The data pipeline of the processes that train: a verdict each, and the stages that a batch meets. Means of one step.
import type { Api } from "./api";
import { type ArrowTable, WireError } from "./wire";

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

const known = (value: number | undefined): number | undefined =>
  value === undefined || Number.isNaN(value) ? undefined : value;

function decodeStages(table: ArrowTable): Map<number, Stage[]> {
  const numbers = (name: string): Float64Array => table.numbers(name);
  const [process, time, exposed, utilisation] = [
    numbers("process"),
    numbers("time_ns"),
    numbers("exposed_ns"),
    numbers("utilisation"),
  ];
  const [stage, by, bottleneck] = [table.texts("stage"), table.texts("done_by"), table.flags("bottleneck")];
  const found = new Map<number, Stage[]>();
  for (let i = 0; i < table.rows; i++) {
    const one = {
      stage: stage[i] ?? "",
      doneBy: by[i] ?? "",
      timeNs: known(time[i]),
      exposedNs: exposed[i] ?? 0,
      utilisation: known(utilisation[i]),
      bottleneck: bottleneck[i] ?? false,
    };
    found.set(process[i] ?? 0, [...(found.get(process[i] ?? 0) ?? []), one]);
  }
  return found;
}

/** Fetches verdicts and stages of all processes that train. */
export async function fetchPipelines(api: Api): Promise<Pipelines> {
  const [table, ofStages] = await Promise.all([
    api.arrow("table/data_pipeline", { form: "verdict" }),
    api.arrow("table/data_pipeline", { form: "stages" }).then(decodeStages),
  ]);
  const number = (name: string, i: number): number | undefined => known(columns.get(name)?.[i]);
  const columns = new Map(
    [
      "process", "rank", "duration_ns", "wait_ns", "copy_ns", "workers", "fetch_ns",
      "asked", "empty", "needed_workers", "predicted_step_ns", "best_step_ns",
    ].map((name) => [name, table.numbers(name)]),
  ); // biome-ignore format: names of columns
  const [verdict, bound, advice] = [table.texts("verdict"), table.texts("input_bound"), table.texts("advice")];
  const of = Array.from({ length: table.rows }, (_, i) => {
    const process = number("process", i);
    if (process === undefined) throw new WireError("a row of data_pipeline is about no process");
    return {
      process,
      rank: number("rank", i),
      verdict: verdict[i] ?? "",
      inputBound: bound[i] ?? "",
      durationNs: number("duration_ns", i) ?? 0,
      waitNs: number("wait_ns", i) ?? 0,
      copyNs: number("copy_ns", i) ?? 0,
      workers: number("workers", i),
      fetchNs: number("fetch_ns", i),
      asked: number("asked", i),
      empty: number("empty", i),
      neededWorkers: number("needed_workers", i),
      predictedNs: number("predicted_step_ns", i) ?? 0,
      bestNs: number("best_step_ns", i) ?? 0,
      advice: advice[i] ?? "",
      stages: ofStages.get(process) ?? [],
    };
  });
  return { of, about: table.metadata("about") ?? "", note: table.metadata("note") ?? "" };
}
