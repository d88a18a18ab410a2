"""How much of each GPU was used, rung by rung: kernels ran, blocks filled multiprocessors, warps these, work done."""

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
    from strobe.structure.roofline import Work

_NO_MODEL = "the trace does not say what the GPUs are: only the time in which kernels ran is known"
# So much of the time of kernels may be unknown in what it fills.
_UNKNOWN = 0.01
_SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_COLUMNS = (*_SHAPE, "registers_per_thread", "shared_memory_bytes")


def run(trace: Trace) -> Table:
    """Say how much of each GPU was used, from the first start to the last end of its work.

    Folded steps count by the sums of what they launched: with the launches that the same kernels have in detail.

    busy = part of the time in which some kernel ran (what `nvidia-smi` calls utilisation). SMs filled = the same,
    each kernel counting with the part of the multiprocessors that its blocks fill: min(blocks / multiprocessors, 1).
    warps there = each kernel counting with the warps that its launch can have at once, as a part of those that the GPU
    can hold: min(warps of all blocks / (multiprocessors * warps of one), theoretical occupancy). Kernels that run at
    the same time add up, to no more than the rung before. What is lost between two rungs says what to do: launch
    sooner (idle), launch more blocks (SMs), use fewer registers, less shared memory, other blocks (warps). These are
    upper bounds: `strobe devices` has what the GPU measured itself, `strobe metrics` what single kernels did.

    roofline = part of the time that the work would take at least, each kernel as long as the GPU needs at its peak to
    compute (FLOPs) or to move (bytes of device memory) what it does, whichever is longer, and no longer than it took.
    What it does is known from hardware counters, where `strobe metrics --metrics roofline --trace TRACE` kept them
    beside the trace (means over the launches that were measured, by the kernel's full name), else from the shapes of
    the matrix product, convolution or attention that launched it: FLOPs, and each operand and result moved once.
    Peaks are what the GPU says of its clock and bandwidth, else those of its data sheet. Of other kernels nothing is
    known, and nothing is assumed: roofline known = part of the time of kernels (each with its duration) that the
    estimate is about, and roofline is a lower bound where that is below 1. Null where nothing is known. A kernel may
    be near the roofline with few warps, so that this rung may be above the one of warps.
    """
    from strobe.store.map_combine import rows_of_processes
    from strobe.store.table import Table
    from strobe.structure.device_work import devices, no_device
    from strobe.structure.gpu_counters import measured_means
    from strobe.structure.gpu_model import gpu_model

    there = devices(trace)
    models = {number: gpu_model(trace, number) for number in {device.number for device in there}}
    rows = rows_of_processes(trace, _of_process, models=models, means=measured_means(trace.path))
    note = no_device(trace) if not len(rows) else "" if any(models.values()) else _NO_MODEL
    return Table(rows, name="utilisation", about="GPUs from first to last work", note=note)


def _of_process(
    part: Trace, models: Mapping[int | None, GpuModel | None], means: Mapping[str, Mapping[str, float]]
) -> pa.Table:
    """Return the rows of one process."""
    from strobe.store.table import make_table
    from strobe.structure.device_work import devices
    from strobe.structure.gpu_model import gpu_model
    from strobe.structure.roofline import Work

    there = devices(part)
    work = Work(part, means) if there else None
    # What the process itself knows of its GPU comes first: others may mean another one by the same number.
    of = {device: gpu_model(part, device.number) or models[device.number] for device in there}
    rows = [row for device in there for row in _of_device(part, device, of[device], work)]
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
        Column("roofline_share", "float64", "", "that its work takes at least at the GPU's peak, as far as known"),
        Column("roofline_known_share", "float64", "", "part of the kernels' time that this is known of, 0 to 1"),
        Column("lost", "string", "", "where most is lost: idle, SMs, or warps"),
        Column("kernels", "int64", "", "kernels that ran", extra=True),
    )


def _of_device(trace: Trace, device: Device, model: GpuModel | None, work: Work | None) -> Iterator[tuple[object, ...]]:
    """Yield the row of a GPU, if kernels ran on it."""
    import numpy as np

    from strobe.structure.attributes import Attributes, integers
    from strobe.structure.device_time import folded_work
    from strobe.structure.device_work import KINDS, beginning, divided, kind_of_region, stretches

    copies = 1 << KINDS.index("copy")
    kernels = {at: Attributes(trace, "kernel_spans", at, _COLUMNS) for at in device.locations}
    filled_ns, warps_ns = (np.zeros(len(trace.regions)) for _ in range(2))
    calls, took_ns = (np.zeros(len(trace.regions), dtype=np.int64) for _ in range(2))
    unknown_ns = 0  # of whole graphs, and of kernels of other profilers: without a grid
    for begin, end in stretches(device):
        found = beginning(trace, device, begin, end)
        for location in device.locations:
            (at,) = np.nonzero((found.location == location) & (1 << found.kind != copies))
            duration = (found.end_ns - found.start_ns)[at]
            np.add.at(calls, found.region[at], 1)
            np.add.at(took_ns, found.region[at], duration)
            if not len(at) or model is None:
                continue
            launch = kernels[location].of(found.row[at])
            grid, block = (
                np.prod([integers(launch.column(name), 0) for name in names], axis=0, dtype=np.int64)
                for names in (_COLUMNS[:3], _COLUMNS[3:6])
            )
            unknown_ns += int(duration[grid == 0].sum())
            possible = model.occupancy(block, *(integers(launch.column(name), 0) for name in _COLUMNS[6:]))
            there = grid * -(-block // 32) / (model.multiprocessors * (model.threads // 32))
            np.add.at(filled_ns, found.region[at], duration * np.minimum(grid / model.multiprocessors, 1))
            np.add.at(warps_ns, found.region[at], duration * np.fmin(there, possible))
    if not calls.any():
        return
    took_in_detail_ns = int(took_ns.sum())
    if (folded := folded_work(trace, device)) is not None:
        of_kernels = (kind_of_region(trace) >= 0) & (1 << np.maximum(0, kind_of_region(trace)) != copies)
        more_ns = folded.ns * of_kernels
        grown = 1 + np.divide(more_ns, took_ns, out=np.zeros(len(took_ns)), where=took_ns > 0)
        filled_ns, warps_ns = filled_ns * grown, warps_ns * grown
        calls, took_ns = calls + folded.calls * of_kernels, took_ns + more_ns
    sums = divided(trace, device)
    duration_ns = int(sums.sum())
    busy = int(sum(ns for mask, ns in enumerate(sums.tolist()) if mask & ~copies)) / max(1, duration_ns)
    filled = warps = None
    losses = {"idle": 1 - busy}
    if model is not None and unknown_ns <= _UNKNOWN * took_in_detail_ns:
        filled = min(busy, float(filled_ns.sum()) / max(1, duration_ns))
        warps = min(filled, float(warps_ns.sum()) / max(1, duration_ns))
        losses |= {"SMs": busy - filled, "warps": filled - warps}
    known = work.of(device, calls, took_ns) if work else None
    roofline = known_share = None
    if known and known.took_ns:
        roofline = min(busy, known.least_ns / max(1, duration_ns))
        known_share = known.took_ns / max(1, int(took_ns.sum()))
    lost = max(losses, key=lambda name: losses[name])
    shares = (busy, filled, warps, roofline, known_share)
    yield device.rank, device.process, device.number, duration_ns, *shares, lost, int(calls.sum())


ANALYSIS = Analysis("utilisation", "How much of each GPU was used: busy, SMs filled, warps there, work done?", run)
