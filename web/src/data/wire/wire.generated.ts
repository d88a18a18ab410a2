// Written by ./dev gen: do not edit.
// Every route of the server: what it is asked with, and what it answers.
import { DETAILS, GROUPS, LOCATION_KINDS, PARTS } from "../../base/kinds.generated";
import { choice, flag, list, maybe, number, object, orElse, record, text } from "./decoders";

const optionFacts = object({ name: text, help: text, kind: text, choices: list(text), default: text });
export type OptionFacts = ReturnType<typeof optionFacts>;
const analysisFacts = object({ name: text, subject: text, question: text, details: text, options: list(optionFacts),
  missing: text });
export type AnalysisFacts = ReturnType<typeof analysisFacts>;
const columnFacts = object({ name: text, type: text, unit: text, meaning: text });
export type ColumnFacts = ReturnType<typeof columnFacts>;
const tableFacts = object({ name: text, analysis: flag, columns: list(columnFacts) });
export type TableFacts = ReturnType<typeof tableFacts>;
const catalogue = object({ analyses: list(analysisFacts), tables: list(tableFacts) });
export type Catalogue = ReturnType<typeof catalogue>;
const change = object({ name: text, a_name: text, b_name: text, where: text, change: text, a_calls: number,
  b_calls: number, a_ns: number, b_ns: number, from_ns: number, to_ns: number });
export type Change = ReturnType<typeof change>;
const waterfall = object({ lane: text, a_ns: number, b_ns: number, beside: flag, changes: list(change) });
export type Waterfall = ReturnType<typeof waterfall>;
const classOfSteps = object({ name: text, lanes: list(waterfall) });
export type ClassOfSteps = ReturnType<typeof classOfSteps>;
const comparison = object({ a: text, b: text, a_ranks: list(number), b_ranks: list(number), sentences: list(text),
  classes: list(classOfSteps) });
export type Comparison = ReturnType<typeof comparison>;
const criticalPathParts = object({ about: text, step: maybe(text), location: list(number), depth: list(number),
  start_ns: list(number), duration_ns: list(number) });
export type CriticalPathParts = ReturnType<typeof criticalPathParts>;
const flowNode = object({ id: number, name: text, group: choice(GROUPS), count: number, time_ns: number,
  level: number, members: list(text) });
export type FlowNode = ReturnType<typeof flowNode>;
const flowEdge = object({ source: number, target: number, count: number, time_ns: number, back: flag });
export type FlowEdge = ReturnType<typeof flowEdge>;
const openedFlow = object({ nodes: list(flowNode), edges: list(flowEdge), overflow: flag, holds: list(text) });
export type OpenedFlow = ReturnType<typeof openedFlow>;
const spanEnd = object({ location: number, start_ns: number, duration_ns: number, depth: number, name: text,
  group: choice(GROUPS) });
export type SpanEnd = ReturnType<typeof spanEnd>;
const causePart = object({ cause: text, ns: number });
export type CausePart = ReturnType<typeof causePart>;
const gapCause = object({ main: text, parts: list(causePart), call: maybe(spanEnd) });
export type GapCause = ReturnType<typeof gapCause>;
const meanwhile = object({ location: number, thread: text, busy_ns: number, name: text, group: choice(GROUPS),
  ns: number });
export type Meanwhile = ReturnType<typeof meanwhile>;
const idleGap = object({ location: number, start_ns: number, end_ns: number, before: maybe(spanEnd),
  after: maybe(spanEnd), cause: maybe(gapCause), meanwhile: list(meanwhile) });
export type IdleGap = ReturnType<typeof idleGap>;
const property = object({ name: text, value: number, unit: orElse(text, "") });
export type Property = ReturnType<typeof property>;
const readingsOf = object({ process: number, device: maybe(number) });
export type ReadingsOf = ReturnType<typeof readingsOf>;
const throttling = object({ reason: text, share: number });
export type Throttling = ReturnType<typeof throttling>;
const knownGpu = object({ process: maybe(number), rank: maybe(number), number: maybe(number), host: text,
  name: orElse(text, ""), uuid: orElse(text, ""), capability: orElse(text, ""), multiprocessors: maybe(number),
  memory_bytes: maybe(number), mig: orElse(flag, false), properties: orElse(list(property), []),
  readings: maybe(readingsOf), by_uuid: orElse(flag, false), throttled: orElse(list(throttling), []) });
