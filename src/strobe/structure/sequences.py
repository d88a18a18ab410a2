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
    belongs to the operator in which its launching call began. About 50 bytes an
    activity and an operator are held.
    """
    operators = _Operators(trace, device.process, wanted)
    found, everything = [np.zeros((3, 0), dtype=np.int64)], 0
    for work, by_whom in launches(trace, device):
        everything += int((work.end_ns - work.start_ns).sum())
        (at,) = np.nonzero(by_whom.call_row >= 0)
        operator = operators.around(by_whom.call_location[at], by_whom.call_start_ns[at])
        at, operator = at[operator >= 0], operator[operator >= 0]
        found.append(np.stack((operator, work.region[at].astype(np.int64), (work.end_ns - work.start_ns)[at])))
    operator, region, duration = np.concatenate(found, axis=1)
    order = np.argsort(operator, kind="stable")  # they came in order of start
    operator, region, duration = operator[order], region[order], duration[order]
    begin = np.flatnonzero(np.diff(operator, prepend=-1))
    length = np.diff(begin, append=len(operator))
    enough = length >= least
    if not enough.any():
        return everything, []
    device_ns = np.add.reduceat(duration, begin)[enough]
    key = _hashes(region, begin, length)[enough]
    begin, length = begin[enough], length[enough]
    operator = operator[begin]
    of = Groups().numbers([operators.region[operator], length, key])
    order = np.argsort(of, kind="stable")
    return everything, [
        Sequence(
            region=int(operators.region[operator[same[0]]]),
            work=region[begin[same[0]] : begin[same[0]] + length[same[0]]].tolist(),
            count=len(same),
            device_ns=int(device_ns[same].sum()),
            host_ns=int((operators.end_ns - operators.start_ns)[operator[same]].sum()),
            location=int(operators.location[operator[same[0]]]),
            row=int(operators.row[operator[same[0]]]),
        )
        for same in np.split(order, np.flatnonzero(np.diff(of[order])) + 1)
    ]


class _Operators:
    """The outermost operators of all threads of a process, in order of location and start."""

    def __init__(self, trace: Trace, process: int, wanted: Bools) -> None:
        threads = [
            cast(int, each["location"])
            for each in trace.locations.to_pylist()
            if each["process"] == process and each["kind"] == "thread"
        ]
        parts = [np.zeros((5, 0), dtype=np.int64)]
        for location in threads:
            until = -(2**62)
            for spans in trace.span_batches(location):
                (at,) = np.nonzero(wanted[spans["region"]])
                start, end = spans["start_ns"][at], (spans["start_ns"] + spans["duration_ns"])[at]
                outer = outermost(start, end) & (start >= until)
                until = max(until, int(end.max(initial=until)))
                columns = (np.full(len(at), location), spans["row"][at], start, end, spans["region"][at])
                parts.append(np.stack(columns)[:, outer].astype(np.int64))
        self.location, self.row, self.start_ns, self.end_ns, self.region = np.concatenate(parts, axis=1)

    def around(self, location: Ints, time_ns: Ints) -> Ints:
        """Return the number of the operator around each moment of a thread, -1 where there is none."""
        out = np.full(len(location), -1, dtype=np.int64)
        for thread in np.unique(location).tolist():
            first, last = np.searchsorted(self.location, (thread, thread + 1))
            (at,) = np.nonzero(location == thread)
            number = np.searchsorted(self.start_ns[first:last], time_ns[at], side="right") - 1 + first
            inside = number >= first
            inside[inside] = time_ns[at][inside] < self.end_ns[number[inside]]
            out[at[inside]] = number[inside]
        return out


def _hashes(region: Ints, begin: Ints, length: Ints) -> Ints:
    """Return a number for each sequence; two that differ have the same one time in 2 ** 64."""
    random = np.random.default_rng(1)
    of_region = random.integers(2**63, size=int(region.max()) + 1, dtype=np.uint64)
    of_place = random.integers(2**63, size=int(length.max()), dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    place = np.arange(len(region)) - np.repeat(begin, length)
    return np.add.reduceat(of_region[region] * of_place[place], begin).view(np.int64)
