"""How much of each GPU was used, rung by rung: some kernel ran, blocks filled the multiprocessors, warps these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from strobe.model.schema import Column
    from strobe.store.table import Table
    from strobe.store.trace import Trace
    from strobe.structure.device_work import Device
    from strobe.structure.gpu_model import GpuModel

_NO_MODEL = "the trace does not say what the GPUs are: only the time in which kernels ran is known"
_SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_COLUMNS = (*_SHAPE, "registers_per_thread", "shared_memory_bytes")


def run(trace: Trace) -> Table:
    """Say how much of each GPU was used, from the first start to the last end of its work.

    busy = part of the time in which some kernel ran (what `nvidia-smi` calls utilisation). SMs filled = the same,
    each kernel counting with the part of the multiprocessors that its blocks fill: min(blocks / multiprocessors, 1).
    warps there = each kernel counting with the warps that its launch can have at once, as a part of those that the GPU
    can hold: min(warps of all blocks / (multiprocessors * warps of one), theoretical occupancy). Kernels that run at
    the same time add up, to no more than the rung before. What is lost between two rungs says what to do: launch
    sooner (idle), launch more blocks (SMs), use fewer registers, less shared memory, other blocks (warps). All are
    upper bounds: `strobe devices` has what the GPU measured itself, `strobe metrics` what single kernels did.
    """
    from strobe.store.map_combine import rows_of_processes
    from strobe.store.table import Table
    from strobe.structure.device_work import NO_DEVICE, devices
    from strobe.structure.gpu_model import gpu_model

    there = devices(trace)
    models = {number: gpu_model(trace, number) for number in {device.number for device in there}}
    rows = rows_of_processes(trace, _of_process, models=models)
    note = NO_DEVICE if not len(rows) else "" if any(models.values()) else _NO_MODEL
    return Table(rows, name="utilisation", about="GPUs from first to last work", note=note)


def _of_process(part: Trace, models: Mapping[int | None, GpuModel | None]) -> pa.Table:
    """Return the rows of one process."""
    from strobe.store.table import make_table
    from strobe.structure.device_work import devices

    rows = [row for device in devices(part) for row in _of_device(part, device, models[device.number])]
    return make_table(_columns(), rows).to_arrow()


def _columns() -> tuple[Column, ...]:
    from strobe.model.schema import Column

    return (
        Column("rank", "int64", "", "rank of the process, null where it has none"),
        Column("process", "uint32", "", "process that used the GPU", extra=True),
        Column("device", "int64", "", "number of the GPU, null where unknown"),
        Column("duration_ns", "int64", "ns", "first start to last end of its work"),
        Column("busy_share", "float64", "", "part of it in which some kernel ran, 0 to 1"),
        Column("sms_filled_share", "float64", "", "with the multiprocessors that blocks filled; null: unknown GPU"),
        Column("warps_there_share", "float64", "", "with the warps that could be there; null: unknown GPU"),
        Column("lost", "string", "", "where most is lost: idle, SMs, or warps"),
        Column("kernels", "int64", "", "kernels that ran", extra=True),
    )


def _of_device(trace: Trace, device: Device, model: GpuModel | None) -> Iterator[tuple[object, ...]]:
    """Yield the row of a GPU, if kernels ran on it."""
    import numpy as np

    from strobe.structure.attributes import Attributes, integers
    from strobe.structure.device_work import KINDS, beginning, divided, stretches

    copies = 1 << KINDS.index("copy")
    kernels = {at: Attributes(trace, "kernel_spans", at, _COLUMNS) for at in device.locations}
    count, filled_ns, warps_ns = 0, 0.0, 0.0
    for begin, end in stretches(device):
        found = beginning(trace, device, begin, end)
        for location in device.locations:
            (at,) = np.nonzero((found.location == location) & (1 << found.kind != copies))
            count += len(at)
            if not len(at) or model is None:
                continue
            launch = kernels[location].of(found.row[at])
            grid, block = (
                np.prod([integers(launch.column(name), 0) for name in names], axis=0, dtype=np.int64)
                for names in (_COLUMNS[:3], _COLUMNS[3:6])
            )
            duration = (found.end_ns - found.start_ns)[at]
            possible = model.occupancy(block, *(integers(launch.column(name), 0) for name in _COLUMNS[6:]))
            there = grid * -(-block // 32) / (model.multiprocessors * (model.threads // 32))
            filled_ns += float((duration * np.minimum(grid / model.multiprocessors, 1)).sum())
            warps_ns += float((duration * np.fmin(there, possible)).sum())
    if not count:
        return
    sums = divided(trace, device)
    duration_ns = int(sums.sum())
    busy = int(sum(ns for mask, ns in enumerate(sums.tolist()) if mask & ~copies)) / max(1, duration_ns)
    filled = warps = None
    losses = {"idle": 1 - busy}
    if model is not None:
        filled = min(busy, filled_ns / max(1, duration_ns))
        warps = min(filled, warps_ns / max(1, duration_ns))
        losses |= {"SMs": busy - filled, "warps": filled - warps}
    lost = max(losses, key=lambda name: losses[name])
    yield device.rank, device.process, device.number, duration_ns, busy, filled, warps, lost, count


ANALYSIS = Analysis("utilisation", "How much of each GPU was used: busy, multiprocessors filled, warps there?", run)
