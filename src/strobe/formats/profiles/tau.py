"""TAU's profiles: the files profile.NODE.CONTEXT.THREAD, of which a folder is one trace with a rank for each node.

The files of a node's other threads are read with its first. With whole call paths (TAU_CALLPATH, deep enough) there is
a call tree; else there are functions, and their callers where call paths are cut. A metric other than time is counted.
The samples of a thread are a location of their own. User events and groups are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path, PurePosixPath

from strobe.formats.reading.json_input import exact_number
from strobe.formats.reading.profile_import import ROOT, Function, ProfileProcess, Weight
from strobe.formats.reading.text_input import lines_of
from strobe.model.losses import LEFT_OUT
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

_FIRST_LINE = re.compile(rb"(\d{1,9}) templated_functions(?:_MULTI_(\S+))?\s*")
_FILE = re.compile(r"profile\.(\d{1,9})\.(\d{1,9})\.(\d{1,9})")
# name, calls, calls of others, exclusive, inclusive, calls with a profile of their own, group
_COUNTS = re.compile(r" (\S+) \S+ (\S+) (\S+) \S+\s+GROUP=")
_PLACE = re.compile(r"(.*?)\[\{([^{}]*)\} *\{(\d{1,9})[^\]]{0,99}\]( \[THROTTLED\])?")
_ATTRIBUTE = re.compile(r"<name>(Command Line|Hostname|TAU Version|TAU_CALLPATH_DEPTH)</name><value>([^<]*)</value>")
_SAMPLED = ("[CONTEXT]", "[SUMMARY]", "[SAMPLE]", "[UNWIND]", "[INTERMEDIATE]")  # with TAU_SAMPLING
_NS_A_MICROSECOND = 1000
_LARGEST_GAP = 16  # in the numbers of threads
_Path = tuple[str, ...]


def sniff(head: bytes) -> bool:
    """Return whether its first line counts TAU's functions."""
    return _FIRST_LINE.fullmatch(head.partition(b"\n")[0]) is not None


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import the threads of a node. Raises ValueError if another profile of node 0 was read before."""
    place = _FILE.fullmatch(PurePosixPath(source.name.replace(":", "/")).name)
    node, context, thread = (int(each) for each in place.groups()) if place else (None, 0, 0)
    others = any(Path(target.folder).glob("process-*.blocks"))
    if others and (context or thread) and _reached(source, (node, context, thread)):
        return Imported(processes=0, first_ns=0, last_ns=0, rank=node)
    if others and (node, context, thread) == (0, 0, 0):
        raise ValueError("there are several profiles of node 0: open one of the folders, such as MULTI__TIME")
    process = ProfileProcess(source, target)
    properties: dict[str, object] = {}
    for number, (name, each) in enumerate(_threads(source, place)):
        _Thread(process, name, number, properties).read(each)
    return process.finish(properties, rank=node)


def _reached(source: ImportSource, place: tuple[int | None, int, int]) -> bool:
    """Return whether `_threads` finds a file from the first of its node."""
    node, context, thread = place
    if thread == 0:
        return source.beside(f"profile.{node}.{context - 1}.0") is not None
    before = range(max(0, thread - _LARGEST_GAP), thread)
    return any(source.beside(f"profile.{node}.{context}.{each}") is not None for each in before)


def _threads(source: ImportSource, place: re.Match[str] | None) -> Iterator[tuple[str, ImportSource]]:
    """Yield the file, and those of the other threads of its node if it is the first, with the names of the threads."""
    yield f"thread {place[3]}" if place else "main", source
    if place is None or (place[2], place[3]) != ("0", "0"):
        return
    context, thread, missing = 0, 1, 0
    while missing < _LARGEST_GAP:
        found = source.beside(f"profile.{place[1]}.{context}.{thread}")
        missing = 0 if found is not None else missing + 1
        if found is not None:
            yield f"thread {thread}" if context == 0 else f"context {context}, thread {thread}", found
        elif thread == 0:
            return
        thread += 1
        if missing == _LARGEST_GAP:
            context, thread, missing = context + 1, 0, 0


@dataclass(frozen=True)
class _Sums:
    """Calls, and the metric without and with callees: of one row, or added up."""

    calls: Fraction = Fraction(0)
    own: Fraction = Fraction(0)
    total: Fraction = Fraction(0)

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(self.calls + other.calls, self.own + other.own, self.total + other.total)


class _Thread:
    """One file."""

    def __init__(self, process: ProfileProcess, name: str, number: int, properties: dict[str, object]) -> None:
        self._process, self._properties = process, properties
        self._name, self._number, self._location = name, number, process.location(name, number)
        self._rows: dict[_Path, _Sums] = {}
        self._mpi: set[str] = set()

    def read(self, source: ImportSource) -> None:
        """Add its sums."""
        lines = lines_of(source, lambda: self._process.core.left_out("lines_not_understood"))
        first = _FIRST_LINE.fullmatch(next(lines, b""))
        metric = first[2].decode("utf-8", "replace") if first is not None and first[2] else "TIME"
        left = 0 if first is None else int(first[1])
        for raw in lines:
            line = raw.decode("utf-8", "replace").rstrip()
            if line.startswith("#"):
                self._properties.update(_ATTRIBUTE.findall(line))
            elif line.endswith(" aggregates"):
                break
            elif self._add(line):
                left -= 1
            else:
                self._process.core.left_out("lines_not_understood")
        self._process.core.count("truncated", int(left > 0))
        user_events = sum(line.startswith(b'"') for line in lines)
        self._process.core.left_out("metrics_not_kept", user_events)
        self._process.core.count(LEFT_OUT + "user events", user_events)
        self._properties["metric"] = metric
        self._save(metric)

    def _add(self, line: str) -> bool:
        """Add a row: "NAME" calls subroutines own total profile GROUP="GROUPS". Return whether it is one."""
        parts = line.split('"')  # the name may have quotation marks
        quoted = len(parts) >= 5 and not parts[0] and not parts[-1]
        row = _COUNTS.fullmatch(parts[-3]) if quoted else None
        numbers = [_number(row[place]) for place in (1, 2, 3)] if row else []
        sound = [each for each in numbers if each is not None]
        if len(sound) < 3:
            return False
        path = tuple(each.strip() for each in '"'.join(parts[1:-3]).split(" => "))
        self._process.core.taken()
        self._rows[path] = self._rows.get(path, _Sums()) + _Sums(*sound)
        if "MPI" in re.split(r"\W+|_", parts[-2]) and path[-1].startswith("MPI_"):
            self._mpi.add(path[-1])
        return True

    def _save(self, metric: str) -> None:
        timed = metric.upper() in ("TIME", "WALLCLOCK", "GET_TIME_OF_DAY", "LINUXTIMERS", "CPU_TIME")
        step, weight = (_NS_A_MICROSECOND, None) if timed else (1, Weight(metric, "events"))
        called = {path[-1] for path in self._rows if len(path) > 1}
        timers = {path for path in self._rows if not path[-1].startswith(_SAMPLED)}
        # Paths that are cut begin with a function that others call.
        whole = all(path[0] not in called and path[:-1] in timers for path in timers if len(path) > 1)
        edges: dict[_Path, _Sums] = {}
        for path, sums in sorted(self._rows.items(), key=lambda row: len(row[0])):
            if path not in timers:
                if len(path) > 1 or path[0] not in called:
                    begins = next((at for at, name in enumerate(path) if name.startswith(_SAMPLED)), 0)
                    # They are of the same time as the functions that are measured: together they were twice as much.
                    apart = self._process.location(f"{self._name}, samples", self._number)
                    self._totals(apart, path[begins:], sums, step, weight)
            elif len(path) > 1 and not whole:
                edges[path[-2:]] = edges.get(path[-2:], _Sums()) + sums
            elif len(path) > 1 or not whole or path[0] not in called:
                self._totals(self._location, path, sums, step, weight)
        for (caller, callee), sums in edges.items():
            self._process.call_edge(
                self._location,
                self._function(caller),
                self._function(callee),
                calls=round(sums.calls),
                total_ns=round(sums.total * step),
                self_ns=round(sums.own * step),
            )

    def _totals(self, location: int, path: _Path, sums: _Sums, step: int, metric: Weight | None) -> None:
        number = ROOT
        for name in path:
            paradigm = "mpi" if name in self._mpi else ""
            number = self._process.path(number, self._process.region(self._function(name), paradigm=paradigm))
        own_ns, total_ns = sums.own * step, sums.total * step
        self._process.core.count("weights_rounded", int(own_ns.denominator > 1))
        self._process.totals(location, number, round(sums.calls), round(total_ns), round(own_ns))
        if metric is not None:
            self._process.core.count("weights_are_no_time")
            self._process.path_metric(location, number, metric, float(sums.own), float(sums.total))

    def _function(self, name: str) -> Function:
        place = _PLACE.fullmatch(name)
        return Function(place[1].rstrip(" ") + (place[4] or ""), place[2], int(place[3])) if place else Function(name)


def _number(digits: str) -> Fraction | None:
    try:
        return exact_number(Decimal(digits))
    except InvalidOperation:
        return None


FORMAT = Format("tau", "TAU profiles (profile.0.0.0)", suffixes=(".0",), sniff=sniff, read=read)
