"""`strobe snapshot TRACE`: the run on one page, in plain sentences; as text, as JSON, or as one file of HTML."""

from __future__ import annotations

import shutil
import sys

from strobe.cli.options import EXIT_CODES, Parser, write
from strobe.model.verb import Verb


def run(words: list[str]) -> int:
    """Parse the command line and print the page."""
    reader = Parser(prog="strobe snapshot", description=__doc__, epilog=EXIT_CODES, allow_abbrev=False)
    reader.add_argument(
        "trace", nargs="?", default="last", metavar="TRACE", help="a path, or last (default), last~1, ..."
    )
    reader.add_argument("--json", action="store_true", help="the same numbers and sentences as JSON")
    reader.add_argument(
        "--html", metavar="FILE", help="write a page for the browser there: one file, without script and network"
    )
    reader.add_argument("-o", "--output", metavar="FILE", help="write there instead of stdout")
    arguments = reader.parse_args(words)

    from strobe.present.snapshot import snapshot
    from strobe.present.snapshot_html import snapshot_html
    from strobe.present.snapshot_text import WIDTH, snapshot_text
    from strobe.present.text import supports
    from strobe.store.trace import open_trace

    page = snapshot(open_trace(arguments.trace))
    if arguments.html:
        write(snapshot_html(page), arguments.html)
        if not (arguments.json or arguments.output):
            return 0
    if arguments.json:
        write(page.to_json() + "\n", arguments.output)
        return 0
    fancy = arguments.output is not None or supports("─█▌·…", sys.stdout)
    width = shutil.get_terminal_size((WIDTH, 40)).columns if sys.stdout.isatty() else WIDTH
    write(snapshot_text(page, unicode=fancy, width=width), arguments.output)
    return 0


VERB = Verb("snapshot", "The run on one page, in plain sentences", run)
