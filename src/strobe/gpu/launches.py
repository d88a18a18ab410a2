"""What launched the work of a GPU, and which code wanted it: the call of CUDA or HIP, and the operator around it.

A kernel of a CUDA graph has two calls: the launch of the graph gives its moment (its step, its delay); the captured
call, long before or once for a thousand launches, gives its code. Sums by code (functions, operators, ranges) use the
captured one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from strobe.gpu.devices import Device
from strobe.gpu.work import WORK_TABLES, Work, WorkNumbers, beginning
from strobe.steps.thread_spans import innermost
from strobe.sums.attributes import Attributes, integers
from strobe.tables.column_arrays import Bools, Columns, Ints, place_of
from strobe.trace.definition_rows import location_rows, region_rows, regions_where, threads_of
from strobe.trace.spans import SpanArrays, enclosing
from strobe.trace.trace import Trace

# Approximate number of spans of a process, on its threads and on the GPU, in one stretch.
_STRETCH = 1 << 19
# Calls and operators that are kept until what they launched begins. A stream takes 1024 launches before the next call
# blocks, so an activity that was not seen after that many calls was launched by none of them.
_KEPT = 1 << 18
# The clock of a GPU may be behind that of the host by this much: a launching call is looked for so much later.
_SKEW_NS = 1_000_000


@dataclass(frozen=True)
class Spans(Columns):
    """Spans of threads; -1 in every column if unknown."""

    location: Ints
    row: Ints
    region: Ints
    path: Ints


@dataclass(frozen=True)
class Operators(Spans):
    """Operators and their external ids, in order of start."""

    number: Ints
    start_ns: Ints


@dataclass(frozen=True)
class Calls(Operators):
    """Calls, their correlations (`number`), and the innermost operator around each, in order of start."""

    end_ns: Ints
    operator_location: Ints
    operator_row: Ints
    operator_region: Ints
    operator_path: Ints


@dataclass(frozen=True)
class Launches:
    """The launch of each activity; columns as long as those of its `Work`, -1 if unknown.

    `call` launched it. `code` is the call whose code wants it: the one that was captured into its CUDA graph, if there
    is a graph and the trace has that call, else the launching one. `operator` is the innermost one around `code`.
    No later stretch has an activity that was launched before `settled_ns`.
    """

    settled_ns: int
    call: Calls
    code: Calls
    operator: Spans

    @property
    def captured(self) -> Bools:
        """Which activities another call captured into a CUDA graph than the one that launched it."""
        others: Bools = (self.code.row != self.call.row) | (self.code.location != self.call.location)
        return others

    @property
    def path(self) -> Ints:
        """The call path of the code that wants each activity, else of the operator."""
        return np.where(self.code.path >= 0, self.code.path, self.operator.path)


# Replaces the call paths of the spans of a location by numbers: from (spans of a stretch, which of them are new).
Numbering = Callable[["SpanArrays", Ints], Ints]


def launches(
    trace: Trace, device: Device, most: int = _STRETCH, numbering: Callable[[int], Numbering] | None = None
) -> Iterator[tuple[Work, Launches]]:
    """Yield the activities of a GPU and their launches, each once, stretch by stretch in constant memory.

    A call and what it launched share a correlation within their process; all kernels of a CUDA graph share that of
    the graph's launch. Of several calls with the same correlation (the driver's inside the runtime's) the outermost
    counts. The operator is the innermost one at the start of the call (of a graph's kernel: the captured call), on its
    thread; if the trace lacks the call, the one with the external id of the activity. `most` is the approximate number
    of spans in a stretch. With `numbering(location)`, `path` holds its numbers instead of call paths.
    """
    host = _Host(trace, device, numbering)
    attributes = WorkNumbers(trace, device, ("correlation", "external_id", "captured_by"))
    first, last = min(device.first_ns, host.first_ns), device.last_ns
    width = (last - first) // max(1, -(-(device.spans + host.spans) // most)) + 1
    for begin in range(first, last + 1, width):
        end = min(begin + width, last + 1)
        host.read(begin, end)
        found = beginning(trace, device, begin, end)
        if len(found):
            correlation, external, captured = attributes.of(found)
            # Kineto before 2022 wrote the correlation there, too: that is not the id of an operator.
            external[external == correlation] = -1
            yield found, host.launches(correlation, external, captured)


def captures(trace: Trace, device: Device) -> Ints:
    """Return the correlations of the calls that were captured into graphs that ran on this device, in order."""
    numbers = [
        np.unique(integers(rows.column("captured_by")))
        for table in WORK_TABLES
        for location in device.locations
        for rows in trace.side_batches(table, location)
    ]
    distinct = np.unique(np.concatenate([np.zeros(1, dtype=np.int64), *numbers]))
    return distinct[distinct > 0]


def with_calls(trace: Trace, locations: Collection[int]) -> list[int]:
    """Return those of the locations that have calls of CUDA or HIP."""
    return sorted(each for each in locations if next(trace.raw_side_batches("call_spans", each), None) is not None)


class _Host:
    """Calls and operators of a process, read in order of time; the latest are kept by their numbers."""

    def __init__(self, trace: Trace, device: Device, numbering: Callable[[int], Numbering] | None) -> None:
        threads = threads_of(trace, device.process)
        # Calls that were reported later than other spans of their thread are beside it: in tasks with its number.
        thread_of = {each.thread_id: each.location for each in threads}
        tasks = {
            each.location: thread_of[each.thread_id]
            for each in location_rows(trace)
            if each.process == device.process and each.kind == "task" and each.thread_id in thread_of
        }
        self._trace = trace
        self._calls_of: dict[int, list[int]] = {each.location: [each.location] for each in threads}
        for location in with_calls(trace, tasks):
            self._calls_of[tasks[location]].append(location)
        self._correlations = {
            location: Attributes(trace, "call_spans", location, ("correlation", "external_id"))
            for locations in self._calls_of.values()
            for location in locations
        }
        self._external_ids = {
            thread: Attributes(trace, "operator_spans", thread, ("external_id",)) for thread in self._calls_of
        }
        self._numbering = {thread: numbering(thread) for thread in self._calls_of} if numbering else {}
        roles = [region.role for region in region_rows(trace)]
        # PyTorch's calls of collectives launch kernels like operators.
        self._is_operator = regions_where(
            trace, lambda region: region.role == "operator" or (region.paradigm, region.role) == ("torch", "collective")
        )
        # Calls that wait launch nothing; a thread may ask a million times whether its kernel is done.
        self._waits = np.array([role in ("sync", "wait") for role in roles], dtype=bool)
        self._latest_calls, self._latest_operators = Calls.joined(()), Operators.joined(())
        # Captured calls are all kept: a graph may be launched whenever the program likes.
        self._captures = captures(trace, device)
        self._captured_calls = self._latest_calls
        self._seen_ns = min((t.first_ns for t in threads), default=0)
        self.first_ns = min((t.first_ns for t in threads), default=2**62)
        self.spans = sum(t.span_count for t in threads)

    def read(self, begin: int, end: int) -> None:
        """Read on to all calls that may have launched the activities of [begin, end)."""
        start, self._seen_ns = self._seen_ns, max(self._seen_ns, end + _SKEW_NS)
        if start >= self._seen_ns:
            return
        calls, operators = list[Calls](), list[Operators]()
        for thread, locations in self._calls_of.items():
            spans, new = self._spans_from(thread, start)
            if not len(new) and len(locations) == 1:
                continue
            numbering = self._numbering.get(thread)
            path = numbering(spans, new) if numbering else spans["call_path"].astype(np.int64)
            operators.append(self._new_operators(thread, spans, path, new))
            for location in locations:
                own, begun = (spans, new) if location == thread else self._spans_from(location, start)
                calls.append(self._new_calls(thread, spans, path, location, own, begun))
        if len(self._captures):
            captured = [each.chosen(np.isin(each.number, self._captures)) for each in calls]
            self._captured_calls = Calls.joined((self._captured_calls, *captured))
        self._latest_calls = _continued(self._latest_calls, calls)
        self._latest_operators = _continued(self._latest_operators, operators)

    def launches(self, correlation: Ints, external: Ints, captured: Ints) -> Launches:
        """Return the launches of the activities with these numbers; -1 stands for a missing number."""
        calls, operators = self._latest_calls, self._latest_operators
        call = calls.or_missing(_find(calls.number, _numbered(correlation, external)))
        code = self._captured_calls.or_missing(_find(self._captured_calls.number, captured))
        code = code.where(code.number >= 0, call)
        # If the trace has the call, the operator around it counts, even if there is none.
        named = operators.or_missing(_find(operators.number, np.where(code.number < 0, external, -1)))
        return Launches(
            # The next `read` keeps no more than this.
            settled_ns=int(calls.start_ns[-_KEPT]) if len(calls) > _KEPT else -(2**62),
            call=call,
            code=code,
            operator=Spans(
                np.maximum(code.operator_location, named.location),
                np.maximum(code.operator_row, named.row),
                np.maximum(code.operator_region, named.region),
                np.maximum(code.operator_path, named.path),
            ),
        )

    def _spans_from(self, location: int, start: int) -> tuple[SpanArrays, Ints]:
        """Return the spans of a location from `start` to the end of the part read, and which of them begin there."""
        spans = self._trace.span_arrays(location, start - 1, self._seen_ns)
        return spans, np.flatnonzero((spans["start_ns"] >= start) & (spans["start_ns"] < self._seen_ns))

    def _new_calls(
        self, thread: int, spans: SpanArrays, path: Ints, location: int, calls: SpanArrays, new: Ints
    ) -> Calls:
        """Return `new` of the `calls` in a location: a thread itself, or one beside it.

        The latter have the path of the span of the thread that they lie in.
        """
        known = self._correlations[location].of(calls["row"][new])
        correlation = _numbered(*(integers(known.column(name)) for name in ("correlation", "external_id")))
        launching = (correlation > 0) & ~self._waits[calls["region"][new]]
        correlation, new = correlation[launching], new[launching]
        start = calls["start_ns"][new]
        # What a call beside its thread lies in may itself be the operator.
        around = new if location == thread else innermost_at(spans, start)
        parent = enclosing(spans)
        first = np.append(parent, -1)[around] if location == thread else around
        operator = _chosen(thread, spans, path, innermost(parent, self._is_operator[spans["region"]], first))
        return Calls(
            location=np.full(len(new), location),
            row=calls["row"][new],
            region=calls["region"][new].astype(np.int64),
            path=np.append(path, -1)[around],
            number=correlation,
            start_ns=start,
            end_ns=start + calls["duration_ns"][new],
            **{f"operator_{name}": values for name, values in vars(operator).items()},
        )

    def _new_operators(self, location: int, spans: SpanArrays, path: Ints, new: Ints) -> Operators:
        """Return the operators with an external id among the spans `new` of a thread."""
        external = integers(self._external_ids[location].of(spans["row"][new]).column("external_id"))
        chosen = (external > 0) & self._is_operator[spans["region"][new]]
        new = new[chosen]
        found = _chosen(location, spans, path, new)
        return Operators(**vars(found), number=external[chosen], start_ns=spans["start_ns"][new])


_Kind = TypeVar("_Kind", bound=Operators)


def _continued(known: _Kind, parts: list[_Kind]) -> _Kind:
    """Return the latest of those known, and the new ones, in order of start."""
    new = type(known).joined(parts)
    new = new.chosen(np.argsort(new.start_ns, kind="stable"))
    return type(known).joined((known.chosen(slice(-_KEPT, None)), new))


def _numbered(correlation: Ints, external: Ints) -> Ints:
    """Return the number that a call shares with what it launched: some profiles have none but the external id."""
    return np.where(correlation > 0, correlation, external)


def innermost_at(spans: SpanArrays, times: Ints) -> Ints:
    """Return the index of the innermost span of a thread at each of the times, -1 if there is none."""
    end = spans["start_ns"] + spans["duration_ns"]
    at = np.searchsorted(spans["start_ns"], times, "right") - 1
    (left,) = np.nonzero(at >= 0)
    while len(left):
        left = left[end[at[left]] < times[left]]
        parent = spans["parent"][at[left]]
        at[left] = np.where(parent < 0, -1, np.searchsorted(spans["row"], parent))
        left = left[parent >= 0]
    return at


def _chosen(location: int, spans: SpanArrays, path: Ints, at: Ints) -> Spans:
    """Return the spans `at`, unknown if that is -1."""
    # Index -1 is the last entry.
    row, region, path = (np.append(values.astype(np.int64), -1)[at] for values in (spans["row"], spans["region"], path))
    return Spans(np.where(at >= 0, location, -1), row, region, path)


def _find(numbers: Ints, wanted: Ints) -> Ints:
    """Return the first place of each wanted number, -1 if it is missing; no number is below 1."""
    order = np.argsort(numbers, kind="stable")
    return np.where(wanted > 0, np.append(order, -1)[place_of(wanted, numbers[order])], -1)
