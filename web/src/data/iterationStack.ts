// The iteration stack as the server sends it: one byte for each step and position (server/iterations.py).
import type { StackMetric, StackSort } from "../state/address";
import { ofLevel } from "./runSteps";
import { type Api, aboutOf } from "./wire/api";
import { WireError } from "./wire/decoders";
import type { StackHeader } from "./wire/wire.generated";

const MAGIC = 0x314b5453; // "STK1", little endian
/** The byte of a value that is exactly as usual. */
export const USUAL = 128;
/** The byte of a step that lacks the position. */
export const ABSENT = 0;

export type Stack = StackHeader & { readonly cells: Uint8Array };

/** Decodes a body into its facts and its cells, row by row. */
export function decodeStack(body: ArrayBuffer): Stack {
  const view = new DataView(body);
  if (body.byteLength < 8 || view.getUint32(0, true) !== MAGIC) throw new WireError("iterations: not a stack");
  const size = view.getUint32(4, true);
  const header = aboutOf("iterations", new TextDecoder().decode(new Uint8Array(body, 8, size)));
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
  const response = await api.ask("iterations", { metric, sort, rows, ...ofLevel(level) });
  return decodeStack(await response.arrayBuffer());
}
