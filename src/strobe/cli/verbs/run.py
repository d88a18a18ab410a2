"""`strobe run SCRIPT`: record an unchanged program, print a summary to stderr, and end as the program ended."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Collection
from itertools import pairwise

from strobe.cli import installed, lean_imports
from strobe.cli.finished_run import complete
from strobe.cli.options import add_option, verbatim
from strobe.cli.programs import HELP, check_script, program_at, require_program
from strobe.errors import UsageError
from strobe.model.option import yes_or_no
from strobe.model.terminal import talk
from strobe.model.verb import Verb
from strobe.record.launch.trace_folder import expand
from strobe.record.options.all_options import OPTIONS, text_of, traced_adapters
from strobe.record.options.recorder_options import GROUPS
from strobe.record.options.value_sources import settle

_DESCRIPTION = """\
Record a program without changing it: its output, exit code, signals, sys.argv and working directory stay the same.
"""
_EPILOG = f"""\
{HELP}\
  mpirun, torchrun and other commands on PATH need no --, unless a file here has the same name

examples:
  strobe run train.py --epochs 1
  strobe run -o runs/%n-%t --trace=-python torchrun --nproc-per-node 2 train.py

Each option can also be set as STROBE_NAME in the environment and as a key of [tool.strobe] in pyproject.toml; strobe
config prints the values. With STROBE_DISABLE=1 in the environment the program runs unrecorded.
"""


def run(words: list[str]) -> int:
    """Parse the command line, run the program, complete its trace, print the summary, and end as the program ended."""
    parser = verbatim("run", _DESCRIPTION, usage="strobe run [options] SCRIPT [arguments]", epilog=_EPILOG)
    add_recording_options(parser)
    split = program_at(words, parser)
    options, program = parser.parse_args(with_joined_trace(words[:split])), words[split:]
    require_program("run", program)
    from strobe.record.launch import run_program

    command = run_program.python_command(program)
    try:
        settings = settle(given(options), os.environ, os.getcwd())
        chosen = traced_adapters(settings, os.environ, command)
    except ValueError as error:
        raise UsageError(str(error)) from error

    check_script("run", program)
    output = expand(settings["output"].text, command)
    result = run_program.run(program, output=output, adapters=chosen, options=settings, complete=_recover_flight)
    if result.folder is not None:
        complete(result.folder, settings)
        if not yes_or_no(settings["quiet"].text):
            for flight in result.flights:
                talk(f"the flight recorder wrote {flight}")
    return run_program.end_as(result)


def add_recording_options(parser: ArgumentParser, *, but: Collection[str] = ()) -> None:
    """Add the options of recording `but` some, whose values stay texts: other places may give them, too."""
    for group, title in GROUPS.items():
        target = parser.add_argument_group(title)
        for option in OPTIONS.values():
            if option.group == group and option.name not in but:
                add_option(target, option, unread=True)


def with_joined_trace(words: list[str]) -> list[str]:
    """Return the words with `--trace -python` as one word, because argparse takes `-python` for an option."""
    for at, (flag, value) in enumerate(pairwise(words)):
        if flag in ("-t", "--trace") and value[:1] == "-" and value[:2] != "--":
            return [*words[:at], f"--trace={value}", *words[at + 2 :]]
    return words


def given(arguments: Namespace) -> dict[str, str]:
    """Return the text of the options that stood on the command line, by name."""
    values = {name: vars(arguments).get(option.keyword) for name, option in OPTIONS.items()}
    return {name: text_of(OPTIONS[name], value) for name, value in values.items() if value is not None}


def _recover_flight(folder: str) -> None:
    """Complete a trace that a flight recorder has written while the program runs."""
    if installed.missing_for_reading():
        return  # whoever opens it will
    from pathlib import Path

    lean_imports.without_blas_threads()
    from strobe.trace.after_run.closing import recover_flight

    recover_flight(Path(folder))


VERB = Verb("run", "Run a program and record it", run)
