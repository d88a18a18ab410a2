// The tree of calls of a part of the run: every call path with what it costs on the host, and what it launched on GPUs.
import type { Group } from "../base/color";
import type { ProfileView } from "../base/state";
import type { TimeRange } from "../base/time";
import type { Api, Parameters } from "./api";
import { decodeGroup } from "./run";
import type { Hit } from "./spans";
import { number, object, text } from "./wire";

const decodeAbout = object({ about: text, note: text, nodes: number, unit: text });

/** Nodes column by column; parents come before their children. */
export type CallTree = {
  readonly count: number;
  /** Number of the caller's node, -1 at a root. */
  readonly parent: Int32Array;
  /** Of what a GPU did: the call path that launched it, -1 where that is unknown. */
  readonly callPath: Int32Array;
  readonly region: Int32Array;
  /** 1 for what a GPU did. */
  readonly device: Uint8Array;
  readonly calls: Float64Array;
  readonly totalNs: Float64Array;
  readonly selfNs: Float64Array;
  /** What GPUs did for it and for all that it calls. */
  readonly gpuNs: Float64Array;
  readonly names: readonly string[];
  readonly groups: readonly Group[];
  readonly files: readonly string[];
  readonly lines: Float64Array;
  /**
   * What it is of, in words; what cannot be told of it; how many nodes there are, whether sent or not; and what stands in for time
   * in a profile without any ("": it is time).
   */
  readonly about: ReturnType<typeof decodeAbout>;
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
  const table = await api.arrow("tree", part, signal);
  return {
    count: table.rows,
    parent: Int32Array.from(table.numbers("parent")),
    callPath: Int32Array.from(table.numbers("call_path")),
    region: Int32Array.from(table.numbers("region")),
    device: Uint8Array.from(table.numbers("device")),
    calls: table.numbers("calls"),
    totalNs: table.numbers("total_ns"),
    selfNs: table.numbers("self_ns"),
    gpuNs: table.numbers("gpu_ns"),
    names: table.texts("name"),
    groups: table.texts("group").map(decodeGroup),
    files: table.texts("file"),
    lines: table.numbers("line"),
    about: decodeAbout(JSON.parse(table.metadata("about") ?? "null"), "tree"),
  };
}

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

/** The longest spans behind a node, and how many there are; those that were folded are none. */
export type NodeSpans = { readonly count: number; readonly hits: readonly Hit[] };

export async function fetchNodeSpans(api: Api, tree: CallTree, node: number, part: TreePart): Promise<NodeSpans> {
  const path = tree.callPath[node] ?? -1;
  const table = await api.arrow("tree/spans", {
    ...part,
    ...(path < 0 ? {} : { call_path: path }),
    ...(tree.device[node] ? { region: tree.region[node] ?? 0 } : {}),
  });
  const count = Number(table.metadata("count") ?? 0);
  if (table.rows === 0) return { count, hits: [] };
  const [location, start, depth] = [table.numbers("location"), table.numbers("start_ns"), table.numbers("depth")];
  const [duration, names, groups] = [table.numbers("duration_ns"), table.texts("name"), table.texts("group")];
  const hits = Array.from({ length: table.rows }, (_, i) => ({
    location: location[i] ?? 0,
    startNs: start[i] ?? 0,
    depth: depth[i] ?? 0,
    durationNs: duration[i] ?? 0,
    name: names[i] ?? "",
    group: decodeGroup(groups[i] ?? ""),
  }));
  return { count, hits };
}
