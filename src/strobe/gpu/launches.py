"""Who launched what a GPU did, and whose code it is: the call of CUDA or HIP, and the operator around that call.

Of a kernel of a CUDA graph these are two calls: the graph's launch, which says when it was wanted (its step, its
delay), and the call that captured it, long before or once for a thousand launches, which says what it is. Whatever sums
up by code (functions, operators, ranges) asks for the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from strobe.gpu.devices import Device
from strobe.gpu.work import Work, beginning
from strobe.sums.attributes import Attributes, integers
from strobe.tables.column_arrays import Columns
from strobe.trace.definition_rows import location_rows
from strobe.trace.spans import SpanArrays
from strobe.trace.trace import Trace

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Spans of a process, on its threads and on the GPU, that a stretch holds about.
_STRETCH = 1 << 19
# Calls and operators that are kept until what they launched begins. A stream takes 1024 launches before the next call
# blocks, so what was not seen after that many calls was launched by none of them.
_KEPT = 1 << 18
# How far the clock of a GPU may be behind that of the host: so much later, a launching call is still looked for.
_SKEW_NS = 1_000_000


@dataclass(frozen=True)
class Launches:
    """Who launched each activity; columns as long as those of its `Work`, -1 where unknown.

    `call_...` is the span of the launching call. `code_...` is that of the call whose code wants the activity: the one
    that put it into its CUDA graph, where there is a graph and the trace has that call, else the launching one.
    `operator_...` is the innermost operator around the latter. `..._path`: their call paths. `settled_ns`: no later
    stretch has anything that was launched before.
    """

    settled_ns: int
    call_location: Ints
    call_row: Ints
    call_region: Ints
    call_path: Ints
    call_start_ns: Ints
    call_end_ns: Ints
    operator_location: Ints
    operator_row: Ints
    operator_region: Ints
    operator_path: Ints
    code_location: Ints
    code_row: Ints
    code_path: Ints
    code_start_ns: Ints

    @property
    def captured(self) -> Bools:
        """Which of them another call put into a CUDA graph than the one that launched it."""
        others: Bools = (self.code_row != self.call_row) | (self.code_location != self.call_location)
        return others

    def __len__(self) -> int:
        """Return the number of activities."""
        return len(self.call_row)


@dataclass(frozen=True)
class _Operators(Columns):
    """Operators with an external id, in order of start: the id, and the operator's span."""

    start_ns: Ints
    number: Ints
    location: Ints
    row: Ints
    region: Ints
    path: Ints


@dataclass(frozen=True)
class _Calls(Columns):
    """Calls with a correlation, in order of start: the correlation, the call's span, and the operator around it."""

    start_ns: Ints
    number: Ints
    location: Ints
    row: Ints
    region: Ints
    path: Ints
    end_ns: Ints
    operator_location: Ints
    operator_row: Ints
    operator_region: Ints
    operator_path: Ints


# Numbers spans of a location in place of their call paths: from (all spans of a stretch, which of them are new).
Numbering = Callable[["SpanArrays", Ints], Ints]


def launches(
    trace: Trace, device: Device, most: int = _STRETCH, numbering: Callable[[int], Numbering] | None = None
) -> Iterator[tuple[Work, Launches]]:
    """Yield what a GPU did, stretch by stretch in constant memory, and who launched it; each activity once.

    A call and what it launched share a correlation within their process; all kernels of a CUDA graph share that of
    the graph's launch. Of several calls with the same correlation (the driver's inside the runtime's) the outermost
    counts. The operator is the one that was innermost when the call (of a graph's kernel the capturing one) began, on
    its thread; where the trace does not have the call, the one with the external id of the activity. `most`: spans that
    a stretch holds about. `numbering(location)` numbers the spans of a thread anew, stretch by stretch; `..._path` are
    these numbers then.
    """
    host = _Host(trace, device, numbering)
    streams = {
        location: [Attributes(trace, table, location, _NUMBERS) for table in _OF_ACTIVITY]
        for location in device.locations
    }
    first, last = min(device.first_ns, host.first_ns), device.last_ns
    width = (last - first) // max(1, -(-(device.spans + host.spans) // most)) + 1
    for begin in range(first, last + 1, width):
        end = min(begin + width, last + 1)
        host.read(begin, end)
        found = beginning(trace, device, begin, end)
        if len(found):
            yield found, host.launches(*_numbers(found, streams))


_OF_ACTIVITY = ("kernel_spans", "copy_spans")
_NUMBERS = ("correlation", "external_id", "captured_by")


def _numbers(found: Work, streams: dict[int, list[Attributes]]) -> tuple[Ints, Ints, Ints]:
    """Return correlation, external id, and the correlation of the capture of every activity, -1 where it has none."""
    correlation, external, captured = numbers = tuple(np.full(len(found), -1, dtype=np.int64) for _ in _NUMBERS)
    for location, tables in streams.items():
        (at,) = np.nonzero(found.location == location)
        at = at[np.argsort(found.row[at])]
        for table in tables:
            known = table.of(found.row[at])
            for column, name in zip(numbers, _NUMBERS, strict=True):
                values = integers(known.column(name))
                column[at[values > 0]] = values[values > 0]
    # Kineto before 2022 wrote the correlation there, too: that is no operator's number.
    external[external == correlation] = -1
    return correlation, external, captured


