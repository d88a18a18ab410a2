// All notes on the run in order of time: to jump to, and to change.
import { plural } from "../../base/quantity";
import { formatDuration } from "../../base/time";
import { subjectOf } from "../../data/notes";
import { Button, Close } from "../../widgets/controls";
import type { TimelineModel } from "../model/timelineModel";
import { beginNote, goToNote, toggleNotes } from "./noting";

export function NotesList({ model }: { model: TimelineModel }) {
  const { notes } = model.session;
  return (
    <section class="stretch rows notes" aria-labelledby="notes-title">
      <header class="flex gap-6">
        <h2 id="notes-title">{notes.list.value.length ? plural(notes.list.value.length, "note") : "Notes"}</h2>
        <span class="spacer" />
        <Close label="Close the notes" onClick={() => toggleNotes(model)} />
      </header>
      <ul class="rows gap-6 fine">
        {notes.list.value.map((note) => (
          <li key={note.key} class="flex gap-4">
            <Button class="plain fill note-line" title={note.text} onClick={() => goToNote(model, note)}>
              <span class="weak">
                {formatDuration(note.start_ns)} · {subjectOf(note)}
                {note.location !== undefined && ` · ${model.run.locations[note.location]?.name ?? ""}`}
              </span>
              <span class="note-text">{note.text}</span>
            </Button>
            <Button class="quiet" aria-label={`Edit the note ${note.text}`} onClick={() => (model.draft.value = note)}>
              ✎
            </Button>
          </li>
        ))}
      </ul>
      <div class="buttons">
        <Button onClick={() => beginNote(model)}>
          New note <kbd>B</kbd>
        </Button>
      </div>
      <p class="weak finer">
        A note is on the chosen stretch, else on the selected span, else on the moment at the pointer. Notes are kept
        beside the trace.
      </p>
    </section>
  );
}
