"""What a location did when: its innermost call paths, one after the other, and their sums in intervals of time.

A *cause* is a number: that of a call path, where calls of MPI that differ by their peer only are one; of the time
before one, outside of all spans or folded, in which nothing else is known; or of nothing that is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from strobe.gpu.devices import devices
from strobe.gpu.work import kind_of_region
from strobe.ranks.call_path_texts import call_path_text, peer_and_callers
from strobe.ranks.critical_path.thread_edges import tour
from strobe.ranks.messages import numbered
from strobe.ranks.waits.message_calls import Spans
from strobe.ranks.waits.wait_columns import Waits
from strobe.steps.thread_spans import main_location
from strobe.sums.path_statistics import merged_paths
from strobe.tables.column_arrays import Bools, Columns, Ints, interval_at
from strobe.trace.definition_rows import path_tree, region_rows, regions_where
from strobe.trace.folded import ALL, PART
from strobe.trace.spans import enclosing
from strobe.trace.trace import Trace

_AT_A_TIME = 1 << 21  # pieces of intervals that are summed up at once
BEFORE = "computation before "  # what the names of such causes begin with


class Causes:
    """The causes of a trace: by call path the number of itself, and of the time before it."""

    def __init__(self, trace: Trace) -> None:
        parent, self._region = path_tree(trace)
        regions, first = region_rows(trace), dict[object, int]()
        keys = ((row.name, callers) if (callers := peer_and_callers(row)[1]) else row.region for row in regions)
        same = np.array([first.setdefault(key, at) for at, key in enumerate(keys)], dtype=np.int64)
        self._trace, self._paths = trace, len(parent)
        self.unknown = 2 * self._paths
        self._of_path = np.append(merged_paths(parent, self._region, same), self.unknown)
        communicates = regions_where(trace, lambda region: region.group == "communication" or region.of_ranks)
        self._communicates = np.append(communicates[self._region], np.zeros(self._paths + 1, dtype=bool))
        of_gpu = np.full(len(regions) + 1, -1, dtype=np.int64)
        of_gpu[self._region[parent < 0]] = np.flatnonzero(parent < 0)
        self._at_root = np.append(of_gpu[self._region], -1)

    def of(self, call_path: Ints) -> Ints:
        """Return the causes of call paths, of which -1 is unknown."""
        return self._of_path[call_path]

    def of_kernels(self, call_path: Ints) -> Ints:
        """Return the same of kernels, without what launched them: as in `Collectives.call_path`."""
        root = self._at_root[call_path]
        return self.of(np.where(root >= 0, root, call_path))

    def before(self, cause: Ints) -> Ints:
        """Return the causes of the times before others."""
        return np.where(cause < self._paths, cause + self._paths, self.unknown)

    def communicates(self, cause: Ints) -> Bools:
        """Return which causes are calls that communicate."""
        return np.asarray(self._communicates[cause])

    def is_before(self, cause: Ints) -> Bools:
        """Return which causes are times before calls."""
        return np.asarray((cause >= self._paths) & (cause < self.unknown))

    def path(self, cause: int) -> str | None:
        """Return a cause with all that called it, None if it is not known."""
        if cause == self.unknown:
            return None
        text = call_path_text(self._trace, cause % self._paths, peers=False)
        return BEFORE + text if cause >= self._paths else text

    def name(self, cause: int) -> str | None:
        """Return the function of a cause; of one that MPI is about with the place where the program calls MPI."""
        path = self.path(cause)
        if path is None:
            return None
        region = region_rows(self._trace)[int(self._region[cause % self._paths])]
        name = BEFORE * (cause >= self._paths) + region.name
        caller = path.split(" < ")[1] if region.of_ranks and " < " in path else ""
        place = caller[caller.rfind("(") :] if caller.endswith(")") and ":" in caller else ""
        return f"{name} {place}".strip()


@dataclass(frozen=True)
class Timeline:
    """By moment, in order: the cause that runs until the next one, in detail, and as known of folded time, too.

    Both are -1 where it waits for another location.
    """

    time_ns: Ints
    cause: Ints
    coarse: Ints


@dataclass(frozen=True)
class Sums(Columns):
    """Time of causes in intervals, each pair of them once: number of the interval, cause, and ns."""

    interval: Ints
    cause: Ints
    time_ns: Ints


def folded_times(trace: Trace, process: int) -> tuple[Ints, Ints]:
    """Return begins and ends of the times of which a process has statistics only, in order."""
    if process not in trace.folded:
        return np.zeros((2, 0), dtype=np.int64)[0], np.zeros(0, dtype=np.int64)
    found = trace.iterations(process)
    found = found.chosen(found.detail != ALL)
    return found.start_ns, np.where(found.detail == PART, found.detail_ns, found.start_ns + found.duration_ns)


def timeline(
    trace: Trace, location: int, calls: Spans, waits: Waits, causes: Causes, start_ns: int, *, in_process: bool
) -> Timeline:
    """Return what a location did since start_ns. calls, waits: those of it, also of folded time.

    Where a stream of a GPU does nothing, it is what other streams of the GPU do, and else the process's main thread;
    where a thread waits for a GPU, it is what that does. in_process: for waits in the process. Then the stream and the
    host are two, both wait for each other, and where a thread does nothing, it is what the main thread does.
    """
    of_gpus, waits = waits.chosen(waits.for_gpu), waits if in_process else waits.chosen(~waits.for_gpu)
    layers = [_pieces(trace, each, causes) for each in _layers(trace, location, in_process=in_process)]
    on_stream = layers[0].on_gpu
    awaited = [] if in_process or on_stream else np.unique(of_gpus.cause).tolist()
    beneath = [_pieces(trace, each, causes) for each in awaited]
    of_call = (causes.of_kernels if layers[0].on_gpu else causes.of)(calls.call_path)
    folded = folded_times(trace, trace.home(location).process)
    waited = waits.call_ns, np.maximum.accumulate(waits.call_ns + waits.wait_ns)
    blocked = of_gpus.call_ns, np.maximum.accumulate(of_gpus.call_ns + of_gpus.wait_ns)
    times = [each.time_ns for each in (*layers, *beneath)]
    edges = (calls.start_ns, calls.end_ns, *waited, *blocked, *folded)
    moments = distinct(np.concatenate(([start_ns], *times, *edges)))
    moments = moments[moments >= start_ns]
    in_call = interval_at(calls.start_ns, calls.end_ns, moments)
    coarse = np.where(in_call >= 0, np.append(of_call, 0)[in_call], _next(causes, calls.start_ns, of_call, moments))
    begin = np.concatenate((layers[0].mpi_ns, calls.start_ns))
    order = np.argsort(begin, kind="stable")
    detail = _next(causes, begin[order], np.concatenate((layers[0].mpi, of_call))[order], moments)
    if in_process and on_stream:
        detail = np.full_like(detail, -1)
    always = np.ones(len(moments), dtype=bool)
    is_blocked = interval_at(*blocked, moments) >= 0
    for layer, there in (*((each, always) for each in reversed(layers)), *((each, is_blocked) for each in beneath)):
        inner = np.append(layer.cause, -1)[np.searchsorted(layer.time_ns, moments, side="right") - 1]
        detail = np.where(there & (inner >= 0), inner, detail)
    detail = np.where(interval_at(*folded, moments) >= 0, coarse, detail)
    waits_then = interval_at(*waited, moments) >= 0
    return Timeline(moments, *(np.where(waits_then, -1, each) for each in (detail, coarse)))


def distinct(times: Ints) -> Ints:
    """Return times in order, each once: of parts in order much faster than `np.unique`."""
    times = np.sort(times, kind="stable")
    return np.asarray(times[np.append(True, np.diff(times) != 0)[: len(times)]])


def _layers(trace: Trace, location: int, *, in_process: bool) -> list[int]:
    """Return a location, and those that run what it does while nothing runs there."""
    of = trace.definitions.locations[location]
    on_stream = of["kind"] == "stream"
    streams = [each for device in devices(trace) if location in device.locations for each in device.locations]
    main = main_location(trace, of["process"]) if on_stream != in_process else None
    return [location, *(each for each in (*streams, main) if each not in (location, None))]


@dataclass(frozen=True)
class _Pieces:
    """By moment of a location, in order: the cause that is innermost until the next one, -1 outside of all spans.

    mpi_ns, mpi: begins and causes of calls of MPI.
    """

    on_gpu: bool
    time_ns: Ints
    cause: Ints
    mpi_ns: Ints
    mpi: Ints


def _pieces(trace: Trace, location: int, causes: Causes) -> _Pieces:
    spans = trace.span_arrays(location)
    parent = enclosing(spans)
    begins, ends = tour(parent, spans["depth"].astype(np.int64))
    time, inner = np.zeros((2, 2 * len(parent)), dtype=np.int64)
    time[begins], inner[begins] = spans["start_ns"], np.arange(len(parent))
    time[ends], inner[ends] = spans["start_ns"] + spans["duration_ns"], parent
    on_gpu = trace.definitions.locations[location]["kind"] == "stream"
    own = (causes.of_kernels if on_gpu else causes.of)(spans["call_path"].astype(np.int64))
    if on_gpu:  # not ranges, nor what the driver tells of waits
        own = np.where(kind_of_region(trace)[spans["region"]] >= 0, own, -1)
    of_ranks = regions_where(trace, lambda region: region.of_ranks)[spans["region"]]
    return _Pieces(
        on_gpu, np.maximum.accumulate(time), np.append(own, -1)[inner], spans["start_ns"][of_ranks], own[of_ranks]
    )


def _next(causes: Causes, begin: Ints, cause: Ints, moments: Ints) -> Ints:
    """Return the time before the next of some calls at each moment; unknown after the last one."""
    return np.append(causes.before(cause), causes.unknown)[np.searchsorted(begin, moments)]


def sums(times: Timeline, begin: Ints, end: Ints, detail: Bools) -> Iterator[Sums]:
    """Yield how long each cause ran in intervals [begin, end); `detail`: which of them have all in detail."""
    first = np.maximum(np.searchsorted(times.time_ns, begin, side="right") - 1, 0)
    count = np.maximum(np.searchsorted(times.time_ns, end) - first, 0)
    until = np.append(times.time_ns[1:], np.iinfo(np.int64).max)
    for part in parts(count):
        which = np.repeat(part, count[part])
        at = first[which] + np.arange(len(which)) - np.repeat(np.cumsum(count[part]) - count[part], count[part])
        time_ns = np.minimum(until[at], end[which]) - np.maximum(times.time_ns[at], begin[which])
        found = Sums(which, np.where(detail[which], times.cause[at], times.coarse[at]), time_ns)
        yield summed(found.chosen((found.cause >= 0) & (time_ns > 0)))


def parts(count: Ints) -> Iterator[Ints]:
    """Yield numbers of intervals in order, as many at once as have not too many pieces."""
    part = (np.cumsum(count) - count) // _AT_A_TIME
    yield from np.split(np.arange(len(count)), np.flatnonzero(np.diff(part)) + 1) if len(count) else ()


def summed(found: Sums) -> Sums:
    """Return the sums with each interval and cause once, in order of both."""
    if not len(found):
        return found
    group = numbered(found.interval, found.cause)
    order = np.argsort(group, kind="stable")
    begin = np.flatnonzero(np.diff(group[order], prepend=-1))
    first = order[begin]
    return Sums(found.interval[first], found.cause[first], np.add.reduceat(found.time_ns[order], begin))
