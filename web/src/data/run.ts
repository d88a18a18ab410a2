// What is known about a run from the start: its bounds, processes, locations. Small, and fetched once.
import { LOCATION_KINDS, type LocationKind } from "../base/kinds.generated";
import { plural } from "../base/quantity";
import type { TimeRange } from "../base/time";
import type { Api, RowOfRoute } from "./wire/api";
import { type Meta, TABLES } from "./wire/wire.generated";

type ProcessRow = RowOfRoute<"processes">;
export type Process = Pick<ProcessRow, "process" | "pid" | "main" | "host" | "rank"> &
  Partial<Pick<ProcessRow, "parentPid">> & { readonly title: string };

type LocationRow = RowOfRoute<"locations">;
export type Location = Pick<LocationRow, "location" | "process" | "name" | "kind" | "threadId" | "spanCount"> &
  Partial<Pick<LocationRow, "device">> & {
    /** Its calls were not recorded: it is drawn from its samples. */
    readonly sampled?: boolean;
  };

/** Whether it has a row on the timeline. */
export const isDrawn = ({ spanCount, sampled }: Location): boolean => spanCount > 0 || sampled === true;

/** A stream whose work overlaps has several locations. */
const streamOf = ({ process, device, threadId }: Location): string => `${process}/${device}/${threadId}`;

/** "12 threads, 4 streams": kinds that there are none of are left out, but for threads where there is nothing else. */
export function countLocations(locations: readonly Location[]): string {
  const counted = LOCATION_KINDS.map((kind: LocationKind) => {
    const own = locations.filter((one) => one.kind === kind);
    return [kind, kind === "stream" ? new Set(own.map(streamOf)).size : own.length] as const;
  });
  const there = counted.filter(([kind, count]) => count > 0 || (kind === "thread" && !locations.length));
  return there.map(([kind, count]) => plural(count, kind)).join(", ");
}

export type Run = {
  readonly meta: Meta;
  readonly bounds: TimeRange;
  readonly processes: readonly Process[];
  readonly locations: readonly Location[];
};

/** The ranks of a run, in order. */
export const ranksOf = ({ processes }: Run): number[] =>
  [...new Set(processes.flatMap(({ rank }) => rank ?? []))].sort((a, b) => a - b);

/** What stands before the name of a program: a Python, its options, and a folder. */
const BEFORE_PROGRAM = /^(?:[^ ]*python[\d.]* )?(?:(?:-[^ ]* )+(?!-))?(?:[^ ]*\/)?/;

/** "…/bin/python -u src/train.py --lr 1" is "train.py --lr 1". */
const shortCommand = (argv: string): string => argv.replace(BEFORE_PROGRAM, "");

/** Fetches what every page needs, and reads no other columns: of thousands of ranks, each takes a while. */
export async function fetchRun(api: Api): Promise<Run> {
  const [meta, processes, locations] = await Promise.all([
    api.json("meta", {}),
    api.table("processes", {}),
    api.table("locations", {}),
  ]);
  const { pid, parent_pid, main, host, rank, name, argv } = TABLES.processes;
  const { location, process, kind, thread_id, span_count, device } = TABLES.locations;
  const sampled = new Set(meta.sampled);
  return {
    meta,
    bounds: { startNs: meta.start_ns, endNs: Math.max(meta.end_ns, meta.start_ns + 1) },
    processes: processes
      .rowsAs({ process, pid, parent_pid, main, host, rank, name, argv })
      .map((row) => Object.assign(row, { title: row.name || shortCommand(row.argv) })),
    locations: locations
      .rowsAs({ location, process, name, kind, thread_id, span_count, device })
      .map((row) => (sampled.has(row.location) ? Object.assign(row, { sampled: true }) : row)),
  };
}
