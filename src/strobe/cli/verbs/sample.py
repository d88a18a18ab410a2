"""`strobe sample PID...`, `strobe sample --job PATTERN`: samples of Python processes that run already, from outside."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from strobe.cli.options import reading
from strobe.errors import RecordError
from strobe.model.option import Option
from strobe.model.terminal import talk
from strobe.model.verb import Verb
from strobe.record.launch import trace_folder
from strobe.record.options.recorder_options import length, per_second

_DESCRIPTION = """\
Sample Python processes that run already, from outside: nothing is loaded into them, and without --native they are
not stopped. Ends when they end, after --for, or with Ctrl-C; the trace is complete until then.
"""


def pattern(text: str) -> re.Pattern[str]:
    """Return the regular expression that a text is. Raises ValueError with a sentence."""
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"'{text}' is not a regular expression: {error}") from error


_OPTIONS = (
    Option("for", "Stop after this time: 20s, 5min.", parse=length, metavar="TIME"),
    Option("rate", "Sample every thread HZ times per second.", parse=per_second, default=100.0, metavar="HZ"),
    Option("children", "Sample the Python programs that they start, too.", bool, False),
    Option(
        "native",
        "Sample functions of C, C++ and Fortran, too, also of processes without Python. Stops threads that run for a "
        "moment at each sample.",
        bool,
        False,
    ),
    Option(
        "job",
        "Sample all processes on this machine whose command line matches, and what they start, also those that begin "
        "meanwhile.",
        parse=pattern,
        metavar="PATTERN",
    ),
    Option(
        "output",
        "Name of the trace; %n is the program's name, %p our process id, %t the time.",
        default="%n",
        also=("-o",),
        metavar="NAME",
    ),
)


def run(words: list[str]) -> int:
    """Parse the command line, sample, print the summary to stderr and the path of the trace to stdout."""
    reader = reading("sample", _DESCRIPTION, _OPTIONS, trace=False)
    reader.add_argument("pids", nargs="*", type=int, metavar="PID", help="A process; several become one trace.")
    arguments = reader.parse_args(words)
    if not arguments.rate:
        reader.error("--rate 0 takes no samples")
    if bool(arguments.pids) == bool(arguments.job):
        reader.error("name processes by their numbers, or by --job PATTERN")

    from strobe.record.sample import processes
    from strobe.record.sample.sampling import sample

    pids = list(dict.fromkeys(arguments.pids)) or processes.matching(arguments.job)
    if not pids:
        raise RecordError(f"no process has a command line that matches '{arguments.job.pattern}'")
    # The trace has the name of the program, not that of its launcher.
    pids.sort(key=lambda pid: bool(arguments.job) and "python" not in os.path.basename(processes.program(pid)))
    output = trace_folder.expand(arguments.output, processes.words(pids[0], "cmdline"))
    folder, endings = sample(
        pids,
        output,
        rate_hz=arguments.rate,
        duration_s=arguments.for_ / 1e9 if arguments.for_ else None,
        children=arguments.children,
        native=arguments.native,
        job=arguments.job,
    )
    for ending in endings:
        talk(ending)

    from strobe.api.trace import open_trace
    from strobe.present.summary import write_summary
    from strobe.present.summary_text import summary_text
    from strobe.present.text_page import has_box_characters
    from strobe.trace.after_run.closing import close_trace

    close_trace(Path(folder))  # names of functions of C code

    summary = write_summary(open_trace(folder))
    sys.stderr.write(summary_text(summary, unicode=has_box_characters(sys.stderr)))
    print(folder)
    return 0


VERB = Verb("sample", "Sample Python processes that run already", run)
