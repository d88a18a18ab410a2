"""How much memory of GPUs and of the host is in use over time, when it is most, in which step, and for what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from strobe.analyses.gpu.memory import ANALYSIS
from strobe.gpu.capabilities import gpu_memory_bytes
from strobe.gpu.devices import devices
from strobe.gpu.memory import Curve, curves
from strobe.gpu.memory_categories import category_levels
from strobe.steps.step_times import step_of_process, step_times
from strobe.tables.column_arrays import Ints
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace

_NOTHING = (
    "no memory data in this trace: strobe run --trace +cuda+memory records allocations of CUDA, profiles of"
    " PyTorch with profile_memory=True and of Nsight Systems with --cuda-memory-usage=true hold them, and strobe run"
    " records the resident memory of processes"
)
_WITHOUT = {
    "step": "no steps were found in this trace; --by device and --by time need none",
    "category": "which blocks were allocated is not known; --by device and --by time need sizes only",
}


def run(trace: Trace, *, by: str, points: int) -> Table:
    """Return the answer; see `strobe.analyses.gpu.memory`."""
    found = curves(trace)
    if by == "step":
        rows = [row for curve in found for row in _by_step(trace, curve)]
    elif by == "category":
        rows = [row for curve in found for row in _by_category(trace, curve, points)]
    elif by == "time":
        rows = [row for curve in found for row in _by_time(trace, curve, points)]
    else:
        rows = [_by_device(trace, curve) for curve in found]
    note = "" if rows else _WITHOUT[by] if found and by in _WITHOUT else _NOTHING
    if rows and devices(trace) and all(curve.device is None for curve in found):
        note = "allocations of CUDA were not recorded: strobe run --trace +cuda+memory"
    return make_table(ANALYSIS.columns_with(by=by), rows, about="memory of GPUs and processes", note=note)


def _known(value: int) -> int | None:
    return value if value >= 0 else None


def _sums(curve: Curve, part: slice) -> dict[str, object]:
    change = curve.change[part]
    return {
        "allocations": int((change > 0).sum()),
        "allocated_bytes": int(change[change > 0].sum()),
        "freed_bytes": -int(change[change < 0].sum()),
    }


def _by_device(trace: Trace, curve: Curve) -> Mapping[str, object]:
    peak = int(curve.allocated.argmax())
    size = gpu_memory_bytes(trace, curve.device)
    before = int(curve.allocated[0] - curve.change[0])
    most = max(before, int(curve.allocated[peak]))
    peak = peak if curve.allocated[peak] == most else 0  # it only became less
    (step,) = _steps_at(trace, curve, curve.time_ns[peak : peak + 1])
    return {
        **vars(curve),
        "peak_bytes": most,
        "peak_time_ns": int(curve.time_ns[peak]),
        "peak_step": step,
        "peak_share": most / size if size else None,
        "peak_reserved_bytes": _known(int(curve.reserved.max())),
        "first_bytes": before,
        "last_bytes": int(curve.allocated[-1]),
        **_sums(curve, slice(None)),
        "location": _known(int(curve.location[peak])),
    }


def _by_step(trace: Trace, curve: Curve) -> Iterator[Mapping[str, object]]:
    step, begin, end = step_times(trace, curve.process)
    inside = np.searchsorted(curve.time_ns, begin), np.searchsorted(curve.time_ns, end)
    for number, start_ns, first, last in zip(*(column.tolist() for column in (step, begin, *inside)), strict=True):
        if not first and not last:
            continue  # nothing is known yet
        before = int(curve.allocated[first - 1]) if first else int(curve.allocated[0] - curve.change[0])
        held = int(curve.reserved[max(0, first - 1) : max(last, first)].max())
        peak = first + int(curve.allocated[first:last].argmax()) if last > first else first
        higher = last > first and int(curve.allocated[peak]) > before
        yield {
            **vars(curve),
            "step": number,
            "start_bytes": before,
            "peak_bytes": int(curve.allocated[peak]) if higher else before,
            "peak_time_ns": int(curve.time_ns[peak]) if higher else start_ns,
            "peak_reserved_bytes": _known(held),
            "end_bytes": int(curve.allocated[last - 1]) if last > first else before,
            **_sums(curve, slice(first, last)),
        }


def _shown(curve: Curve, points: int) -> Ints:
    """Return which changes a curve of so many points has: the highest of each part of the time; 0: all."""
    if points <= 0:
        return np.arange(len(curve.time_ns))
    first, last = int(curve.time_ns[0]), int(curve.time_ns[-1])
    part = (curve.time_ns - first) // (-(-(last - first + 1) // points))
    order = np.lexsort((curve.time_ns, -curve.allocated, part))
    return np.sort(order[np.flatnonzero(np.diff(part[order], prepend=-1))])


def _by_time(trace: Trace, curve: Curve, points: int) -> Iterator[Mapping[str, object]]:
    shown = _shown(curve, points)
    columns = (
        *(curve.time_ns, curve.allocated, curve.reserved, curve.active, curve.largest_free),
        *(curve.change, curve.location),
    )
    cells = (column[shown].tolist() for column in columns)
    steps = _steps_at(trace, curve, curve.time_ns[shown])
    for step, time, allocated, reserved, active, free, change, location in zip(steps, *cells, strict=True):
        yield {
            **vars(curve),
            "step": step,
            "time_ns": time,
            "allocated_bytes": allocated,
            "reserved_bytes": _known(reserved),
            "active_bytes": _known(active),
            "largest_free_bytes": _known(free),
            "change_bytes": change,
            "location": _known(location),
        }


def _by_category(trace: Trace, curve: Curve, points: int) -> Iterator[Mapping[str, object]]:
    shown = _shown(curve, points)
    levels = category_levels(trace, curve, shown)
    times = curve.time_ns[shown]
    if levels is None:
        return
    for at, (step, time) in enumerate(zip(_steps_at(trace, curve, times), times.tolist(), strict=True)):
        for category, level in levels.items():
            about = {"step": step, "time_ns": time, "category": category, "allocated_bytes": int(level[at])}
            yield {**vars(curve), **about}


def _steps_at(trace: Trace, curve: Curve, time: Ints) -> list[int | None]:
    """Return the steps of the process at some times, None outside of all."""
    return [_known(step) for step in step_of_process(trace, curve.process, time).tolist()]
