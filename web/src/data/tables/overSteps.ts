// The time of rows of a table, step by step. Rows that come into sight together are asked for in one request.
import { type Signal, signal } from "@preact/signals";
import { grouped } from "../../base/grouped";
import { type Api, explain, type RowOfRoute } from "../wire/api";
import type { Routes } from "../wire/wire.generated";

/** A step, or neighbouring ones: the mean time in those in detail, undefined without one. */
export type StepBar = RowOfRoute<"over_steps">;

/** Tables whose rows have times in steps. */
export type Stepped = Routes["over_steps"]["analysis"];
export const isStepped = (name: string): name is Stepped => name === "kernels" || name === "operators";

/** Bars of a row; undefined while they are on their way. A sentence: why there are none. */
export type RowBars = readonly StepBar[] | string | undefined;

/** Rows that the server takes in one question. */
const MOST_ROWS = 256;
/** Rows that come into sight within this time are one question. */
const TOGETHER_MS = 40;

/** The bars of the rows of a table, each asked for once. */
export function overSteps(api: Api, analysis: Stepped, by: string): (row: number) => Signal<RowBars> {
  const known = new Map<number, Signal<RowBars>>();
  let wanted: number[] = [];
  const ask = async (): Promise<void> => {
    const rows = wanted.splice(0, MOST_ROWS);
    if (wanted.length) setTimeout(() => void ask());
    try {
      const answer = await api.table("over_steps", { analysis, ...(by && { by }), rows: rows.join() });
      const bars = grouped(answer.rowsOf(), (bar) => bar.row);
      for (const row of rows) (known.get(row) ?? signal()).value = bars.get(row) ?? [];
    } catch (error) {
      for (const row of rows) (known.get(row) ?? signal()).value = explain(error) ?? "";
    }
  };
  return (row) => {
    const found = known.get(row);
    if (found) return found;
    const bars = signal<RowBars>(undefined);
    known.set(row, bars);
    if (!wanted.length) setTimeout(() => void ask(), TOGETHER_MS);
    wanted = [...wanted, row];
    return bars;
  };
}
