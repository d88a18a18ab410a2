"""`strobe sql TRACE "select ..."`: any question, in SQL, read-only."""

from __future__ import annotations

import os

from strobe.cli.options import add_option, answering, emit
from strobe.errors import UsageError
from strobe.model.option import Option
from strobe.model.verb import Verb

_DESCRIPTION = """\
Answer one SELECT. Tables: spans (with name, paradigm, role, group, process, thread, step), statistics (of folded
steps), totals (both, summed up by location and call path), regions, call_paths, locations, processes, metrics,
quality, and every analysis by the name of its method (operators, gpu_trace, ...). Times are in nanoseconds.
"""

TIMEOUT = Option("timeout_s", "Give up after this time.", float, unit="s")


def run(words: list[str]) -> int:
    """Parse the command line, run the query, print the rows."""
    reader = answering("sql", _DESCRIPTION)
    reader.add_argument("query", nargs="?", metavar="QUERY", help="The query, if a trace is named first.")
    add_option(reader, TIMEOUT)
    arguments = reader.parse_intermixed_args(words)  # TRACE --json QUERY
    # `strobe sql "select ..."` asks the last run.
    if arguments.query is None:
        arguments.trace, arguments.query = "last", arguments.trace
    if arguments.query == "last" or os.path.exists(arguments.query):
        raise UsageError(
            "no query given", do='Example: strobe sql last "select name, sum(self_ns) from totals group by 1"'
        )
    from strobe.api.trace import open_trace

    return emit(open_trace(arguments.trace).sql(arguments.query, timeout_s=arguments.timeout_s), arguments)


VERB = Verb("sql", "Answer any question in SQL, read-only", run)
