"""One axis for processes of several nodes: from readings of the trace's clock, which each node took while it ran.

All processes of a node share a clock. If it is not the clock of `strobe run`, the processes have asked that one for its
time (native/core/system/node_clock.h). A reading means: when the clock of the node is at local_ns, that of the trace is
at local_ns + offset_ns, give or take error_ns.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from strobe.errors import TraceError
from strobe.model.private_files import opener
from strobe.model.units import format_ns
from strobe.tables.column_arrays import Ints

if TYPE_CHECKING:
    from strobe.trace.archive import Job, ProcessFiles
    from strobe.trace.processes.process_facts import ProcessFacts
    from strobe.trace.processes.process_reader import ProcessReader

Points = list[tuple[int, int]]  # ns on a clock, ns on that of the trace: straight lines between them
Columns = tuple[Ints, Ints]  # the same, as the native reader takes them
REPAIRS = "clocks.json"
_MOST = 1 << 62
# Readings that took so much longer than the median one are less exact than the line between their neighbours.
_GOOD = 2.0
_APART_NS = 1_000_000


@dataclass(frozen=True)
class NodeClock:
    """The clock of a node compared with that of the trace, ns; `ahead_ns` at its first reading.

    `error_ns` is None if unknown: without a reading, and without a synchronised time of day.
    """

    points: Points
    ahead_ns: int
    drift_ppm: float
    error_ns: int | None
    readings: int

    @property
    def sentence(self) -> str:
        """How the axis of its processes was made."""
        ahead = f"{format_ns(abs(self.ahead_ns))} {'ahead of' if self.ahead_ns >= 0 else 'behind'} the trace's"
        if not self.readings:
            return f"clock of its node, by the time of day: {ahead}; its drift is not known"
        many = "once" if self.readings == 1 else f"{self.readings} times"
        return f"clock of its node, measured {many}: {ahead}, drift {self.drift_ppm:+.3f} ppm"


def from_readings(readings: Sequence[tuple[int, int, int]]) -> NodeClock:
    """Return the clock that readings (local_ns, offset_ns, error_ns) show; there is one at least.

    One straight line where it passes all good readings within their errors, else lines from each to the next. The error
    is how far a good reading may be from it.
    """
    rows = np.array(sorted(set(readings)), dtype=np.int64)
    rows = rows[rows[:, 2] <= _GOOD * np.median(rows[:, 2])]
    first = np.flatnonzero(np.diff(rows[:, 0], prepend=rows[0, 0] - _APART_NS - 1) > _APART_NS)
    rows = np.stack([min(part.tolist(), key=lambda row: row[2]) for part in np.split(rows, first[1:])])
    local, offset, error = rows.T
    if len(rows) == 1:
        return NodeClock(
            [(int(local[0]), int(local[0] + offset[0]))], -int(offset[0]), 0.0, int(error[0]), len(readings)
        )
    begin, base = local[0], offset[0]
    time, height = (local - begin).astype(np.float64), (offset - base).astype(np.float64)
    slope, level = np.polyfit(time, height, 1, w=1 / np.maximum(error, 1))
    apart = np.abs(height - (level + slope * time))
    line = [base + round(level + slope * each) for each in time[[0, -1]]]
    if (apart <= error).all():
        points = [(int(at), int(at + by)) for at, by in zip(local[[0, -1]], line, strict=True)]
    else:
        points = [(int(at), int(at + by)) for at, by in zip(local, offset, strict=True)]
        apart = np.zeros(len(rows))
    worst = int(np.ceil((apart + error).max() - 1e-3))
    return NodeClock(points, points[0][0] - points[0][1], float(-slope * 1e6), worst, len(readings))


def from_time_of_day(own: Sequence[int], of_trace: Sequence[int]) -> NodeClock:
    """Return the clock that two pairs (monotonic ns, ns of the time of day, its error or -1) show."""
    offset = (own[1] - own[0]) - (of_trace[1] - of_trace[0])
    error = own[2] + of_trace[2] if min(own[2], of_trace[2]) >= 0 else None
    return NodeClock([(own[0], own[0] + offset)], -offset, 0.0, error, 0)


def clock_names(described: Sequence[ProcessFacts], files: Sequence[ProcessFiles], job: Job) -> list[str]:
    """Return, for each process, the name of the clock that its times are of: its node's.

    If the node is unknown, processes of a host share a clock; each file of another tool has its own.
    """
    return [
        str(each.get("node") or (not job.imported and each.get("host")) or own.blocks.stem)
        for each, own in zip(described, files, strict=True)
    ]


def clocks_of_nodes(described: Sequence[ProcessFacts], job: Job) -> dict[str, NodeClock]:
    """Return, by name, the clocks of nodes other than the trace's own, as far as they are known."""
    readings: dict[str, list[tuple[int, int, int]]] = {}
    wall: dict[str, Sequence[int]] = {}
    for each in described:
        node = each.get("node")
        if not job.node or not node or node == job.node:
            continue
        taken = each.get("clock_readings") or []
        readings.setdefault(node, []).extend(reading for reading in taken if reading[2] >= 0)
        if time_of_day := each.get("wall"):
            wall.setdefault(node, time_of_day)
    clocks = {}
    for node, own in readings.items():
        if own:
            clocks[node] = from_readings(own)
        elif job.wall and node in wall:
            clocks[node] = from_time_of_day(wall[node], job.wall)
    return clocks


