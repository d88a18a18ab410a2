"""How much memory of GPUs and of the host is in use over time, when it is most, and in which step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from strobe.model.schema import Column
    from strobe.store.table import Table
    from strobe.store.trace import Trace
    from strobe.structure.memory import Curve, Ints

_NOTHING = (
    "nothing about memory is in this trace: strobe run --trace +cuda+memory records allocations of CUDA, profiles of"
    " PyTorch with profile_memory=True and of Nsight Systems with --cuda-memory-usage=true hold them, and strobe run"
    " records the resident memory of processes"
)
_NO_STEPS = "no steps were found in this trace; --by device and --by time need none"


def run(trace: Trace, *, by: str = "device", points: int = 500) -> Table:
    """Say how much memory is in use: at most, in each step, or over time; by process, GPU and kind of memory.

    `memory`: GPU and host are what PyTorch's allocators give out; Device, Managed, Pinned, ... are allocations of CUDA
    (`--trace +cuda+memory`, Nsight Systems), where reserved counts what pools hold; resident is the memory of the whole
    process. allocated = in use; reserved = what the allocator holds for that. Where a trace tells sizes only, allocated
    counts from the first event on: it was at least that much (`exact` is false). by step: from the start of a step to
    its end, with what was in use when it began. by time: a row is what was in use from then on; the highest of each of
    `points` equal parts of the time, 0: every change.
    """
    from strobe.store.table import make_table
    from strobe.structure.device_work import devices
    from strobe.structure.memory import curves

    found = curves(trace)
    if by == "step":
        rows = [row for curve in found for row in _by_step(trace, curve)]
        columns = (*_of_curve_columns(), *_step_columns())
    elif by == "time":
        rows = [row for curve in found for row in _by_time(trace, curve, points)]
        columns = (*_of_curve_columns(), *_time_columns())
    else:
        rows = [_by_device(trace, curve) for curve in found]
        columns = (*_of_curve_columns(), *_device_columns())
    note = "" if rows else _NO_STEPS if found else _NOTHING
    if rows and devices(trace) and all(curve.device is None for curve in found):
        note = "allocations of CUDA were not recorded: strobe run --trace +cuda+memory"
    return make_table(columns, rows, name="memory", about="memory of GPUs and processes", note=note)


def _of_curve_columns() -> tuple[Column, ...]:
    from strobe.model.schema import Column

    return (
        Column("rank", "int64", "", "rank of the process, null where it has none"),
        Column("process", "uint32", "", "process", extra=True),
        Column("device", "int64", "", "number of the GPU, null for the host"),
        Column("memory", "string", "", "kind of memory: GPU, host, Device, Managed, Pinned, ..., resident"),
    )


def _device_columns() -> tuple[Column, ...]:
    from strobe.model.schema import Column

    return (
        Column("peak_bytes", "int64", "bytes", "most that was in use at once"),
        Column("peak_time_ns", "int64", "ns", "when it was, for the first time"),
        Column("peak_step", "int64", "", "step of its process at that time, null outside of all"),
        Column("peak_share", "float64", "", "the same as part of the GPU's memory, 0 to 1, null where unknown"),
        Column("peak_reserved_bytes", "int64", "bytes", "most that the allocator held, null where unknown"),
        Column("first_bytes", "int64", "bytes", "in use before the first event", extra=True),
        Column("last_bytes", "int64", "bytes", "in use after the last one", extra=True),
        *_sums_columns(),
        Column("exact", "bool", "", "whether the allocator said how much is in use; false: at least that", extra=True),
        Column("location", "uint32", "", "thread that allocated the peak, null where unknown", extra=True),
    )


def _step_columns() -> tuple[Column, ...]:
    from strobe.model.schema import Column

    return (
        Column("step", "int64", "", "number of the step in its process"),
        Column("start_bytes", "int64", "bytes", "in use when it began"),
        Column("peak_bytes", "int64", "bytes", "most that was in use at once"),
        Column("peak_time_ns", "int64", "ns", "when it was, for the first time"),
        Column("peak_reserved_bytes", "int64", "bytes", "most that the allocator held, null where unknown"),
        Column("end_bytes", "int64", "bytes", "in use when it ended"),
        *_sums_columns(),
    )


def _sums_columns() -> tuple[Column, ...]:
    from strobe.model.schema import Column

    return (
        Column("allocations", "int64", "", "how often memory was allocated"),
        Column("allocated_bytes", "int64", "bytes", "sum of what was allocated", extra=True),
        Column("freed_bytes", "int64", "bytes", "sum of what was freed", extra=True),
    )


def _time_columns() -> tuple[Column, ...]:
    from strobe.model.schema import Column

    return (
        Column("step", "int64", "", "step of its process at that time, null outside of all"),
        Column("time_ns", "int64", "ns", "when"),
        Column("allocated_bytes", "int64", "bytes", "in use from then on"),
        Column("reserved_bytes", "int64", "bytes", "held by the allocator, null where unknown"),
        Column("change_bytes", "int64", "bytes", "allocated then, below 0 freed", extra=True),
        Column("location", "uint32", "", "thread that did it, null where unknown", extra=True),
    )


def _who(curve: Curve) -> tuple[object, ...]:
    return curve.rank, curve.process, curve.device, curve.memory


def _known(value: int) -> int | None:
    return value if value >= 0 else None


def _sums(curve: Curve, part: slice) -> tuple[int, int, int]:
    change = curve.change[part]
    return int((change > 0).sum()), int(change[change > 0].sum()), -int(change[change < 0].sum())


def _by_device(trace: Trace, curve: Curve) -> tuple[object, ...]:
    from strobe.structure.gpu_model import gpu_memory_bytes

    peak = int(curve.allocated.argmax())
    size = gpu_memory_bytes(trace, curve.device)
    before = int(curve.allocated[0] - curve.change[0])
    most = max(before, int(curve.allocated[peak]))
    peak = peak if curve.allocated[peak] == most else 0  # it only became less
    (step,) = _steps_at(trace, curve, curve.time_ns[peak : peak + 1])
    return (
        *_who(curve),
        most,
        int(curve.time_ns[peak]),
        step,
        most / size if size else None,
        _known(int(curve.reserved.max())),
        before,
        int(curve.allocated[-1]),
        *_sums(curve, slice(None)),
        curve.exact,
        _known(int(curve.location[peak])),
    )


def _by_step(trace: Trace, curve: Curve) -> Iterator[tuple[object, ...]]:
    import numpy as np

    step, begin, end = trace.steps_of(curve.process)
    inside = np.searchsorted(curve.time_ns, begin), np.searchsorted(curve.time_ns, end)
    for number, start_ns, first, last in zip(*(column.tolist() for column in (step, begin, *inside)), strict=True):
        if not first and not last:
            continue  # nothing is known yet
        before = int(curve.allocated[first - 1]) if first else int(curve.allocated[0] - curve.change[0])
        held = int(curve.reserved[max(0, first - 1) : max(last, first)].max())
        peak = first + int(curve.allocated[first:last].argmax()) if last > first else first
        higher = last > first and int(curve.allocated[peak]) > before
        yield (
            *_who(curve),
            number,
            before,
            int(curve.allocated[peak]) if higher else before,
            int(curve.time_ns[peak]) if higher else start_ns,
            _known(held),
            int(curve.allocated[last - 1]) if last > first else before,
            *_sums(curve, slice(first, last)),
        )


def _by_time(trace: Trace, curve: Curve, points: int) -> Iterator[tuple[object, ...]]:
    import numpy as np

    shown = np.arange(len(curve.time_ns))
    if points > 0:
        first, last = int(curve.time_ns[0]), int(curve.time_ns[-1])
        part = (curve.time_ns - first) // (-(-(last - first + 1) // points))
        order = np.lexsort((curve.time_ns, -curve.allocated, part))
        shown = np.sort(order[np.flatnonzero(np.diff(part[order], prepend=-1))])
    columns = (curve.time_ns, curve.allocated, curve.reserved, curve.change, curve.location)
    cells = (column[shown].tolist() for column in columns)
    steps = _steps_at(trace, curve, curve.time_ns[shown])
    for step, time, allocated, reserved, change, location in zip(steps, *cells, strict=True):
        yield *_who(curve), step, time, allocated, _known(reserved), change, _known(location)


def _steps_at(trace: Trace, curve: Curve, time: Ints) -> list[int | None]:
    """Return the steps of the process at some times, None outside of all."""
    import numpy as np

    number, begin, end = trace.steps_of(curve.process)
    if not len(number):
        return [None] * len(time)
    step = np.searchsorted(begin, time, side="right") - 1
    inside = (step >= 0) & (time < end[step])
    return [each if there else None for each, there in zip(number[step].tolist(), inside.tolist(), strict=True)]


ANALYSIS = Analysis(
    "memory",
    "How much memory of GPUs and of the host is in use, when is it most, and in which step?",
    run,
    options=(
        Option(
            "by",
            "one row a kind of memory, or its steps, or its curve over time",
            default="device",
            choices=("device", "step", "time"),
        ),
        Option(
            "points", "rows of a curve at most, each the highest of a part of the time; 0: all", type=int, default=500
        ),
    ),
)
