"""Stream: the spans of one thread as arrays, with the names of their regions; steps are found in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import PurePath
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from strobe.model.cancellation import pieces
from strobe.model.kinds import PARADIGMS, RANK_PARADIGMS, ROLES
from strobe.model.losses import THROTTLED
from strobe.native import core
from strobe.steps.batch_makers import batch_makers
from strobe.tables.column_arrays import Bools as Bools
from strobe.tables.column_arrays import Ints as Ints
from strobe.trace.definition_rows import location_rows, path_tree, region_rows
from strobe.trace.spans import SpanArrays, Stretches, chosen_spans, enclosing, joined_spans
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# What reports the program's own functions and ranges.
_Value = TypeVar("_Value")
FUNCTION_PARADIGMS = ("python", "user", "nvtx", "itt")


def _no_intervals() -> Ints:
    return np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True)
class Stream:
    """The spans of a process's main thread, in order of start; nanoseconds.

    `region` and `call_path` index the sequences below. `backward_ns` are the times, as rows (start, end), in which
    other threads of the process ran autograd: on a GPU the backward pass leaves no operators in the main thread.
    `call_of` numbers regions so that calls of MPI from one place, which differ by peer only, are the same. `codes`:
    what the loops of functions call, where the recorder read it. `makes_batches`: by call path. `throttled`: by region,
    functions of which only the first calls were recorded; None: none is.
    """

    start_ns: Ints
    duration_ns: Ints
    region: Ints
    call_path: Ints
    parent: Ints  # row of the span around it, -1 at the root
    names: Sequence[str]  # by region
    paradigms: Sequence[str]  # by region
    path_parent: Ints  # by call path: the chain without its last region, -1 at the root
    path_region: Ints  # by call path: its last region
    backward_ns: Ints = field(default_factory=_no_intervals)
    call_of: Ints | None = None  # by region; None where every region is a call of its own
    codes: core.SourceCodes | None = None
    makes_batches: Bools | None = None  # None: none does
    roles: Sequence[str] = ()  # by region; empty: not known
    throttled: Bools | None = None
    shared: dict[object, Any] = field(default_factory=dict)  # see `of_definitions`

    @property
    def end_ns(self) -> Ints:
        """End of every span."""
        return self.start_ns + self.duration_ns

    @property
    def kinds(self) -> npt.NDArray[np.int8]:
        """By region, the kind of time (index into HOST_KINDS) in which one of its spans is the innermost."""
        return _kinds(self)

    @property
    def functions(self) -> Bools:
        """By region, whether it is one of the program's own functions and ranges."""
        return _functions(self)

    def __len__(self) -> int:
        return len(self.start_ns)

    def part(self, low: int, high: int) -> Stream:
        """Return rows `low` up to `high` as a stream of their own."""
        at = slice(low, high)
        begin = self.start_ns[low] if low < len(self) else 0
        end = self.start_ns[high] if high < len(self) else np.iinfo(np.int64).max
        return replace(
            self,
            start_ns=self.start_ns[at],
            duration_ns=self.duration_ns[at],
            region=self.region[at],
            call_path=self.call_path[at],
            parent=np.maximum(self.parent[at] - low, -1),
            backward_ns=self.backward_ns[(self.backward_ns[:, 0] >= begin) & (self.backward_ns[:, 0] < end)],
        )


def of_definitions(make: Callable[[Stream], _Value]) -> Callable[[Stream], _Value]:
    """Let a function of the regions and call paths of a stream compute its result once for all streams that share them.

    These have the same `shared`.
    """

    @wraps(make)
    def once(stream: Stream) -> _Value:
        if make not in stream.shared:
            stream.shared[make] = make(stream)
        found: _Value = stream.shared[make]
        return found

    return once


@of_definitions
def _kinds(stream: Stream) -> npt.NDArray[np.int8]:
    return kinds_of(stream.names, stream.paradigms, stream.roles or ["other"] * len(stream.names))


@of_definitions
def _functions(stream: Stream) -> Bools:
    return np.isin(np.array(stream.paradigms, dtype=object), FUNCTION_PARADIGMS)


def kinds_of(names: Sequence[str], paradigms: Sequence[str], roles: Sequence[str]) -> npt.NDArray[np.int8]:
    """Return the kind of time (index into HOST_KINDS) of regions: native/structure/cells.cpp."""
    numbers = map(PARADIGMS.index, paradigms), map(ROLES.index, roles)
    return np.array(list(map(core.kind_of_region, names, *numbers)), dtype=np.int8)


