"""Sequences of kernels: what one execution of an operator runs on a GPU, in order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strobe.gpu.devices import Device
from strobe.gpu.launches import captures, launches
from strobe.steps.thread_spans import outermost
from strobe.sums.attributes import Attributes, integers
from strobe.sums.groups import Groups
from strobe.trace.definition_rows import location_rows
from strobe.trace.trace import Trace

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Sequence:
    """Executions of an operator that ran the same kernels, copies and memory sets, in order of their starts.

    region: that of the operator. work: the regions of what ran. count: how often it ran, which is each execution, or
    each launch of the CUDA graph that an execution was captured into. device_ns: sum of the durations of what ran.
    host_ns: sum of the durations of the operators, of each once. location, row: span of the first such operator.
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

    wanted: by region, whether it is such an operator; of operators inside each other the outermost counts. An activity
    belongs to the operator in which its launching call began, or the one that captured it into a CUDA graph. In
    constant memory: an execution is counted, and forgotten, as soon as nothing later can belong to it.
    """
    operators, found, everything = _Operators(trace, device, wanted), _Found(least), 0
    # Number of the operator, launch of a graph (thread, row, start; -1), region, duration; in order of start.
    waiting = np.zeros((6, 0), dtype=np.int64)
    for work, by_whom in launches(trace, device):
        duration = work.end_ns - work.start_ns
        everything += int(duration.sum())
        (at,) = np.nonzero(by_whom.code_row >= 0)
        operators.read(int(by_whom.code_start_ns[at].max(initial=-(2**62))) + 1)
        operator = operators.around(by_whom.code_location[at], by_whom.code_start_ns[at])
        at, operator = at[operator >= 0], operator[operator >= 0]
        launch = np.stack((by_whom.call_location[at], by_whom.call_row[at], by_whom.call_start_ns[at]))
        launch = np.where(by_whom.captured[at], launch, -1)
        new = np.vstack((operator, launch, work.region[at].astype(np.int64), duration[at]))
        waiting = np.concatenate((waiting, new), axis=1)
        over = operators.forget(by_whom.settled_ns)
        of_graph = waiting[2] >= 0
        done = np.where(of_graph, waiting[3] < by_whom.settled_ns, np.isin(waiting[0], over.number))
        found.add(waiting[:, done], over.with_(operators.kept()))
        waiting = waiting[:, ~done]
    found.add(waiting, operators.forget(2**62).with_(operators.kept()))
    return everything, found.sequences()


@dataclass(frozen=True)
class _Executions:
    """Executions of operators; columns in order of `number`, which is different for each."""

    number: Ints
    location: Ints
    row: Ints
    start_ns: Ints
    end_ns: Ints
    region: Ints

    def with_(self, more: _Executions) -> _Executions:
        """Return these and others."""
        columns = np.concatenate((self._columns(), more._columns()), axis=1)
        return _Executions(*columns[:, np.argsort(columns[0])])

    def _columns(self) -> Ints:
        return np.stack((self.number, self.location, self.row, self.start_ns, self.end_ns, self.region))


class _Operators:
    """The outermost operators of all threads of a process, read on in order of time.

    Those that captured something into a CUDA graph are kept: the graph may be launched whenever the program likes.
    """

    def __init__(self, trace: Trace, device: Device, wanted: Bools) -> None:
        process = device.process
        self._trace, self._wanted, self._next = trace, wanted, 0
        self._captures = _capture_times(trace, device)
        # By thread: the columns of _Executions, in order of start; and until when an operator is open.
        self._rows, self._open_until, self._seen_ns = {}, {}, {}
        for each in location_rows(trace):
            if each.process == process and each.kind == "thread" and each.span_count:
                location = each.location
                self._rows[location] = np.zeros((6, 0), dtype=np.int64)
                self._open_until[location], self._seen_ns[location] = -(2**62), each.first_ns

    def read(self, until_ns: int) -> None:
        """Read on to the operators that begin before a moment."""
        for location, begin in self._seen_ns.items():
            if begin >= until_ns:
                continue
            # From the moment before, so that a span without any length is in it; then only what begins there.
            spans = self._trace.span_arrays(location, begin - 1, until_ns)
            (at,) = np.nonzero((spans["start_ns"] >= begin) & self._wanted[spans["region"]])
            start, end = spans["start_ns"][at], (spans["start_ns"] + spans["duration_ns"])[at]
            outer = outermost(start, end) & (start >= self._open_until[location])
            self._open_until[location] = max(self._open_until[location], int(end.max(initial=-(2**62))))
            columns = (np.full(len(at), location), spans["row"][at], start, end, spans["region"][at])
            new = np.stack(columns)[:, outer].astype(np.int64)
            numbers = np.arange(self._next, self._next + new.shape[1])
            self._next += len(numbers)
            self._rows[location] = np.concatenate((self._rows[location], np.vstack((numbers, new))), axis=1)
            self._seen_ns[location] = until_ns

    def around(self, location: Ints, time_ns: Ints) -> Ints:
        """Return the number of the operator around each moment of a thread, -1 where there is none."""
        out = np.full(len(location), -1, dtype=np.int64)
        for thread in np.unique(location).tolist():
            if thread not in self._rows or not self._rows[thread].shape[1]:
                continue
            executions = _Executions(*self._rows[thread])
            (at,) = np.nonzero(location == thread)
            index = np.searchsorted(executions.start_ns, time_ns[at], side="right") - 1
            inside = (index >= 0) & (time_ns[at] < executions.end_ns[index])
            out[at[inside]] = executions.number[index[inside]]
        return out

    def forget(self, until_ns: int) -> _Executions:
        """Return the operators that end until a moment, and hold them no more."""
        over = []
        for location, rows in self._rows.items():
            ended = (rows[4] <= until_ns) & ~self._captured(location, rows)
            over.append(rows[:, ended])
            self._rows[location] = rows[:, ~ended]
        columns = np.concatenate([np.zeros((6, 0), dtype=np.int64), *over], axis=1)
        return _Executions(*columns[:, np.argsort(columns[0])])

    def kept(self) -> _Executions:
        """Return the operators that captured something, as far as they were read."""
        rows = [rows[:, self._captured(location, rows)] for location, rows in self._rows.items()]
        columns = np.concatenate([np.zeros((6, 0), dtype=np.int64), *rows], axis=1)
        return _Executions(*columns[:, np.argsort(columns[0])])

    def _captured(self, location: int, rows: Ints) -> Bools:
        times = self._captures.get(location)
        if times is None:
            return np.zeros(rows.shape[1], dtype=bool)
        begin, end = np.searchsorted(times, rows[3]), np.searchsorted(times, rows[4])
        captured: Bools = begin < end
        return captured


def _capture_times(trace: Trace, device: Device) -> dict[int, Ints]:
    """Return when the calls began that put something into the CUDA graphs that a device ran, by thread."""
    numbers = captures(trace, device)
    times: dict[int, Ints] = {}
    for each in location_rows(trace) if len(numbers) else ():
        location = each.location
        if each.process == device.process and each.kind == "thread" and each.span_count:
            correlation = Attributes(trace, "call_spans", location, ("correlation",))
            found = [np.zeros(0, dtype=np.int64)]
            for spans in trace.span_batches(location):
                of_call = np.isin(integers(correlation.of(spans["row"]).column("correlation")), numbers)
                found.append(spans["start_ns"][of_call])
            times[location] = np.concatenate(found)
    return times


class _Found:
    """Sums of equal sequences over executions that come in any order."""

    def __init__(self, least: int) -> None:
        self._least, self._groups = least, Groups()
        self._sums = np.zeros((3, 0), dtype=np.int64)  # executions, device_ns, host_ns of each group
        self._replayed: set[tuple[int, int]] = set()  # execution and group
        self._first: list[tuple[int, int, int, list[int]]] = []  # start, location, row, what ran: the earliest

    def add(self, work: Ints, executions: _Executions) -> None:
        """Add executions; work: all that they ran, as it waited."""
        in_order = work[:, np.lexsort(work[2::-1])]
        begin = np.flatnonzero((np.diff(in_order[:3], prepend=-2) != 0).any(axis=0))
        operator, _, launch, _, region, duration = in_order
        length = np.diff(begin, append=len(operator))
        enough = length >= self._least
        if not enough.any():
            return
        key, device_ns = _hashes(region, begin, length)[enough], np.add.reduceat(duration, begin)[enough]
        begin, length = begin[enough], length[enough]
        of = np.searchsorted(executions.number, operator[begin])
        host_ns = (executions.end_ns - executions.start_ns)[of]
        group = self._groups.numbers([executions.region[of], length, key])
        host_ns[self._again(operator[begin], group, launch[begin] >= 0)] = 0
        more = len(self._groups) - self._sums.shape[1]
        self._sums = np.concatenate((self._sums, np.zeros((3, more), dtype=np.int64)), axis=1)
        for total, each in zip(self._sums, (np.ones_like(group), device_ns, host_ns), strict=True):
            np.add.at(total, group, each)
        order = np.lexsort((executions.start_ns[of], group))
        for at in order[np.flatnonzero(np.diff(group[order], prepend=-1))].tolist():
            who = of[at]
            where = tuple(int(column[who]) for column in (executions.start_ns, executions.location, executions.row))
            ran = region[begin[at] : begin[at] + length[at]].tolist()
            if group[at] == len(self._first):
                self._first.append((*where, ran))
            elif where < self._first[group[at]][:3]:
                self._first[group[at]] = (*where, ran)

    def _again(self, operator: Ints, group: Ints, of_graph: Bools) -> Bools:
        """Return which launches of graphs ran what another launch ran before for the same execution."""
        again = of_graph.copy()
        for at in np.flatnonzero(of_graph).tolist():
            pair = int(operator[at]), int(group[at])
            again[at] = pair in self._replayed
            self._replayed.add(pair)
        return again

    def sequences(self) -> list[Sequence]:
        """Return what was found, in order of the regions of operators, lengths, and first executions."""
        found = [
            Sequence(key[0], ran, count, device_ns, host_ns, location, row)
            for key, (count, device_ns, host_ns), (_, location, row, ran) in zip(
                self._groups.keys, self._sums.T.tolist(), self._first, strict=True
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
