// Ranks in a part of the run: how long they waited for each other, by rank and by pair; and their steps side by side.
import type { TimeRange } from "../base/time";
import { type Api, aboutOf, type Parameters, type RowOfRoute, stretchOf } from "./wire/api";
import type { GridAbout, Routes } from "./wire/wire.generated";

/** Waits of a tile of ranks in a state; of pairs, for another tile. The others: the longest, who, and where and when it began. */
export type Wait = RowOfRoute<"ranks/waits">;

export type RankWaits = { readonly byRank: readonly Wait[]; readonly byPair: readonly Wait[]; readonly note: string };

type Chosen = {
  readonly window: TimeRange | undefined;
  readonly steps: { readonly classes: readonly string[] };
  readonly level: string;
};

/** The part of the run that other pages chose: what the timeline shows, and classes of steps. */
export const rankPart = ({ window, steps, level }: Chosen): Parameters => ({
  ...(window ? stretchOf(window) : {}),
  ...(steps.classes.length ? { classes: steps.classes.join("~") } : {}),
  ...(level ? { level } : {}),
});

export async function fetchWaits(api: Api, part: Parameters): Promise<RankWaits> {
  const ask = (by: "rank" | "pair") => api.table("ranks/waits", { ...part, by });
  // One after the other: both need the same waits, and others can be answered meanwhile.
  const ranks = await ask("rank");
  const pairs = await ask("pair");
  return { byRank: ranks.rowsOf(), byPair: pairs.rowsOf(), note: ranks.metadata("note") ?? "" };
}

/** What cells of the picture of steps may be, in the order in which they are offered. */
export const STEP_VALUES = [
  "duration",
  "computation",
  "communication",
  "wait",
  "lateness",
  "gpu_wait",
  "gpu_call",
  "operators",
  "data_wait",
  "host",
] as const satisfies readonly NonNullable<Routes["ranks/steps"]["value"]>[];
export type StepValue = (typeof STEP_VALUES)[number];

/** Steps of all ranks, row by row; NaN where nothing is known. */
export type RankSteps = GridAbout & { readonly valuesNs: Float64Array };

export async function fetchRankSteps(api: Api, value: StepValue, part: Parameters): Promise<RankSteps> {
  const table = await api.table("ranks/steps", { ...part, value });
  return { ...aboutOf("ranks/steps", table.metadata("about")), valuesNs: table.columns().valueNs };
}
