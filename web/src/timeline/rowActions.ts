// Keys that mean rows: walking them, folding, pinning, and how all of them are looked at.

import { formatDuration } from "../base/time";
import { toNs } from "../base/viewport";
import { PRESETS } from "../state/rowsState";
import type { TimelineModel } from "./model/timelineModel";
import { rowAt } from "./pointing/hitTest";
import { measureTitle } from "./rows/radarMeasure";
import { fits, foldedByDefault, type Row } from "./rows/rowLayout";

/** Page up and down walk this many rows. */
const PAGE = 10;

/** The filter's field, which a key leads to. */
export const FILTER_FIELD = "row-filter";

/** Rows that the keys stop at: metrics have nothing to fold or open. */
const stops = (model: TimelineModel): readonly Row[] => model.rows.all.peek().filter((row) => row.kind !== "metric");

/** Brings the keys to a row. */
function focusRow(model: TimelineModel, row: Row | undefined): void {
  if (!row) return;
  model.rows.focused.value = row.key;
  model.rows.takeFocus.value = row.key;
}

/** Folds or unfolds, opens or closes; `open` is which of both is wanted. */
function setOpen(model: TimelineModel, row: Row, open: boolean): void {
  if ((row.kind === "host" || row.kind === "gpu" || row.kind === "system") && row.folded === open)
    model.rows.flip(row.key);
  else if (row.kind === "process" && row.folds && !open) model.rows.flip(row.key);
  else if (row.kind === "location" && row.stands && open) model.rows.flip(row.key);
  else if (row.kind === "ranks" && row.open !== open) model.rows.flip(row.key);
  else if (row.kind === "location" && !row.stands && row.open !== open) model.rows.toggle(row.location.location);
  else if (!open) focusRow(model, parentOf(model, row));
}

/** The row above that holds a row. */
function parentOf(model: TimelineModel, row: Row): Row | undefined {
  const rows = stops(model);
  const at = rows.findIndex((one) => one.key === row.key);
  return rows.slice(0, Math.max(0, at)).findLast((one) => one.level < row.level);
}

function walk(model: TimelineModel, by: number): void {
  const rows = stops(model);
  const at = rows.findIndex((row) => row.key === model.rows.focused.peek());
  focusRow(model, rows[Math.min(rows.length - 1, Math.max(0, at + by))]);
}

/** Folds all processes, or, where they are, unfolds them. */
export function foldAll(model: TimelineModel): void {
  const view = model.rows.view.peek();
  const folded = view.folds ? view.folds === "all" : foldedByDefault("p0", model.rows.ask.peek());
  model.rows.change({ folds: folded ? "none" : "all", flipped: [] });
}

/** The next of Vampir's timelines. */
function nextPreset(model: TimelineModel, by: number): void {
  const at = PRESETS.indexOf(model.rows.view.peek().preset) + by + PRESETS.length;
  model.rows.change({ preset: PRESETS[at % PRESETS.length] ?? "all", flipped: [], folds: "" }, "push");
}

/** Sorts the rows by what they have under the pointer, most first. */
export function sortAtPointer(model: TimelineModel): void {
  const { width } = model.size.peek();
  const at = toNs(model.pointer.at.peek()?.x ?? width / 2, model.time.shown.peek(), width);
  model.rows.change({ sort: "value", sortAt: Math.max(0, Math.round(at)) });
  model.session.notify(`Sorted by ${measureTitle(model.rows.measure.peek())} at ${formatDuration(at)}`);
}

/** The row that is meant: the one that the keys are at, else the one under the pointer. */
export function meantRow(model: TimelineModel, inRows: boolean): Row | undefined {
  const pointer = model.pointer.at.peek();
  const pane = pointer?.pane ?? model.rows.main;
  const under = pointer && rowAt({ rows: model.rows.visible(pane), scrollTop: pane.scrollTop.peek() }, pointer.y);
  const focused = model.rows.all.peek().find((row) => row.key === model.rows.focused.peek());
  return inRows ? focused : (under ?? focused);
}

/** What the keys of state/keys.json do with rows, by the names of their actions. `inRows`: the name of a row has the keyboard. */
export function rowActions(model: TimelineModel, inRows: () => boolean): Readonly<Record<string, () => void>> {
  const at = (): Row | undefined => model.rows.all.peek().find((row) => row.key === model.rows.focused.peek());
  const fold = (open: boolean): void => {
    const row = at();
    if (row) setOpen(model, row, open);
  };
  return {
    rowUp: () => walk(model, -1),
    rowDown: () => walk(model, 1),
    rowPageUp: () => walk(model, -PAGE),
    rowPageDown: () => walk(model, PAGE),
    rowFirst: () => focusRow(model, stops(model)[0]),
    rowLast: () => focusRow(model, stops(model).at(-1)),
    rowFold: () => fold(false),
    rowUnfold: () => fold(true),
    toRows: () => focusRow(model, at() ?? model.rows.visible(model.rows.main).find((row) => row.kind !== "metric")),
    pinRow: () => {
      const row = meantRow(model, inRows());
      if (row && /^[lpmt]/.test(row.key)) model.rows.pin(row.key);
      else model.session.notify("Point at a thread, a folded process or a metric to pin it");
    },
    foldAll: () => foldAll(model),
    fitRows: () => model.rows.change({ fit: !fits(model.rows.ask.peek()) }),
    nextView: () => nextPreset(model, 1),
    previousView: () => nextPreset(model, -1),
    sortAtPointer: () => sortAtPointer(model),
    filterRows: () => document.getElementById(FILTER_FIELD)?.focus(),
  };
}
