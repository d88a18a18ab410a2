// The steps of a run, where they lie, and the critical path of one.
import { HOST_KINDS, PARTS } from "../base/kinds.generated";
import { PIECES, type StepPiece } from "../base/stepPieces";
import type { TimeRange } from "../base/time";
import type { SpanKey } from "../state/address";
import { type Api, aboutOf, type RowOfRoute } from "./wire/api";
import type { RouteTable } from "./wire/arrowTable";
import type { StepsAbout as Sent, TABLES } from "./wire/wire.generated";

type StepRow = RowOfRoute<"steps">;
/** One iteration of the dominant loop; where `count` is above 1, it stands for its neighbours too. */
export type Step = Omit<
  StepRow,
  `${"dataWait" | "forward" | "backward" | "optimizer" | "validation"}Ns` | Extract<keyof StepRow, `rest${string}`>
> & {
  readonly parts: Readonly<Record<StepPiece, number>>;
};

/** A value for each piece of a step. */
export const byPiece = <T>(of: (piece: StepPiece) => T): Record<StepPiece, T> =>
  Object.fromEntries(PIECES.map((piece) => [piece, of(piece)])) as Record<StepPiece, T>;

/** The rows of the table of steps, in order of start. Of the rest of a step, what kinds of work are known is not rest. */
function stepsIn(table: RouteTable<(typeof TABLES)["steps"]>): Step[] {
  const parts = PARTS.map((part) => ({ piece: part as StepPiece, times: table.numbers(`${part}_ns`) }));
  const kinds = HOST_KINDS.map((kind) => ({ piece: kind as StepPiece, times: table.numbers(`rest_${kind}_ns`) }));
  return table.rowsOf().map((row, i) => {
    const pieces = byPiece(() => 0);
    for (const { piece, times } of [...parts, ...kinds]) pieces[piece] += times[i] ?? 0;
    for (const { times } of kinds) pieces.rest -= times[i] ?? 0;
    return { ...row, parts: pieces };
  });
}

/** Facts about all steps, however few of them are fetched; `reason`: how they were found, or why there are none. */
export type StepsAbout = Sent & { readonly reason: string; readonly count: number };

/** Parameter of the steps that are iterations of a loop level ("": those that were found). */
export const ofLevel = (level: string): { readonly level?: string } => (level ? { level } : {});

export async function fetchSteps(api: Api, level: string) {
  const table = await api.table("steps", ofLevel(level));
  const sent = aboutOf("steps", table.metadata("about"));
  const about: StepsAbout = { ...sent, reason: table.metadata("reason") ?? "", count: table.number("steps") };
  return { steps: stepsIn(table), about };
}

/** Fetches the steps of one process. */
export const fetchStepsOf = async (api: Api, process: number, level: string): Promise<Step[]> =>
  stepsIn(await api.table("steps", { process, ...ofLevel(level) }));

export type StepKind = "at" | "next" | "previous" | "outlier";

/** The step at, after or before a moment, or the next outlier after it. */
export const fetchStepNear = (api: Api, timeNs: number, kind: StepKind, level: string) =>
  api.json("step", { time_ns: Math.max(0, Math.round(timeNs)), kind, ...ofLevel(level) });

/** Where the critical path of a step goes; several parts of a location less than a pixel apart are one. */
export type CriticalPath = {
  readonly about: string;
  /** The step as the analysis critical-path takes it; undefined where there is no path. */
  readonly step: string | undefined;
  readonly parts: readonly (SpanKey & { readonly durationNs: number })[];
};

/** Where the critical path of the step at a moment goes in a window. */
export async function fetchCriticalPath(
  api: Api,
  atNs: number,
  window: TimeRange,
  widthPx: number,
): Promise<CriticalPath> {
  const width = pixels(widthPx);
  const parameters = { at_ns: Math.round(atNs), start_ns: window.startNs, end_ns: window.endNs, width };
  const found = await api.json("critical", parameters);
  const parts = found.location.map((location, i) => ({
    location,
    depth: found.depth[i] ?? 0,
    startNs: found.start_ns[i] ?? 0,
    durationNs: found.duration_ns[i] ?? 0,
  }));
  return { about: found.about, step: found.step, parts };
}

/** A width in pixels that the server takes. */
export const pixels = (widthPx: number): number => Math.max(1, Math.min(4096, Math.round(widthPx)));
