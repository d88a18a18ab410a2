"""`strobe run SCRIPT`: record an unchanged program, print a summary to stderr, and end as the program ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from strobe.cli.options import Parser, check_script, program_at, verbatim
from strobe.cli.recording_options import add_recording_options, given
from strobe.errors import StrobeError, UsageError
from strobe.model.option import yes_or_no
from strobe.model.verb import Verb
from strobe.record.launch.trace_folder import expand
from strobe.record.options.all_options import traced_adapters, unknown_variables
from strobe.record.options.recorder_options import Setting
from strobe.record.options.value_sources import settle

_DESCRIPTION = """\
Record a program without changing it: its output, exit code, signals, sys.argv and working directory stay the same.
"""
_WHAT = """\
program (after the options of strobe):
  SCRIPT [arguments]      -m MODULE [arguments]      -c CODE [arguments]      -- COMMAND [arguments]
  mpirun, torchrun and other commands on PATH need no --, unless a file here has the same name

examples:
  strobe run train.py --epochs 1
  strobe run -o runs/%n-%t --trace=-python torchrun --nproc-per-node 2 train.py

Each option can also be set as STROBE_NAME in the environment and as a key of [tool.strobe] in pyproject.toml; strobe
config prints the values. With STROBE_DISABLE=1 in the environment the program runs unrecorded.
"""


def run(words: list[str]) -> int:
    """Parse the command line, run the program, complete its trace, print the summary, and end as the program ended."""
    parser = _parser()
    split = program_at(words, parser)
    for at, word in enumerate(words[: split - 1]):
        if word in ("-t", "--trace") and words[at + 1][:1] == "-" and words[at + 1][:2] != "--":
            # argparse takes `-python` for an option.
            words = [*words[:at], f"--trace={words[at + 1]}", *words[at + 2 :]]
            split -= 1
            break
    options, program = parser.parse_args(words[:split]), words[split:]
    if not program or program in (["--"], ["-m"], ["-c"], ["-m", ""]):
        raise UsageError("nothing to run", do="strobe run SCRIPT [arguments]; more: strobe run --help")
    from strobe.record.launch import run_program

    command = run_program.python_command(program)
    try:
        settings = settle(given(options), os.environ, os.getcwd())
        chosen = traced_adapters(settings, os.environ, command)
    except ValueError as error:
        raise UsageError(str(error)) from error

    check_script("run", program)
    output = expand(settings["output"].text, command)
    result = run_program.run(program, output=output, adapters=chosen, options=settings)
    if result.folder is not None:
        _complete(result.folder, settings)
    return run_program.end_as(result)


def _parser() -> Parser:
    parser = verbatim("run", _DESCRIPTION, usage="strobe run [options] SCRIPT [arguments]", epilog=_WHAT)
    add_recording_options(parser)
    return parser


def _complete(folder: str, settings: Mapping[str, Setting]) -> None:
    """Complete the trace and print its summary. An error here is only a message: the exit code is the program's."""
    from pathlib import Path

    if not os.path.isdir(folder):
        _talk(f"the trace '{folder}' was removed while the program ran")
        return
    try:
        from strobe.trace.after_run.closing import close_trace

        close_trace(Path(folder))
        _check_clocks(folder)
        if yes_or_no(settings["quiet"].text):
            return
        from strobe.api.trace import open_trace
        from strobe.present.summary import summarise_soon
        from strobe.present.summary_text import summary_text
        from strobe.present.text import supports

        for name in unknown_variables(os.environ):
            _talk(f"{name} in the environment is not an option of strobe")
        summary = summarise_soon(open_trace(folder))
        (Path(folder) / "summary.json").write_text(summary.to_json() + "\n", encoding="utf-8")
        if yes_or_no(settings["json"].text):
            print(summary.to_json(), file=sys.stderr)
        elif settings["summary"].text == "short":
            fancy = supports("─█▌·…", sys.stderr)
            sys.stderr.write(summary_text(summary, unicode=fancy))
    except StrobeError as error:
        _talk(str(error))
    except OSError as error:
        _talk(f"the trace is not complete: {error.strerror or error} ({folder})")


def _check_clocks(folder: str) -> None:
    """Check the clocks of several nodes by their messages, and repair them."""
    from pathlib import Path

    from strobe.trace.archive import process_files, read_job

    adapters = read_job(Path(folder)).settings.get("adapters")
    if not isinstance(adapters, list) or "mpi" not in adapters or len(process_files(Path(folder))) < 2:
        return
    from strobe.api.trace import open_trace
    from strobe.ranks.clock_check import CHEAP_ROWS, repair, rows_to_check

    trace = open_trace(folder)
    if len(set(trace.clocks)) < 2:
        return
    if rows_to_check(trace) > CHEAP_ROWS:
        _talk(
            f"clocks of several nodes were not checked (too many messages); to check: strobe clocks --repair {folder}"
        )
        return
    repairs = repair(trace)
    if repairs is not None and repairs.points:
        open_trace(folder).pyramid.build()


def _talk(sentence: str) -> None:
    print(f"strobe: {sentence}", file=sys.stderr)


VERB = Verb("run", "Run a program and record it", run)
