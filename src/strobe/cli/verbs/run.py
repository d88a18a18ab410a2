"""`strobe run SCRIPT`: record an unchanged program, print a summary to stderr, and end as the program ended."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from itertools import pairwise

from strobe.cli import installed, lean_imports
from strobe.cli.options import add_option, verbatim
from strobe.cli.programs import HELP, check_script, program_at, require_program
from strobe.errors import StrobeError, UsageError
from strobe.model.option import yes_or_no
from strobe.model.terminal import talk
from strobe.model.verb import Verb
from strobe.record.launch.trace_folder import expand
from strobe.record.options.all_options import OPTIONS, text_of, traced_adapters, unknown_variables
from strobe.record.options.recorder_options import GROUPS, Setting
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
        _complete(result.folder, settings)
        if not yes_or_no(settings["quiet"].text):
            for flight in result.flights:
                talk(f"the flight recorder wrote {flight}")
    return run_program.end_as(result)


def add_recording_options(parser: ArgumentParser) -> None:
    """Add the options of recording, whose values stay texts: other places may give them, too."""
    for group, title in GROUPS.items():
        target = parser.add_argument_group(title)
        for option in OPTIONS.values():
            if option.group == group:
                add_option(target, option, unread=True)


def with_joined_trace(words: list[str]) -> list[str]:
    """Return the words with `--trace -python` as one word, because argparse takes `-python` for an option."""
    for at, (flag, value) in enumerate(pairwise(words)):
        if flag in ("-t", "--trace") and value[:1] == "-" and value[:2] != "--":
            return [*words[:at], f"--trace={value}", *words[at + 2 :]]
    return words


def given(arguments: Namespace) -> dict[str, str]:
    """Return the text of the options that stood on the command line, by name."""
    values = {name: vars(arguments)[option.keyword] for name, option in OPTIONS.items()}
    return {name: text_of(OPTIONS[name], value) for name, value in values.items() if value is not None}


def _recover_flight(folder: str) -> None:
    """Complete a trace that a flight recorder has written while the program runs."""
    if installed.missing_for_reading():
        return  # whoever opens it will
    from pathlib import Path

    lean_imports.without_blas_threads()
    from strobe.trace.after_run.closing import recover_flight

    recover_flight(Path(folder))


def _complete(folder: str, settings: Mapping[str, Setting]) -> None:
    """Complete the trace and print its summary. An error here is only a message: the exit code is the program's."""
    from pathlib import Path

    if not os.path.isdir(folder):
        talk(f"the trace '{folder}' was removed while the program ran")
        return
    if installed.missing_for_reading():
        if not yes_or_no(settings["quiet"].text):
            talk(f"recorded; where all of strobe is installed: strobe summary {folder}")
        return
    try:
        lean_imports.without_blas_threads()
        from strobe.trace.after_run.closing import close_trace

        close_trace(Path(folder))
        _check_clocks(folder)
        if yes_or_no(settings["quiet"].text):
            return
        from strobe.api.trace import open_trace
        from strobe.present.summary import write_summary
        from strobe.present.summary_text import summary_text
        from strobe.present.text_page import has_box_characters

        for name in unknown_variables(os.environ):
            talk(f"{name} in the environment is not an option of strobe")
        summary = write_summary(open_trace(folder))
        if yes_or_no(settings["json"].text):
            print(summary.to_json(), file=sys.stderr)
        elif settings["summary"].text == "short":
            sys.stderr.write(summary_text(summary, unicode=has_box_characters(sys.stderr)))
    except StrobeError as error:
        talk(str(error))
    except OSError as error:
        talk(f"the trace is not complete: {error.strerror or error} ({folder})")


def _check_clocks(folder: str) -> None:
    """Check the clocks of several nodes by their messages, and repair them."""
    from pathlib import Path

    from strobe.trace.archive import process_files, read_job

    settings = read_job(Path(folder)).settings
    adapters = settings.get("adapters")
    # With MPI one `strobe run` may have ranks on several nodes; else each rank has its own, and they share a job.
    several = settings.get("job") or (isinstance(adapters, list) and "mpi" in adapters)
    if not several or len(process_files(Path(folder))) < 2:
        return
    from strobe.api.trace import open_trace
    from strobe.ranks.clock_check import CHEAP_ROWS, repair, rows_to_check

    trace = open_trace(folder)
    if len(set(trace.clocks)) < 2:
        return
    if rows_to_check(trace) > CHEAP_ROWS:
        talk(f"clocks of several nodes were not checked (too many messages); to check: strobe clocks --repair {folder}")
        return
    repairs = repair(trace)
    if repairs is not None and repairs.points:
        open_trace(folder).pyramid.build()


VERB = Verb("run", "Run a program and record it", run)
