// What the page shows, as text in the address's hash: reloading or sending the address brings back the same picture.

import type { TimeRange } from "../base/time";
import { DRAWER_VIEW, type DrawerView, drawerFields, parseDrawer } from "./drawerState";
import { parseRows, ROWS_VIEW, type RowsView, rowsFields, whole } from "./rowsState";

/** One span, by what finds it again: its location, its start and its depth. */
export type SpanKey = { readonly location: number; readonly startNs: number; readonly depth: number };

/** An idle gap, by what finds it again: a moment in it, and the location on whose row it is. */
export type GapKey = { readonly location: number; readonly startNs: number };

/** How the iteration stack is looked at. */
export const STACK_METRICS = ["duration", "gap"] as const;
export const STACK_SORTS = ["time", "class", "duration"] as const;
export const STACK_WIDTHS = ["equal", "time"] as const;
export type StackMetric = (typeof STACK_METRICS)[number];
export type StackSort = (typeof STACK_SORTS)[number];
export type StackWidths = (typeof STACK_WIDTHS)[number];
export type StackView = {
  readonly metric: StackMetric;
  readonly sort: StackSort;
  readonly widths: StackWidths;
  /** Groups of columns that are one column each: their positions, as first_end. */
  readonly folded: readonly string[];
};

/** Which steps a list of them shows: those of some classes (none named: of all), only outliers, only those with detail. */
export type StepFilter = {
  readonly classes: readonly string[];
  readonly outliers: boolean;
  readonly detailed: boolean;
};

/** How call paths are looked at, and what weighs in them. */
export const PROFILE_FORMS = ["time", "heavy", "sandwich"] as const;
export const PROFILE_MEASURES = ["host", "gpu"] as const;
export type ProfileForm = (typeof PROFILE_FORMS)[number];
export type ProfileMeasure = (typeof PROFILE_MEASURES)[number];
export type ProfileView = {
  readonly form: ProfileForm;
  /** "" is the host's time, or where there is none that of GPUs. */
  readonly measure: ProfileMeasure | "";
  /** Which part of the run: "" (all of it), "steady", "step" and "window" (those that are chosen), or "class.NAME". */
  readonly part: string;
  /** Where: "" (everywhere), or a process or location: "p3", "l5". */
  readonly place: string;
};

/** How the table of a page is looked at. */
export type TableView = {
  /** What its rows are, of what its analysis offers; "" is the analysis's own choice. */
  readonly by: string;
  /** Column that it is sorted by; "" is the order of the server. */
  readonly sort: string;
  readonly down: boolean;
  /** Words that rows must have. */
  readonly find: string;
  /** Only rows of this type. */
  readonly inside: string;
  /** With the columns that are rarely wanted. */
  readonly all: boolean;
};

export const TABLE_VIEW: TableView = { by: "", sort: "", down: false, find: "", inside: "", all: false };

/** The analysis of the page Analyses, "" for none yet, and its options that are not as they come. */
export type AnalysisChoice = { readonly name: string; readonly options: Readonly<Record<string, string>> };

/** Everything the user can choose. `undefined` means "as it comes": the whole run, the rows opened by default, nothing selected. */
export type State = {
  readonly page: string;
  readonly window: TimeRange | undefined;
  /** Windows that were left by zooming in, outermost first: the breadcrumb. */
  readonly trail: readonly (TimeRange | undefined)[];
  /** Locations drawn with their nesting. */
  readonly open: readonly number[] | undefined;
  /** Processes drawn with all their metrics. */
  readonly measured: readonly number[];
  readonly rows: RowsView;
  readonly selection: SpanKey | undefined;
  /** The selected idle gap; there is none where a span is selected. */
  readonly gap: GapKey | undefined;
  /** A moment of the step whose critical path is shown, ns. */
  readonly critical: number | undefined;
  /** Whether messages between ranks are drawn as lines. */
  readonly messages: boolean;
  /** Whether the list of notes is open. */
  readonly notes: boolean;
  readonly drawer: DrawerView;
  /** A chosen stretch of time that was not zoomed into (yet). */
  readonly range: TimeRange | undefined;
  readonly find: string;
  /** The chosen step, by its number: marked on every page. */
  readonly step: number | undefined;
  /** The chosen region, by its name: made to stand out on every page. */
  readonly region: string;
  /** The loop level whose iterations count as the steps, by its marker; "" is the one that was found. */
  readonly level: string;
  readonly stack: StackView;
  /** Whether the page Structure shows the flow graph, not the iterations. */
  readonly flow: boolean;
  readonly steps: StepFilter;
  readonly profile: ProfileView;
  /** The chosen frame of the call tree: a call path, or a function of all of them (data/callTree.ts). */
  readonly frame: string;
  /** Tables that are not looked at as they come, by the name of their page. */
  readonly tables: Readonly<Record<string, TableView>>;
  /** The chosen row of a table, by its cells: what leads to its spans. */
  readonly row: string;
  /** The rank that a page of one rank is about, by its process. */
  readonly process: number | undefined;
  readonly analysis: AnalysisChoice;
  /** The query of the page SQL; "" is none. */
  readonly query: string;
};

