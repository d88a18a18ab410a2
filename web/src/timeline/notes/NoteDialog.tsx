// Where a note is written, changed and deleted.
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { formatDuration } from "../../base/time";
import { subjectOf } from "../../data/notes";
import { explain } from "../../data/wire/api";
import { Button, Close } from "../../widgets/controls";
import type { TimelineModel } from "../model/timelineModel";

/** As the server has it (MOST_TEXT of user_notes.py). */
const MOST_TEXT = 2000;

export function NoteDialog({ model }: { model: TimelineModel }) {
  const { session, run } = model;
  const dialog = useRef<HTMLDialogElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const note = model.draft.value;
  const trouble = useSignal("");
  const close = (): void => {
    model.draft.value = undefined;
  };
  // Before the next key is pressed: whoever types fast must not zoom instead.
  useLayoutEffect(() => {
    trouble.value = "";
    if (!note) dialog.current?.close();
    else if (!dialog.current?.open) {
      dialog.current?.showModal();
      if (field.current) field.current.value = note.text;
      field.current?.focus();
    }
  }, [note]);
  // Closed only once the server has it: what was written is not lost where it cannot be kept.
  const change = async (sent: Promise<void>): Promise<void> => {
    try {
      await sent;
      close();
    } catch (error) {
      trouble.value = explain(error) ?? "";
    }
  };
  const save = (): void => {
    const text = field.current?.value.trim();
    if (note && text) void change(session.notes.write({ ...note, text }));
  };
  const place = note?.location === undefined ? undefined : run.locations[note.location]?.name;
  const known = note && session.notes.list.value.some(({ key }) => key === note.key);
  return (
    <dialog ref={dialog} class="legend-card note-card" aria-labelledby="note-title" onClose={close}>
      <header class="flex gap-14">
        <h2 id="note-title">Note on a {note && subjectOf(note)}</h2>
        <Close label="Close" onClick={close} />
      </header>
      <p class="weak fine">
        {note && formatDuration(note.start_ns)} after the start{place && `, ${place}`}
      </p>
      <textarea
        ref={field}
        rows={3}
        maxLength={MOST_TEXT}
        aria-label="Text of the note"
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          save();
        }}
      />
      <p role="alert">{trouble.value}</p>
      <div class="buttons">
        <Button class="primary" onClick={save}>
          Save <kbd>Enter</kbd>
        </Button>
        {known && <Button onClick={() => void change(session.notes.remove(note.key))}>Delete</Button>}
      </div>
    </dialog>
  );
}
