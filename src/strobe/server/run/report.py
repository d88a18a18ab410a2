"""The report of the run as one HTML file: what `strobe export --to html` writes. The page adds its pictures."""

from __future__ import annotations

from typing import TypedDict

from strobe.formats.html import SECTIONS, words
from strobe.formats.html.page import report
from strobe.server.routing.endpoints import MB, parameter, route
from strobe.server.trace_context import TraceContext


class Report(TypedDict):
    """A report: the document, and sentences about what it leaves out. Pictures belong before `</main>`."""

    html: str
    notes: list[str]


@route(
    "report",
    parameter("sections", f"which, with commas between: {', '.join(SECTIONS)}", str, ",".join(SECTIONS), most=200),
    most_bytes=8 * MB,
    slow=True,
    noted=True,
)
def report_of_run(context: TraceContext, sections: str) -> Report:
    """The chosen sections of the report as one HTML file that needs nothing else."""
    html, notes = report(context.read, words(sections))
    return {"html": html, "notes": notes}
