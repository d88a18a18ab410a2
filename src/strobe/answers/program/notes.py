"""Notes: what people noted on the timeline of the run, in order of time."""

from __future__ import annotations

from strobe.analyses.program.notes import ANALYSIS
from strobe.errors import TraceError
from strobe.tables.table import Table, make_table
from strobe.trace.definition_rows import location_rows, ranks_of
from strobe.trace.trace import Trace
from strobe.trace.user_notes import Note, notes_file, read_notes

_NOTHING = "nobody noted anything: B on the page Timeline of strobe view writes a note"


def run(trace: Trace) -> Table:
    """Return the answer; see `strobe.analyses.program.notes`."""
    try:
        noted = read_notes(notes_file(trace.path))
    except TraceError as error:
        return make_table(ANALYSIS.columns, [], note=error.what)
    locations, ranks = location_rows(trace), ranks_of(trace)
    rows = []
    for note in noted.notes:
        row = locations[note.location] if note.location is not None and note.location < len(locations) else None
        rows.append(
            {
                "kind": _kind(note),
                "start_ns": note.start_ns,
                "duration_ns": note.end_ns - note.start_ns,
                "rank": row and ranks[row.process],
                "thread": row and row.name,
                "span": note.span or None,
                "text": note.text,
                "location": note.location,
                "depth": note.depth,
                "changed_unix_ns": note.changed_unix_ns,
                "key": note.key,
            }
        )
    about = f"labels: {', '.join(noted.labels)}" if noted.labels else ""
    return make_table(ANALYSIS.columns, rows, about=about, note="" if rows else _NOTHING)


def _kind(note: Note) -> str:
    if note.depth is not None:
        return "span"
    return "range" if note.end_ns > note.start_ns else "moment"
