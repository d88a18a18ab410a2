"""`strobe snapshot TRACE`: the run on one page, in plain sentences, as text, JSON or a single HTML file."""

from __future__ import annotations

from strobe.cli.options import OUTPUT, page_form, reading, write
from strobe.model.option import Option
from strobe.model.verb import Verb

_DESCRIPTION = "Describe the run on one page, in plain sentences: as text, JSON or a single HTML file."
_OPTIONS = (
    Option("json", "Print the same numbers and sentences as JSON.", bool, False),
    Option("html", "Write a page for the browser to this file: self-contained, without scripts.", metavar="FILE"),
    OUTPUT,
)


def run(words: list[str]) -> int:
    """Parse the command line and print the page."""
    arguments = reading("snapshot", _DESCRIPTION, _OPTIONS).parse_args(words)

    from strobe.api.trace import open_trace
    from strobe.present.snapshot import snapshot
    from strobe.present.snapshot_html import snapshot_html
    from strobe.present.snapshot_text import snapshot_text

    page = snapshot(open_trace(arguments.trace))
    if arguments.html:
        write(snapshot_html(page), arguments.html, data=True)
        if not (arguments.json or arguments.output):
            return 0
    if arguments.json:
        write(page.to_json() + "\n", arguments.output, data=True)
        return 0
    unicode, width = page_form(arguments.output)
    write(snapshot_text(page, unicode=unicode, width=width), arguments.output)
    return 0


VERB = Verb("snapshot", "Describe the run on one page, in plain sentences", run)
