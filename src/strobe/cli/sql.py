"""`strobe sql TRACE "select ..."`: any question, in SQL, read-only."""

from __future__ import annotations

from strobe.cli.options import emit_from, parser
from strobe.errors import UsageError
from strobe.model.verb import Verb

_EXAMPLE = 'strobe sql last "select name, sum(self_ns) from totals group by 1 order by 2 desc limit 10"'
_DESCRIPTION = """\
Answer one SELECT. Tables: spans (with name, paradigm, role, group, process, thread, step), statistics (of what was
folded), totals (both, summed up by location and call path), regions, call_paths, locations, processes, metrics,
quality, and every analysis by its name (operators, steps, ...). Times are nanoseconds.
"""


def run(words: list[str]) -> int:
    """Parse the command line, run the query, print the rows."""
    reader = parser("sql", _DESCRIPTION)
    reader.add_argument("query", nargs="?", metavar="QUERY", help="the query, when a trace is named first")
    reader.add_argument("--timeout", type=float, metavar="SECONDS", help="give up after this many seconds")
    arguments = reader.parse_args(words)
    # `strobe sql "select ..."` asks the last run.
    if arguments.query is None:
        arguments.trace, arguments.query = "last", arguments.trace
    if arguments.query == "last":
        raise UsageError(
            "no query given", do='Example: strobe sql last "select name, sum(self_ns) from totals group by 1"'
        )
    return emit_from(arguments, lambda trace: trace.sql(arguments.query, timeout_s=arguments.timeout))


VERB = Verb("sql", "Any question, in SQL, read-only", run)
