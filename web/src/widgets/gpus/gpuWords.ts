// GPUs in words and rungs: how they are called, how much of them was used, where most is lost, and as rows of a table. Pure.
import { grouped } from "../../base/grouped";
import { causeTitle } from "../../base/idleCauses";
import { formatQuantity, formatShare, plural } from "../../base/quantity";
import type { AnalysisTable, Column } from "../../data/tables/analysisTable";
import type { Gpu, IdleCause, Ladder } from "../../data/tables/gpuTables";

/** A rung of the ladder: what it means, and how it is counted. */
type RungWords = { readonly key: RungKey; readonly title: string; readonly means: string; readonly counted: string };
const RUNG_KEYS = ["busy", "filled", "warps", "roofline"] as const;
export type RungKey = (typeof RUNG_KEYS)[number];

export const RUNGS: readonly RungWords[] = [
  {
    key: "busy",
    title: "busy",
    means: "some kernel ran",
    counted:
      "the part of the time from its first to its last work in which at least one kernel ran: what nvidia-smi calls utilisation. A row of tiny kernels makes 100 %.",
  },
  {
    key: "filled",
    title: "SMs filled",
    means: "its blocks filled the multiprocessors",
    counted: "the same, each kernel counting with the part of the multiprocessors that have one of its blocks.",
  },
  {
    key: "warps",
    title: "warps there",
    means: "its warps filled these",
    counted:
      "the same, each kernel counting with the warps that its launch can have at once (blocks, threads, registers, shared memory), as a part of those that the GPU can hold.",
  },
  {
    key: "roofline",
    title: "roofline",
    means: "its work takes so long at the GPU’s peak",
    counted:
      "the part of the time that the same work would take at least: each kernel as long as the GPU needs at its peak to compute, or to move, what it does. Few warps may be enough for that, so that this can be more than the rung above.",
  },
];

/** What the server calls a loss, the rung below which it lies, and what to do about it. */
const LOSSES: Readonly<Record<string, { rung: RungKey; what: string; todo: string }>> = {
  idle: { rung: "busy", what: "while no kernel runs", todo: "Launch work sooner" },
  SMs: {
    rung: "filled",
    what: "on multiprocessors without a block",
    todo: "Launch more blocks: larger batches, or several kernels at once",
  },
  warps: {
    rung: "warps",
    what: "to warps that are not there",
    todo: "Use fewer registers, less shared memory, or other block sizes",
  },
};

export type Rung = RungWords & {
  /** 0 to 1; undefined where nobody knows. */
  readonly share: number | undefined;
  /** What is lost from the rung before to this one. */
  readonly lost: number;
  readonly worst: boolean;
};

/** The rungs from the top; the last one only where it is known. */
export function rungsOf(ladder: Ladder): Rung[] {
  const worst = LOSSES[ladder.lost]?.rung;
  let above = 1;
  return RUNGS.filter(({ key }) => key !== "roofline" || ladder.roofline !== undefined).map((words) => {
    const share = ladder[words.key];
    // Time in which work could be done is not a share of the warps that were there.
    const lost = share === undefined || words.key === "roofline" ? 0 : Math.max(0, above - share);
    above = share ?? above;
    return { ...words, share, lost, worst: words.key === worst };
  });
}

/**
 * "Most is lost while no kernel runs: 41 % of the GPU. For 72 % of its idle time it waits for data.", or, where the main cause of idle time
 * is not known, what to do.
 */
export function lossSentence(ladder: Ladder, idle: readonly IdleCause[] = []): string {
  const loss = LOSSES[ladder.lost];
  const lost = rungsOf(ladder).find((rung) => rung.worst)?.lost;
  if (!loss || lost === undefined) return ladder.lost && `Most is lost to ${ladder.lost}.`;
  const [main] = idle;
  const cause = causeTitle(main?.cause);
  const why =
    loss.rung === "busy" && main && cause.startsWith("waits ")
      ? `For ${formatShare(main.share)} of its idle time it ${cause}`
      : loss.todo;
  // Of the rungs below, nobody knows.
  if (ladder.filled === undefined)
    return `No kernel runs for ${formatShare(lost)} of the time; how full the GPU is otherwise is not in the trace.`;
  return `Most is lost ${loss.what}: ${formatShare(lost)} of the GPU. ${why}.`;
}

/** "rank 3, GPU 1", or by its process where there are several without ranks. */
export function gpuTitle({ rank, process, number }: Pick<Gpu, "rank" | "process" | "number">, many: boolean): string {
  const name = number === undefined ? "GPU" : `GPU ${number}`;
  if (!many || process === undefined) return name;
  return rank === undefined ? `process ${process}, ${name}` : `rank ${rank}, ${name}`;
}

