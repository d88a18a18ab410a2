"""`strobe cut TRACE -o NEW.strobe`: keep a range of steps, times or ranks as a trace of its own."""

from __future__ import annotations

import sys

from strobe.cli.options import EXIT_CODES, Parser, add_part, part_of
from strobe.model.verb import Verb

_DESCRIPTION = """\
Keep a part of a trace as a trace of its own. Spans that reach over an edge end there, and are counted (spans_cut);
processes that are kept from begin to end keep the statistics of folded steps, others lose them.
"""
_ANONYMISE = """\
replace names, paths, hosts, command lines and texts by function_12, file_3.py, ...; names that frameworks give stay
(aten::*, other operators of PyTorch itself, CUDA, NCCL and MPI functions, Optimizer.step#, ProfilerStep#,
enumerate(DataLoader)#), so that steps are still found
"""


def run(words: list[str]) -> int:
    """Parse the command line and cut; the path of the new trace goes to stdout."""
    reader = Parser(prog="strobe cut", description=_DESCRIPTION, epilog=EXIT_CODES, allow_abbrev=False)
    reader.add_argument("trace", nargs="?", default="last", metavar="TRACE", help="a path, or last (default), last~1")
    reader.add_argument("-o", "--output", metavar="NAME", required=True, help="the trace to make")
    add_part(reader)
    reader.add_argument("--anonymise", action="store_true", help=_ANONYMISE)
    arguments = reader.parse_args(words)

    from pathlib import Path

    from strobe.store.archive import SUFFIX
    from strobe.store.trace import open_trace

    name = arguments.output if arguments.output.endswith(SUFFIX) else arguments.output + SUFFIX
    for note in part_of(open_trace(arguments.trace), arguments).cut(Path(name), anonymise=arguments.anonymise):
        print(f"strobe: {note}", file=sys.stderr)
    print(name)
    return 0


VERB = Verb("cut", "Keep a part of a trace, with or without its names", run)
