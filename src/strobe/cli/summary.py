"""`strobe summary TRACE`: the verdict, one step and its parts, what to fix, how good the data are."""

from __future__ import annotations

import shutil
import sys

from strobe.cli.options import EXIT_CODES, Parser, write
from strobe.model.verb import Verb


def run(words: list[str]) -> int:
    """Parse the command line and print the summary."""
    parser = Parser(prog="strobe summary", description=__doc__, epilog=EXIT_CODES, allow_abbrev=False)
    parser.add_argument("trace", nargs="?", default="last", metavar="TRACE", help="path, last (default), last~1")
    parser.add_argument("--json", action="store_true", help="the same as data")
    parser.add_argument("-o", "--output", metavar="FILE", help="write there instead of stdout")
    arguments = parser.parse_args(words)

    from strobe.present.summary import summarise
    from strobe.present.summary_text import summary_text
    from strobe.present.text import supports
    from strobe.store.trace import open_trace

    summary = summarise(open_trace(arguments.trace))
    if arguments.json:
        write(summary.to_json() + "\n", arguments.output)
        return 0
    fancy = arguments.output is not None or supports("─█▌·…", sys.stdout)
    width = shutil.get_terminal_size((100, 40)).columns if sys.stdout.isatty() else 100
    write(summary_text(summary, unicode=fancy, width=width), arguments.output)
    return 0


VERB = Verb("summary", "Verdict, one step and its parts, what to fix", run)