/** What a GPU is, in short: "compute capability 9.0", "132 SMs". */
export const gpuFacts = (gpu: Gpu): string[] =>
  [
    gpu.capability ? `compute capability ${gpu.capability}` : "",
    gpu.multiprocessors === undefined ? "" : plural(gpu.multiprocessors, "SM"),
    gpu.memory_bytes ? formatQuantity(gpu.memory_bytes, "bytes") : "",
    gpu.mig ? "MIG is on" : "",
    // CUDA_VISIBLE_DEVICES: numbers of the process are others than those of the machine.
    gpu.by_uuid && gpu.readings && gpu.readings.device !== gpu.number ? `the machine’s GPU ${gpu.readings.device}` : "",
  ].filter(Boolean);

/** Whether a GPU's title has to name its owner. */
export const severalProcesses = (gpus: readonly Gpu[]): boolean =>
  new Set(gpus.flatMap(({ process }) => process ?? [])).size > 1;

/** The rungs of some GPUs together: means, each GPU counting with its time. A rung that one does not know, none knows. */
export function meanLadder(ladders: readonly Ladder[]): Ladder | undefined {
  const whole = ladders.reduce((sum, one) => sum + one.durationNs, 0);
  if (!ladders.length || whole <= 0) return undefined;
  const mean = (key: RungKey | "rooflineKnown"): number | undefined => {
    const times = ladders.map((one) => (one[key] ?? Number.NaN) * one.durationNs);
    const share = times.reduce((sum, ns) => sum + ns, 0) / whole;
    return Number.isNaN(share) ? undefined : share;
  };
  const means = {
    durationNs: whole / ladders.length,
    busy: mean("busy") ?? 0,
    filled: mean("filled"),
    warps: mean("warps"),
    roofline: mean("roofline"),
    rooflineKnown: mean("rooflineKnown"),
    lost: "",
    kernels: ladders.reduce((sum, one) => sum + one.kernels, 0),
  };
  const [most] = rungsOf(means).sort((a, b) => b.lost - a.lost);
  const lost = Object.keys(LOSSES).find((name) => LOSSES[name]?.rung === most?.key) ?? "";
  return { ...means, lost };
}

/** The GPUs with the least and the most of a rung, and the mean: undefined where none of them knows. */
export function extremes(
  gpus: readonly Gpu[],
  key: RungKey,
): { readonly least: Gpu; readonly most: Gpu; readonly mean: number } | undefined {
  const shares = gpus.flatMap((gpu) => {
    const share = gpu.ladder?.[key];
    return share === undefined ? [] : [{ gpu, share }];
  });
  const [first] = shares;
  if (!first) return undefined;
  const least = shares.reduce((a, b) => (b.share < a.share ? b : a), first);
  const most = shares.reduce((a, b) => (b.share > a.share ? b : a), first);
  return { least: least.gpu, most: most.gpu, mean: shares.reduce((sum, one) => sum + one.share, 0) / shares.length };
}

/** "busy: 55 % on average, from 12 % (rank 17, GPU 1) to 80 % (rank 3, GPU 0)". */
export function spreadSentence(gpus: readonly Gpu[], key: RungKey): string {
  const title = RUNGS.find((rung) => rung.key === key)?.title ?? key;
  const found = extremes(gpus, key);
  if (!found) return `${title}: not known`;
  const end = (gpu: Gpu): string => `${formatShare(gpu.ladder?.[key] ?? 0)} (${gpuTitle(gpu, true)})`;
  return `${title}: ${formatShare(found.mean)} on average, from ${end(found.least)} to ${end(found.most)}`;
}

/** "Most is lost while no kernel runs on 60 of 64 GPUs." */
export function lossesSentence(gpus: readonly Gpu[]): string {
  const losses = gpus.flatMap(({ ladder }) => (ladder ? [ladder.lost] : []));
  const [most] = [...grouped(losses, (lost) => lost).values()].sort((a, b) => b.length - a.length);
  if (!most) return "";
  const [lost = ""] = most;
  const where = LOSSES[lost]?.what ?? `to ${lost}`;
  const count = most.length === losses.length ? "all" : most.length;
  return `Most is lost ${where}: so on ${count} of ${plural(losses.length, "GPU")}.`;
}

/** GPUs by their machines, in the order in which they come; one group where the hosts are not known. */
export const byHost = (gpus: readonly Gpu[]): readonly (readonly [host: string, gpus: readonly Gpu[]])[] => [
  ...grouped(gpus, ({ host }) => host),
];