def apply(readers: Sequence[ProcessReader], files: Sequence[ProcessFiles], job: Job, folder: Path) -> Job:
    """Put the processes of other nodes on the trace's axis; return the job with what is noted of their clocks."""
    described = [reader.process() for reader in readers]
    clocks, repairs = clocks_of_nodes(described, job), read_repairs(folder)
    if not clocks and not repairs.points and not any("clock_points" in note for note in job.processes.values()):
        return job
    names = clock_names(described, files, job)
    notes = dict(job.processes)
    for reader, own, name in zip(readers, files, names, strict=True):
        stem, clock = own.blocks.stem, clocks.get(name)
        note = dict(notes.get(stem, {}))
        points = repairs.points.get(name) or (clock.points if clock else _noted(note, folder))
        if clock:
            note |= {"clock": clock.sentence, "clock_error_ns": clock.error_ns}
        if points:
            note["clock_points"] = points
            use_noted_clock(reader, note)
        if note:
            notes[stem] = note
    return replace(job, processes=notes)


def _noted(note: Mapping[str, Any], folder: Path) -> Points:
    """Return the points of a process of a trace that was cut from another."""
    try:
        return [_point(each) for each in note.get("clock_points") or []]
    except (ValueError, TypeError) as error:
        raise TraceError(f"'{folder / 'job.json'}' holds no job description: {error}") from error


def use_noted_clock(reader: ProcessReader, note: Mapping[str, Any]) -> None:
    """Put a process on the trace's axis, if its note has points of its clock."""
    points = note.get("clock_points")
    if points:
        reader.use_clock(columns(points))


def columns(points: Points) -> Columns:
    """Return points as the native reader takes them: in order, no two of one moment."""
    local, trace = np.array(sorted(dict(points).items()), dtype=np.int64).T
    return np.ascontiguousarray(local), np.maximum.accumulate(trace)


def time_on_axis(points: Columns, local_ns: int) -> int:
    """Return the moment of the trace, as the native reader does (native/kernels/reading/clock_map.h)."""
    local, trace = points
    if len(local) == 1:
        return int(local_ns - local[0] + trace[0])
    last = int(np.clip(np.searchsorted(local, local_ns, side="right"), 1, len(local) - 1))
    (a, b), (from_ns, to_ns) = local[last - 1 : last + 1].tolist(), trace[last - 1 : last + 1].tolist()
    since, wide = local_ns - a, b - a
    return int(from_ns + since + math.floor(since * ((to_ns - from_ns) - wide) / wide))


@dataclass(frozen=True)
class Repairs:
    """Results of a check of the clocks, and the points of the repaired clocks; both empty without a check."""

    checked: Mapping[str, int]
    points: Mapping[str, Points]


def read_repairs(folder: Path) -> Repairs:
    """Read the repairs in a trace folder. Raises TraceError if they are damaged."""
    path = folder / REPAIRS
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        points = {str(name): [_point(each) for each in own] for name, own in content["points"].items()}
        return Repairs({str(key): int(value) for key, value in content["checked"].items()}, points)
    except FileNotFoundError:
        return Repairs({}, {})
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise TraceError(
            f"cannot read '{path}': {error}", do="Remove it: clocks are then as they were measured."
        ) from error


def write_repairs(folder: Path, repairs: Repairs) -> None:
    """Write repairs into a trace folder; whoever opens the trace next uses them."""
    path = folder / REPAIRS
    content = {"checked": dict(repairs.checked), "points": dict(repairs.points)}
    with open(path.with_suffix(".new"), "w", encoding="utf-8", opener=opener) as file:
        file.write(json.dumps(content) + "\n")
    path.with_suffix(".new").replace(path)


def _point(value: Sequence[int]) -> tuple[int, int]:
    local, trace = value
    if not all(isinstance(each, int) and abs(each) < _MOST for each in (local, trace)):
        raise ValueError("a time that no clock shows")
    return local, trace
