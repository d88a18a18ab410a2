"""Notes and labels of a run: what was written, and changes that viewers send."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict

from strobe.errors import UsageError
from strobe.server.routing.endpoints import MB, route
from strobe.server.trace_context import TraceContext
from strobe.trace.user_notes import (
    Note,
    UserNotes,
    change_notes,
    notes_file,
    read_notes,
    with_labels,
    with_note,
    without_note,
)

# A text of the greatest length in characters of four bytes, each escaped, and the other fields.
MOST_CHANGE = 64 << 10


class NotesOfRun(TypedDict):
    """What was noted on a run: its notes in order of time, and its labels."""

    notes: list[Note]
    labels: list[str]


@route("notes", most_bytes=16 * MB, noted=True)
def notes(context: TraceContext) -> NotesOfRun:
    """What people noted: notes on moments, ranges and spans in order of time, and labels of the run."""
    return _of_run(read_notes(context.notes_file))


def changed_notes(path: Path, body: bytes) -> NotesOfRun:
    """Change what is noted on the run at `path` as a viewer asks, and return it.

    `body` is JSON: {"note": fields of a Note} adds one, or replaces the one with its `key`; {"remove": key} deletes
    one; {"labels": [...]} replaces the labels. Raises UsageError for anything else, and where the file cannot be
    written.
    """
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UsageError("a change of the notes is not JSON") from error
    match asked:
        case {"note": dict(fields)}:
            change = with_note(fields)
        case {"remove": str(key)}:
            change = without_note(key)
        case {"labels": list(labels)}:
            change = with_labels(labels)
        case _:
            raise UsageError("a change of the notes has one of: note, remove, labels")
    return _of_run(change_notes(notes_file(path), change))


def _of_run(noted: UserNotes) -> NotesOfRun:
    return {"notes": list(noted.notes), "labels": list(noted.labels)}
