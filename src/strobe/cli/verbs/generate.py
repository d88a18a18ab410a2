"""`strobe generate TEMPLATE...`: make a trace of any size from real ones, for benchmarks and tests."""

from __future__ import annotations

import sys

from strobe.cli.options import print_path, reading
from strobe.errors import UsageError
from strobe.model.option import Option
from strobe.model.terminal import show_progress, talk
from strobe.model.verb import Verb

_DESCRIPTION = """\
Make a trace of any size from real ones. Every rank repeats what a process of a template did, with times that vary.
The order in which calls begin and end in a process stays the same, so calls nest and kernels follow their launches as
before; ranks with the same template begin each repetition together.
"""


def _number(text: str) -> int:
    """Return a whole number from 0 on; 1e9 is one. Raises ValueError."""
    try:
        number = int(text) if text.isdecimal() else int(float(text))
    except (ValueError, OverflowError):
        number = -1
    if number < 0:
        raise ValueError(f"'{text}' is not a whole number from 0 on, such as 1000000 or 1e9")
    return number


_OPTIONS = (
    Option("output", "Name of the trace to make.", also=("-o",), metavar="NAME", required=True),
    Option("ranks", "Number of ranks (processes).", int, 1, least=1, metavar="N"),
    Option(
        "spans", "Approximate number of spans in all ranks: 1000000 or 1e9.", parse=_number, metavar="M", required=True
    ),
    Option("seed", "The same seed makes the same trace.", int, 0, least=0, metavar="S"),
    Option("stalls", "Number of stalls in each rank.", int, 0, least=0, metavar="N"),
    Option("stall_ms", "Length of a stall.", float, 20.0, unit="ms"),
    Option("straggler", "This rank is slower than the others.", int, least=0, metavar="RANK"),
    Option("slower", "Factor by which the straggler is slower.", float, 1.3, metavar="X"),
    Option("only_spans", "Leave out attributes and marks, for the smallest trace.", bool, False),
)


def run(words: list[str]) -> int:
    """Parse the command line and generate; the path of the trace goes to stdout."""
    reader = reading("generate", _DESCRIPTION, _OPTIONS, trace=False)
    reader.add_argument("templates", nargs="+", metavar="TEMPLATE", help="Traces whose processes the ranks repeat.")
    arguments = reader.parse_args(words)
    if arguments.straggler is not None and arguments.straggler >= arguments.ranks:
        raise UsageError(f"--straggler: rank {arguments.straggler} does not exist; ranks count from 0")
    if not 0 < arguments.slower < 1e6 or not 0 < arguments.stall_ms < 1e9:
        raise UsageError("--slower and --stall take values above 0")

    from pathlib import Path

    from strobe.api.trace import open_trace
    from strobe.model.units import format_bytes, format_count
    from strobe.present.summary import write_summary
    from strobe.trace.archive import SUFFIX
    from strobe.trace.derived.generate import Plan, generate

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
            show_progress(f"generating [{'#' * (30 * done // ranks):30}] {done} of {ranks} ranks ")

    spans = generate([open_trace(template) for template in arguments.templates], Path(name), plan, progress)
    if bar:
        show_progress("")
    trace = open_trace(name)  # which writes the indices, too
    write_summary(trace)
    info = trace.info
    print_path(name)
    talk(f"{format_count(spans)} spans in {plan.ranks} ranks, {format_bytes(info.size_bytes)}")
    return 0


VERB = Verb("generate", "Make a trace of any size from real ones, for benchmarks and tests", run)
