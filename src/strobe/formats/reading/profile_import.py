"""Import of profiles without a time axis: call paths with weights become totals, and rows of side tables.

A sample's weight belongs to the call path that was running (its own weight); a path's total is its own weight and that
of everything below it. Nothing here has a start or an end.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from strobe.formats.reading.import_process import NO_PATH, Cells, ImportProcess
from strobe.model.plugins import Imported, ImportSource, ImportTarget
from strobe.model.schema import TABLES
from strobe.model.units import format_bytes

ROOT = -1
# Profiles are small: a larger file is not a profile, or too large to be read at once.
MOST_BYTES = 512 << 20
_MOST_PATHS = 1 << 20  # as many as the core distinguishes
_MOST_DEPTH = 4096
_LARGEST = 1 << 62
_ADDRESS = re.compile(" at 0x[0-9a-fA-F]*")  # of an object in one run: regions have none, see imported_process.cpp
_MOST_ROWS = 4096  # of a table that wait
# Nanoseconds in the units that tools write.
NANOSECONDS: dict[str, Fraction] = {
    name: Fraction(ns)
    for ns, names in {
        1: ("ns", "nanosecond", "nanoseconds"),
        1_000: ("us", "µs", "microsecond", "microseconds"),
        1_000_000: ("ms", "millisecond", "milliseconds"),
        1_000_000_000: ("s", "sec", "second", "seconds"),
        60_000_000_000: ("min", "minute", "minutes"),
    }.items()
    for name in names
}


def read_whole(source: ImportSource) -> bytes:
    """Return the unpacked bytes of a file that must be read as a whole. Raises ValueError above 512 MiB."""
    pieces, size = [], 0
    for piece in source.chunks():
        size += len(piece)
        if size > MOST_BYTES:
            raise ValueError(
                f"it is larger than {format_bytes(MOST_BYTES)}, and profiles of this kind are read at once"
            )
        pieces.append(piece)
    return b"".join(pieces)


@dataclass(frozen=True)
class Weight:
    """A quantity that a profile counts."""

    name: str
    unit: str

    @property
    def ns(self) -> Fraction | None:
        """Nanoseconds of one unit, None if the unit is not one of time."""
        return NANOSECONDS.get(self.unit.lower())


SAMPLES = Weight("samples", "count")


@dataclass(frozen=True)
class Function:
    """A function: name, source file, first line (0 if unknown), module (program or library)."""

    name: str
    file: str = ""
    line: int = 0
    module: str = ""


class ProfileProcess:
    """The one process of an imported profile: regions, locations, call trees, rows of side tables."""

    def __init__(self, source: ImportSource, target: ImportTarget, core: ImportProcess | None = None) -> None:
        """`core`: a process that has events beside its profile; whoever made it finishes it, after `flush`."""
        self.core = core or ImportProcess(target, 0, buffers=1)
        self._source = source.name
        self._path_of: list[int] = []  # number in the core, by path
        self._region_of = array("q")
        self._parent_of = array("q")
        self._depth_of = array("l")
        self._ids: dict[tuple[int, int], int] = {}
        self._rows: dict[str, list[tuple[int, Mapping[str, str | float | None]]]] = {}  # of side tables, by location

    def region(self, function: Function, *, paradigm: str = "", role: str = "function") -> int:
        """Return the number of a function. Without a paradigm, it is Python by the suffix of its file."""
        file, line = function.file, function.line
        who = paradigm or ("python" if file.endswith((".py", ".pyx", ".ipynb")) or file.startswith("<") else "other")
        if not 0 <= line < 1 << 32:
            self.core.count("lines_out_of_range")
            line = 0
        name, module = clean(function.name) or "(no name)", clean(function.module)
        return self.core.region(name, who, role, module, clean(file), line)

    def location(self, name: str, thread_id: int = 0) -> int:
        """Return the number of a new location: a thread, or one profile of several in a file."""
        return self.core.location((name, thread_id), clean(name), thread_id)

    def path(self, parent: int, region: int) -> int:
        """Return the path of a region called from `parent`, or ROOT.

        A path that is too deep, or one too many, counts for its caller: the sums stay.
        """
        known = self._ids.get((parent, region))
        if known is not None:
            return known
        depth = self._depth_of[parent] + 1 if parent >= 0 else 0
        if parent >= 0 and (depth >= _MOST_DEPTH or len(self._path_of) >= _MOST_PATHS):
            self.core.count("frames_too_deep" if depth >= _MOST_DEPTH else "paths_folded")
            return parent
        number = len(self._path_of)
        self._ids[parent, region] = number
        self._path_of.append(self.core.out.path(self._path_of[parent] if parent >= 0 else NO_PATH, region))
        self._parent_of.append(parent)
        self._region_of.append(region)
        self._depth_of.append(depth)
        return number

    def parent(self, path: int) -> int:
        """Return the path that a path is called from, or ROOT."""
        return self._parent_of[path]

    def numbers(self, paths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the numbers that the core has for paths, as columns `call_path` hold them."""
        return np.array(self._path_of, dtype=np.int64)[paths]

    def totals(self, location: int, path: int, count: int, total_ns: int, own_ns: int) -> None:
        """Add the sums of all executions of a path in a location."""
        if max(abs(count), abs(total_ns), abs(own_ns)) >= _LARGEST or count < 0:
            self.core.count("weights_out_of_range")
            return
        self.core.out.totals(location, self._path_of[path], count, total_ns, own_ns)

    def path_metric(
        self, location: int, path: int, weight: Weight, own: float | None, total: float | None = None
    ) -> None:
        """Add the values of a weight for all executions of a path."""
        names = {"metric": weight.name, "unit": weight.unit}
        self._row("path_metrics", location, call_path=self._path_of[path], **names, self_value=own, total_value=total)

    def line(
        self, location: int, function: Function, file: str, line: int, total_ns: int | None, hits: int | None = None
    ) -> None:
        """Add the time of a source line and how often it ran."""
        self._row(
            "lines",
            location,
            file=file,
            line=line,
            function=_ADDRESS.sub("", function.name),
            function_line=function.line or None,
            hits=hits,
            total_ns=total_ns,
        )

    def call_edge(self, location: int, caller: Function, callee: Function, **sums: int | None) -> None:
        """Add the calls of one function by another: `calls`, `primitive_calls`, `total_ns`, `self_ns`."""
        ends = (("caller", caller), ("callee", callee))
        names = {name: _ADDRESS.sub("", each.name) for name, each in ends}
        files = {f"{name}_file": each.file for name, each in ends}
        lines = {f"{name}_line": each.line for name, each in ends}
        self._row("call_edges", location, **names, **files, **lines, **sums)

    def _row(self, table: str, location: int, **cells: str | float | None) -> None:
        """Add a row to a side table without spans; cells that are None stay empty."""
        for name, cell in cells.items():
            if isinstance(cell, int) and abs(cell) >= _LARGEST:
                self.core.count("weights_out_of_range")
                cells[name] = None
        rows = self._rows.setdefault(table, [])
        rows.append((location, cells))
        if len(rows) >= _MOST_ROWS:
            self._flush(table)

    def _flush(self, table: str) -> None:
        rows = self._rows.pop(table)
        columns: dict[str, Cells] = {}
        for column in TABLES[table][1:]:
            cells = [row.get(column.name) for _, row in rows]
            valid = np.array([cell is not None for cell in cells], dtype=np.uint8)
            if column.type == "string":
                cells = [None if cell is None else self.core.text(clean(str(cell))) for cell in cells]
            dtype = np.float64 if column.type == "float64" else np.int64
            values = np.array([0 if cell is None else cell for cell in cells], dtype=dtype).view(np.int64)
            columns[column.name] = values, valid
        self.core.rows(table, np.array([location for location, _ in rows], dtype=np.uint32), columns)

    def flush(self) -> None:
        """Write the rows of side tables that wait."""
        for table in list(self._rows):
            self._flush(table)

    def finish(
        self, properties: Mapping[str, object], *, pid: int = 0, rank: int | None = None, ranks: int | None = None
    ) -> Imported:
        """Write everything."""
        self.flush()
        self.core.pid = pid
        self.core.finish(str(properties.get("name") or self._source), self._source, main=True, rank=rank, ranks=ranks)
        # A process without spans has no first moment.
        first_ns = self.core.first_ns if self.core.used else 0
        last_ns = max(self.core.last_ns, first_ns)
        return Imported(processes=1, first_ns=first_ns, last_ns=last_ns, properties=properties)


