"""What the time of a GPU went into: computing, communicating, copying, several at once, or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from strobe.analyses.gpu.overlap import ANALYSIS
from strobe.gpu.answers import rows_of_gpus
from strobe.gpu.devices import Device, devices, no_device
from strobe.gpu.folded_work import folded_note
from strobe.gpu.work import COMMUNICATION, COMPUTATION, COPY, KINDS, MASKS, divided
from strobe.steps.step_times import known_steps
from strobe.steps.steps import find_steps
from strobe.tables.column_arrays import Ints
from strobe.tables.table import Table
from strobe.trace.folded import NONE
from strobe.trace.trace import Trace

_FOLDED = "folded steps are sums only: what ran at the same time there is estimated from the steps in detail"


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.gpu.overlap`."""
    per_step = by == "step"
    known = known_steps(trace) if per_step else None
    rows = rows_of_gpus(trace, _of_device, ANALYSIS.columns_with(by=by), known=known, per_step=per_step)
    about = "steps of each GPU" if per_step else "the whole run of each GPU"
    note = no_device(trace) if not len(rows) else _FOLDED if folded_note(trace, devices(trace)) else ""
    return Table(rows, about=about, note=note)


def _of_device(trace: Trace, device: Device, per_step: bool) -> Iterator[Mapping[str, object]]:
    for step, sums in _of_steps(trace, device) if per_step else [(None, divided(trace, device))]:
        if sums.any():
            yield {**device.cells, "step": step, **_cells(sums)}


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
