"""Places: locations with the same part in every process (main threads, `stream 7`), shown side by side by rank."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_KINDS = ("thread", "stream", "task")
_GPU = re.compile(r"^GPU (\d+) ")
_MAIN = "main thread"


@dataclass(frozen=True)
class Place:
    """One place of a program: its title, the kind of its locations, and these in order of rank."""

    title: str
    kind: str
    locations: tuple[int, ...]


def find_places(processes: Sequence[Mapping[str, Any]], locations: Sequence[Mapping[str, Any]]) -> list[Place]:
    """Return the places of a run, in the order in which they are shown: main threads, other threads, streams, tasks.

    Takes the rows of the tables `processes` and `locations`. Locations of several processes are of one place where
    their names are equal but for the id of the thread and the number of the GPU. A process with several GPUs has a
    place for each, in order of their numbers.
    """
    titles: dict[int, tuple[str, str]] = {}
    devices: dict[int, set[int]] = {}
    seen: Counter[tuple[int, str, str]] = Counter()
    for row in locations:
        if row["device"] is not None:
            devices.setdefault(row["process"], set()).add(row["device"])
    for row in locations:
        process, kind, name = row["process"], str(row["kind"]), str(row["name"])
        if kind == "thread" and (name == _MAIN or row["thread_id"] == processes[process]["pid"]):
            title = _MAIN
        elif row["device"] is not None:
            nth = sorted(devices[process]).index(row["device"])
            title = _GPU.sub("", name) + (f" (GPU {nth + 1} of {len(devices[process])})" if nth else "")
        else:
            title = re.sub(rf"\s*\b{row['thread_id']}\b", "", name).strip() or kind
        # Two threads of one name are two places.
        seen[process, kind, title] += 1
        if (again := seen[process, kind, title]) > 1:
            title = f"{title} #{again}"
        titles[row["location"]] = kind, title
    members: dict[tuple[str, str], list[int]] = {}
    for location in sorted(titles, key=lambda at: _rank(processes, locations[at])):
        members.setdefault(titles[location], []).append(location)
    order = sorted(members, key=lambda key: (_KINDS.index(key[0]), key[1] != _MAIN, _natural(key[1])))
    return [Place(title, kind, tuple(members[kind, title])) for kind, title in order]


def _rank(processes: Sequence[Mapping[str, Any]], location: Mapping[str, Any]) -> tuple[int, int, int]:
    """Processes without a rank come behind all others, in their own order."""
    process = location["process"]
    rank = processes[process]["rank"]
    return (len(processes) if rank is None else rank), process, location["location"]


def _natural(title: str) -> tuple[tuple[int, str], ...]:
    """`stream 7` before `stream 23`."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", title))
