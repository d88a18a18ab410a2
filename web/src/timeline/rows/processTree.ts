// The run as a tree: hosts, their processes (ranks), the threads and streams of each. Pure; made once for a filter and an order.

import { grouped } from "../../base/grouped";
import { isDrawn, type Location, type Process, type Run } from "../../data/run";
import type { RowSort } from "../../state/rowsState";
import { parseFilter } from "./rowFilter";

export type ProcessNode = {
  readonly process: Process;
  readonly title: string;
  /** Those that recorded spans and pass the filter, in their order. */
  readonly locations: readonly Location[];
  /** The one that a folded process shows. */
  readonly main: Location | undefined;
};
export type HostNode = { readonly number: number; readonly host: string; readonly processes: readonly ProcessNode[] };

/** What a sorted tree needs beside the run: how much of something each location has. */
export type Amounts = ReadonlyMap<number, number>;

/** Its name on the page: its rank, where it has one. */
export function processTitle(process: Process, run: Run): string {
  if (process.rank !== undefined) return `rank ${process.rank}`;
  if (process.main) return process.title || "main process";
  return process.title === run.processes.find((p) => p.main)?.title ? "child" : process.title;
}

/** The thread that a process is known by: its main thread, else the busiest of its threads, else of its streams. */
function mainLocation(process: Process, locations: readonly Location[]): Location | undefined {
  const first = locations.find((l) => l.threadId === process.pid && l.kind === "thread");
  if (first) return first;
  const threads = locations.filter((l) => l.kind === "thread");
  return (threads.length ? threads : locations).reduce<Location | undefined>(
    (best, one) => (best && best.spanCount >= one.spanCount ? best : one),
    undefined,
  );
}

/** All processes that a filter leaves, sorted; `measured` are those that have metrics and need no spans. */
export function processNodes(
  run: Run,
  filter: string,
  sort: RowSort,
  amounts: Amounts,
  measured: ReadonlySet<number>,
): ProcessNode[] {
  const holds = parseFilter(filter);
  const locationsOf = grouped(run.locations.filter(isDrawn), (location) => location.process);
  const nodes = run.processes.flatMap((process) => {
    const all = locationsOf.get(process.process) ?? [];
    const title = processTitle(process, run);
    const about = {
      rank: process.rank,
      host: process.host.toLowerCase(),
      process: `${title} ${process.pid}`.toLowerCase(),
    };
    const locations = holds ? all.filter((l) => holds({ ...about, name: l.name.toLowerCase(), kind: l.kind })) : all;
    const shown =
      locations.length > 0 ||
      (measured.has(process.process) && (!holds || (!all.length && holds({ ...about, name: "", kind: "" }))));
    return shown ? [{ process, title, locations, main: mainLocation(process, locations) }] : [];
  });
  const amount = (node: ProcessNode): number => (node.main && amounts.get(node.main.location)) ?? -1;
  if (sort === "time" || sort === "value") return nodes.sort((a, b) => amount(b) - amount(a));
  if (sort === "host") return nodes.sort((a, b) => compare(a.process.host, b.process.host));
  return nodes;
}

/** The main threads of all processes that recorded spans. */
export const mainLocations = (run: Run): number[] =>
  processNodes(run, "", "rank", new Map(), new Set()).flatMap(({ main }) => (main ? [main.location] : []));

// Numbers in names count as numbers: n2 comes before n10.
const { compare } = new Intl.Collator("en", { numeric: true });

/** Processes by host, in the order in which the hosts' first ones come. */
export function hostNodes(processes: readonly ProcessNode[], run: Run): HostNode[] {
  const numbers = new Map([...new Set(run.processes.map((p) => p.host))].map((host, number) => [host, number]));
  const byHost = grouped(processes, ({ process }) => process.host);
  return [...byHost].map(([host, members]) => ({ number: numbers.get(host) ?? 0, host, processes: members }));
}
