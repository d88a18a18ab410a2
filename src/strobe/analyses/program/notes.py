"""Notes: what people noted on the timeline of the run, in order of time.

A note is on a moment, on a range of time, or on a span, and belongs to a thread or stream, or to all of them. Notes
are written on the page Timeline of `strobe view`. They are in the file `notes.json` in the trace's folder, or in
`FILE.notes.json` beside a file of another tool; measurements do not change with them.
"""

from strobe.model.columns import Column
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "What did people note on the timeline?",
    shows=0,
    columns=(
        Column("kind", "string", "", "moment, range, span"),
        Column("start_ns", "int64", "ns", "begin, since the start of the trace"),
        Column("duration_ns", "int64", "ns", "length; 0 for a moment"),
        Column("rank", "int64", "", "rank of the process of the row; null if unknown, or for all rows"),
        Column("thread", "string", "", "name of the thread or stream; null for all rows"),
        Column("span", "string", "", "name of the span; null if the note is not on a span"),
        Column("text", "string", "", "what was noted"),
        Column("location", "int64", "", "the row; null for all rows", extra=True),
        Column("depth", "int64", "", "depth of the span; null if the note is not on a span", extra=True),
        Column("changed_unix_ns", "int64", "ns", "when it was written, since 1970 (UTC)", extra=True),
        Column("key", "string", "", "its name in the file", extra=True),
    ),
)
