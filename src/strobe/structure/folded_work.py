"""What GPUs did in iterations that were folded into statistics: sums, and for how long there are no more than these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from strobe.structure.folded_time import FoldedTime, folded_time

if TYPE_CHECKING:
    from strobe.store.trace import Trace

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FoldedWork:
    """Time (ns, of all streams together) and number of folded activities of a device, by kind; all of them.

    `pace`: nanoseconds in which the device was busy at least (its busiest stream) for each of folded time. Above 1: the
    host was ahead of it.
    """

    time_ns: Ints
    count: Ints
    pace: float


def folded_stretches(trace: Trace, process: int) -> FoldedTime | None:
    """Return when iterations of a process were folded, read once; None where all of it is in detail."""
    return trace.once(f"folded time {process}", lambda: folded_time(trace, process))


def folded_work(trace: Trace, process: int, number: int | None, kinds: npt.NDArray[np.int8]) -> FoldedWork | None:
    """Return what a device did in folded iterations; None where there are none. `kinds`: of every region."""
    when = folded_stretches(trace, process)
    if when is None:
        return None
    folded = trace.folded[process]
    streams = [
        int(each["location"])
        for each in trace.locations.to_arrow().to_pylist()
        if each["kind"] == "stream" and each["process"] == process and each["device"] == number
    ]
    region = np.array(trace.call_paths.column("region"), dtype=np.int64)
    kind = kinds[region[folded.call_path]]
    own = np.isin(folded.location, streams) & ~folded.is_short & (kind >= 0)
    time_ns, count = np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64)
    np.add.at(time_ns, kind[own], folded.total_ns[own])
    np.add.at(count, kind[own], folded.count[own])
    of_stream = np.bincount(folded.location[own], folded.total_ns[own], minlength=1)
    whole = int((when.stretches.end_ns - when.stretches.begin_ns).sum())
    return FoldedWork(time_ns, count, float(of_stream.max()) / max(1, whole))


def folded_part(trace: Trace, process: int, start_ns: int, end_ns: int) -> float:
    """Return which part of the folded time lies in [start_ns, end_ns), 0 to 1: 0 where there is none."""
    folded = folded_stretches(trace, process)
    if folded is None:
        return 0.0
    whole = int((folded.stretches.end_ns - folded.stretches.begin_ns).sum())
    return folded.stretches.inside_ns(start_ns, end_ns) / whole if whole else 0.0
