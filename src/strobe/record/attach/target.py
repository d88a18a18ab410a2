"""The process that is attached to: whether it can be, where strobe is for its Python, and what it is asked to run."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import strobe
from strobe.errors import RecordError
from strobe.native import RemoteScript
from strobe.record.sample import processes

_SAMPLE_MINORS = (11, 12, 13)  # of Pythons that `strobe sample` reads


def found(pid: int) -> RemoteScript:
    """Return the Python of a process that takes scripts. Raises RecordError with the reason where it takes none."""
    with processes.refusals(pid, "attach", "attached to"):
        _check_place(pid)
        return RemoteScript(pid)


def _check_place(pid: int) -> None:
    """Raise RecordError where the process and we do not have the same user, or do not see the same files."""
    owner, ours = processes.owner(pid), os.geteuid()
    if owner not in (ours, -1):
        raise RecordError(
            f"process {pid} belongs to user {owner}, and this strobe runs as user {ours}: the program writes the trace "
            "itself",
            do=f"sudo -u '#{owner}' strobe attach {pid}",
        )
    for name in ("mnt", "pid"):
        if _place(pid, f"ns/{name}") not in (_place("self", f"ns/{name}"), ""):
            raise RecordError(
                f"process {pid} runs in a container or another namespace: the program writes the trace itself",
                do="Run strobe attach in there.",
            )
    if _place(pid, "root") not in ("/", ""):
        raise RecordError(f"process {pid} sees other files: its root is {_place(pid, 'root')}")


def _place(pid: int | str, name: str) -> str:
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/{name}")
    return ""


def older(pid: int, error: RecordError) -> RecordError:
    """Return the refusal of a Python that is too old with what to do instead."""
    if any(f" runs Python 3.{minor}," in error.what for minor in _SAMPLE_MINORS):
        return RecordError(error.what, do=f"strobe sample {pid}")
    return error


def core_for(minor: int) -> tuple[list[str], list[str]]:
    """Return the folders of this strobe, and where its core for Python 3.`minor` is; nothing if it has none."""
    ours = f"3{sys.version_info.minor}"
    folders = [str(folder) for folder in strobe.__path__]
    names = [suffix.replace(f"cpython-{ours}-", f"cpython-3{minor}-") for suffix in EXTENSION_SUFFIXES[:1]]
    files = [str(Path(folder, f"_native{name}")) for folder in folders for name in names]
    there = [file for file in files if os.path.exists(file)]
    return (folders, there) if there else ([], [])


def script(
    path: str, answer: str, minor: int, session: str, steps: int, for_ns: int, rank: tuple[int, int] | None
) -> str:
    """Return what the main thread of the program is to run. `path` is where it will be, `answer` the file that it
    writes, `rank` the number of its rank and of all ranks."""
    text = Path(__file__).with_name("in_target.py").read_text(encoding="utf-8")
    packages, cores = core_for(minor)
    words = (path, packages, cores, strobe.__version__, answer, session, steps, for_ns, rank)
    return f"{text}\n\n_begin({', '.join(map(repr, words))})\n"