def are_backward(names: Sequence[str]) -> Bools:
    """Return which regions are of a backward pass: native/structure/region_names.cpp."""
    return np.array(list(map(core.is_backward, names)), dtype=bool)


def outermost(start_ns: Ints, end_ns: Ints) -> Bools:
    """Return which of the spans, given in order of start, lie in none of the others."""
    if not len(start_ns):
        return np.zeros(0, dtype=bool)
    ended_before = np.concatenate([start_ns[:1], np.maximum.accumulate(end_ns)[:-1]])
    return start_ns >= ended_before


def innermost(parent: Ints, wanted: Bools, start: Ints | None = None) -> Ints:
    """Return the innermost wanted one of each row (or call path) and those around it, -1 where none is.

    `parent`: what each lies in, -1 at the root. `start`: where to begin instead of the row itself.
    """
    at = np.arange(len(parent)) if start is None else start.copy()
    while len(left := np.flatnonzero((at >= 0) & ~wanted[at])):
        at[left] = parent[at[left]]
    return at


def within(starts_ns: Ints, begins_ns: Ints, ends_ns: Ints) -> Bools:
    """Return which of some starts, given in order, lie in one of the intervals [begin, end)."""
    edges = np.zeros(len(starts_ns) + 1, dtype=np.int64)
    np.add.at(edges, np.searchsorted(starts_ns, begins_ns), 1)
    np.add.at(edges, np.searchsorted(starts_ns, ends_ns), -1)
    return np.cumsum(edges[:-1]) > 0


def occurrences_in_groups(values: Ints, groups: Ints) -> tuple[Ints, Ints]:
    """Return the distinct values, and in how many groups each occurs. Both are numbered from 0 and of equal length."""
    if not len(values):
        return values, values
    width = int(values.max()) + 1
    # One number per pair: sorting rows of two columns is fifty times slower.
    pairs = np.unique(groups * width + values) % width
    found, counts = np.unique(pairs, return_counts=True)
    return found, counts.astype(np.int64)


def read_streams(
    trace: Trace, wanted: Callable[[Trace, int], Stretches | None] = lambda *_: None
) -> Iterator[tuple[int, Stream]]:
    """Yield (process, the stream of its main thread) for every process that recorded a span.

    `wanted`: stretches of time [begin, end) of a process, in order: only spans that begin in one of them are needed,
    and those around them only where they do, too. None: all.
    """
    regions, (path_parent, path_region) = trace.regions.to_arrow(), path_tree(trace)
    names, paradigms, roles = (regions.column(name).to_pylist() for name in ("name", "paradigm", "role"))
    call_of = _calls_without_peers(names, paradigms, regions.column("file").to_pylist())
    backward = are_backward(names)
    loops = trace.definitions.source_loops
    codes = core.SourceCodes(names, loops) if loops else None
    shared = dict[object, Any]()
    threads, counts = _threads(trace), trace.spans_of_processes
    for process, (main, *others) in pieces(list(threads.items()), [1 + counts[process] for process in threads]):
        stretches = wanted(trace, process)
        if stretches is None:
            spans = trace.span_arrays(main)
            runs = np.unique(spans["region"])
        else:
            spans = _begun_in(trace, main, stretches)
            runs = np.unique(path_region[trace.path_sums(main)["calls"] > 0])
        elsewhere = _no_intervals() if backward[runs].any() else _backward_intervals(trace, others, backward)
        if stretches is not None and len(elsewhere):  # it is cut where a piece of the stream ends: at the next span
            spans = trace.span_arrays(main)
        yield (
            process,
            Stream(
                start_ns=spans["start_ns"],
                duration_ns=spans["duration_ns"],
                region=spans["region"].astype(np.int64),
                call_path=spans["call_path"].astype(np.int64),
                parent=enclosing(spans),
                names=names,
                paradigms=paradigms,
                path_parent=path_parent,
                path_region=path_region,
                backward_ns=elsewhere,
                call_of=call_of,
                codes=codes,
                makes_batches=batch_makers(trace)[process],
                roles=roles,
                throttled=throttled_regions(trace, process),
                shared=shared,
            ),
        )


def _begun_in(trace: Trace, location: int, stretches: Stretches) -> SpanArrays:
    """Return the spans of a location that begin in one of the stretches [begin, end), which are in order."""
    parts = []
    for begin_ns, end_ns in zip(*(each.tolist() for each in stretches), strict=True):
        spans = trace.span_arrays(location, begin_ns, end_ns)
        begun = chosen_spans(spans, spans["start_ns"] >= begin_ns)
        # What is around a span began before it: its row is lower than that of the first one where it is not here.
        first = begun["row"][0] if len(begun["row"]) else 0
        begun["parent"] = np.where(begun["parent"] < first, -1, begun["parent"])
        parts.append(begun)
    return joined_spans(parts)


