"""`strobe summary TRACE`: the verdict, one step and its parts, what to fix, how good the data are."""

from __future__ import annotations

import shutil
import sys

from strobe.cli.options import emit, parser, write
from strobe.model.verb import Verb


def run(words: list[str]) -> int:
    """Parse the command line and print the summary."""
    reader = parser("summary", __doc__ or "")
    own = reader.add_argument_group("this verb")
    own.add_argument(
        "--step-level",
        metavar="LEVEL",
        help="a step is an iteration of this loop: +1 (around it), -1 (inside), or its name",
    )
    own.add_argument("--step-at", metavar="EVENT", help="a step begins at each event of this name")
    arguments = reader.parse_args(words)

    from strobe.present.summary import summarise
    from strobe.present.summary_text import summary_text
    from strobe.present.text import supports
    from strobe.store.trace import open_trace
    from strobe.structure.asked import Asked
    from strobe.structure.steps import choose_steps

    trace = open_trace(arguments.trace)
    if arguments.format == "nvprof":
        from strobe.present.nvprof import summary as nvprof_summary

        write(nvprof_summary(trace), arguments.output)
        return 0
    choose_steps(trace, Asked(arguments.step_level, arguments.step_at))
    summary = summarise(trace)
    rows = arguments.where or arguments.sort or arguments.top is not None or arguments.columns
    if arguments.format == "json" and not rows:
        write(summary.to_json() + "\n", arguments.output)
        return 0
    if arguments.format or rows:
        from strobe.present.summary_table import summary_table

        return emit(summary_table(summary), arguments)
    fancy = arguments.output is not None or supports("─█▌·…", sys.stdout)
    width = shutil.get_terminal_size((100, 40)).columns if sys.stdout.isatty() else 100
    write(summary_text(summary, unicode=fancy, width=width), arguments.output)
    return 0


VERB = Verb("summary", "Verdict, one step and its parts, what to fix", run)
