"""What the time of a GPU went into: computing, communicating, copying, several at once, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

import numpy as np

from strobe.analyses.gpu.overlap import ANALYSIS
from strobe.gpu.answers import rows_of_gpus
from strobe.gpu.devices import Device, devices, no_device
from strobe.gpu.folded_work import folded_note
from strobe.gpu.lanes import lanes
from strobe.gpu.unclassified import unclassified_note
from strobe.gpu.work import COMMUNICATION, COMPUTATION, COPY, KINDS, MASKS, divided, divided_by_spans
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.step_times import known_steps
from strobe.steps.steps import find_steps
from strobe.tables.column_arrays import Ints
from strobe.tables.table import Table
from strobe.trace.folded import NONE
from strobe.trace.trace import Trace

_NO_TIMES = "folded steps have no rows: --by lane has them"
_NO_LANES = "an older strobe recorded this trace: folded steps have no rows"
_FOLDED = "folded steps are sums only: what ran at the same time there is estimated from the steps in detail"


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.gpu.overlap`."""
    known = None if by == "rank" else known_steps(trace)
    rows = rows_of_gpus(trace, _of_device, ANALYSIS.columns_with(by=by), known=known, by=by)
    about = {"rank": "the whole run of each GPU", "step": "steps of each GPU", "lane": "steps' lanes of each GPU"}[by]
    return Table(rows, about=about, note=_note(trace, by) if len(rows) else no_device(trace))


def _note(trace: Trace, by: str) -> str:
    return "; ".join(filter(None, (_folded_steps(trace, by), unclassified_note(trace))))


def _folded_steps(trace: Trace, by: str) -> str:
    there = devices(trace)
    if not folded_note(trace, there):
        return ""
    if all(device.number in trace.gpu_lanes(device.process) for device in there if device.process in trace.folded):
        return _NO_TIMES if by == "step" else ""
    return _NO_LANES if by == "lane" else _FOLDED


def _of_device(trace: Trace, device: Device, by: str) -> Iterator[Mapping[str, object]]:
    if by == "rank":
        times: Iterable[tuple[int | None, Ints]] = [(None, divided(trace, device))]
    else:
        steps = [each for each in find_steps(trace).processes if each.process == device.process]
        times = chain.from_iterable((_of_lanes if by == "lane" else _of_steps)(trace, device, each) for each in steps)
    for step, sums in times:
        if sums.any():
            yield {**device.cells, "step": step, **_cells(sums)}


def _of_lanes(trace: Trace, device: Device, steps: ProcessSteps) -> Iterator[tuple[int, Ints]]:
    """Yield the times of a device in the lane of each step."""
    found = lanes(trace, device, steps)
    for k in np.flatnonzero(found.known).tolist():
        yield k + steps.first_number, found.set_ns[k]


def _of_steps(trace: Trace, device: Device, steps: ProcessSteps) -> Iterator[tuple[int, Ints]]:
    """Yield the times of a device during each step."""
    seen = np.ones(len(steps), dtype=bool) if steps.recorded is None else steps.recorded.detail != NONE
    for k in np.flatnonzero(seen).tolist():
        yield k + steps.first_number, divided_by_spans(trace, device, int(steps.start_ns[k]), int(steps.end_ns[k]))


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
