"""Files that only their own tool can read: it is run once, and what it writes is read instead."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from strobe.formats.reading.inputs import Input, one_file
from strobe.model.plugins import ImportSource
from strobe.model.units import format_bytes

# Words of a command that stand for the file that is converted, and for the one that the tool writes.
INPUT, OUTPUT = "{input}", "{output}"
_LONGEST_S = 1800.0
_MOST_BYTES = 64 << 30
_LOOKS_S = 0.05
_LONGEST_COMPLAINT = 300


@contextmanager
def converted(
    source: ImportSource, command: Sequence[str], suffix: str, *, named: str = "", longest_s: float = _LONGEST_S
) -> Iterator[Input]:
    """Yield what a tool makes of a file: the file OUTPUT with this suffix, else what it prints; removed afterwards.

    `command` is the name of the tool and its arguments, `named` the end that it asks of the file's name. It runs
    without a shell and without input, for at most `longest_s` seconds, and may write 64 GiB. Raises ValueError with the
    command to type where the tool is not installed, fails, or is stopped by one of these limits or by Ctrl-C.
    """
    by_hand = _by_hand(source.name, command, suffix)
    tool = shutil.which(command[0])
    if tool is None:
        raise ValueError(f"it needs {command[0]}, which is not installed here; where it is, type: {by_hand}")
    with tempfile.TemporaryDirectory(prefix="strobe-") as folder:
        made, printed, complaints = (Path(folder) / name for name in (f"converted{suffix}", "printed", "complaints"))
        given = source.local_path().absolute()
        if not given.name.endswith(named):
            given, path = Path(folder) / f"given{named}", given
            given.symlink_to(path)
        places = {INPUT: str(given), OUTPUT: str(made)}
        words = [tool, *(places.get(word, word) for word in command[1:])]
        written = made if OUTPUT in command else printed
        with printed.open("wb") as out, complaints.open("wb") as errors:
            trouble = _run(words, (out.fileno(), errors.fileno()), source, written, longest_s)
        if trouble == "failed":
            first = complaints.read_bytes()[: 1 << 12].decode("utf-8", "replace").strip().partition("\n")[0]
            trouble += f": {first[:_LONGEST_COMPLAINT]}" if first else ""
        elif not trouble and not (written.exists() and written.stat().st_size):
            trouble = "wrote nothing"
        if trouble:
            raise ValueError(f"{command[0]} {trouble}; to see more, type: {by_hand}")
        result = one_file(written)
        result.tick = lambda _: source.tick(0)  # Ctrl-C stops its reading, too; its size is not that of the file
        yield result


def _by_hand(name: str, command: Sequence[str], suffix: str) -> str:
    places = {INPUT: name, OUTPUT: name + suffix}
    words = shlex.join(places.get(word, word) for word in command)
    return words if OUTPUT in command else f"{words} > {shlex.quote(name + suffix)}"


def _run(words: Sequence[str], outputs: tuple[int, int], source: ImportSource, written: Path, longest_s: float) -> str:
    """Run a command until it ends or meets a limit. Return what went wrong, "" if nothing did."""
    # In a session of its own: it and what it starts end together, and Ctrl-C reaches strobe alone.
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=outputs[0],
        stderr=outputs[1],
        cwd=written.parent,
        start_new_session=True,
    )
    until_s = time.monotonic() + longest_s
    try:
        while process.poll() is None:
            if not source.tick(0):
                return "was stopped"
            if time.monotonic() > until_s:
                return f"took longer than {longest_s:g} s"
            if written.exists() and written.stat().st_size > _MOST_BYTES:
                return f"wrote more than {format_bytes(_MOST_BYTES)}"
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LOOKS_S)
        return "failed" if process.returncode else ""
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