export type KnownGpu = ReturnType<typeof knownGpu>;
const gpuList = object({ gpus: list(knownGpu) });
export type GpuList = ReturnType<typeof gpuList>;
const extra = object({ name: text, group: choice(GROUPS), start_ns: number, duration_ns: number, before: number });
export type Extra = ReturnType<typeof extra>;
const iteration = object({ step: number, start_ns: number, step_ns: number, class: text, path: number,
  duration_ns: list(maybe(number)), gap_ns: list(maybe(number)), offset_ns: list(maybe(number)), extra_count: number,
  extras: list(extra) });
export type Iteration = ReturnType<typeof iteration>;
const position = object({ position: number, count: number, name: text, group: choice(GROUPS), part: choice(PARTS),
  band: text, module: text, folded: flag, median_ns: number, median_gap_ns: number, present: number });
export type Position = ReturnType<typeof position>;
const namedSteps = object({ name: text, steps: number });
export type NamedSteps = ReturnType<typeof namedSteps>;
const pathFacts = object({ aligned: number, usual_steps: number, paths: number, absent: list(namedSteps),
  extra: list(namedSteps) });
export type PathFacts = ReturnType<typeof pathFacts>;
const stackHeader = object({ step: list(number), count: list(number), start_ns: list(number), step_ns: list(number),
  class: list(text), class_rank: list(number), outlier: list(flag), path: list(number), same_path: list(number),
  extra: list(number), metric: text, sort: text, process: number, reason: text, steps: number, shown: number,
  folded: number, thinned: number, octaves: number, position_count: number, positions: list(position),
  path_facts: pathFacts });
export type StackHeader = ReturnType<typeof stackHeader>;
const link = object({ location: number, start_ns: number, duration_ns: number, depth: number, name: text,
  group: choice(GROUPS), kind: text, way: choice(["to", "from", "with"] as const), inside: flag });
export type Link = ReturnType<typeof link>;
const links = object({ links: list(link), count: number, inside: flag, left_out: list(text) });
export type Links = ReturnType<typeof links>;
const treeAbout = object({ about: text, note: text, nodes: number, unit: text });
export type TreeAbout = ReturnType<typeof treeAbout>;
const lostStretch = object({ location: number, start_ns: number, end_ns: number, spans: number });
export type LostStretch = ReturnType<typeof lostStretch>;
const meta = object({ name: text, program: text, command: list(text), host: text, python: text, ended: text,
  running: flag, started_unix_ns: number, start_ns: number, end_ns: number, span_count: number, folded_count: number,
  folded_processes: list(number), sampled: list(number), flight_recorder: flag, size_bytes: number,
  tile_cells: number, lost: list(lostStretch) });
export type Meta = ReturnType<typeof meta>;
const foldedInside = object({ steps: number, time_ns: number, exact: flag, self_ns: number });
export type FoldedInside = ReturnType<typeof foldedInside>;
const frame = object({ name: text, group: choice(GROUPS), file: maybe(text), line: maybe(number) });
export type Frame = ReturnType<typeof frame>;
const stepPlace = object({ process: number, step: number, start_ns: number, duration_ns: number, class: text,
  outlier: flag });
export type StepPlace = ReturnType<typeof stepPlace>;
const sisters = object({ folded_count: number, folded_ns: number, count: number, total_ns: number, median_ns: number,
  shortest_ns: number, longest_ns: number, shorter: number, histogram: list(number), histogram_low_ns: number,
  histogram_high_ns: number });
export type Sisters = ReturnType<typeof sisters>;
const spanFacts = object({ location: number, start_ns: number, duration_ns: number, depth: number, name: text,
  group: choice(GROUPS), location_name: text, process: number, row: number, self_ns: number,
  folded: maybe(foldedInside), complete: flag, region: number, paradigm: text, role: text, file: maybe(text),
  line: maybe(number), module: maybe(text), path: list(frame), step: maybe(stepPlace), sisters: maybe(sisters),
  samples: maybe(number) });
export type SpanFacts = ReturnType<typeof spanFacts>;
const note = object({ key: text, start_ns: number, end_ns: number, text: text, location: maybe(number),
  depth: maybe(number), span: text, changed_unix_ns: number });
