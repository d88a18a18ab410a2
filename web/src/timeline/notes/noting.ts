// Which note a person means: on the chosen stretch, else on the selected span, else on the moment at the pointer.

import { toNs } from "../../base/viewport";
import { newKey, rangeOf } from "../../data/notes";
import type { NoteFields } from "../../data/wire/api";
import type { Note } from "../../data/wire/wire.generated";
import type { TimelineModel } from "../model/timelineModel";
import { rowAt } from "../pointing/hitTest";

/** A note without a text yet. */
export function draftOf(model: TimelineModel): NoteFields {
  const { range } = model.session.state.peek();
  const span = model.selection.span.peek();
  const empty = { key: newKey(), text: "", location: undefined, depth: undefined, span: "" };
  if (range) return { ...empty, start_ns: Math.round(range.startNs), end_ns: Math.round(range.endNs) };
  if (span) {
    const { location, start_ns, duration_ns, depth, name } = span;
    return { ...empty, start_ns, end_ns: start_ns + duration_ns, location, depth, span: name };
  }
  const { width } = model.size.peek();
  const at = model.pointer.at.peek();
  const moment = Math.max(0, Math.round(toNs(at?.x ?? width / 2, model.time.shown.peek(), width)));
  const ground = { rows: at ? model.rows.visible(at.pane) : [], scrollTop: at?.pane.scrollTop.peek() ?? 0 };
  const row = at && rowAt(ground, at.y);
  const location = row?.kind === "location" && !row.stands ? row.location.location : undefined;
  return { ...empty, start_ns: moment, end_ns: moment, location };
}

/** Shows what a note is on: its time, and the span or the row. */
export function goToNote(model: TimelineModel, note: Note): void {
  const { location, depth, start_ns, end_ns } = note;
  if (end_ns > start_ns) model.time.goAround(rangeOf(note), 0.25);
  else model.time.bringIntoView({ startNs: start_ns, endNs: start_ns + 1 });
  if (location === undefined) return;
  if (depth !== undefined) void model.selection.goTo({ location, start_ns, duration_ns: end_ns - start_ns, depth });
  else model.rows.bringIntoView(location);
}

/** Begins a note. */
export const beginNote = (model: TimelineModel): void => {
  model.draft.value = draftOf(model);
};

/** Opens the list of notes, or closes it. */
export const toggleNotes = ({ session }: TimelineModel): void => session.update({ notes: !session.state.peek().notes });
