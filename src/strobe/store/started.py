"""Which of the processes that a program started are not in its trace, and why: from what it noted about them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*[a-z]?$")
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_MOST_BYTES = 64 << 20
# Of several commands only so many are named, each so long.
_MOST_NAMES, _MOST_LETTERS = 5, 80


@dataclass(frozen=True)
class Start:
    """A process that was started (`how` is start), became another program (exec), or a command of a shell (shell)."""

    how: str
    pid: int
    parent: int
    at_ns: int
    records: bool
    executable: str
    interpreter: str
    argv: tuple[str, ...]
    host: str

    @property
    def command(self) -> str:
        """Its command line, cut where it is long."""
        words = " ".join([Path(self.argv[0]).name, *self.argv[1:]] if self.argv else [self.executable])
        return words if len(words) <= _MOST_LETTERS else words[: _MOST_LETTERS - 3] + "..."

    @property
    def is_python(self) -> bool:
        """Whether a Python runs it: by its name, or by the first line of a script."""
        interpreter = self.interpreter.split() or [""]
        words = [Path(self.executable).name, Path(interpreter[0]).name, *interpreter[1:]]
        return any(_PYTHON.match(word) for word in words)


def starts(folder: Path) -> list[Start]:
    """Read what the processes of a trace have started. A line that is torn or none is passed over."""
    found = []
    for path in sorted(folder.glob("started-*.jsonl")):
        host = path.name.removeprefix("started-").removesuffix(".jsonl")
        try:
            with path.open("rb") as stream:
                text = stream.read(_MOST_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
        for line in text.split("\n"):
            try:
                found.append(_start(json.loads(line), host))
            except (ValueError, TypeError, KeyError, RecursionError):
                continue
    return found


def _start(facts: Mapping[str, Any], host: str) -> Start:
    return Start(
        how=str(facts["how"]),
        pid=int(facts["pid"]),
        parent=int(facts["parent"]),
        at_ns=int(facts["at_ns"]),
        records=bool(facts["records"]),
        executable=str(facts["executable"]),
        interpreter=str(facts["interpreter"]),
        argv=tuple(str(word) for word in facts["argv"]),
        host=host,
    )


def replaced_by(found: Iterable[Start]) -> dict[tuple[str, int], Start]:
    """By host and pid, the last program that a process became without failing."""
    became: dict[tuple[str, int], Start] = {}
    for start in found:
        if start.how == "exec":
            became[start.host, start.pid] = start
        elif start.how == "exec failed":
            became.pop((start.host, start.pid), None)
    return became


def unrecorded(
    found: Iterable[Start], processes: Iterable[Mapping[str, object]], notes: Iterable[str]
) -> tuple[list[str], dict[str, int]]:
    """Compare starts with the processes of a trace.

    Returns a sentence for every Python that is not among them (those that `notes` tell of are left out), and how often
    each other command was started.
    """
    began: dict[tuple[str, int], int] = {}
    for process in processes:
        key = (str(process["host"]), int(str(process["pid"])))
        began[key] = max(began.get(key, 0), int(str(process["started_ns"])))
    told = {int(pid) for note in notes for pid in re.findall(r"\(process (\d+)\)", note)}
    pythons: list[str] = []
    others: Counter[str] = Counter()
    found = list(found)
    failed = {(start.host, start.pid, start.executable) for start in found if start.how == "exec failed"}
    for start in found:
        if start.how == "exec failed" or (start.how == "exec" and (start.host, start.pid, start.executable) in failed):
            continue
        if start.pid and began.get((start.host, start.pid), -1) >= start.at_ns:
            continue
        if not start.is_python:
            others[Path(start.executable).name or start.executable] += 1
        elif start.pid not in told and not _shows_only(start.argv):
            pythons.append(f"{start.command} (process {start.pid}) was not recorded: {_reason(start)}")
    return pythons, dict(others)


def names_of(others: Mapping[str, int]) -> str:
    """Name commands that are no Python, the most frequent ones first, and say what that means."""
    ordered = sorted(others.items(), key=lambda item: (-item[1], item[0]))
    names = [f"{name} ({count} times)" if count > 1 else name for name, count in ordered[:_MOST_NAMES]]
    if len(ordered) > _MOST_NAMES:
        names.append(f"{len(ordered) - _MOST_NAMES} others")
    shells = " (Pythons that a shell starts are recorded)" if any(name in _SHELLS for name in others) else ""
    return f"{', '.join(names)}: no Python, not recorded{shells}"


def _options(argv: tuple[str, ...]) -> Iterator[str]:
    """The options of a Python itself, a letter each: those before the script, -c or -m."""
    words = iter(argv[1:])
    for word in words:
        if not word.startswith("-") or word == "-":
            return
        if word.startswith("--"):
            yield word
            continue
        for position, letter in enumerate(word[1:], 1):
            if letter in "cm":
                return
            yield letter
            if letter in "WX":  # they take the rest, or the next word
                if position == len(word) - 1:
                    next(words, "")
                break


def _shows_only(argv: tuple[str, ...]) -> bool:
    return any(
        option in ("V", "h", "?", "--version", "--help", "--help-env", "--help-xoptions", "--help-all")
        for option in _options(argv)
    )


def _reason(start: Start) -> str:
    options = set(_options(start.argv)) if not start.interpreter else set(_options(tuple(start.interpreter.split())))
    for letter, why in (
        ("S", "its option -S leaves out what starts the recorder"),
        ("I", "its option -I hides the environment from it"),
        ("E", "its option -E hides the environment from it"),
    ):
        if letter in options:
            return why
    if not start.records:
        return "it was started with another environment, without STROBE_SESSION or our part of PYTHONPATH"
    return "it ended, or was stopped, before recording began"
