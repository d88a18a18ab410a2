// A data pipeline in words. Pure.
import { formatCount, formatShare, plural } from "../base/quantity";
import { formatDuration } from "../base/time";
import type { Pipeline, Stage } from "../data/batchPipeline";

const share = (part: number, of: number): string => formatShare(of > 0 ? part / of : 0);

export function verdictSentence(one: Pipeline): string {
  const { verdict, durationNs } = one;
  const wait = `waits ${formatDuration(one.waitNs)} (${share(one.waitNs, durationNs)}) of a step on average for its data`;
  if (verdict === "data processing") return `Batches are not ready in time: the loop ${wait}.`;
  if (verdict === "data transmission" && one.copyNs > one.waitNs)
    return `Copying batches to the GPU holds the step up for ${formatDuration(one.copyNs)} (${share(one.copyNs, durationNs)}).`;
  if (verdict === "data transmission") return `Batches are ready, but reach the loop late: it ${wait}.`;
  return `The data pipeline keeps up: the loop ${wait}.`;
}

/** What more workers would gain, as a sentence; "" where there is nothing to gain. */
export function gainSentence(one: Pipeline): string {
  if (one.verdict !== "data processing" || one.predictedStepNs >= one.durationNs) return "";
  const saved = share(one.durationNs - one.predictedStepNs, one.durationNs);
  const best = share(one.durationNs - one.bestStepNs, one.durationNs);
  const workers = one.neededWorkers === undefined ? "enough workers" : `${plural(one.neededWorkers, "worker")} or more`;
  return `With ${workers}, a step is expected to take ${formatDuration(one.predictedStepNs)}: ${saved} less, at best ${best}.`;
}

/** How full the queue of batches was, as a sentence. */
export const queueSentence = ({ asked, empty }: Pipeline): string =>
  asked === undefined || empty === undefined
    ? "how full it was is not in this trace"
    : empty === 0
      ? `a batch was ready all ${formatCount(asked)} times`
      : `empty ${formatCount(empty)} of ${plural(asked, "time")}`;

/** The least that a step can take with some workers: stages side by side run at the pace of the slowest. */
export const boundWith = (one: Pipeline, workers: number): number | undefined =>
  one.fetchNs === undefined ? undefined : Math.max(one.bestStepNs, one.fetchNs / Math.max(1, workers));

export const STAGE_TITLES: Readonly<Record<string, string>> = {
  fetch: "Load and transform",
  queue: "Queue of batches",
  copy: "Copy to the GPU",
  compute: "Train",
  host: "Host",
};

/** What a stage's utilisation means. */
export const utilisationText = ({ stage, utilisation }: Stage): string =>
  utilisation === undefined
    ? ""
    : stage === "queue"
      ? `a batch is ready ${formatShare(utilisation)} of the times`
      : `busy ${formatShare(utilisation)}`;