export type Note = ReturnType<typeof note>;
const notesOfRun = object({ notes: list(note), labels: list(text) });
export type NotesOfRun = ReturnType<typeof notesOfRun>;
const gridAbout = object({ first_rank: list(number), last_rank: list(number), first_step: list(number),
  last_step: list(number), steps: number });
export type GridAbout = ReturnType<typeof gridAbout>;
const gridPlace = object({ rank: maybe(number), process: number, step: number, start_ns: number, duration_ns: number,
  value_ns: number });
export type GridPlace = ReturnType<typeof gridPlace>;
const report = object({ html: text, notes: list(text) });
export type Report = ReturnType<typeof report>;
const routeFigures = object({ rank: maybe(number), process: number, route: text, requests: number,
  rate: maybe(number), failed: number, median_ns: number, p90_ns: number, p95_ns: number, p99_ns: number,
  max_ns: number, share: maybe(number), cumulative_share: maybe(number) });
export type RouteFigures = ReturnType<typeof routeFigures>;
const latencyOverTime = object({ begin_ns: list(number), edges_ns: list(number), counts: list(number) });
export type LatencyOverTime = ReturnType<typeof latencyOverTime>;
const spentTime = object({ kind: text, function: text, cause: text, slow_requests: number, total_ns: number,
  times: number, share: number });
export type SpentTime = ReturnType<typeof spentTime>;
const slowOfRoute = object({ route: text, requests: number, least_ns: number, total_ns: number,
  parts: list(spentTime), rest_ns: number });
export type SlowOfRoute = ReturnType<typeof slowOfRoute>;
const slowRequest = object({ rank: maybe(number), process: number, request: number, route: text, start_ns: number,
  location: number, status: maybe(number), latency_ns: number, kind: text, function: text, cause: text,
  total_ns: number });
export type SlowRequest = ReturnType<typeof slowRequest>;
const serviceRequests = object({ note: text, requests: number, failed: number, percentiles: record(number),
  routes: list(routeFigures), edges_ns: list(number), counts: list(number), over_time: latencyOverTime,
  slow: list(slowOfRoute), slowest: list(slowRequest) });
export type ServiceRequests = ReturnType<typeof serviceRequests>;
const rowOrder = object({ main: list(number), backward: list(number), system: list(number) });
export type RowOrder = ReturnType<typeof rowOrder>;
const rowPlace = object({ title: text, kind: text, locations: list(number) });
export type RowPlace = ReturnType<typeof rowPlace>;
const classFacts = object({ name: text, rank: number, count: number, median_ns: number, outliers: number });
export type ClassFacts = ReturnType<typeof classFacts>;
const stepsAbout = object({ kept: number, classes: list(classFacts), causes: record(number), parts_ns: record(number),
  processes: list(number), typical: list(stepPlace), worst: maybe(stepPlace) });
export type StepsAbout = ReturnType<typeof stepsAbout>;
const level = object({ id: number, name: text, marker: text, count: number, in_detail: maybe(number), parent: number,
  trips: list(number), spine: number, coverage: number, cvn: number, score: number, is_step: flag, time_ns: number,
  share: number, first_ns: number, last_ns: number });
export type Level = ReturnType<typeof level>;
const flow = object({ nodes: list(flowNode), edges: list(flowEdge), overflow: flag });
export type Flow = ReturnType<typeof flow>;
const flowLoop = object({ header: number, parent: number, members: number, irreducible: flag, count: number });
export type FlowLoop = ReturnType<typeof flowLoop>;
const structure = object({ process: number, stream: text, confidence: text, reason: text, streams: list(text),
  levels: list(level), graph: flow, loops: list(flowLoop), expression: text, kept_steps: maybe(number) });
export type Structure = ReturnType<typeof structure>;
const verdict = object({ kind: text, text: text, share: maybe(number), confidence: orElse(text, "") });
export type Verdict = ReturnType<typeof verdict>;
const part = object({ name: text, group: choice(GROUPS), duration_ns: number, share: number });
export type Part = ReturnType<typeof part>;
const stepSummary = object({ count: number, kept_count: number, representativeness: maybe(number),
  steady_count: number, warm_up_count: number, outlier_count: number, class_name: text, class_count: number,
  median_ns: number, p95_ns: number, best_ns: number, mean_ns: number, confidence: text, reason: text,
  parts: list(part), strip_ns: orElse(list(number), []), rank: maybe(number) });
