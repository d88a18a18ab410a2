"""`strobe filter TRACE`: write a Score-P filter that leaves out what costs more to record than it is worth."""

from __future__ import annotations

import re

from strobe.cli.options import OUTPUT, reading, write
from strobe.model.verb import Verb

_DESCRIPTION = """\
Write a filter in Score-P's syntax that leaves out the functions that `strobe score` marks, for
`strobe cc --filter FILE` and `strobe run --filter FILE`.
"""
_SPECIAL = re.compile(r"[\\*?\[#\s]")  # has a meaning in a pattern, or ends one


def run(words: list[str]) -> int:
    """Parse the command line and write the filter."""
    from strobe.analyses.program.score import ANALYSIS

    arguments = reading("filter", _DESCRIPTION, (*ANALYSIS.options, OUTPUT)).parse_args(words)

    from strobe.answers.program import score
    from strobe.api.trace import open_trace

    options = {option.name: getattr(arguments, option.name) for option in ANALYSIS.options}
    table = score.run(open_trace(arguments.trace), **options)
    names = [str(row["name"]) for row in table.to_pylist() if row["filter"]]
    lines = ["    " + _SPECIAL.sub(r"\\\g<0>", name) for name in dict.fromkeys(names)]
    text = ["SCOREP_REGION_NAMES_BEGIN", "  EXCLUDE", *lines, "SCOREP_REGION_NAMES_END"]
    write("\n".join([f"# {table.note.partition(';')[0]}", *(text if names else [])]) + "\n", arguments.output)
    return 0


VERB = Verb("filter", "Write a filter that leaves out what costs more to record than it is worth", run)
