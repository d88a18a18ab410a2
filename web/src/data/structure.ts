// Loops and the folded flow graph of a run, as `strobe structure --json` prints them.
import { type Group, isGroup } from "../base/color";
import type { Api } from "./api";
import { flag, list, maybe, number, object, text } from "./wire";

const group = (value: unknown, path: string): Group => {
  const name = text(value, path);
  return isGroup(name) ? name : "other";
};

const decodeLevel = object({
  id: number,
  name: text,
  marker: text,
  count: number,
  parent: number,
  trips: list(number),
  spine: number,
  coverage: number,
  cvn: number,
  score: number,
  is_step: flag,
  time_ns: number,
  share: number,
  first_ns: number,
  last_ns: number,
});
/** One loop level: how often it runs, in which level it lies (-1: in none), and how often in one iteration of that. */
export type Level = ReturnType<typeof decodeLevel>;

const decodeNode = object({
  id: number,
  name: text,
  group,
  count: number,
  time_ns: number,
  level: number,
  members: list(text),
});
/** What runs one after the other without a branch, folded into one; `members` are the names in order. */
export type FlowNode = ReturnType<typeof decodeNode>;

const decodeEdge = object({ source: number, target: number, count: number, time_ns: number, back: flag });
export type FlowEdge = ReturnType<typeof decodeEdge>;

const decodeStructure = object({
  process: number,
  stream: text,
  confidence: text,
  reason: text,
  streams: list(text),
  levels: list(decodeLevel),
  graph: object({ nodes: list(decodeNode), edges: list(decodeEdge), overflow: flag }),
  loops: list(object({ header: number, parent: number, members: number, irreducible: flag, count: number })),
  expression: text,
  kept_steps: maybe(number),
});
/** `kept_steps`: of how many steps it is known what is inside; undefined where that is known of all. */
export type Structure = ReturnType<typeof decodeStructure>;

const decodeFlow = object({ nodes: list(decodeNode), edges: list(decodeEdge), overflow: flag, holds: list(text) });
/** The flow graph of outermost operators, and of those inside of opened ones; `holds` are the names that can be opened. */
export type OpenedFlow = ReturnType<typeof decodeFlow>;

/** Fetches the flow graph of the operators in detail. */
export const fetchFlow = (api: Api, opened: readonly string[]): Promise<OpenedFlow> =>
  api.json("flow", opened.length ? { open: opened.join("~") } : {}, decodeFlow);

/** Fetches loops and flow graph. */
export const fetchStructure = (api: Api): Promise<Structure> => api.json("structure", {}, decodeStructure);