export type StepSummary = ReturnType<typeof stepSummary>;
const idleCause = object({ cause: text, share: number, start_ns: maybe(number), longest_ns: maybe(number) });
export type IdleCause = ReturnType<typeof idleCause>;
const gpu = object({ name: text, rank: maybe(number), duration_ns: number, computation: number, communication: number,
  copy: number, idle: number, steps: orElse(number, 0), causes: orElse(list(idleCause), []), held: orElse(number,
  0.0) });
export type Gpu = ReturnType<typeof gpu>;
const stepClass = object({ name: text, count: number, median_ns: number });
export type StepClass = ReturnType<typeof stepClass>;
const evidence = object({ start_ns: number, duration_ns: number, location: maybe(number), text: maybe(text) });
export type Evidence = ReturnType<typeof evidence>;
const finding = object({ rule: text, what: text, do: orElse(text, ""), where: orElse(text, ""),
  gain_low_ns: orElse(number, 0), gain_high_ns: orElse(number, 0), confidence: orElse(text, "medium"),
  informative: orElse(flag, false), evidence: orElse(list(evidence), []) });
export type Finding = ReturnType<typeof finding>;
const hot = object({ name: text, calls: number, self_ns: number, share: number, self_per_step_ns: maybe(number) });
export type Hot = ReturnType<typeof hot>;
const quality = object({ complete: flag, state: list(text), losses: list(text), remarks: list(text), ended: text,
  estimated_cost: maybe(number), source: text, span_count: number, folded_count: number, size_bytes: number,
  bytes_per_span: number, records: orElse(text, "") });
export type Quality = ReturnType<typeof quality>;
const fact = object({ name: text, value: text, title: orElse(text, "") });
export type Fact = ReturnType<typeof fact>;
const segment = object({ name: text, group: choice(GROUPS), duration_ns: number, share: number, formula: text,
  page: text, evidence: maybe(evidence), region: orElse(text, "") });
export type Segment = ReturnType<typeof segment>;
const lane = object({ name: text, of: text, duration_ns: number, segments: list(segment), idle_from: maybe(number) });
export type Lane = ReturnType<typeof lane>;
const checked = object({ rule: text, title: text, share: number, least: number });
export type Checked = ReturnType<typeof checked>;
const topRow = object({ name: text, calls: number, self_ns: number, share: number, cumulative: number });
export type TopRow = ReturnType<typeof topRow>;
const top = object({ name: text, title: text, page: text, rows: list(topRow) });
export type Top = ReturnType<typeof top>;
const ranks = object({ text: text, value: text });
export type Ranks = ReturnType<typeof ranks>;
const engineRow = object({ rank: maybe(number), step_class: text, steps: number, requests: maybe(number),
  tokens: maybe(number), prefill_tokens: maybe(number), duration_ns: number, gpu_ns: maybe(number),
  gpu_ns_per_token: maybe(number), tokens_per_second: maybe(number) });
export type EngineRow = ReturnType<typeof engineRow>;
const latencyRow = object({ rank: maybe(number), requests: number, time_to_first_token_ns: number,
  median_time_to_first_token_ns: number, p95_time_to_first_token_ns: number, time_per_output_token_ns: maybe(number),
  median_time_per_output_token_ns: maybe(number), p95_time_per_output_token_ns: maybe(number),
  tokens_per_second: number });
export type LatencyRow = ReturnType<typeof latencyRow>;
const summary = object({ schema_version: number, name: text, path: text, program: text, command: list(text),
  host: text, process_count: number, started_unix_ns: number, duration_ns: number, verdict: verdict,
  step: maybe(stepSummary), gpus: list(gpu), classes: list(stepClass), findings: list(finding), hot_kind: text,
  hot_unit: text, hot: list(hot), quality: quality, facts: orElse(list(fact), []), lanes: orElse(list(lane), []),
  checked: orElse(list(checked), []), top: orElse(list(top), []), ranks: maybe(ranks), engine: orElse(list(engineRow),
  []), latency: orElse(list(latencyRow), []), part: orElse(text, "") });
