"""`strobe generate TEMPLATE...`: make a trace of any size from real ones, for benchmarks and tests."""

from __future__ import annotations

import argparse
import sys

from strobe.cli.options import EXIT_CODES, Parser
from strobe.errors import UsageError
from strobe.model.verb import Verb

_DESCRIPTION = """\
Make a trace of any size: every rank does again and again what a process of a real trace (any that strobe opens) did,
never twice in the same time. The order of all that begins and ends in a process stays, so calls nest and kernels follow
their launches as they did; ranks with a template in common begin each repetition together.
"""


def run(words: list[str]) -> int:
    """Parse the command line and generate; the path of the trace goes to stdout."""
    reader = Parser(prog="strobe generate", description=_DESCRIPTION, epilog=EXIT_CODES, allow_abbrev=False)
    reader.add_argument("templates", nargs="+", metavar="TEMPLATE", help="traces: the ranks repeat their processes")
    reader.add_argument("-o", "--output", metavar="NAME", required=True, help="the trace to make")
    reader.add_argument("--ranks", type=_number, default=1, metavar="N", help="ranks (processes; default 1)")
    reader.add_argument("--spans", type=_number, required=True, metavar="M", help="spans in all, about: 1e9 will do")
    reader.add_argument("--seed", type=int, default=0, metavar="S", help="the same seed makes the same trace")
    reader.add_argument("--stalls", type=_number, default=0, metavar="N", help="stand still so often in each rank")
    reader.add_argument("--stall-ms", type=float, default=20.0, metavar="MS", help="for so long (default 20)")
    reader.add_argument("--straggler", type=_number, metavar="RANK", help="this rank takes longer for everything")
    reader.add_argument("--slower", type=float, default=1.3, metavar="X", help="so many times longer (default 1.3)")
    reader.add_argument("--only-spans", action="store_true", help="no attributes, no marks: the least bytes")
    arguments = reader.parse_args(words)
    if arguments.ranks < 1:
        raise UsageError("--ranks: a trace has at least one rank")
    if arguments.straggler is not None and arguments.straggler >= arguments.ranks:
        raise UsageError(f"--straggler: there is no rank {arguments.straggler}; ranks count from 0")
    if arguments.seed < 0 or not 0 < arguments.slower < 1e6 or not 0 < arguments.stall_ms < 1e9:
        raise UsageError("--seed, --slower and --stall-ms take numbers above 0")

    from pathlib import Path

    from strobe.model.units import format_bytes, format_count
    from strobe.store.archive import SUFFIX
    from strobe.store.generate import Plan, generate
    from strobe.store.trace import open_trace

    name = arguments.output if arguments.output.endswith(SUFFIX) else arguments.output + SUFFIX
    plan = Plan(
        ranks=arguments.ranks,
        spans=arguments.spans,
        seed=arguments.seed,
        stalls=arguments.stalls,
        stall_ns=int(arguments.stall_ms * 1e6),
        straggler=arguments.straggler,
        slower=arguments.slower,
        attributes=not arguments.only_spans,
    )
    bar = sys.stderr.isatty()

    def progress(done: int, ranks: int) -> None:
        if bar:
            sys.stderr.write(f"\rgenerating [{'#' * (30 * done // ranks):30}] {done} of {ranks} ranks ")
            sys.stderr.flush()

    spans = generate([open_trace(template) for template in arguments.templates], Path(name), plan, progress)
    if bar:
        sys.stderr.write("\r" + " " * 70 + "\r")
    info = open_trace(name).info  # which writes the indices, too
    print(name)
    shown = f"{format_count(spans)} spans in {plan.ranks} ranks, {format_bytes(info.size_bytes)}"
    print(f"strobe: {shown}", file=sys.stderr)
    return 0


def _number(text: str) -> int:
    """Return a whole number; 1e9 is one. Raises argparse.ArgumentTypeError where it is none from 0 on."""
    try:
        number = int(text) if text.isdecimal() else int(float(text))
    except (ValueError, OverflowError):
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number from 0 on, like 1000000 or 1e9")
    return number


VERB = Verb("generate", "Make a trace of any size from real ones, for benchmarks and tests", run)