def backward_stream(trace: Trace, process: int, main: Stream) -> Stream | None:
    """Return the spans of the thread that ran most of a process's backward passes beside the `main` one, None for none.

    Definitions are those of `main`, the stream of the main thread.
    """
    if not len(main.backward_ns):
        return None
    backward = are_backward(main.names)
    others = {location: trace.span_arrays(location) for location in _threads(trace)[process][1:]}
    spans = max(others.values(), key=lambda spans: int(spans["duration_ns"][backward[spans["region"]]].sum()))
    return replace(
        main,
        start_ns=spans["start_ns"],
        duration_ns=spans["duration_ns"],
        region=spans["region"].astype(np.int64),
        call_path=spans["call_path"].astype(np.int64),
        parent=enclosing(spans),
        backward_ns=_no_intervals(),
    )


def throttled_regions(trace: Trace, process: int) -> Bools | None:
    """Return by region whether only the first calls of it were recorded; None if that is true of no region."""
    counted = trace.readers[process].quality()
    named = {what.removeprefix(THROTTLED) for what in counted if what.startswith(THROTTLED)}
    if not named:
        return None
    # As native/core/spans/region_table.cpp writes it.
    places = (
        f"{each.name} ({PurePath(each.file).name}:{each.line})" if each.file else each.name
        for each in region_rows(trace)
    )
    return np.array([place in named for place in places], dtype=bool)


def _calls_without_peers(names: Sequence[str], paradigms: Sequence[str], files: Sequence[str]) -> Ints:
    """By region: the first region of the same call. Where MPI calls come from is written behind their peer."""
    first: dict[object, int] = {}
    return np.array(
        [
            first.setdefault((name, file.rpartition("; ")[2]) if paradigm in RANK_PARADIGMS else region, region)
            for region, (name, paradigm, file) in enumerate(zip(names, paradigms, files, strict=True))
        ],
        dtype=np.int64,
    )


def main_location(trace: Trace, process: int) -> int | None:
    """Return the location of a process's main thread, None if the process recorded no span."""
    locations = _threads(trace).get(process)
    return locations[0] if locations else None


@cached_on_trace
def _threads(trace: Trace) -> dict[int, list[int]]:
    """Locations of every process that hold spans or folded ones, the main thread first: it has the process's number.

    Where the main thread holds none, or its number is not the process's, a thread stands in for it: one on which marks
    of steps lie, updates or waits for data, else the one with most spans.
    """
    folded = {location for each in trace.folded.values() for location in np.unique(each.location).tolist()}
    pids = dict(zip(trace.processes.column("process"), trace.processes.column("pid"), strict=True))
    known = [at for at in location_rows(trace) if at.kind == "thread"]
    having = [at for at in known if at.span_count or at.location in folded]
    known_main = {at.process for at in having if at.thread_id == pids[at.process]}
    several = Counter(at.process for at in having if at.process not in known_main)
    marked = _marked(trace, [at.location for at in having if several[at.process] > 1])
    having.sort(
        key=lambda at: (at.process, at.thread_id != pids[at.process], at.location not in marked, -at.span_count)
    )
    threads: dict[int, list[int]] = {}
    for at in having:
        threads.setdefault(at.process, []).append(at.location)
    return threads


def _marked(trace: Trace, locations: Sequence[int]) -> set[int]:
    """Those of some locations that hold an anchor."""
    if not locations:
        return set()
    number = {paradigm: at for at, paradigm in enumerate(PARADIGMS)}
    anchor = np.array(
        [core.anchor_of_region(each.name, number[each.paradigm])[0] != "structure" for each in region_rows(trace)],
        dtype=bool,
    )
    return {at for at in locations if anchor[np.unique(trace.span_arrays(at)["region"])].any()}


def _backward_intervals(trace: Trace, locations: Sequence[int], backward: Bools) -> Ints:
    """When the given threads ran autograd, in order of start."""
    intervals = [_no_intervals()]
    for location in locations if backward.any() else ():
        spans = trace.span_arrays(location)
        start = spans["start_ns"][mine := backward[spans["region"]]]
        intervals.append(np.stack([start, start + spans["duration_ns"][mine]], axis=1))
    joined = np.concatenate(intervals)
    return joined[np.argsort(joined[:, 0], kind="stable")]
