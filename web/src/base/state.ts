// What the page shows, as text in the address's hash: reloading or sending the address brings back the same picture.
import type { TimeRange } from "./time";

/** One span, by what finds it again: its location, its start and its depth. */
export type SpanKey = { readonly location: number; readonly startNs: number; readonly depth: number };

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
  readonly selection: SpanKey | undefined;
  /** A chosen stretch of time that was not zoomed into (yet). */
  readonly range: TimeRange | undefined;
  readonly find: string;
};

export const INITIAL: State = {
  page: "overview",
  window: undefined,
  trail: [],
  open: undefined,
  measured: [],
  selection: undefined,
  range: undefined,
  find: "",
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
    selection: parseSelection(get("span")),
    range: parseRange(get("range")),
    find: get("find") ?? "",
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
  if (state.selection) {
    const { location, startNs, depth } = state.selection;
    fields.push(["span", `${location}_${startNs}_${depth}`]);
  }
  if (state.range) fields.push(["range", rangeText(state.range)]);
  if (state.find) fields.push(["find", state.find]);
  return `#${fields.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")}`;
}