export type Summary = ReturnType<typeof summary>;
const barPart = object({ name: text, group: text });
export type BarPart = ReturnType<typeof barPart>;
const bar = object({ process: number, cluster: number, distance: number, ns: list(number) });
export type Bar = ReturnType<typeof bar>;
const difference = object({ name: text, group: choice(GROUPS), mean_ns: number, others_ns: number });
export type Difference = ReturnType<typeof difference>;
const cluster = object({ size: number, members: list(number), typical: number, farthest: number, ns: list(number),
  differs: list(difference) });
export type Cluster = ReturnType<typeof cluster>;
const bars = object({ parts: list(barPart), processes: number, bars: list(bar), clusters: list(cluster) });
export type Bars = ReturnType<typeof bars>;
const execution = object({ location: number, start_ns: number, duration_ns: number, depth: number });
export type Execution = ReturnType<typeof execution>;
const durations = object({ name: text, executions: number, count: number, read_share: number, total_ns: number,
  median_ns: maybe(number), edges_ns: list(number), counts: list(number), chosen: number, spans: list(execution) });
export type Durations = ReturnType<typeof durations>;
const messageLines = object({ count: number, from_location: list(number), sent_ns: list(number),
  to_location: list(number), received_ns: list(number) });
export type MessageLines = ReturnType<typeof messageLines>;
const wallPart = object({ name: text, group: text, share: number });
export type WallPart = ReturnType<typeof wallPart>;
const threadLoad = object({ location: number, name: text, share: number });
export type ThreadLoad = ReturnType<typeof threadLoad>;
const wallTime = object({ main_threads: number, host: list(wallPart), others: list(threadLoad), gpus: number,
  gpu: list(wallPart), host_communication: number, gpu_communication: number, hidden_communication: number });
export type WallTime = ReturnType<typeof wallTime>;
const tableOption = object({ name: text, help: text, choices: list(text), value: text });
export type TableOption = ReturnType<typeof tableOption>;
const BEHIND = { row: "number", start_ns: "number", duration_ns: "number", self_ns: "number", region: "number",
  depth: "number", complete: "number", name: "text", group: GROUPS, location: "number" } as const;
const LOCATIONS = { location: "number", process: "number", name: "text", thread_id: "number", kind: LOCATION_KINDS,
  device: "number?", span_count: "number", first_ns: "number", last_ns: "number" } as const;
const MEMORY_TREE = { parent: "number", call_path: "number", device: "number", calls: "number", total_ns: "number",
  self_ns: "number", gpu_ns: "number", region: "number", line: "number", name: "text", group: GROUPS,
  file: "text" } as const;
const OVER_STEPS = { row: "number", first_step: "number", last_step: "number", in_detail: "number",
  step_ns: "number?" } as const;
const PROCESSES = { process: "number", pid: "number", parent_pid: "number", main: "flag", started_ns: "number",
  ended_ns: "number", end_state: "text", exit_code: "number?", argv: "text", host: "text", python: "text",
  rank: "number?", name: "text" } as const;
const RANKS_STEPS = { value_ns: "number?" } as const;
const RANKS_WAITS = { state: "text", rank: "number?", awaited_rank: "number?", wait_ns: "number", max_ns: "number",
  location: "number", time_ns: "number" } as const;
const READINGS = { series: "number", time_ns: "number", low: "number", mean: "number", high: "number" } as const;
const ROWS_VALUES = { location: "number", value: "number" } as const;
const SEARCH_DENSITY = { count: "number" } as const;
const SEARCH_REGIONS = { region: "number", name: "text", group: GROUPS, count: "number", total_ns: "number" } as const;
const SERIES = { series: "number", metric: "text", unit: "text", process: "number", location: "number?",
  readings: "number", lowest: "number", highest: "number" } as const;
const STACK = { row: "number", start_ns: "number", duration_ns: "number", self_ns: "number", region: "number",
  depth: "number", complete: "number", name: "text", group: GROUPS } as const;
const STEPS = { process: "number", step: "number", start_ns: "number", duration_ns: "number", class: "text",
  class_rank: "number", outlier: "flag", warm_up: "flag", cause: "text", count: "number", loop: "number",
  detail: DETAILS, data_wait_ns: "number", forward_ns: "number", backward_ns: "number", optimizer_ns: "number",
  validation_ns: "number", rest_ns: "number", rest_communication_ns: "number", rest_gpu_wait_ns: "number",
  rest_gpu_call_ns: "number", rest_operators_ns: "number", rest_data_wait_ns: "number",
  rest_host_ns: "number" } as const;
