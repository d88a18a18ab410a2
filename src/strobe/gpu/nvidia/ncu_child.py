"""Stands between ncu and the program: `python -P -m strobe.gpu.nvidia.ncu_child FILE COMMAND ...`.

Runs a command and writes how it ended into a file. ncu promises no exit code
of its own, and hides signals.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence

from strobe.errors import RecordError
from strobe.model.terminal import talk
from strobe.record.launch.run_program import RunResult, end_as, wait_for


def under(file: str, command: Sequence[str]) -> list[str]:
    """Return the command that runs another one, and writes into `file` how it ended."""
    return [sys.executable, "-P", "-m", "strobe.gpu.nvidia.ncu_child", file, *command]


def ended(file: str) -> RunResult | None:
    """Return how the program ended; None if it never started, or was killed together with its parent."""
    try:
        with open(file, encoding="utf-8") as stream:
            exit_code, number = json.load(stream)
    except (OSError, ValueError):
        return None
    return RunResult(None, exit_code, number)


def main(words: Sequence[str]) -> int:
    """Run a command as if it were started without us, and end as it ends."""
    file, command = words[0], list(words[1:])
    executable = shutil.which(command[0])
    if executable is None:
        return 127
    try:
        exit_code, number = wait_for(executable, command, dict(os.environ))
    except RecordError as error:
        talk(f"{error}")
        return error.exit_code
    with open(file, "w", encoding="utf-8") as stream:
        json.dump([exit_code, number], stream)
    return end_as(RunResult(None, exit_code, number))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
