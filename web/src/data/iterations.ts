// The iteration stack as the server sends it: one byte for each step and position (server/iterations.py).
import { type Group, isGroup, PHASES, type Phase } from "../base/color";
import type { StackMetric, StackSort } from "../base/state";
import type { Api } from "./api";
import { flag, list, maybe, number, object, text, WireError } from "./wire";

const MAGIC = 0x314b5453; // "STK1", little endian
/** The byte of a value that is exactly as usual. */
export const USUAL = 128;
/** The byte of a step that lacks the position. */
export const ABSENT = 0;

const group = (value: unknown, path: string): Group => {
  const name = text(value, path);
  return isGroup(name) ? name : "other";
};
const phase = (value: unknown, path: string): Phase => {
  const name = text(value, path);
  return PHASES.find((one) => one === name) ?? "rest";
};

const decodePosition = object({
  position: number,
  count: number,
  name: text,
  group,
  part: phase,
  median_ns: number,
  median_gap_ns: number,
  present: number,
});
/** A column: one position of the usual path, or several neighbours, then named after the longest. */
export type Position = ReturnType<typeof decodePosition>;

const decodeHeader = object({
  metric: text,
  reason: text,
  steps: number,
  shown: number,
  folded: number,
  thinned: number,
  octaves: number,
  position_count: number,
  positions: list(decodePosition),
  step: list(number),
  count: list(number),
  start_ns: list(number),
  step_ns: list(number),
  class: list(text),
  class_rank: list(number),
  outlier: list(flag),
  path: list(number),
  same_path: list(number),
  extra: list(number),
});

export type Stack = ReturnType<typeof decodeHeader> & { readonly cells: Uint8Array };

/** Decodes a body into its facts and its cells, row by row. */
export function decodeStack(body: ArrayBuffer): Stack {
  const view = new DataView(body);
  if (body.byteLength < 8 || view.getUint32(0, true) !== MAGIC) throw new WireError("iterations: not a stack");
  const size = view.getUint32(4, true);
  const header = decodeHeader(JSON.parse(new TextDecoder().decode(new Uint8Array(body, 8, size))), "iterations");
  const cells = new Uint8Array(body, 8 + size);
  if (cells.length !== header.step.length * header.positions.length) throw new WireError("iterations: the body is cut");
  return { ...header, cells };
}

/** Fetches the stack, sorted, with at most `rows` rows. */
export async function fetchStack(
  api: Api,
  metric: StackMetric,
  sort: StackSort,
  rows: number,
  level: string,
): Promise<Stack> {
  const response = await api.ask("iterations", { metric, sort, rows, ...(level && { level }) });
  return decodeStack(await response.arrayBuffer());
}

const decodeExtra = object({ name: text, group, start_ns: number, duration_ns: number, before: number });
const decodeIteration = maybe(
  object({
    step: number,
    start_ns: number,
    step_ns: number,
    class: text,
    path: number,
    duration_ns: list(maybe(number)),
    gap_ns: list(maybe(number)),
    offset_ns: list(maybe(number)),
    extra_count: number,
    extras: list(decodeExtra),
  }),
);
/** One step in exact numbers, by position. */
export type Iteration = NonNullable<ReturnType<typeof decodeIteration>>;

/** Fetches one step; undefined where it was not kept in detail. */
export const fetchIteration = (api: Api, step: number, level: string): Promise<Iteration | undefined> =>
  api.json("iteration", { step, ...(level && { level }) }, decodeIteration);