const WINDOW = { kind: ["group", "name", "folded"] as const, name: "text", group: "text", self_ns: "number",
  count: "number" } as const;
const WINDOW_MESSAGES = { sender: "number", receiver: "number", messages: "number", most_messages: "number",
  total_bytes: "number", most_bytes: "number" } as const;
const WINDOW_PROFILE = { name: "text", group: "text", executions: "number", exclusive_ns: "number", share: "number",
  mean_ns: "number", shortest_ns: "number", average_ns: "number", longest_ns: "number" } as const;
const WINDOW_SPANS = { start_ns: "number", duration_ns: "number", depth: "number", name: "text", group: GROUPS,
  location: "number" } as const;

/** Routes that answer with JSON. */
export const ANSWERS = {
  catalogue: catalogue,
  comparison: comparison,
  critical: criticalPathParts,
  flow: openedFlow,
  gap: maybe(idleGap),
  gpus: gpuList,
  iteration: maybe(iteration),
  links: links,
  meta: meta,
  neighbour: maybe(spanFacts),
  notes: notesOfRun,
  "ranks/steps/cell": maybe(gridPlace),
  report: report,
  requests: serviceRequests,
  "rows/order": rowOrder,
  "rows/places": list(rowPlace),
  span: maybe(spanFacts),
  step: maybe(stepPlace),
  structure: structure,
  summary: summary,
  "window/bars": bars,
  "window/durations": durations,
  "window/message_lines": messageLines,
  "window/wall": wallTime,
};

/** Routes that answer with a table: its columns by name. */
export const TABLES = {
  behind: BEHIND,
  locations: LOCATIONS,
  memory_tree: MEMORY_TREE,
  over_steps: OVER_STEPS,
  processes: PROCESSES,
  "ranks/steps": RANKS_STEPS,
  "ranks/waits": RANKS_WAITS,
  readings: READINGS,
  "rows/values": ROWS_VALUES,
  "search/density": SEARCH_DENSITY,
  "search/regions": SEARCH_REGIONS,
  "search/spans": BEHIND,
  series: SERIES,
  stack: STACK,
  steps: STEPS,
  tree: MEMORY_TREE,
  "tree/spans": BEHIND,
  window: WINDOW,
  "window/messages": WINDOW_MESSAGES,
  "window/profile": WINDOW_PROFILE,
  "window/spans": WINDOW_SPANS,
} as const;

/** JSON that comes with a table or a picture. */
export const ABOUTS = {
  iterations: stackHeader,
  memory_tree: treeAbout,
  "ranks/steps": gridAbout,
  steps: stepsAbout,
  tree: treeAbout,
  table: list(tableOption),
};

