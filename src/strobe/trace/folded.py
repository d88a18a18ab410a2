"""Iterations that were folded while the program ran: a record of each, statistics of them all.

An iteration is *kept* (its spans are in the trace) or *folded* (its spans were summed up by location, call path and
class of iterations). Results have the ids of the trace, and times since its zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from strobe.model.kinds import PARTS
from strobe.tables.column_arrays import Columns, Ints
from strobe.trace.processes.process_reader import ProcessReader

# How much of an iteration is in the trace as spans, as the recorder numbers it: nothing, its end, all of it.
DETAILS = ("none", "part", "all")
NONE, PART, ALL = range(3)
# Number of buckets in a histogram of durations.
BUCKETS = 64
# Number of sets of kinds of a GPU's work (strobe.gpu.work.KINDS).
GPU_SETS = 8
# Class of statistics that were folded outside of any iteration.
NO_CLASS = 0xFFFFFFFF
# Kinds of what an iteration does beyond the usual (native/structure/step_classes.h numbers them: a function at a call
# path; a validation found by its waits and forward passes; everything that came after the largest number of classes;
# a function by its region alone, in older traces.
FUNCTION, VALIDATION, OTHER, OF_REGION = range(4)
_NO_PATH = 2**32 - 1
_SPECIAL = {0: VALIDATION, 1: OTHER}  # regions on disk


@dataclass(frozen=True)
class RecordedLoop:
    """A main loop that the recorder accepted while the program ran. Nanoseconds; `ended_ns` is None while it goes on.

    `kind` is one of hint, range, optimizer, zero_grad, data_wait, structure; `name` the region that marks an iteration.
    `accepted_iteration` is how many iterations had been seen by then: they are in detail, and not among the records.
    """

    kind: str
    name: str
    accepted_ns: int
    accepted_iteration: int
    ended_ns: int | None
    reason: str
    confidence: str


@dataclass(frozen=True)
class Iterations(Columns):
    """The recorded iterations of a process in order of start, one array entry each. Nanoseconds.

    loop: index into the recorded loops. class_id: index into the extras. detail: NONE, PART (from `detail_ns` on), ALL.
    parts_ns: array (iterations, PARTS) whose rows add up to the durations.
    """

    loop: Ints
    start_ns: Ints
    duration_ns: Ints
    events: Ints
    path_hash: npt.NDArray[np.uint64]
    class_id: Ints
    detail: Ints
    detail_ns: Ints
    parts_ns: Ints


@dataclass(frozen=True)
class GpuLanes(Columns):
    """The lanes of a process's recorded iterations on one GPU, an entry per iteration. Nanoseconds.

    set_ns: array (iterations, GPU_SETS), see strobe.gpu.lanes. known: False where the process was killed before it knew
    the lane.
    """

    start_ns: Ints
    set_ns: Ints
    known: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Folded(Columns):
    """Statistics of a process, one array entry per location, call path and class of iterations. Nanoseconds.

    own_ns is the time without direct children. It is negative, and count 0, for a call path whose spans are in the
    trace while what ran directly inside of them was folded: their own time holds too much. histogram: array (rows, 64)
    of counts per bucket of the duration, see `bucket_edges_ns`. is_short: the row is of functions shorter than
    `--min-duration`, which were left out of what was kept of the class; other rows are of folded iterations.
    """

    location: Ints
    call_path: Ints
    class_id: Ints
    count: Ints
    total_ns: Ints
    own_ns: Ints
    min_ns: Ints
    max_ns: Ints
    sum_squares: npt.NDArray[np.float64]
    histogram: Ints
    is_short: npt.NDArray[np.bool_]


def no_iterations() -> dict[str, Ints]:
    """Return the iterations of a process without any."""
    times = ("start_ns", "duration_ns", "detail_ns", *(f"{part}_ns" for part in PARTS))
    numbers = ("loop", "events", "path_hash", "class_id", "detail")
    return {name: np.empty(0, dtype=np.int64) for name in (*times, *numbers)}


def no_statistics() -> dict[str, Ints]:
    """Return the statistics of a process of which nothing was folded."""
    none = vars(Folded.joined(()))
    return {**none, "histogram": np.empty((0, BUCKETS), dtype=np.int64)}


def bucket_edges_ns() -> npt.NDArray[np.float64]:
    """Return the edges of the buckets of a histogram: two buckets an octave, the last one open upwards."""
    return np.exp2(np.arange(BUCKETS + 1) / 2)


def _whole(values: npt.NDArray[Any]) -> Ints:
    return values.astype(np.int64)


def read_loops(reader: ProcessReader, zero_ns: int) -> tuple[RecordedLoop, ...]:
    """Return the main loops that were accepted, in the order in which they were."""
    return tuple(
        RecordedLoop(
            **{name: each[name] for name in ("kind", "name", "accepted_iteration", "reason", "confidence")},
            accepted_ns=each["accepted_ns"] - zero_ns,
            ended_ns=None if each["ended_ns"] < 0 else each["ended_ns"] - zero_ns,
        )
        for each in reader.loops()
    )


def read_iterations(reader: ProcessReader, zero_ns: int) -> tuple[Iterations, dict[int, Ints] | None]:
    """Return the records of the iterations since the first loop was accepted, and where their host time went.

    That is by part * len(HOST_KINDS) + kind, ns, an entry per iteration, without what is 0 in all of them, and without
    `host`, which is what the other kinds leave of a part. None where an older strobe recorded some of them.
    """
    raw, cells = reader.iterations(), reader.cells()
    order = _in_order(raw["start_ns"])
    number = {name: _whole(values[order]) for name, values in raw.items() if name != "path_hash"}
    iterations = Iterations(
        **{name: number[name] for name in ("loop", "duration_ns", "events", "class_id", "detail")},
        start_ns=number["start_ns"] - zero_ns,
        path_hash=raw["path_hash"][order].astype(np.uint64),
        detail_ns=number["detail_ns"] - zero_ns,
        parts_ns=np.stack([number[f"{part}_ns"] for part in PARTS], axis=1),
    )
    return iterations, None if cells is None else {cell: values[order] for cell, values in cells.items()}


def read_gpu_lanes(reader: ProcessReader, zero_ns: int) -> dict[int | None, GpuLanes]:
    """Return the lanes of the recorded iterations by GPU (None: unknown which); none where an older strobe recorded."""
    found = reader.gpu_lanes()
    if not found:
        return {}
    begins = reader.iterations()["start_ns"]
    order, count = _in_order(begins), len(begins)
    out: dict[int | None, GpuLanes] = {}
    for device, (first, start_ns, columns) in found.items():
        # A kill may leave lanes whose records are lost. Iterations before the first lane launched nothing.
        rows = slice(first, min(count, first + len(start_ns)))
        there = slice(max(0, count - first))
        if not len(start_ns[there]):
            continue
        start, set_ns = np.full(count, start_ns[0], dtype=np.int64), np.zeros((count, GPU_SETS), dtype=np.int64)
        start[rows] = start_ns[there]
        for number, values in columns.items():
            set_ns[rows, number] = values[there]
        known = np.arange(count) < first + len(start_ns)
        out[None if device < 0 else device] = GpuLanes(start[order] - zero_ns, set_ns[order], known[order])
    return out


def _in_order(start_ns: npt.NDArray[Any]) -> Any:
    return slice(None) if (start_ns[1:] >= start_ns[:-1]).all() else np.argsort(start_ns, kind="stable")


def read_extras(
    reader: ProcessReader, region_map: npt.NDArray[np.uint32], path_map: npt.NDArray[np.uint32]
) -> tuple[tuple[int, ...], ...]:
    """Return for every class of iterations what it does beyond the usual, in order.

    Each is a number: its kind times 2^32, plus its call path or its region; of a validation the path of an extra around
    it, or 2^32 - 1.
    """

    def extras(regions: Sequence[int], paths: Sequence[int]) -> Iterator[int]:
        for region, path in zip_longest(regions, paths):
            known = path is not None and path < len(path_map)
            if region in _SPECIAL:
                yield _SPECIAL[region] * 2**32 + (int(path_map[path]) if known else _NO_PATH)
            elif known:
                yield FUNCTION * 2**32 + int(path_map[path])
            elif path is None and region < len(region_map):
                yield OF_REGION * 2**32 + int(region_map[region])

    of_classes = zip(reader.classes(), reader.class_paths(), strict=True)
    return tuple(tuple(extras(*of_class)) for of_class in of_classes)


def read_extra_uses(reader: ProcessReader, path_map: npt.NDArray[np.uint32]) -> dict[int, dict[int, tuple[int, int]]]:
    """Return by recorded loop what is an extra in some of its iterations, see `read_extras`.

    That is: how many iterations do it at all, and how many at such a cost that it makes a class. Empty in older traces.
    """
    found: dict[int, dict[int, tuple[int, int]]] = {}
    for loop, path, *use in reader.extra_calls():
        if path == _NO_PATH:
            found.setdefault(loop, {})[VALIDATION * 2**32 + _NO_PATH] = use[0], use[1]
        elif path < len(path_map):
            found.setdefault(loop, {})[FUNCTION * 2**32 + int(path_map[path])] = use[0], use[1]
    return found


def read_statistics(
    reader: ProcessReader, path_map: npt.NDArray[np.uint32], location_map: dict[int, int]
) -> Folded | None:
    """Return the statistics of folded iterations; None if nothing was folded.

    Rows of a location or a call path whose definition is lost in a damaged file are left out.
    """
    raw = reader.statistics()
    here = np.isin(raw["location"], np.fromiter(location_map, dtype=np.uint32))
    here &= _whole(raw["call_path"]) < len(path_map)
    if not here.all():
        raw = {name: values[here] for name, values in raw.items()}
    if not len(raw["count"]):
        return None
    changed: dict[str, npt.NDArray[Any]] = {
        "location": np.array([location_map[each] for each in raw["location"].tolist()], dtype=np.int64),
        "call_path": _whole(path_map[_whole(raw["call_path"])]),
        "sum_squares": raw["sum_squares"].astype(np.float64),
        "is_short": raw["is_short"].astype(np.bool_),
    }
    for name in {each.name for each in fields(Folded)} - changed.keys():
        changed[name] = _whole(raw[name])
    return Folded(**changed)


def folded_by_process(
    readers: Sequence[ProcessReader],
    path_maps: Sequence[npt.NDArray[np.uint32]],
    location_maps: Sequence[dict[int, int]],
) -> dict[int, Folded]:
    """Return the statistics of each process that folded iterations; the maps lead from its ids to global ones."""
    found = {}
    for process, reader in enumerate(readers):
        # Without statistics, nothing needs the map of call paths.
        if len(reader.statistics()["count"]):
            found[process] = read_statistics(reader, path_maps[process], location_maps[process])
    return {process: statistics for process, statistics in found.items() if statistics is not None}


@dataclass(frozen=True)
class RecordedGraph:
    """The event flow graph of a location as it was recorded (docs/format/graph.md).

    `region`, `caller`: by node the region and the region of its caller; -1: not known.
    """

    payload: bytes
    region: Ints
    caller: Ints


def read_graph(reader: ProcessReader, local_id: int, region_map: npt.NDArray[np.uint32]) -> RecordedGraph | None:
    """Return the graph of a location by its id in the process, None if none was recorded."""
    raw = reader.graph(local_id)
    if raw is None:
        return None
    table = region_map.astype(np.int64)

    def mapped(local: Ints) -> Ints:
        known = (local > 0) & (local < len(table))
        return np.where(known, table[np.where(known, local, 0)], -1)

    return RecordedGraph(raw["payload"], mapped(raw["region"]), mapped(raw["caller"]))