type Spec = {
  readonly name: string;
  readonly title: string;
  readonly unit?: string;
  readonly meaning: string;
  readonly extra?: boolean;
  readonly whole?: boolean;
} & ({ readonly number: (gpu: Gpu) => number | undefined } | { readonly text: (gpu: Gpu) => string });

const measured =
  (column: string) =>
  (gpu: Gpu): number | undefined =>
    gpu.measured?.(column);

const COLUMNS: readonly Spec[] = [
  { name: "host", title: "host", meaning: "machine of the GPU", text: (gpu) => gpu.host },
  { name: "rank", title: "rank", meaning: "rank of its process", whole: true, number: (gpu) => gpu.rank },
  { name: "process", title: "process", meaning: "process that used it", whole: true, number: (gpu) => gpu.process },
  { name: "device", title: "GPU", meaning: "its number, as the process counts", whole: true, number: (gpu) => gpu.number },
  { name: "name", title: "name", meaning: "its model", text: (gpu) => gpu.name },
  { name: "busy_share", title: "busy", meaning: "part of the time in which some kernel ran", number: (gpu) => gpu.ladder?.busy },
  { name: "filled_share", title: "SMs filled", meaning: "with the multiprocessors that blocks filled", number: (gpu) => gpu.ladder?.filled },
  { name: "warps_share", title: "warps there", meaning: "with the warps that could be there", number: (gpu) => gpu.ladder?.warps },
  { name: "roofline_share", title: "roofline", meaning: "part of the time that its work takes at least at its peak, as far as known", number: (gpu) => gpu.ladder?.roofline },
  { name: "lost", title: "most lost", meaning: "where most is lost: idle, SMs, warps, ...", text: (gpu) => gpu.ladder?.lost ?? "" },
  { name: "computation_share", title: "computes", meaning: "part of the time in which a kernel computes", extra: true, number: (gpu) => gpu.split?.computation },
  { name: "communication_share", title: "only communicates", meaning: "communicates while nothing computes", extra: true, number: (gpu) => gpu.split?.communication },
  { name: "copy_share", title: "only copies", meaning: "copies while nothing else runs", extra: true, number: (gpu) => gpu.split?.copy },
  { name: "sm_activity_share", title: "SM activity", meaning: "measured: mean part of the multiprocessors that were busy (GPM)", number: measured("sm_activity_share") },
  { name: "occupancy_share", title: "SM occupancy", meaning: "measured: mean part of the warps that were there (GPM)", extra: true, number: measured("occupancy_share") },
  { name: "utilisation_share", title: "NVML utilisation", meaning: "measured: mean part of the time in which a kernel ran", extra: true, number: measured("utilisation_share") },
  { name: "memory_peak_bytes", title: "memory peak", unit: "bytes", meaning: "most memory in use at a reading", number: measured("memory_peak_bytes") },
  { name: "power_w", title: "power", unit: "W", meaning: "mean power", number: measured("power_w") },
  { name: "energy_j", title: "energy", unit: "J", meaning: "from the first to the last reading", extra: true, number: measured("energy_j") },
  { name: "temperature_max_c", title: "hottest", unit: "°C", meaning: "highest temperature", number: measured("temperature_max_c") },
  { name: "throttled_share", title: "throttled", meaning: "part of the readings in which its clocks were held down", number: measured("throttled_share") },
  { name: "kernels", title: "kernels", meaning: "kernels that ran", extra: true, whole: true, number: (gpu) => gpu.ladder?.kernels },
]; // biome-ignore format: a line a column

/** Many GPUs as a table that can be sorted and searched; without columns in which nothing stands. */
export function tableOf(gpus: readonly Gpu[]): AnalysisTable {
  const ranked = gpus.every(({ rank, process }) => rank !== undefined || process === undefined);
  const columns = COLUMNS.flatMap((spec): Column[] => {
    const about = {
      name: spec.name,
      title: spec.title,
      unit: spec.unit ?? "",
      meaning: spec.meaning,
      extra: (spec.extra ?? false) || (spec.name === "process" && ranked),
    };
    if ("text" in spec) {
      const values = gpus.map(spec.text);
      // What is the same of all of them (machine, model) needs no room.
      const extra = about.extra || (spec.name !== "lost" && new Set(values).size < 2);
      return values.some(Boolean) ? [{ ...about, extra, kind: "text", values }] : [];
    }
    const values = Float64Array.from(gpus, (gpu) => spec.number(gpu) ?? Number.NaN);
    return values.every(Number.isNaN) ? [] : [{ ...about, kind: "number", whole: spec.whole ?? false, values }];
  });
  return {
    columns,
    rows: gpus.length,
    total: gpus.length,
    question: "How much of each GPU was used?",
    about: "",
    note: "",
    options: [],
  };
}
