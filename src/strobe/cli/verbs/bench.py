"""`strobe bench --against REVISION SCRIPT`: whether a program is slower than another one, by enough runs."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from strobe.cli.gates import VERDICTS, add_comparison, finish
from strobe.cli.options import add_options, add_output, verbatim
from strobe.cli.programs import HELP, check_script, program_at, require_program
from strobe.errors import StrobeError, UsageError
from strobe.model.option import Option
from strobe.model.terminal import talk
from strobe.model.verb import Verb

if TYPE_CHECKING:
    from strobe.gate.runs import Run

_DESCRIPTION = """\
Run a program and another version of it in turn, A B B A ..., until it is sure whether steps have become longer, or
until the budget is used. Programs are recorded as with strobe run, whose options the environment and pyproject.toml
may set.
"""
_EPILOG = f"""\
{HELP}
examples:
  strobe bench --against main train.py --epochs 1
  strobe bench --against 'old.py --epochs 1' --budget 30min new.py --epochs 1

{VERDICTS}
"""
_OPTIONS = (
    Option(
        "against",
        "Revision of git in which the same command is run, in a work tree of its own; or another command.",
        required=True,
        metavar="REV|COMMAND",
    ),
    Option("budget_s", "Stop after this time.", float, 600.0, unit="s", least=0),
    Option("plain", "Do not record: compare how long the programs run.", bool, False),
)


def run(words: list[str]) -> int:
    """Parse the command line, run both programs in turn, and print how they compare."""
    usage = "strobe bench --against REV [options] SCRIPT [arguments]"
    reader = verbatim("bench", _DESCRIPTION, usage=usage, epilog=_EPILOG)
    own = reader.add_argument_group("this verb")
    add_options(own, _OPTIONS)
    add_comparison(own)
    add_output(reader)
    split = program_at(words, reader)
    arguments, program = reader.parse_args(words[:split]), words[split:]
    require_program("bench", program)
    check_script("bench", program)
    from strobe.gate.bench import bench

    with _other(arguments.against, program) as (other, folder):
        begin, count = time.monotonic(), 0

        def measure(now: bool) -> Run:
            nonlocal count
            count += 1
            command, place = (program, os.getcwd()) if now else (other, folder)
            return (_plain if arguments.plain else _recorded)(command, place)

        def part_used() -> float:
            return (time.monotonic() - begin) / float(arguments.budget_s or 1e-9)

        found = bench(measure, part_used, metrics=arguments.metric, threshold=arguments.threshold)
    talk(f"{count // 2} pairs of runs in {time.monotonic() - begin:.0f} s")
    return finish(found, arguments)


@contextmanager
def _other(against: str, program: list[str]) -> Iterator[tuple[list[str], str]]:
    """Yield the command to compare with and the folder to run it in: a work tree, if it is a revision."""
    if _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{against}^{{commit}}") is None:
        words = shlex.split(against)
        require_program("bench", words)
        check_script("bench", words)
        yield words, os.getcwd()
        return
    if os.path.isabs(program[0]):
        raise UsageError(f"'{program[0]}' is the same file in every revision", do="Name it by a relative path.")
    with tempfile.TemporaryDirectory() as folder:
        tree = f"{folder}/tree"
        if _git("worktree", "add", "--quiet", "--detach", tree, against) is None:
            raise StrobeError(f"git cannot make a work tree of '{against}'")
        try:
            yield program, os.path.join(tree, _git("rev-parse", "--show-prefix") or "")
        finally:
            _git("worktree", "remove", "--force", tree)


def _git(*words: str) -> str | None:
    """Return what a command of git prints, None if it fails."""
    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _plain(program: list[str], folder: str) -> Run:
    import numpy as np

    from strobe.gate.runs import timed_run
    from strobe.record.launch.run_program import python_command

    started, begin = time.time_ns(), time.monotonic_ns()
    _start(python_command(program), folder)
    return timed_run(shlex.join(program), started, {}, np.array([time.monotonic_ns() - begin], dtype=float))


def _recorded(program: list[str], folder: str) -> Run:
    from strobe.api.trace import open_trace
    from strobe.gate.runs import run_of

    with tempfile.TemporaryDirectory() as scratch:
        trace = f"{scratch}/run.strobe"
        _start([sys.executable, "-m", "strobe", "run", "--quiet", "--output", trace, *program], folder)
        return run_of(open_trace(trace), shlex.join(program))


def _start(command: Sequence[str], folder: str) -> None:
    """Run a command to its end. Raises StrobeError, with the end of its stderr, if it fails."""
    with tempfile.TemporaryFile() as errors:
        code = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=errors).returncode
        if code:
            errors.seek(0)
            last = errors.read()[-2000:].decode(errors="replace").strip().rpartition("\n")[2]
            raise StrobeError(f"'{shlex.join(command)}' ended with {code}: {last}")


VERB = Verb("bench", "Compare a program with another version of it, by as many runs as it takes", run)
