"""Sequences of kernels: the activities of one execution of an operator on a GPU, in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strobe.gpu.devices import Device
from strobe.gpu.launches import captures, launches
from strobe.steps.thread_spans import outermost
from strobe.sums.attributes import Attributes, integers
from strobe.sums.groups import Groups, Growing
from strobe.tables.column_arrays import Bools, Columns, Ints, interval_at
from strobe.trace.definition_rows import threads_of
from strobe.trace.trace import Trace


@dataclass(frozen=True)
class Sequence:
    """Executions of an operator that ran the same kernels, copies and memory sets, in order of their starts.

    region: of the operator. work: the regions of its activities. count: executions, or launches of the CUDA graph that
    an execution was captured into. device_ns: sum of the durations of the activities. host_ns: sum of the durations of
    the operators, each once. location, row: span of the first such operator.
    """

    region: int
    work: list[int]
    count: int
    device_ns: int
    host_ns: int
    location: int
    row: int


def sequences(trace: Trace, device: Device, wanted: Bools, least: int) -> tuple[int, list[Sequence]]:
    """Return the nanoseconds of all activities of a device, and the sequences of `least` or more that operators ran.

    `wanted` selects operators by region; of operators inside each other the outermost counts. An activity belongs to
    the operator in which its launching call began, or its call that was captured into a CUDA graph. Memory is constant:
    an execution is counted, and forgotten, as soon as nothing later can belong to it.
    """
    operators, sums, everything = _Operators(trace, device, wanted), _Sums(least), 0
    waiting = _Ran.joined(())
    for work, by_whom in launches(trace, device):
        duration = work.end_ns - work.start_ns
        everything += int(duration.sum())
        (at,) = np.nonzero(by_whom.code.row >= 0)
        operators.read(int(by_whom.code.start_ns[at].max(initial=-(2**62))) + 1)
        operator = operators.around(by_whom.code.location[at], by_whom.code.start_ns[at])
        at, operator = at[operator >= 0], operator[operator >= 0]
        launch = by_whom.call.or_missing(np.where(by_whom.captured[at], at, -1))
        region = work.region[at].astype(np.int64)
        new = _Ran(operator, launch.location, launch.row, launch.start_ns, region, duration[at])
        waiting = _Ran.joined((waiting, new))
        over = operators.forget(by_whom.settled_ns)
        done = np.isin(waiting.operator, over.number)
        done = np.where(waiting.of_graph, waiting.launch_start_ns < by_whom.settled_ns, done)
        sums.add(waiting.chosen(done), _ordered((over, operators.kept())))
        waiting = waiting.chosen(~done)
    sums.add(waiting, _ordered((operators.forget(2**62), operators.kept())))
    return everything, sums.sequences()


@dataclass(frozen=True)
class _Ran(Columns):
    """Activities that executions of operators ran, in order of start. `launch_...`: the launch of a graph, else -1."""

    operator: Ints
    launch_location: Ints
    launch_row: Ints
    launch_start_ns: Ints
    region: Ints
    duration_ns: Ints

    @property
    def of_graph(self) -> Bools:
        return self.launch_row >= 0


@dataclass(frozen=True)
class _Executions(Columns):
    """Executions of operators; each has a `number` of its own."""

    number: Ints
    location: Ints
    row: Ints
    start_ns: Ints
    end_ns: Ints
    region: Ints


def _ordered(parts: Iterable[_Executions]) -> _Executions:
    """Return all executions in order of `number`."""
    together = _Executions.joined(parts)
    return together.chosen(np.argsort(together.number))


class _Operators:
    """The outermost operators of all threads of a process, read on in order of time.

    Those that captured something into a CUDA graph are kept: the graph may be launched whenever the program likes.
    """

    def __init__(self, trace: Trace, device: Device, wanted: Bools) -> None:
        self._trace, self._wanted, self._next = trace, wanted, 0
        self._captures = _capture_times(trace, device)
        threads = threads_of(trace, device.process)
        self._executions = {each.location: _Executions.joined(()) for each in threads}  # in order of start
        self._open_until = {each.location: -(2**62) for each in threads}
        self._seen_ns = {each.location: each.first_ns for each in threads}

    def read(self, until_ns: int) -> None:
        """Read on to the operators that begin before a moment."""
        for location, begin in self._seen_ns.items():
            if begin >= until_ns:
                continue
            # From the moment before, to include spans of length 0; then only those that begin there.
            spans = self._trace.span_arrays(location, begin - 1, until_ns)
            (at,) = np.nonzero((spans["start_ns"] >= begin) & self._wanted[spans["region"]])
            start, end = spans["start_ns"][at], (spans["start_ns"] + spans["duration_ns"])[at]
            outer = outermost(start, end) & (start >= self._open_until[location])
            self._open_until[location] = max(self._open_until[location], int(end.max(initial=-(2**62))))
            at = at[outer]
            new = _Executions(
                number=np.arange(self._next, self._next + len(at)),
                location=np.full(len(at), location),
                row=spans["row"][at],
                start_ns=start[outer],
                end_ns=end[outer],
                region=spans["region"][at].astype(np.int64),
            )
            self._next += len(at)
            self._executions[location] = _Executions.joined((self._executions[location], new))
            self._seen_ns[location] = until_ns

    def around(self, location: Ints, time_ns: Ints) -> Ints:
        """Return the number of the operator around each moment of a thread, -1 if there is none."""
        out = np.full(len(location), -1, dtype=np.int64)
        for thread in np.unique(location).tolist():
            if (known := self._executions.get(thread)) is not None:
                (at,) = np.nonzero(location == thread)
                out[at] = np.append(known.number, -1)[interval_at(known.start_ns, known.end_ns, time_ns[at])]
        return out

    def forget(self, until_ns: int) -> _Executions:
        """Return the operators that end until a moment, and forget them."""
        over = []
        for location, executions in self._executions.items():
            ended = (executions.end_ns <= until_ns) & ~self._captured(location, executions)
            over.append(executions.chosen(ended))
            self._executions[location] = executions.chosen(~ended)
        return _ordered(over)

    def kept(self) -> _Executions:
        """Return the operators read so far that captured something."""
        return _ordered(each.chosen(self._captured(location, each)) for location, each in self._executions.items())

    def _captured(self, location: int, executions: _Executions) -> Bools:
        times = self._captures.get(location, np.zeros(0, dtype=np.int64))
        return np.searchsorted(times, executions.start_ns) < np.searchsorted(times, executions.end_ns)


def _capture_times(trace: Trace, device: Device) -> dict[int, Ints]:
    """Return the starts of the calls that were captured into the CUDA graphs of a device, by thread."""
    numbers = captures(trace, device)
    times: dict[int, Ints] = {}
    for thread in threads_of(trace, device.process) if len(numbers) else ():
        correlation = Attributes(trace, "call_spans", thread.location, ("correlation",))
        starts = []
        for spans in trace.span_batches(thread.location):
            captured = np.isin(integers(correlation.of(spans["row"]).column("correlation")), numbers)
            starts.append(spans["start_ns"][captured])
        times[thread.location] = np.concatenate(starts)
    return times


class _Sums:
    """Sums of equal sequences over executions that come in any order."""

    def __init__(self, least: int) -> None:
        self._least, self._groups = least, Groups()
        self._count, self._device_ns, self._host_ns = Growing(), Growing(), Growing()
        self._replayed: set[tuple[int, int]] = set()  # execution and group
        self._first: list[tuple[int, int, int, list[int]]] = []  # start, location, row, work: of the earliest

    def add(self, ran: _Ran, executions: _Executions) -> None:
        """Add executions and all that they ran, in the order in which it waited."""
        ran = ran.chosen(np.lexsort((ran.launch_row, ran.launch_location, ran.operator)))
        changes = (np.diff(each, prepend=-2) for each in (ran.operator, ran.launch_location, ran.launch_row))
        begin = np.flatnonzero(np.logical_or.reduce([change != 0 for change in changes]))
        length = np.diff(begin, append=len(ran))
        enough = length >= self._least
        if not enough.any():
            return
        key = _hashes(ran.region, begin, length)[enough]
        device_ns = np.add.reduceat(ran.duration_ns, begin)[enough]
        begin, length = begin[enough], length[enough]
        first = ran.chosen(begin)
        operator = executions.chosen(np.searchsorted(executions.number, first.operator))
        host_ns = operator.end_ns - operator.start_ns
        group = self._groups.numbers([operator.region, length, key])
        host_ns[self._again(first.operator, group, first.of_graph)] = 0
        self._count.add(group, np.ones_like(group))
        self._device_ns.add(group, device_ns)
        self._host_ns.add(group, host_ns)
        order = np.lexsort((operator.start_ns, group))
        for at in order[np.flatnonzero(np.diff(group[order], prepend=-1))].tolist():
            place = int(operator.start_ns[at]), int(operator.location[at]), int(operator.row[at])
            work = ran.region[begin[at] : begin[at] + length[at]].tolist()
            if group[at] == len(self._first):
                self._first.append((*place, work))
            elif place < self._first[group[at]][:3]:
                self._first[group[at]] = (*place, work)

    def _again(self, operator: Ints, group: Ints, of_graph: Bools) -> Bools:
        """Return which launches of graphs repeat another launch for the same execution."""
        again = of_graph.copy()
        for at in np.flatnonzero(of_graph).tolist():
            pair = int(operator[at]), int(group[at])
            again[at] = pair in self._replayed
            self._replayed.add(pair)
        return again

    def sequences(self) -> list[Sequence]:
        sums = (each.of(len(self._first)).tolist() for each in (self._count, self._device_ns, self._host_ns))
        found = [
            Sequence(key[0], work, count, device_ns, host_ns, location, row)
            for key, (_, location, row, work), count, device_ns, host_ns in zip(
                self._groups.keys, self._first, *sums, strict=True
            )
        ]
        return sorted(found, key=lambda each: (each.region, len(each.work), each.location, each.row))


def _hashes(region: Ints, begin: Ints, length: Ints) -> Ints:
    """Return a number for each sequence; two that differ have the same one time in 2 ** 64."""
    place = np.arange(len(region)) - np.repeat(begin, length)
    return np.add.reduceat(_mixed(region) * (_mixed(place + 2**32) | np.uint64(1)), begin).view(np.int64)


def _mixed(values: Ints) -> npt.NDArray[np.uint64]:
    """Return numbers that look random for whole numbers (splitmix64; Steele, Lea, Flood 2014)."""
    mixed = (values.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
