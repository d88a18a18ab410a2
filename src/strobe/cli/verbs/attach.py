"""`strobe attach PID...`: a full recording of programs that run already, for some time or some steps."""

from __future__ import annotations

import os

from strobe.cli.finished_run import complete
from strobe.cli.options import add_options, verbatim
from strobe.cli.verbs.run import add_recording_options, given, with_joined_trace
from strobe.errors import UsageError
from strobe.model import exit_codes
from strobe.model.option import Option
from strobe.model.terminal import talk
from strobe.model.verb import Verb

_DESCRIPTION = """\
Record Python programs that were started without strobe: their calls, operators and GPUs, as strobe run does. They need
CPython 3.14 or later; strobe sample looks at older ones from outside.

  strobe attach 24950                    20 seconds
  strobe attach 24950 --steps 20         20 steps: calls of strobe.step(), or of an optimizer of PyTorch
  strobe attach 24950 24951              two processes, in one trace

A program goes on with its output, exit code and speed. Its recording ends by itself, with Ctrl-C, or with the program.
"""
_DEFAULT_FOR = "20s"
_OPTIONS = (
    Option("steps", "Record this many steps, within the time of --for.", int, least=1, metavar="N"),
    Option(
        "wait",
        "Give the program so long to come to a point where Python code can run.",
        float,
        10.0,
        unit="s",
        metavar="TIME",
    ),
)
# Options of strobe run that are about the begin of a program, or about several windows.
_NOT_HERE = ("start", "stop", "signal", "armed")


def run(words: list[str]) -> int:
    """Parse the command line, record, complete the trace, print the summary to stderr and the path to stdout."""
    parser = verbatim("attach", _DESCRIPTION, usage="strobe attach [options] PID...")
    parser.add_argument("pids", nargs="+", type=int, metavar="PID", help="A process; several become one trace.")
    add_options(parser, _OPTIONS)
    add_recording_options(parser, but=_NOT_HERE)
    arguments = parser.parse_args(with_joined_trace(words))

    from strobe.record.attach import attaching
    from strobe.record.launch.trace_folder import default_name, expand
    from strobe.record.options.all_options import traced_adapters
    from strobe.record.options.recorder_options import Setting, length
    from strobe.record.options.value_sources import settle
    from strobe.record.sample import processes

    pids = list(dict.fromkeys(arguments.pids))
    command = processes.words(pids[0], "cmdline")
    try:
        settings = settle(given(arguments), os.environ, os.getcwd())
        for name in _NOT_HERE:
            settings[name] = Setting("no" if name == "armed" else "", "strobe attach")
        if not settings["for"].text:
            settings["for"] = Setting(_DEFAULT_FOR, "strobe attach")
        adapters = traced_adapters(settings)
    except ValueError as error:
        raise UsageError(str(error)) from error
    attached = attaching.attach(
        pids,
        expand(settings["output"].text, command) or default_name(command),
        adapters=adapters,
        options=settings,
        steps=arguments.steps or 0,
        for_ns=length(settings["for"].text),
        wait_s=arguments.wait,
        begun=_tell_begin,
    )
    for ending in attached.endings:
        talk(ending)
    for pid, steps in attached.steps.items():
        if arguments.steps and steps <= arguments.steps:
            whose = f" of process {pid}" if len(pids) > 1 else ""
            talk(f"{max(steps - 1, 0)} of {arguments.steps} whole steps{whose} came in {settings['for'].text}")
    complete(attached.folder, settings)
    print(attached.folder)
    return exit_codes.OK


def _tell_begin(folder: str, pids: list[int]) -> None:
    what = f"process {pids[0]} is" if len(pids) == 1 else f"{len(pids)} processes are"
    talk(f"{what} recorded into {folder}")


VERB = Verb("attach", "Record a program that runs already", run)
