"""What ranks communicate in each dimension of the mesh, in a step: calls, bytes, time, waiting, and what is exposed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.ranks.mesh.dimensions import Dimension, in_steps, mesh
from strobe.ranks.mesh.intervals import Intervals
from strobe.ranks.mesh.rank_times import rank_times
from strobe.steps.steps import find_steps
from strobe.tables.column_arrays import Ints, rows_by
from strobe.trace.trace import Trace


@dataclass(frozen=True)
class DimensionTraffic:
    """What a rank communicates in a dimension in a steady step, the mean of its ranks; in the run where none has steps.

    time_ns: in its calls and kernels. wait_ns: of that, waiting for ranks that come later. exposed_ns: of that, what no
    computation hides.
    """

    dimension: Dimension
    ranks: int
    calls: float
    sent_bytes: float
    received_bytes: float
    time_ns: float
    wait_ns: float
    exposed_ns: float


def dimension_traffic(trace: Trace) -> list[DimensionTraffic]:
    """Return the communication of each dimension, in the order of `mesh`."""
    times = rank_times(trace)
    steps = [each for each in find_steps(trace).processes if each.process in times and each.steady.any()]
    steady = {each.process: int(each.steady.sum()) for each in steps}
    process = np.concatenate([np.full(steady[each.process], each.process) for each in steps] or [_none()])
    begin, end = (
        np.concatenate([getattr(each, name)[each.steady] for each in steps] or [_none()])
        for name in ("start_ns", "end_ns")
    )
    out = []
    for dimension in mesh(trace).dimensions:
        calls = dimension.calls
        if steps:
            calls = calls.chosen(in_steps(calls, begin, end, process))
        rows = []
        for number, own in rows_by(calls.process):
            each = calls.chosen(own)
            runs = Intervals.of(each.begin_ns, each.end_ns)
            exposed = (runs & times[number].outside).total_ns if number in times else 0
            sums = (len(own), _known(each.sent_bytes), _known(each.received_bytes), runs.total_ns,
                    int(each.wait_ns.sum()), exposed)  # fmt: skip
            rows.append(np.array(sums) / max(1, steady.get(number, 1)))
        mean = np.mean(rows, axis=0) if rows else np.zeros(6)
        out.append(DimensionTraffic(dimension, len(rows), *mean.tolist()))
    return out


def _none() -> Ints:
    return np.zeros(0, dtype=np.int64)


def _known(values: Ints) -> int:
    return int(np.maximum(values, 0).sum())
