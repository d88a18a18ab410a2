"""`strobe run SCRIPT`: records an unchanged program, prints a summary to stderr, and ends as the program ended."""

from __future__ import annotations

import argparse
import os
import sys
import time

from strobe.cli.options import Parser
from strobe.errors import RecordError, StrobeError, UsageError
from strobe.model.verb import Verb
from strobe.record.config import KEEP, PRESETS, adapters, kept_iterations, without_graph

_DESCRIPTION = """\
Record a program as it is: its output, exit code, signals, sys.argv and working directory stay what they are.
"""
_WHAT = """\
what to run (options of strobe come before it):
  SCRIPT [arguments]      -m MODULE [arguments]      -c CODE [arguments]      -- COMMAND [arguments]

examples:
  strobe run train.py --epochs 1
  strobe run -o runs/%n-%t --trace -python -- torchrun --nproc-per-node 2 train.py

STROBE_DISABLE=1 in the environment: the program runs, nothing is recorded.
"""


def run(words: list[str]) -> int:
    """Parse the command line, run the program, complete its trace, talk about it, end as it ended."""
    parser = _parser()
    split = _program_at(words, parser)
    options, program = parser.parse_args(words[:split]), words[split:]
    if not program or program in (["--"], ["-m"], ["-c"]):
        raise UsageError("nothing to run", do="strobe run SCRIPT [arguments]; more: strobe run --help")
    from strobe.record import launch, ranks

    calls_mpi = ranks.calls_mpi(os.environ, launch.python_command(program))
    try:
        words_traced, graph_only = without_graph(options.trace)
        chosen = adapters(options.preset, words_traced, mpi=calls_mpi)
        keep = 0 if graph_only else kept_iterations(options.keep)
    except ValueError as error:
        raise UsageError(str(error)) from error

    _check_script(program)
    output = _expand(options.output, program) if options.output else None
    result = launch.run(program, output=output, adapters=chosen, include=tuple(options.include), keep=keep)
    if result.folder is not None:
        _complete(result.folder, options)
    return launch.end_as(result)


def _parser() -> Parser:
    parser = Parser(
        prog="strobe run",
        usage="strobe run [options] SCRIPT [arguments]",
        description=_DESCRIPTION,
        epilog=_WHAT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--preset", default="auto", metavar="NAME", help=f"what to record: {', '.join(PRESETS)}")
    parser.add_argument(
        "-t",
        "--trace",
        default="",
        metavar="LIST",
        help="+python,-torch: change the preset; python,torch: replace it; graph: nothing in detail",
    )
    parser.add_argument(
        "--keep",
        metavar="N|all",
        default=os.environ.get("STROBE_KEEP", str(KEEP)),
        help=f"iterations of the main loop to keep in detail, of the others statistics ({KEEP}, or STROBE_KEEP)",
    )
    parser.add_argument(
        "--include", action="append", default=[], metavar="FOLDER", help="record Python calls of this library, too"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATTERN",
        help="where to save; %%n program, %%p our pid, %%t time; -2, -3, ... is added where there is something already",
    )
    parser.add_argument("--summary", choices=("short", "none"), default="short", help="at the end, on stderr (short)")
    parser.add_argument("--json", action="store_true", help="the summary as JSON, on stderr")
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary, no talk")
    return parser


def _program_at(words: list[str], parser: Parser) -> int:
    """Return where our options end and the program begins: a script, -m, -c, or --."""
    takes_value = {
        flag
        for action in parser._actions
        for flag in action.option_strings
        if action.nargs is None and not isinstance(action, argparse._StoreTrueAction | argparse._HelpAction)
    }
    at = 0
    while at < len(words):
        word = words[at]
        if word in ("--", "-m", "-c") or not word.startswith("-"):
            return at
        at += 2 if word in takes_value else 1
    return len(words)


def _check_script(program: list[str]) -> None:
    """Refuse a script that is not there: no trace is made of nothing."""
    if program[0] not in ("--", "-m", "-c") and not os.path.exists(program[0]):
        raise RecordError(
            f"no such script: '{program[0]}'",
            do="To run a command that is no Python script: strobe run -- COMMAND",
            exit_code=2,
        )


def _expand(pattern: str, program: list[str]) -> str:
    """Fill in %n (name of the program), %p (our process id), %t (time), %% (a percent sign)."""
    from strobe.record.folder import SUFFIX, default_name
    from strobe.record.launch import python_command

    name = default_name(python_command(program)).removesuffix(SUFFIX)
    values = {"n": name, "p": str(os.getpid()), "t": time.strftime("%Y%m%d-%H%M%S"), "%": "%"}
    parts, at = [], 0
    while at < len(pattern):
        if pattern[at] != "%":
            parts.append(pattern[at])
            at += 1
            continue
        letter = pattern[at + 1 : at + 2]
        if letter not in values or not letter:
            raise UsageError(
                f"'%{letter}' means nothing in '{pattern}'", do="There are %n %p %t, and %% for a percent sign."
            )
        parts.append(values[letter])
        at += 2
    return "".join(parts)


def _complete(folder: str, options: argparse.Namespace) -> None:
    """Complete the trace and print its summary. What goes wrong here is one sentence: the program's end comes first."""
    from pathlib import Path

    try:
        from strobe.store.recover import close_trace

        close_trace(Path(folder))
        if options.quiet:
            return
        from strobe.present.summary import summarise_soon
        from strobe.present.summary_text import summary_text
        from strobe.present.text import supports
        from strobe.store.trace import open_trace

        summary = summarise_soon(open_trace(folder))
        (Path(folder) / "summary.json").write_text(summary.to_json() + "\n", encoding="utf-8")
        if options.json:
            print(summary.to_json(), file=sys.stderr)
        elif options.summary == "short":
            fancy = supports("─█▌·…", sys.stderr)
            sys.stderr.write(summary_text(summary, unicode=fancy))
    except StrobeError as error:
        _talk(str(error))
    except OSError as error:
        _talk(f"the trace is not complete: {error.strerror or error} ({folder})")


def _talk(sentence: str) -> None:
    print(f"strobe: {sentence}", file=sys.stderr)


VERB = Verb("run", "Run a program and record it", run)
