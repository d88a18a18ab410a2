"""Which of the processes that a program started are not in its trace, and why: from the notes of their starts."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from strobe.trace.processes.process_facts import ProcessFacts

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*[a-z]?$")
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
# They start what follows with an environment of their own.
_OTHER_ENVIRONMENT = ("env", "sudo", "doas", "runuser", "pkexec")
_MOST_BYTES = 64 << 20
# Options with which a Python runs no program.
_INFORMATION = ("V", "h", "?", "--version", "--help", "--help-env", "--help-xoptions", "--help-all")
# Of several commands only so many are named, each so long.
_MOST_NAMES, _MOST_LETTERS = 5, 80


@dataclass(frozen=True)
class Start:
    """A process that was started (`how` is start), became another program (exec), or a command of a shell (shell)."""

    how: str
    pid: int
    parent: int
    at_ns: int
    records: bool | None  # whether its environment makes a Python record itself; None: in this recording none does
    executable: str
    interpreter: str
    argv: tuple[str, ...]
    host: str

    @property
    def command(self) -> str:
        """Its command line, cut where it is long."""
        return _command(self.argv) if self.argv else _command([self.executable])

    @property
    def is_python(self) -> bool:
        """Whether a Python runs it: by its name, or by the first line of a script."""
        interpreter = self.interpreter.split() or [""]
        words = [Path(self.executable).name, Path(interpreter[0]).name, *interpreter[1:]]
        return any(_PYTHON.match(word) for word in words)

    @property
    def python(self) -> Start | None:
        """This process or the one that `env` or a similar program starts, if a Python runs it."""
        if self.is_python:
            return self
        name = Path(self.executable).name
        if name in _OTHER_ENVIRONMENT:
            keeps = self.records and name == "env" and not any(word.startswith("-") for word in self.argv[1:2])
            for at, word in enumerate(self.argv[1:], 1):
                if not word.startswith("-") and _PYTHON.match(Path(word).name):
                    return replace(self, records=keeps, executable=word, argv=self.argv[at:])
        return None


@dataclass
class Missing:
    """Processes that are not in a trace."""

    pythons: list[str] = field(default_factory=list)  # a sentence each: they should be there
    left_out: Counter[str] = field(default_factory=Counter)  # Pythons that are not to be recorded: how often
    others: Counter[str] = field(default_factory=Counter)  # other commands: how often


def _command(argv: Sequence[str]) -> str:
    words = " ".join([Path(argv[0]).name, *argv[1:]])
    return words if len(words) <= _MOST_LETTERS else words[: _MOST_LETTERS - 3] + "..."


def starts(folder: Path) -> list[Start]:
    """Read which processes a trace has started. Torn and wrong lines are passed over."""
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
    known: dict[str, Any] = {name: str(facts[name]) for name in ("how", "executable", "interpreter")}
    known |= {name: int(facts[name]) for name in ("pid", "parent", "at_ns")}
    records = None if facts["records"] is None else bool(facts["records"])
    return Start(**known, records=records, argv=tuple(map(str, facts["argv"])), host=host)


def became(processes: Sequence[ProcessFacts], found: Iterable[Start]) -> list[str]:
    """Return of each process the program that it became by exec, "" where it became none.

    It was noted, or is a later process of the same number and parent, which has recorded itself.
    """
    found = list(found)
    failed = {(start.host, start.pid, start.at_ns) for start in found if start.how == "exec failed"}
    noted: dict[tuple[str, int], list[Start]] = {}
    for start in found:
        if start.how == "exec" and (start.host, start.pid, start.at_ns) not in failed:
            noted.setdefault((start.host, start.pid), []).append(start)
    following: dict[tuple[object, ...], ProcessFacts] = {}
    programs = [""] * len(processes)
    for at in sorted(range(len(processes)), key=lambda at: -processes[at]["started_ns"]):
        process = processes[at]
        host, pid = process.get("host", ""), process["pid"]
        successor = following.get((host, pid, process["parent_pid"]))
        until = successor["started_ns"] if successor else math.inf
        # Of a chain, the first one since this program began.
        since = (each for each in noted.get((host, pid), ()) if process["started_ns"] <= each.at_ns <= until)
        note = min(since, key=lambda each: each.at_ns, default=None)
        following[host, pid, process["parent_pid"]] = process
        if process.get("end_state") != "lost":
            continue
        if note:
            programs[at] = note.command
        elif successor:
            words = successor.get("argv") or "another program"
            programs[at] = _command([words] if isinstance(words, str) else words)
    return programs


def unrecorded(found: Iterable[Start], processes: Iterable[ProcessFacts], notes: Iterable[str]) -> Missing:
    """Compare starts with the processes of a trace; processes in `notes` are left out."""
    began: dict[tuple[str, int], int] = {}
    parents = set()
    for process in processes:
        host = process["host"]
        key = (host, process["pid"])
        began[key] = max(began.get(key, 0), process["started_ns"])
        parents.add((host, process["parent_pid"]))
    noted = {int(pid) for note in notes for pid in re.findall(r"\(process (\d+)\)", note)}
    missing, found = Missing(), list(found)
    pythons: dict[tuple[str, str], list[int]] = {}
    failed = {(start.host, start.pid, start.at_ns) for start in found if start.how == "exec failed"}
    for start in found:
        if start.how == "exec failed" or (start.how == "exec" and (start.host, start.pid, start.at_ns) in failed):
            continue
        if start.pid and began.get((start.host, start.pid), -1) >= start.at_ns:
            continue
        python = start.python
        if python is None or (python is not start and (start.host, start.pid) in parents):
            missing.others[Path(start.executable).name or start.executable] += 1
        elif start.pid in noted or any(option in _INFORMATION for option in _options(python.argv)):
            continue
        elif start.records is None:
            missing.left_out[start.command] += 1
        else:
            pythons.setdefault((start.command, _reason(python)), []).append(start.pid)
    for (command, reason), pids in pythons.items():
        times = f"{len(pids)} times, first as process {pids[0]}" if len(pids) > 1 else f"process {pids[0]}"
        missing.pythons.append(f"{command} ({times}) was not recorded: {reason}")
    return missing


def command_not_recorded(command: tuple[str, ...]) -> str:
    """Return why a trace has no process, by the command of `strobe run`."""
    start = Start("start", 0, 0, 0, True, command[0] if command else "", "", command, "")
    if start.python:
        return f"{start.command} was not recorded: {_reason(start.python)}."
    return (
        "The program is a shell or a command of the system, is linked statically, or has another C library than glibc "
        "2.35 or newer; or samples were refused."
    )


def names_of_left_out(left_out: Mapping[str, int]) -> str:
    """Return the names of Pythons that were not to be recorded, with advice."""
    advice = "strobe.record() records this process and its forks, `strobe run` records what it starts, too"
    return f"{_names(left_out)}: not recorded ({advice})"


def names_of(others: Mapping[str, int]) -> str:
    """Return the names of commands that are not Pythons, the most frequent first, with an explanation."""
    shells = " (Pythons that a shell starts are recorded)" if any(name in _SHELLS for name in others) else ""
    return f"{_names(others)}: no Python, not recorded{shells}"


def _names(commands: Mapping[str, int]) -> str:
    ordered = sorted(commands.items(), key=lambda item: (-item[1], item[0]))
    names = [f"{name} ({count} times)" if count > 1 else name for name, count in ordered[:_MOST_NAMES]]
    if len(ordered) > _MOST_NAMES:
        names.append(f"{len(ordered) - _MOST_NAMES} others")
    return ", ".join(names)


def _options(argv: tuple[str, ...]) -> Iterator[str]:
    """Yield the options of a Python itself: letters, before the script, -c or -m."""
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
    return "it ended or was stopped before recording began, or is another user, who may not write into this folder"
