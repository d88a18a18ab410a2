"""The program on the command line of a verb that starts one: where it begins, and whether it can be run."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from collections.abc import Sequence

from strobe.errors import RecordError, UsageError
from strobe.model import exit_codes

HELP = """\
program (after the options of strobe):
  SCRIPT [arguments]      -m MODULE [arguments]      -c CODE [arguments]      -- COMMAND [arguments]
"""


def program_at(words: Sequence[str], reader: ArgumentParser) -> int:
    """Return the index of the first word of the program: a script, -m, -c, or --."""
    takes_value = {flag for action in reader._actions for flag in action.option_strings if action.nargs is None}
    at = 0
    while at < len(words):
        word = words[at]
        if word in ("--", "-m", "-c") or not word.startswith("-"):
            return at
        at += 2 if word in takes_value else 1
    return len(words)


def require_program(verb: str, program: list[str]) -> None:
    """Raise UsageError if the command line names no program."""
    if not program or program in (["--"], ["-m"], ["-c"], ["-m", ""]):
        do = f"strobe {verb} [options] SCRIPT [arguments]; more: strobe {verb} --help"
        raise UsageError("nothing to run", do=do)


def check_script(verb: str, program: Sequence[str]) -> None:
    """Refuse a program that does not exist or that Python cannot run, before a trace is made."""
    from strobe.record.launch.run_program import is_command

    script = program[0]
    if script in ("--", "-m", "-c") or is_command(script):
        return
    if not os.path.exists(script):
        near = f"{script}.py" if os.path.isfile(f"{script}.py") else "SCRIPT [arguments]"
        raise RecordError(
            f"no such script or command: '{script}'",
            do=f"Use strobe {verb} {near}, -m MODULE, or -- COMMAND (a path, or a name on PATH).",
            exit_code=exit_codes.USAGE,
        )
    if _is_machine_code(script) or script.endswith(".sh"):
        path = script if "/" in script else f"./{script}"
        raise RecordError(
            f"'{script}' is not a Python script",
            do=f"To run it: strobe {verb} -- {path}",
            exit_code=exit_codes.USAGE,
        )


def _is_machine_code(path: str) -> bool:
    """Return whether a file is a Linux program. Pipes (`<(...)`) are not read, because they can be read only once."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as stream:
            return stream.read(4) == b"\x7fELF"
    except OSError:  # Python reports the error
        return False
