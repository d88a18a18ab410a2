// Keys that mean rows: walking them, folding, pinning, and how all of them are looked at.
import { PRESETS } from "../base/rowsView";
import { formatDuration } from "../base/time";
import { rowAt } from "./hit";
import { measureTitle } from "./measure";
import type { TimelineModel } from "./model";
import { fits, foldedByDefault, type Row, visibleRows } from "./rows";
import { toNs } from "./viewport";

/** Page up and down walk this many rows. */
const PAGE = 10;

/** The filter's field, which a key leads to. */
export const FILTER_FIELD = "row-filter";

/** Rows that the keys stop at: metrics have nothing to fold or open. */
const stops = (model: TimelineModel): readonly Row[] => model.rows.peek().filter((row) => row.kind !== "metric");

/** Brings the keys to a row. */
export function focusRow(model: TimelineModel, row: Row | undefined): void {
  if (!row) return;
  model.focused.value = row.key;
  model.takeFocus.value = row.key;
}

/** Folds or unfolds, opens or closes; `open` says which of both is wanted. */
export function setOpen(model: TimelineModel, row: Row, open: boolean): void {
  if (row.kind === "host" && row.folded === open) model.flip(row.key);
  else if (row.kind === "process" && row.folds && !open) model.flip(row.key);
  else if (row.kind === "location" && row.stands && open) model.flip(row.key);
  else if (row.kind === "ranks" && row.open !== open) model.flip(row.key);
  else if (row.kind === "location" && !row.stands && row.open !== open) model.toggle(row.location.location);
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
  const at = rows.findIndex((row) => row.key === model.focused.peek());
  focusRow(model, rows[Math.min(rows.length - 1, Math.max(0, at + by))]);
}

/** Folds all processes, or, where they are, unfolds them. */
export function foldAll(model: TimelineModel): void {
  const view = model.view.peek();
  const folded = view.folds ? view.folds === "all" : foldedByDefault("p0", model.ask.peek());
  model.changeRows({ folds: folded ? "none" : "all", flipped: [] });
}

/** The next of Vampir's timelines. */
export function nextPreset(model: TimelineModel, by: number): void {
  const at = PRESETS.indexOf(model.view.peek().preset) + by + PRESETS.length;
  model.changeRows({ preset: PRESETS[at % PRESETS.length] ?? "all", flipped: [], folds: "" }, "push");
}

/** Sorts the rows by what they have under the pointer, most first. */
export function sortAtPointer(model: TimelineModel): void {
  const { window, pointer, size } = model;
  const at = toNs(pointer.peek()?.x ?? size.peek().width / 2, window.peek(), size.peek().width);
  model.changeRows({ sort: "value", sortAt: Math.max(0, Math.round(at)) });
  model.session.say(`Sorted by ${measureTitle(model.measure.peek())} at ${formatDuration(at)}`);
}

/** The row that is meant: the one that the keys are at, else the one under the pointer. */
export function meantRow(model: TimelineModel, inRows: boolean): Row | undefined {
  const pointer = model.pointer.peek();
  const pane = pointer?.pane ?? model.main;
  const under =
    pointer &&
    rowAt(
      {
        rows: visibleRows(pane.rows.peek(), pane.scrollTop.peek(), pane.height.peek()),
        scrollTop: pane.scrollTop.peek(),
      },
      pointer.y,
    );
  const focused = model.rows.peek().find((row) => row.key === model.focused.peek());
  return inRows ? focused : (under ?? focused);
}

/** What the keys of base/keys.json do with rows, by the names of their actions. `inRows`: the name of a row has the keyboard. */
export function rowActions(model: TimelineModel, inRows: () => boolean): Readonly<Record<string, () => void>> {
  const at = (): Row | undefined => model.rows.peek().find((row) => row.key === model.focused.peek());
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
    toRows: () => focusRow(model, at() ?? model.visible(model.main).find((row) => row.kind !== "metric")),
    pinRow: () => {
      const row = meantRow(model, inRows());
      if (row && /^[lpmt]/.test(row.key)) model.pin(row.key);
      else model.session.say("Point at a thread, a folded process or a metric to pin it");
    },
    foldAll: () => foldAll(model),
    fitRows: () => model.changeRows({ fit: !fits(model.ask.peek()) }),
    nextView: () => nextPreset(model, 1),
    previousView: () => nextPreset(model, -1),
    sortAtPointer: () => sortAtPointer(model),
    filterRows: () => document.getElementById(FILTER_FIELD)?.focus(),
  };
}
