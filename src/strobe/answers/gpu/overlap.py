"""What the time of a GPU went into: computing, communicating, copying, several at once, or nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from strobe.analyses.gpu.overlap import ANALYSIS
from strobe.gpu.devices import Device, devices, no_device
from strobe.gpu.folded_work import folded_note
from strobe.gpu.work import COMMUNICATION, COMPUTATION, COPY, KINDS, MASKS, divided
from strobe.steps.step_times import known_steps
from strobe.steps.steps import find_steps
from strobe.tables.columns import Ints
from strobe.tables.table import Table, make_table
from strobe.trace.folded import NONE
from strobe.trace.trace import Trace
from strobe.workers.map_combine import rows_of_processes

_FOLDED = "of folded steps only sums are known: what ran at the same time there is estimated from the steps in detail"


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.gpu.overlap`."""
    per_step = by == "step"
    rows = rows_of_processes(trace, _of_process, known=known_steps(trace) if per_step else None, per_step=per_step)
    about = "steps of each GPU" if per_step else "the whole run of each GPU"
    note = no_device(trace) if not len(rows) else _FOLDED if folded_note(trace, devices(trace)) else ""
    return Table(rows, name="overlap", about=about, note=note)


def _of_process(part: Trace, per_step: bool) -> pa.Table:
    """Return the rows of one process."""
    rows = [
        {**device.cells, "step": step, **_cells(sums)}
        for device in devices(part)
        for step, sums in (_of_steps(part, device) if per_step else [(None, divided(part, device))])
        if sums.any()
    ]
    return make_table(ANALYSIS.columns_with(by="step" if per_step else "rank"), rows).to_arrow()


def _of_steps(trace: Trace, device: Device) -> Iterator[tuple[int, Ints]]:
    """Yield the times of a device in each step of its process."""
    for steps in find_steps(trace).processes:
        if steps.process != device.process:
            continue
        seen = np.ones(len(steps), dtype=bool) if steps.recorded is None else steps.recorded.detail != NONE
        for k in np.flatnonzero(seen).tolist():
            begin = int(steps.start_ns[k])
            yield k + steps.first_number, divided(trace, device, begin, begin + int(steps.duration_ns[k]))


def _cells(sums: Ints) -> dict[str, object]:
    """Return the columns from `duration_ns` on, from the times by mask."""

    def holding(kinds: int) -> int:
        return sum(int(time) for mask, time in enumerate(sums) if mask & kinds == kinds)

    duration, communication = int(sums.sum()), holding(COMMUNICATION)
    hidden = holding(COMMUNICATION | COMPUTATION)
    return {
        "duration_ns": duration,
        "busy_ns": duration - int(sums[0]),
        "idle_ns": int(sums[0]),
        "computation_ns": holding(COMPUTATION),
        "communication_ns": communication,
        "copy_ns": holding(COPY),
        "exposed_communication_ns": communication - hidden,
        "overlap": hidden / communication if communication else None,
        **{
            f"only_{'_and_'.join(kind for k, kind in enumerate(KINDS) if mask >> k & 1)}_ns": int(sums[mask])
            for mask in range(1, MASKS)
        },
    }
