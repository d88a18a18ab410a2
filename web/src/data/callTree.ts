// The tree of calls of a part of the run: every call path with what it costs on the host, and what it launched on GPUs.
import type { TimeRange } from "../base/time";
import type { ProfileView } from "../state/address";
import { type Api, aboutOf, type ColumnsOfRoute, type Parameters } from "./wire/api";
import type { TreeAbout } from "./wire/wire.generated";

/** Nodes column by column; parents come before their children. */
export type CallTree = Omit<ColumnsOfRoute<"tree">, "parent" | "callPath" | "region"> & {
  readonly count: number;
  readonly parent: Int32Array;
  readonly callPath: Int32Array;
  readonly region: Int32Array;
  readonly about: TreeAbout;
};

/** Which part of the run a tree is of, as parameters of a question. */
export type TreePart = Parameters;

/** What of the state chooses the part: the step and the window are those of all pages. */
type Chosen = {
  readonly profile: ProfileView;
  readonly step: number | undefined;
  readonly window: TimeRange | undefined;
  readonly level: string;
};

export const CLASS_PREFIX = "class.";

/** The part of the run that is asked for; what it names but is not chosen (any more) is the whole run. */
export function partOf({ profile, step, window, level }: Chosen): TreePart {
  const place = profile.place && {
    [profile.place.startsWith("p") ? "processes" : "locations"]: Number(profile.place.slice(1)),
  };
  const steps = level ? { level } : {};
  const part = ((): Parameters => {
    if (profile.part === "window" && window) return { start_ns: window.startNs, end_ns: window.endNs };
    if (profile.part === "step" && step !== undefined) return { step, ...steps };
    if (profile.part === "steady") return { step: "steady", ...steps };
    if (profile.part.startsWith(CLASS_PREFIX)) return { class: profile.part.slice(CLASS_PREFIX.length), ...steps };
    return {};
  })();
  return { ...part, ...place };
}

/** Fetches the tree of a part of the run. */
export async function fetchTree(api: Api, part: TreePart, signal?: AbortSignal): Promise<CallTree> {
  const table = await api.table("tree", part, signal);
  return treeOf(table.columns(), table.rows, table.metadata("about"));
}

/** Fetches the tree of the memory that is in use at its peak: bytes in place of times. */
export async function fetchMemoryTree(api: Api): Promise<CallTree> {
  const table = await api.table("memory_tree", {});
  return treeOf(table.columns(), table.rows, table.metadata("about"));
}

const treeOf = (columns: ColumnsOfRoute<"tree">, count: number, about: string | undefined): CallTree => ({
  ...columns,
  count,
  parent: Int32Array.from(columns.parent),
  callPath: Int32Array.from(columns.callPath),
  region: Int32Array.from(columns.region),
  about: aboutOf("tree", about),
});

/** The name of a node in the address. */
export const frameOf = (tree: CallTree, node: number): string =>
  `p${tree.callPath[node]}${tree.device[node] ? `.${tree.region[node]}` : ""}`;

/** The name of a function, wherever it is called, in the address. */
export const frameOfRegion = (region: number): string => `r${region}`;

/** The node that the address names, -1 where there is none. */
export function nodeOfFrame(tree: CallTree, frame: string): number {
  const [, path, region] = /^p(-?\d+)(?:\.(\d+))?$/.exec(frame) ?? [];
  if (path === undefined) return -1;
  for (let i = 0; i < tree.count; i++) {
    const same = tree.callPath[i] === Number(path) && Boolean(tree.device[i]) === (region !== undefined);
    if (same && (region === undefined || tree.region[i] === Number(region))) return i;
  }
  return -1;
}

/** The function that the address names, by itself or by a node of it; -1 where there is none. */
export function regionOfFrame(tree: CallTree, frame: string): number {
  const [, region] = /^r(\d+)$/.exec(frame) ?? [];
  return region === undefined ? (tree.region[nodeOfFrame(tree, frame)] ?? -1) : Number(region);
}

/** Parameters of the question for the spans of a node. */
export function spansOfNode(tree: CallTree, node: number, part: TreePart): Parameters {
  const path = tree.callPath[node] ?? -1;
  return {
    ...part,
    ...(path < 0 ? {} : { call_path: path }),
    ...(tree.device[node] ? { region: tree.region[node] ?? 0 } : {}),
  };
}