class CallTree:
    """Samples of one location: stacks with a weight of each kind, summed up by call path.

    The last weight that is a time (as in pprof) is the time of the tables. Without one, the last weight stands in for
    it, a unit as a nanosecond: shares and the flame graph are right, `weights_are_no_time` is counted, and the true
    unit is in `path_metrics`, as are the weights of the other kinds.
    """

    def __init__(
        self, process: ProfileProcess, location: int, weights: Sequence[Weight], *, calls: bool = False
    ) -> None:
        """`calls`: samples are executions of their path, and none of the paths above."""
        self._process, self._location, self._weights, self._calls = process, location, weights, calls
        times = [i for i, weight in enumerate(weights) if weight.ns is not None]
        self._shown = (times or [len(weights) - 1])[-1]
        # How often a path was seen: the weight that counts, else the samples themselves.
        counts = [i for i, weight in enumerate(weights) if weight.unit == "count" and not calls]
        self._counted = counts[0] if counts else -1
        self._most = [_LARGEST // (weight.ns or 1) for weight in weights]
        self._own: dict[int, list[int | Fraction]] = {}

    def add(self, path: int, values: Sequence[int | Fraction], samples: int = 1, *, records: int = 1) -> None:
        """Add a sample of a path, or several: a value of each weight, in its unit.

        `records`: how many records of the file they are; 0 if they lie between two of them.
        """
        core = self._process.core
        if not all(-most < value < most for value, most in zip(values, self._most, strict=True)):
            if records:
                core.left_out("weights_out_of_range", records)
            else:
                core.count("weights_out_of_range")
            return
        core.taken(records)
        row = self._own.get(path)
        if row is None:
            row = self._own[path] = [0] * (len(self._weights) + 1)
        for i, value in enumerate(values):
            row[i] += value
        row[-1] += samples

    def save(self) -> None:
        """Write the totals of every path."""
        process = self._process
        reached: set[int] = set()
        for path in self._own:
            while path >= 0 and path not in reached:
                reached.add(path)
                path = process.parent(path)
        nothing: list[int | Fraction] = [0] * (len(self._weights) + 1)
        order = sorted(reached)
        total = {path: list(self._own.get(path, nothing)) for path in order}
        shown = self._weights[self._shown]
        scale = shown.ns if shown.ns is not None else Fraction(1)
        # Rounded once, at the bottom: totals are sums of the shown values, to the nanosecond.
        own_ns = {path: round(total[path][self._shown] * scale) for path in order}
        rounded = sum(own_ns[path] != total[path][self._shown] * scale for path in order)
        process.core.count("weights_rounded", rounded)
        total_ns = dict(own_ns)
        # Paths are numbered after their callers: all callees are summed before their caller.
        for path in reversed(order):
            above = process.parent(path)
            if above >= 0:
                total_ns[above] += total_ns[path]
                total[above] = [a + b for a, b in zip(total[above], total[path], strict=True)]
        for path in order:
            count = self._own.get(path, nothing)[-1] if self._calls else total[path][self._counted]
            process.totals(self._location, path, max(0, round(count)), total_ns[path], own_ns[path])
        if shown.ns is None:
            process.core.count("weights_are_no_time", len(self._own))
        for i, weight in enumerate(self._weights):
            if i == self._shown and shown.ns is not None:
                continue
            for path in order:
                own = float(self._own.get(path, nothing)[i])
                process.path_metric(self._location, path, weight, own, float(total[path][i]))


def function_of(key: object) -> Function | None:
    """Return the function that a tuple of file, line and name means in Python's profilers; None for anything else."""
    if not isinstance(key, tuple) or len(key) != 3:
        return None
    file, line, name = key
    known = isinstance(file, str) and isinstance(line, int) and abs(line) < 1 << 31 and isinstance(name, str)
    return Function(name, file, line) if known else None


def clean(text: str) -> str:
    """Return text that UTF-8 can hold: lone surrogates become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
