// How the rows of the timeline are looked at, as text in the address: preset, order, filter, what is folded, pinned, measured.

/** Vampir's timelines, and all rows of everything. */
export const PRESETS = ["all", "master", "process", "counter", "summary", "radar"] as const;
export type Preset = (typeof PRESETS)[number];

/** `time`: exclusive time of the chosen region in the window; `value`: the measure at a moment. Both most first. */
export const ROW_SORTS = ["rank", "host", "time", "value"] as const;
export type RowSort = (typeof ROW_SORTS)[number];

export type RowsView = {
  readonly preset: Preset;
  readonly sort: RowSort;
  /** The moment whose values sort the rows, ns. */
  readonly sortAt: number | undefined;
  /** What rows must match: `rank:3-7 host:n01 stream`. */
  readonly filter: string;
  /** Whether processes and hosts come folded: "" is as it suits their number. */
  readonly folds: "" | "all" | "none";
  /** Rows that are folded where they come unfolded, and the other way round. */
  readonly flipped: readonly string[];
  /** Rows that are repeated in the pane at the top. */
  readonly pinned: readonly string[];
  /** Whether all rows share the height of the screen; undefined is as it suits their number. */
  readonly fit: boolean | undefined;
  /** What the radar shows and `value` sorts by: "group.NAME", "region.NAME", "metric.NAME"; "" is the usual one. */
  readonly measure: string;
  /** The location of the preset `process`. */
  readonly location: number | undefined;
};

export const ROWS_VIEW: RowsView = {
  preset: "all",
  sort: "rank",
  sortAt: undefined,
  filter: "",
  folds: "",
  flipped: [],
  pinned: [],
  fit: undefined,
  measure: "",
  location: undefined,
};

/** A whole number; undefined where it is none. */
export const whole = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
const listed = (text: string | undefined): string[] => (text ?? "").split("~").filter((key) => /^[a-z]\d/.test(key));

const MEASURE = /^(group|region|metric)\../;

/** Reads the fields of an address. Whatever it cannot understand counts as not chosen. */
export function parseRows(get: (name: string) => string | undefined): RowsView {
  const [sort, moment] = (get("sort") ?? "").split("-");
  const sortAt = sort === "value" ? whole(moment) : undefined;
  const known = ROW_SORTS.find((one) => one === sort && (one !== "value" || sortAt !== undefined));
  const measure = get("measure") ?? "";
  const [folds, ...flipped] = (get("fold") ?? "").split("~");
  return {
    preset: PRESETS.find((one) => one === get("preset")) ?? ROWS_VIEW.preset,
    sort: known ?? ROWS_VIEW.sort,
    sortAt,
    filter: get("rows") ?? "",
    folds: folds === "all" || folds === "none" ? folds : "",
    flipped: listed(flipped.join("~")),
    pinned: listed(get("pin")),
    fit: get("fit") === "1" ? true : get("fit") === "0" ? false : undefined,
    measure: MEASURE.test(measure) ? measure : "",
    location: whole(get("location")),
  };
}

/** Writes the fields; what is not chosen is left out. */
export function rowsFields(view: RowsView): [string, string][] {
  const fields: [string, string][] = [];
  if (view.preset !== ROWS_VIEW.preset) fields.push(["preset", view.preset]);
  if (view.sort !== ROWS_VIEW.sort) fields.push(["sort", view.sort === "value" ? `value-${view.sortAt}` : view.sort]);
  if (view.filter) fields.push(["rows", view.filter]);
  if (view.folds || view.flipped.length) fields.push(["fold", [view.folds, ...view.flipped].join("~")]);
  if (view.pinned.length) fields.push(["pin", view.pinned.join("~")]);
  if (view.fit !== undefined) fields.push(["fit", view.fit ? "1" : "0"]);
  if (view.measure) fields.push(["measure", view.measure]);
  if (view.location !== undefined) fields.push(["location", String(view.location)]);
  return fields;
}
