// The iteration stack as the server sends it: one byte for each step and position (server/pictures/iteration_cells.py).
import type { StackMetric, StackSort } from "../state/address";
import { ofLevel } from "./runSteps";
import type { Api } from "./wire/api";
import { readBody } from "./wire/binaryBody";
import { WireError } from "./wire/decoders";
import { ABOUTS, type StackHeader } from "./wire/wire.generated";

/** The byte of a value that is exactly as usual. */
export const USUAL = 128;
/** The byte of a step that lacks the position. */
export const ABSENT = 0;

export type Stack = StackHeader & { readonly cells: Uint8Array };

/** Decodes a body into its facts and its cells, row by row. */
export function decodeStack(body: ArrayBuffer): Stack {
  const { header: sent, at } = readBody(body, "STK1", "iterations");
  const header = ABOUTS.iterations(sent, "iterations");
  const cells = new Uint8Array(body, at);
  if (cells.length !== header.step.length * header.positions.length) throw new WireError("iterations: the body is cut");
  return { ...header, cells };
}

/** The server sends no more rows. */
const MOST_ROWS = 2048;

/** Fetches the stack, sorted, with at most `rows` rows; `fold`: groups of positions that are one column each. */
export async function fetchStack(
  api: Api,
  metric: StackMetric,
  sort: StackSort,
  rows: number,
  fold: string,
  level: string,
) {
  const asked = { metric, sort, rows: Math.min(MOST_ROWS, rows), ...(fold && { fold }), ...ofLevel(level) };
  const response = await api.ask("iterations", asked);
  return decodeStack(await response.arrayBuffer());
}
