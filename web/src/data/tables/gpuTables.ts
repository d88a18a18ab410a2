// The GPUs of a run: what each is, how much of it was used, what its time went into, and what it measured itself.

import { grouped } from "../../base/grouped";
import type { Api } from "../wire/api";
import type { KnownGpu } from "../wire/wire.generated";
import { type AnalysisTable, fetchAnalysis, numberIn, textIn } from "./analysisTable";

/** How much of a GPU was used, each rung a part of the one before, 0 to 1; undefined where nobody knows. */
export type Ladder = {
  readonly durationNs: number;
  readonly busy: number;
  readonly filled: number | undefined;
  readonly warps: number | undefined;
  readonly roofline: number | undefined;
  /** Part of the kernels' time for which the last rung is known. */
  readonly rooflineKnown: number | undefined;
  /** Where most is lost, as the server calls it: idle, SMs, warps, ... */
  readonly lost: string;
  readonly kernels: number;
};

/** What the time of a GPU went into: parts of it that add up to 1. */
export type Split = {
  readonly durationNs: number;
  readonly computation: number;
  /** While nothing computed. */
  readonly communication: number;
  /** While nothing else ran. */
  readonly copy: number;
  readonly idle: number;
};

/** What stands in a column of `devices` about a GPU. */
type Measured = (column: string) => number | undefined;

export type Gpu = KnownGpu & {
  readonly ladder: Ladder | undefined;
  readonly split: Split | undefined;
  readonly measured: Measured | undefined;
};

export type Gpus = {
  readonly gpus: readonly Gpu[];
  /** Of which part of the run the ladders are, and what is not known. */
  readonly note: string;
  /** Why GPUs were not asked for what they measure. */
  readonly notRead: string;
};

/** The rows of a table by process and number of the GPU. */
function rowsByPlace(table: AnalysisTable): ReadonlyMap<string, number> {
  const key = (row: number): string => keyOf(numberIn(table, "process", row), numberIn(table, "device", row));
  return new Map(Array.from({ length: table.rows }, (_, row) => [key(row), row]));
}

const keyOf = (process: number | undefined, device: number | undefined): string => `${process}/${device}`;

function ladderOf(table: AnalysisTable, row: number): Ladder {
  const of = (name: string): number | undefined => numberIn(table, name, row);
  return {
    durationNs: of("duration_ns") ?? 0,
    busy: of("busy_share") ?? 0,
    filled: of("sms_filled_share"),
    warps: of("warps_there_share"),
    roofline: of("roofline_share"),
    rooflineKnown: of("roofline_known_share"),
    lost: textIn(table, "lost", row),
    kernels: of("kernels") ?? 0,
  };
}

function splitOf(table: AnalysisTable, row: number): Split {
  const of = (name: string): number => numberIn(table, name, row) ?? 0;
  const whole = Math.max(1, of("duration_ns"));
  const [busy, computation, communication] = [of("busy_ns"), of("computation_ns"), of("exposed_communication_ns")];
  return {
    durationNs: of("duration_ns"),
    computation: computation / whole,
    communication: communication / whole,
    copy: Math.max(0, busy - computation - communication) / whole,
    idle: of("idle_ns") / whole,
  };
}

/** Joins what is known of GPUs with the tables about them. */
export function joinGpus(
  known: readonly KnownGpu[],
  utilisation: AnalysisTable,
  overlap: AnalysisTable,
  devices: AnalysisTable,
): Gpu[] {
  const [ladders, splits, measured] = [utilisation, overlap, devices].map(rowsByPlace);
  return known.map((gpu) => {
    const own = keyOf(gpu.process, gpu.number);
    const [ladder, split] = [ladders?.get(own), splits?.get(own)];
    const reading = gpu.readings && measured?.get(keyOf(gpu.readings.process, gpu.readings.device));
    return {
      ...gpu,
      ladder: ladder === undefined ? undefined : ladderOf(utilisation, ladder),
      split: split === undefined ? undefined : splitOf(overlap, split),
      measured: reading === undefined ? undefined : (column) => numberIn(devices, column, reading),
    };
  });
}

/** Fetches everything about the GPUs of a run but why they had nothing to do. */
export async function fetchGpus(api: Api): Promise<Gpus> {
  const [{ gpus }, utilisation, overlap, devices] = await Promise.all([
    api.json("gpus", {}),
    fetchAnalysis(api, "utilisation"),
    fetchAnalysis(api, "overlap"),
    fetchAnalysis(api, "devices"),
  ]);
  const joined = joinGpus(gpus, utilisation, overlap, devices);
  return { gpus: joined, note: utilisation.note, notRead: devices.note };
}

/** Idle time of a GPU by what kept it from working, the longest first. */
export type IdleCause = {
  readonly cause: string;
  readonly idleNs: number;
  readonly share: number;
  /** The longest of its gaps; none where it is of statistics only. */
  readonly longest: { readonly location: number; readonly startNs: number; readonly durationNs: number } | undefined;
};

const IDLE = {
  process: "number?",
  device: "number?",
  cause: "text",
  idle_ns: "number",
  share: "number",
  longest_ns: "number?",
  start_ns: "number?",
  location: "number?",
} as const;

/** Fetches why GPUs had nothing to do, by process and number of the GPU (`idleOf`). */
export async function fetchIdle(api: Api): Promise<ReadonlyMap<string, readonly IdleCause[]>> {
  const rows = (await api.analysis("idle", {})).rowsAs(IDLE).filter(({ idleNs }) => idleNs > 0);
  const causes = rows.map(({ longestNs, startNs, location, ...cause }) => {
    const known = location !== undefined && startNs !== undefined && longestNs !== undefined;
    return { ...cause, longest: known ? { location, startNs, durationNs: longestNs } : undefined };
  });
  causes.sort((a, b) => b.idleNs - a.idleNs);
  return grouped(causes, ({ process, device }) => keyOf(process, device));
}

/** The idle time of a GPU, nothing where it is not known. */
export const idleOf = (
  idle: ReadonlyMap<string, readonly IdleCause[]>,
  gpu: Pick<Gpu, "process" | "number">,
): readonly IdleCause[] => idle.get(keyOf(gpu.process, gpu.number)) ?? [];