def captures(trace: Trace, device: Device) -> Ints:
    """Return the correlations of the calls that put something into a graph that ran on this device, in order."""
    numbers = [
        integers(rows.column("captured_by"))
        for table in _OF_ACTIVITY
        for location in device.locations
        for rows in trace.side_batches(table, location)
    ]
    distinct = np.unique(np.concatenate([np.zeros(1, dtype=np.int64), *map(np.unique, numbers)]))
    return distinct[distinct > 0]


def with_calls(trace: Trace, locations: Collection[int]) -> list[int]:
    """Return those of the locations that have calls of CUDA or HIP."""
    return sorted(each for each in locations if next(trace.raw_side_batches("call_spans", each), None) is not None)


class _Host:
    """Calls and operators of a process, read in order of time; the latest are at hand by their numbers."""

    def __init__(self, trace: Trace, device: Device, numbering: Callable[[int], Numbering] | None) -> None:
        process = device.process
        there = [row for row in location_rows(trace) if row.process == process]
        threads = [each for each in there if each.kind == "thread" and each.span_count]
        # Calls that were reported later than other spans of their thread are beside it: in tasks with its number.
        of_thread = {each.thread_id: each.location for each in threads}
        tasks = {each.location: each for each in there if each.kind == "task" and each.thread_id in of_thread}
        self._beside: dict[int, list[int]] = {}
        for location in with_calls(trace, tasks):
            self._beside.setdefault(of_thread[tasks[location].thread_id], []).append(location)
        beside = [location for locations in self._beside.values() for location in locations]
        self._trace = trace
        self._calls = {
            location: Attributes(trace, "call_spans", location, ("correlation",))
            for location in (*(t.location for t in threads), *beside)
        }
        self._operators = {
            t.location: Attributes(trace, "operator_spans", t.location, ("external_id",)) for t in threads
        }
        self._numbering = {t.location: numbering(t.location) for t in threads} if numbering else {}
        roles = trace.regions.to_arrow().column("role").to_pylist()
        self._is_operator = np.array([role == "operator" for role in roles], dtype=bool)
        # What waits launches nothing; a thread may ask a million times whether its kernel is done.
        self._waits = np.array([role in ("sync", "wait") for role in roles], dtype=bool)
        self._latest_calls = _Calls.joined(())
        self._latest_operators = _Operators.joined(())
        # Calls that put something into a graph: it may be launched whenever the program likes.
        self._captures = captures(trace, device)
        self._capturing_calls = self._latest_calls
        self._seen_ns = min((t.first_ns for t in threads), default=0)
        self.first_ns = min((t.first_ns for t in threads), default=2**62)
        self.spans = sum(t.span_count for t in threads)

    def read(self, begin: int, end: int) -> None:
        """Read on to all calls that may have launched what begins in [begin, end)."""
        start, self._seen_ns = self._seen_ns, max(self._seen_ns, end + _SKEW_NS)
        if start >= self._seen_ns:
            return
        calls, operators = list[_Calls](), list[_Operators]()
        for location in self._operators:
            spans = self._trace.span_arrays(location, start - 1, self._seen_ns)
            new = np.flatnonzero((spans["start_ns"] >= start) & (spans["start_ns"] < self._seen_ns))
            if self._numbering and (len(new) or location in self._beside):
                numbered = {**spans, "call_path": self._numbering[location](spans, new)}
                spans = cast("SpanArrays", numbered)
            if len(new):
                calls.append(self._new_calls(location, spans, new))
                operators.append(self._new_operators(location, spans, new))
            for beside in self._beside.get(location, ()):
                of_calls = self._trace.span_arrays(beside, start - 1, self._seen_ns)
                begun = (of_calls["start_ns"] >= start) & (of_calls["start_ns"] < self._seen_ns)
                calls.append(self._new_calls_beside(location, spans, beside, of_calls, np.flatnonzero(begun)))
        if len(self._captures):
            of_captures = [each.chosen(np.isin(each.number, self._captures)) for each in calls]
            self._capturing_calls = _Calls.joined((self._capturing_calls, *of_captures))
        new_calls, new_operators = _Calls.joined(calls), _Operators.joined(operators)
        new_calls = new_calls.chosen(np.argsort(new_calls.start_ns, kind="stable"))
        new_operators = new_operators.chosen(np.argsort(new_operators.start_ns, kind="stable"))
        latest = slice(-_KEPT, None)
        self._latest_calls = _Calls.joined((self._latest_calls.chosen(latest), new_calls))
        self._latest_operators = _Operators.joined((self._latest_operators.chosen(latest), new_operators))

    def launches(self, correlation: Ints, external: Ints, captured: Ints) -> Launches:
        """Return who launched the activities with these numbers, -1 where one has none."""
        calls, captures, operators = self._latest_calls, self._capturing_calls, self._latest_operators
        called, capture = _find(calls.number, correlation), _find(captures.number, captured)
        call = calls.or_missing(called)
        code = captures.or_missing(capture).where(capture >= 0, call)
        # Of what has a call in the trace, the operator around that counts, even where there is none.
        named = operators.or_missing(_find(operators.number, np.where(code.number < 0, external, -1)))
        return Launches(
            # What the next `read` keeps is all that is looked through then.
            settled_ns=int(calls.start_ns[-_KEPT]) if len(calls) > _KEPT else -(2**62),
            call_location=call.location,
            call_row=call.row,
            call_region=call.region,
            call_path=call.path,
            call_start_ns=call.start_ns,
            call_end_ns=call.end_ns,
            operator_location=np.maximum(code.operator_location, named.location),
            operator_row=np.maximum(code.operator_row, named.row),
            operator_region=np.maximum(code.operator_region, named.region),
            operator_path=np.maximum(code.operator_path, named.path),
            code_location=code.location,
            code_row=code.row,
            code_path=code.path,
            code_start_ns=code.start_ns,
        )

    def _new_calls(self, location: int, spans: SpanArrays, new: Ints) -> _Calls:
        """Return the calls among the spans `new` of a thread."""
        correlation, new = self._launching(location, spans, new)
        start, end = spans["start_ns"][new], spans["start_ns"][new] + spans["duration_ns"][new]
        operator = _places(location, spans, self._innermost(spans, new))
        return _Calls(start, correlation, *_places(location, spans, new), end, *operator)

    def _new_calls_beside(self, location: int, spans: SpanArrays, beside: int, calls: SpanArrays, new: Ints) -> _Calls:
        """Return `new` of the `calls` beside a thread. Their call path is that of what they are in."""
        correlation, new = self._launching(beside, calls, new)
        start, end = calls["start_ns"][new], calls["start_ns"][new] + calls["duration_ns"][new]
        around = _innermost_at(spans, start)
        operator = _places(location, spans, self._innermost(spans, around))
        where, row, region, _ = _places(beside, calls, new)
        path = _places(location, spans, around)[3]
        return _Calls(start, correlation, where, row, region, path, end, *operator)

    def _launching(self, location: int, spans: SpanArrays, new: Ints) -> tuple[Ints, Ints]:
        """Return the correlations of those of the spans `new` that may launch something, and these spans."""
        correlation = integers(self._calls[location].of(spans["row"][new]).column("correlation"))
        chosen = (correlation > 0) & ~self._waits[spans["region"][new]]
        return correlation[chosen], new[chosen]

    def _new_operators(self, location: int, spans: SpanArrays, new: Ints) -> _Operators:
        """Return the operators with an external id among the spans `new` of a thread."""
        external = integers(self._operators[location].of(spans["row"][new]).column("external_id"))
        chosen = (external > 0) & self._is_operator[spans["region"][new]]
        external, new = external[chosen], new[chosen]
        return _Operators(spans["start_ns"][new], external, *_places(location, spans, new))

    def _innermost(self, spans: SpanArrays, at: Ints) -> Ints:
        """Return the index of the innermost operator around each of the spans `at`, -1 where there is none."""
        operator, at = self._is_operator[spans["region"]], at.copy()
        (left,) = np.nonzero(at >= 0)
        while len(left):
            parent = spans["parent"][at[left]]
            at[left] = np.where(parent < 0, -1, np.searchsorted(spans["row"], parent))
            left = left[parent >= 0]
            left = left[~operator[at[left]]]
        return at