/** Parameters of every route. */
export type Routes = {
  behind: { readonly block?: string; readonly collective?: string; readonly device?: string; readonly dtype?: string;
  readonly file?: string; readonly function?: string; readonly graph?: string; readonly grid?: string;
  readonly kernel?: string; readonly line?: string; readonly module?: string; readonly name?: string;
  readonly operator?: string; readonly process?: string; readonly region?: string; readonly shapes?: string;
  readonly source_line?: string; readonly stream?: string; readonly type?: string; readonly after_ns?: number };
  catalogue: Record<never, never>;
  cells: { readonly locations: string | number; readonly level: number; readonly tile: number };
  comparison: { readonly other: string; readonly ranks?: string };
  critical: { readonly at_ns: number; readonly start_ns: number; readonly end_ns: number; readonly width: number };
  flow: { readonly open?: string };
  gap: { readonly location: number; readonly way?: "at" | "next" | "previous" | "longest"; readonly time_ns?: number;
  readonly start_ns?: number; readonly end_ns?: number; readonly shortest_ns?: number; readonly number?: number };
  gpus: Record<never, never>;
  iteration: { readonly step: number; readonly level?: string };
  iterations: { readonly metric?: "duration" | "gap"; readonly sort?: "time" | "class" | "duration"; readonly rows?: number;
  readonly fold?: string; readonly level?: string };
  links: { readonly location: number; readonly start_ns: number; readonly depth: number };
  locations: Record<never, never>;
  memory_tree: Record<never, never>;
  meta: Record<never, never>;
  neighbour: { readonly location: number; readonly start_ns: number; readonly depth: number;
  readonly way: "next" | "previous" | "parent" | "child"; readonly level?: string };
  notes: Record<never, never>;
  over_steps: { readonly analysis: "kernels" | "operators"; readonly by?: string; readonly rows: string | number };
  processes: Record<never, never>;
  "ranks/steps": { readonly value?: "duration" | "computation" | "wait" | "lateness" | "communication" | "gpu_wait" | "gpu_call" | "operators" | "data_wait" | "host"; readonly start_ns?: number; readonly end_ns?: number; readonly classes?: string; readonly level?: string };
  "ranks/steps/cell": { readonly value?: "duration" | "computation" | "wait" | "lateness" | "communication" | "gpu_wait" | "gpu_call" | "operators" | "data_wait" | "host"; readonly row: number; readonly column: number; readonly start_ns?: number; readonly end_ns?: number; readonly classes?: string; readonly level?: string };
  "ranks/waits": { readonly by?: "rank" | "pair"; readonly start_ns?: number; readonly end_ns?: number; readonly classes?: string;
  readonly level?: string };
  readings: { readonly series?: string | number; readonly start_ns: number; readonly end_ns: number; readonly width: number };
  report: { readonly sections?: string };
  requests: { readonly route?: string };
  "rows/cells": { readonly place: number; readonly row_level: number; readonly first: number; readonly count: number;
  readonly level: number; readonly tile: number };
  "rows/gpu": { readonly locations: string | number; readonly level: number; readonly tile: number };
  "rows/heat": { readonly locations: string | number; readonly of: string; readonly level: number; readonly tile: number };
  "rows/order": Record<never, never>;
  "rows/places": Record<never, never>;
  "rows/shares": { readonly locations: string | number; readonly level: number; readonly tile: number };
  "rows/values": { readonly of: string; readonly start_ns: number; readonly end_ns: number };
  "search/density": { readonly text?: string; readonly bins: number };
  "search/regions": { readonly text?: string };
  "search/spans": { readonly text?: string };
  series: Record<never, never>;
  span: { readonly location: number; readonly start_ns: number; readonly end_ns: number; readonly depth?: number;
  readonly region?: number; readonly level?: string };
  sql: { readonly query: string; readonly as?: "csv" | "json" };
  stack: { readonly location: number; readonly level: number; readonly tile: number };
  step: { readonly time_ns: number; readonly kind?: "at" | "next" | "previous" | "outlier"; readonly level?: string };
  steps: { readonly limit?: number; readonly process?: number; readonly level?: string };
  structure: Record<never, never>;
  summary: { readonly level?: string };
  tree: { readonly step?: string; readonly class?: string; readonly start_ns?: number; readonly end_ns?: number;
  readonly locations?: string | number; readonly processes?: string | number; readonly level?: string };
  "tree/spans": { readonly call_path?: number; readonly region?: number; readonly step?: string; readonly class?: string;
  readonly start_ns?: number; readonly end_ns?: number; readonly locations?: string | number;
  readonly processes?: string | number; readonly level?: string };
  window: { readonly start_ns: number; readonly end_ns: number };
  "window/bars": { readonly start_ns: number; readonly end_ns: number; readonly by?: "group" | "region"; readonly of?: "all" | "ranks";
  readonly clusters?: number; readonly limit?: number };
  "window/durations": { readonly start_ns: number; readonly end_ns: number; readonly name: string; readonly low_ns?: number;
  readonly high_ns?: number };
  "window/message_lines": { readonly start_ns: number; readonly end_ns: number };
  "window/messages": { readonly start_ns: number; readonly end_ns: number; readonly kind?: "message" | "one_sided"; readonly tiles?: number };
  "window/profile": { readonly start_ns: number; readonly end_ns: number;
  readonly by?: "name" | "group" | "role" | "file" | "caller" | "module" | "thread" | "process" | "rank" | "step" | "phase" };
  "window/spans": { readonly locations: string | number; readonly start_ns: number; readonly end_ns: number };
  "window/wall": { readonly start_ns: number; readonly end_ns: number };
};
