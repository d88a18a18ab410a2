"""`strobe cut TRACE -o NEW.strobe`: keep a range of steps, times or ranks as a new trace."""

from __future__ import annotations

from strobe.cli.options import add_part, part_of, print_path, reading
from strobe.model.option import Option
from strobe.model.terminal import talk
from strobe.model.verb import Verb

_DESCRIPTION = """\
Keep a part of a trace as a new trace. Spans that cross an edge of the part end there; the quality table counts them
(spans_cut). Processes that are kept from beginning to end keep the statistics of folded steps; others lose them.
"""
_ANONYMISE = """\
Replace names, paths, hosts, command lines and texts by function_12, file_3.py, ... Names given by frameworks stay
(operators of PyTorch, functions of CUDA, NCCL and MPI, Optimizer.step#, ProfilerStep#, enumerate(DataLoader)#), so that
steps are still found.
"""
_OPTIONS = (
    Option("output", "Name of the trace to make.", also=("-o",), metavar="NAME", required=True),
    Option("anonymise", _ANONYMISE, bool, False),
)


def run(words: list[str]) -> int:
    """Parse the command line and cut; the path of the new trace goes to stdout."""
    reader = reading("cut", _DESCRIPTION, _OPTIONS)
    add_part(reader)
    arguments = reader.parse_args(words)

    from pathlib import Path

    from strobe.api.trace import open_trace
    from strobe.trace.archive import SUFFIX

    name = arguments.output if arguments.output.endswith(SUFFIX) else arguments.output + SUFFIX
    for note in part_of(open_trace(arguments.trace), arguments).cut(Path(name), anonymise=arguments.anonymise):
        talk(note)
    print_path(name)
    return 0


VERB = Verb("cut", "Keep a part of a trace, with or without its names", run)