export const INITIAL: State = {
  page: "overview",
  window: undefined,
  trail: [],
  open: undefined,
  measured: [],
  rows: ROWS_VIEW,
  selection: undefined,
  gap: undefined,
  critical: undefined,
  messages: false,
  notes: false,
  drawer: DRAWER_VIEW,
  range: undefined,
  find: "",
  step: undefined,
  region: "",
  level: "",
  stack: { metric: "duration", sort: "time", widths: "equal", folded: [] },
  flow: false,
  steps: { classes: [], outliers: false, detailed: false },
  profile: { form: "heavy", measure: "", part: "", place: "" },
  frame: "",
  tables: {},
  row: "",
  process: undefined,
  analysis: { name: "", options: {} },
  query: "",
};

/** Deeper trails lose their outermost entries, which keeps addresses short. */
export const TRAIL_LIMIT = 12;

const WHOLE = "run";

function parseNumbers(text: string | undefined, separator: string): number[] | undefined {
  if (text === undefined || text === "") return undefined;
  const numbers = text.split(separator).map(Number);
  return numbers.every((n) => Number.isSafeInteger(n) && n >= 0) ? numbers : undefined;
}

function parseRange(text: string | undefined): TimeRange | undefined {
  const [startNs, endNs, more] = parseNumbers(text, "-") ?? [];
  if (startNs === undefined || endNs === undefined || more !== undefined || endNs <= startNs) return undefined;
  return { startNs, endNs };
}

function parseSelection(text: string | undefined): SpanKey | undefined {
  const [location, startNs, depth] = parseNumbers(text, "_") ?? [];
  if (location === undefined || startNs === undefined || depth === undefined) return undefined;
  return { location, startNs, depth };
}

function parseGap(text: string | undefined): GapKey | undefined {
  const [location, startNs, more] = parseNumbers(text, "_") ?? [];
  if (location === undefined || startNs === undefined || more !== undefined) return undefined;
  return { location, startNs };
}

function parseStack(text: string | undefined, folded: string | undefined): StackView {
  const [metric, sort, widths] = (text ?? "").split("-");
  return {
    metric: STACK_METRICS.find((one) => one === metric) ?? INITIAL.stack.metric,
    sort: STACK_SORTS.find((one) => one === sort) ?? INITIAL.stack.sort,
    widths: STACK_WIDTHS.find((one) => one === widths) ?? INITIAL.stack.widths,
    folded: (folded ?? "").split("~").filter((group) => /^\d+_\d+$/.test(group)),
  };
}

function parseProfile(text: string | undefined): ProfileView {
  const [form, measure, place, ...part] = (text ?? "").split("-");
  return {
    form: PROFILE_FORMS.find((one) => one === form) ?? INITIAL.profile.form,
    measure: PROFILE_MEASURES.find((one) => one === measure) ?? INITIAL.profile.measure,
    place: /^[pl]\d+$/.test(place ?? "") ? (place ?? "") : "",
    part: part.join("-"), // last, since names of classes may hold anything
  };
}

const OPTION_PREFIX = "with.";
const TABLE_PREFIX = "table.";

function parseTable(text: string): TableView {
  const fields = new URLSearchParams(text);
  const get = (name: string): string => fields.get(name) ?? "";
  return {
    by: get("by"),
    sort: get("sort"),
    down: get("down") === "1",
    find: get("find"),
    inside: get("inside"),
    all: get("all") === "1",
  };
}

function tableText(view: TableView): string {
  const fields = Object.entries(view).flatMap(([name, value]) => (value ? [[name, value === true ? "1" : value]] : []));
  return new URLSearchParams(fields).toString();
}

/** Fields whose names begin alike, by the rest of their names. */
const fieldsWith = <T>(fields: URLSearchParams, prefix: string, read: (value: string) => T): Record<string, T> =>
  Object.fromEntries(
    [...fields]
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, value]) => [name.slice(prefix.length), read(value)]),
  );

