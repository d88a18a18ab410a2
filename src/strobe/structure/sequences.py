"""Sequences of kernels: what one execution of an operator runs on a GPU, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from strobe.structure.groups import Groups
from strobe.structure.launches import launches
from strobe.structure.stream import outermost

if TYPE_CHECKING:
    from strobe.store.trace import Trace
    from strobe.structure.device_work import Device

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Sequence:
    """Executions of an operator that ran the same kernels, copies and memory sets, in order of their starts.

    region: that of the operator. work: the regions of what ran. count: executions. device_ns: sum of the durations of
    what ran. host_ns: sum of the durations of the operators. location, row: span of the first such operator.
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
    belongs to the operator in which its launching call began. In constant memory: an execution is counted, and
    forgotten, as soon as nothing later can belong to it.
    """
    operators, found, everything = _Operators(trace, device.process, wanted), _Found(least), 0
    waiting = np.zeros((3, 0), dtype=np.int64)  # number of the operator, region, duration; in order of start
    for work, by_whom in launches(trace, device):
        duration = work.end_ns - work.start_ns
        everything += int(duration.sum())
        (at,) = np.nonzero(by_whom.call_row >= 0)
        operators.read(int(by_whom.call_start_ns[at].max(initial=-(2**62))) + 1)
        operator = operators.around(by_whom.call_location[at], by_whom.call_start_ns[at])
        at, operator = at[operator >= 0], operator[operator >= 0]
        waiting = np.concatenate(
            (waiting, np.stack((operator, work.region[at].astype(np.int64), duration[at]))), axis=1
        )
        over = operators.forget(by_whom.settled_ns)
        done = np.isin(waiting[0], over.number)
        found.add(waiting[:, done], over)
        waiting = waiting[:, ~done]
    found.add(waiting, operators.forget(2**62))
    return everything, found.sequences()


@dataclass(frozen=True)
class _Executions:
    """Executions of operators; columns in order of `number`, which tells them apart."""

    number: Ints
    location: Ints
    row: Ints
    start_ns: Ints
    end_ns: Ints
    region: Ints


class _Operators:
    """The outermost operators of all threads of a process, read on in order of time."""

    def __init__(self, trace: Trace, process: int, wanted: Bools) -> None:
        self._trace, self._wanted, self._next = trace, wanted, 0
        # By thread: the columns of _Executions, in order of start; and until when an operator is open.
        self._rows, self._open_until, self._seen_ns = {}, {}, {}
        for each in trace.locations.to_pylist():
            if each["process"] == process and each["kind"] == "thread" and each["span_count"]:
                location = cast(int, each["location"])
                self._rows[location] = np.zeros((6, 0), dtype=np.int64)
                self._open_until[location], self._seen_ns[location] = -(2**62), cast(int, each["first_ns"])

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
            ended = rows[4] <= until_ns
            over.append(rows[:, ended])
            self._rows[location] = rows[:, ~ended]
        columns = np.concatenate([np.zeros((6, 0), dtype=np.int64), *over], axis=1)
        return _Executions(*columns[:, np.argsort(columns[0])])


class _Found:
    """Sums of equal sequences over executions that come in any order."""

    def __init__(self, least: int) -> None:
        self._least, self._groups = least, Groups()
        self._sums = np.zeros((3, 0), dtype=np.int64)  # executions, device_ns, host_ns of each group
        self._first: list[tuple[int, int, int, list[int]]] = []  # start, location, row, what ran: the earliest

    def add(self, work: Ints, executions: _Executions) -> None:
        """Add executions; work: number of the operator, region, duration of all that they ran, in order of start."""
        operator, region, duration = work[:, np.argsort(work[0], kind="stable")]
        begin = np.flatnonzero(np.diff(operator, prepend=-1))
        length = np.diff(begin, append=len(operator))
        enough = length >= self._least
        if not enough.any():
            return
        key, device_ns = _hashes(region, begin, length)[enough], np.add.reduceat(duration, begin)[enough]
        begin, length = begin[enough], length[enough]
        of = np.searchsorted(executions.number, operator[begin])
        group = self._groups.numbers([executions.region[of], length, key])
        more = len(self._groups) - self._sums.shape[1]
        self._sums = np.concatenate((self._sums, np.zeros((3, more), dtype=np.int64)), axis=1)
        for total, each in zip(
            self._sums, (np.ones_like(group), device_ns, (executions.end_ns - executions.start_ns)[of]), strict=True
        ):
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