def _innermost_at(spans: SpanArrays, times: Ints) -> Ints:
    """Return the index of the innermost span of a thread at each of the times, -1 where there is none."""
    end = spans["start_ns"] + spans["duration_ns"]
    at = np.searchsorted(spans["start_ns"], times, "right") - 1
    (left,) = np.nonzero(at >= 0)
    while len(left):
        left = left[end[at[left]] < times[left]]
        parent = spans["parent"][at[left]]
        at[left] = np.where(parent < 0, -1, np.searchsorted(spans["row"], parent))
        left = left[parent >= 0]
    return at


def _places(location: int, spans: SpanArrays, at: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return location, row, region and call path of the spans `at`, -1 where that is -1."""
    known = at >= 0
    row, region, path = (
        np.where(known, values[at].astype(np.int64), -1)
        for values in (spans["row"], spans["region"], spans["call_path"])
    )
    return np.where(known, location, -1), row, region, path


def _find(numbers: Ints, wanted: Ints) -> Ints:
    """Return the first place of each number that is wanted, -1 where it is not there; no number is below 1."""
    if not len(numbers):
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    at = np.searchsorted(ordered, wanted)
    at[at == len(ordered)] = 0
    return np.where((ordered[at] == wanted) & (wanted > 0), order[at], -1)
