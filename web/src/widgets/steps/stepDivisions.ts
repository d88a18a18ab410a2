// How analyses divide steps: parts that add up to the whole, of every rank or of one step. Pure.
import { type AnalysisTable, columnOf, numberIn } from "../../data/tables/analysisTable";

export type Split = {
  readonly process: number;
  readonly rank: number | undefined;
  /** Steps that it is the mean of; undefined for a single one. */
  readonly steps: number | undefined;
  readonly durationNs: number;
  readonly parts: readonly { readonly name: string; readonly ns: number }[];
};

function splitOf(table: AnalysisTable, names: readonly string[], row: number): Split {
  const number = (name: string): number | undefined => numberIn(table, name, row);
  return {
    process: number("process") ?? Number.NaN,
    rank: number("rank"),
    steps: number("steps"),
    durationNs: number("duration_ns") ?? Number.NaN,
    parts: names.map((name) => ({ name, ns: number(`${name}_ns`) ?? 0 })).filter(({ ns }) => ns > 0),
  };
}

/** A row each rank: those with the longest steps where there are too many. */
export function splitsOf(table: AnalysisTable, names: readonly string[], most: number): Split[] {
  const all = Array.from({ length: table.rows }, (_, row) => splitOf(table, names, row));
  if (all.length <= most) return all;
  return all.sort((a, b) => b.durationNs - a.durationNs).slice(0, most);
}

/** The row of one step: of the same process, and around its middle. Tools do not agree to the nanosecond where a step begins. */
export function splitAt(
  table: AnalysisTable,
  names: readonly string[],
  process: number,
  middleNs: number,
): Split | undefined {
  const [processes, starts, durations] = ["process", "start_ns", "duration_ns"].map((name) => columnOf(table, name));
  if (processes?.kind !== "number" || starts?.kind !== "number" || durations?.kind !== "number") return undefined;
  let found = -1;
  for (let row = 0; row < table.rows; row++) {
    const start = starts.values[row] ?? Number.NaN;
    // A step may last until what it launched is done, and so reach into the next: the later one counts.
    const around = start <= middleNs && middleNs < start + (durations.values[row] ?? 0);
    if (around && processes.values[row] === process && (found < 0 || start > (starts.values[found] ?? 0))) found = row;
  }
  return found < 0 ? undefined : splitOf(table, names, found);
}