/** Reads a hash. Whatever it cannot understand counts as not chosen. */
export function parseState(hash: string): State {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const get = (name: string): string | undefined => fields.get(name) ?? undefined;
  const open = get("open");
  return {
    page: get("page") || INITIAL.page,
    window: parseRange(get("time")),
    trail: (get("trail") ?? "")
      .split("~")
      .filter((part) => part === WHOLE || parseRange(part))
      .map(parseRange)
      .slice(-TRAIL_LIMIT),
    open: open === "" ? [] : parseNumbers(open, "_"),
    measured: parseNumbers(get("metrics"), "_") ?? [],
    rows: parseRows(get),
    selection: parseSelection(get("span")),
    gap: parseGap(get("gap")),
    critical: whole(get("critical")),
    messages: get("messages") === "1",
    notes: get("notes") === "1",
    drawer: parseDrawer(get),
    range: parseRange(get("range")),
    find: get("find") ?? "",
    step: whole(get("step")),
    region: get("region") ?? "",
    level: get("level") ?? "",
    stack: parseStack(get("stack"), get("folded")),
    flow: get("flow") === "1",
    steps: {
      classes: (get("only") ?? "").split("~").filter(Boolean),
      outliers: get("slow") === "1",
      detailed: get("detailed") === "1",
    },
    profile: parseProfile(get("profile")),
    frame: get("frame") ?? "",
    tables: fieldsWith(fields, TABLE_PREFIX, parseTable),
    row: get("row") ?? "",
    process: whole(get("process")),
    analysis: { name: get("analysis") ?? "", options: fieldsWith(fields, OPTION_PREFIX, (value) => value) },
    query: get("sql") ?? "",
  };
}

const rangeText = (range: TimeRange | undefined): string =>
  range ? `${Math.round(range.startNs)}-${Math.round(range.endNs)}` : WHOLE;

/** Writes the hash (with its `#`); what is not chosen is left out. */
export function formatState(state: State): string {
  const fields: [string, string][] = [["page", state.page]];
  if (state.window) fields.push(["time", rangeText(state.window)]);
  if (state.trail.length) fields.push(["trail", state.trail.slice(-TRAIL_LIMIT).map(rangeText).join("~")]);
  if (state.open) fields.push(["open", state.open.join("_")]);
  if (state.measured.length) fields.push(["metrics", state.measured.join("_")]);
  fields.push(...rowsFields(state.rows));
  if (state.selection) {
    const { location, startNs, depth } = state.selection;
    fields.push(["span", `${location}_${startNs}_${depth}`]);
  }
  if (state.gap) fields.push(["gap", `${state.gap.location}_${state.gap.startNs}`]);
  if (state.critical !== undefined) fields.push(["critical", String(state.critical)]);
  if (state.messages) fields.push(["messages", "1"]);
  if (state.notes) fields.push(["notes", "1"]);
  fields.push(...drawerFields(state.drawer));
  if (state.range) fields.push(["range", rangeText(state.range)]);
  if (state.find) fields.push(["find", state.find]);
  if (state.step !== undefined) fields.push(["step", String(state.step)]);
  if (state.region) fields.push(["region", state.region]);
  if (state.level) fields.push(["level", state.level]);
  const { metric, sort, widths } = state.stack;
  if (metric !== INITIAL.stack.metric || sort !== INITIAL.stack.sort || widths !== INITIAL.stack.widths)
    fields.push(["stack", `${metric}-${sort}-${widths}`]);
  if (state.stack.folded.length) fields.push(["folded", state.stack.folded.join("~")]);
  if (state.flow) fields.push(["flow", "1"]);
  if (state.steps.classes.length) fields.push(["only", state.steps.classes.join("~")]);
  if (state.steps.outliers) fields.push(["slow", "1"]);
  if (state.steps.detailed) fields.push(["detailed", "1"]);
  const profile = [state.profile.form, state.profile.measure, state.profile.place, state.profile.part].join("-");
  if (profile !== "heavy---") fields.push(["profile", profile]);
  if (state.frame) fields.push(["frame", state.frame]);
  for (const [name, view] of Object.entries(state.tables)) {
    const text = tableText(view);
    if (text) fields.push([`${TABLE_PREFIX}${name}`, text]);
  }
  if (state.row) fields.push(["row", state.row]);
  if (state.process !== undefined) fields.push(["process", String(state.process)]);
  if (state.analysis.name) fields.push(["analysis", state.analysis.name]);
  for (const [name, value] of Object.entries(state.analysis.options)) fields.push([`${OPTION_PREFIX}${name}`, value]);
  if (state.query) fields.push(["sql", state.query]);
  return `#${fields.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")}`;
}
