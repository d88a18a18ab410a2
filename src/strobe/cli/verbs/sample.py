"""`strobe sample PID...`: samples of Python processes that run already, from outside."""

from __future__ import annotations

import sys

from strobe.cli.options import reading
from strobe.model.option import Option
from strobe.model.terminal import talk
from strobe.model.verb import Verb
from strobe.record.launch import trace_folder
from strobe.record.options.recorder_options import length, per_second

_DESCRIPTION = """\
Sample Python processes that run already, from outside: nothing is loaded into them, and they are not stopped. Ends when
they end, after --for, or with Ctrl-C; the trace is complete until then.
"""
_OPTIONS = (
    Option("for", "Stop after this time: 20s, 5min.", parse=length, metavar="TIME"),
    Option("rate", "Sample every thread HZ times per second.", parse=per_second, default=100.0, metavar="HZ"),
    Option("children", "Sample the Python programs that they start, too.", bool, False),
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
    reader.add_argument("pids", nargs="+", type=int, metavar="PID", help="A process; several become one trace.")
    arguments = reader.parse_args(words)
    if not arguments.rate:
        reader.error("--rate 0 takes no samples")

    from strobe.record.sample import processes
    from strobe.record.sample.sampling import sample

    command = processes.words(arguments.pids[0], "cmdline")
    output = trace_folder.expand(arguments.output, command)
    folder, endings = sample(
        list(dict.fromkeys(arguments.pids)),
        output,
        rate_hz=arguments.rate,
        duration_s=arguments.for_ / 1e9 if arguments.for_ else None,
        children=arguments.children,
    )
    for ending in endings:
        talk(ending)

    from strobe.api.trace import open_trace
    from strobe.present.summary import write_summary
    from strobe.present.summary_text import summary_text
    from strobe.present.text_page import has_box_characters

    summary = write_summary(open_trace(folder))
    sys.stderr.write(summary_text(summary, unicode=has_box_characters(sys.stderr)))
    print(folder)
    return 0


VERB = Verb("sample", "Sample Python processes that run already", run)
