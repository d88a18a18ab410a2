"""Places: what has the same part in every process (main thread, `stream 7`): what lets ranks lie side by side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_KINDS = ("thread", "stream", "task")
_GPU = re.compile(r"^GPU (\d+) ")
_MAIN = "main thread"


@dataclass(frozen=True)
class Place:
    """One place of a program: `title` says which, `kind` is that of its locations, which are in order of rank."""

    title: str
    kind: str
    locations: tuple[int, ...]


def find_places(processes: Sequence[Mapping[str, object]], locations: Sequence[Mapping[str, object]]) -> list[Place]:
    """Return the places of a run, in the order in which they are shown: main threads, other threads, streams, tasks.

    Takes the rows of the tables `processes` and `locations`. Locations of several processes are of one place where
    they are called the same without what numbers the process: the id of the thread, the number of the GPU. A process
    that has several GPUs has a place for each, in order of their numbers.
    """
    titles: dict[int, tuple[str, str]] = {}
    devices: dict[int, list[int]] = {}
    seen: Counter[tuple[int, str, str]] = Counter()
    for row in locations:
        process, device = _number(row["process"]), row["device"]
        if device is not None:
            known = devices.setdefault(process, [])
            if _number(device) not in known:
                known.append(_number(device))
    for row in locations:
        process, kind, name = _number(row["process"]), str(row["kind"]), str(row["name"])
        if kind == "thread" and (name == _MAIN or row["thread_id"] == processes[process]["pid"]):
            title = _MAIN
        elif row["device"] is not None:
            nth = sorted(devices[process]).index(_number(row["device"]))
            title = _GPU.sub("", name) + (f" (GPU {nth + 1} of {len(devices[process])})" if nth else "")
        else:
            title = re.sub(rf"\s*\b{row['thread_id']}\b", "", name).strip() or kind
        # Two threads of one name are two places.
        seen[process, kind, title] += 1
        if (again := seen[process, kind, title]) > 1:
            title = f"{title} #{again}"
        titles[_number(row["location"])] = kind, title
    members: dict[tuple[str, str], list[int]] = {}
    for location in sorted(titles, key=lambda at: _rank(processes, locations[at])):
        members.setdefault(titles[location], []).append(location)
    order = sorted(members, key=lambda key: (_KINDS.index(key[0]), key[1] != _MAIN, _natural(key[1])))
    return [Place(title, kind, tuple(members[kind, title])) for kind, title in order]


def _rank(processes: Sequence[Mapping[str, object]], location: Mapping[str, object]) -> tuple[int, int, int]:
    """Processes without a rank come behind all others, in their own order."""
    process = _number(location["process"])
    rank = processes[process]["rank"]
    return (len(processes) if rank is None else _number(rank)), process, _number(location["location"])


def _natural(title: str) -> tuple[tuple[int, str], ...]:
    """`stream 7` before `stream 23`."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", title))


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
