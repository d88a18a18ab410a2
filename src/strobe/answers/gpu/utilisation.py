"""How much of each GPU was used, rung by rung: kernels ran, blocks filled multiprocessors, warps these, work done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from strobe.analyses.gpu.utilisation import ANALYSIS
from strobe.gpu.capabilities import GpuModel, gpu_model
from strobe.gpu.devices import Device, devices, no_device
from strobe.gpu.folded_work import folded_work
from strobe.gpu.measured_metrics import measured_means
from strobe.gpu.work import KINDS, beginning, divided, kind_of_region, stretches
from strobe.operators.roofline import Work
from strobe.sums.attributes import Attributes, integers, product
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace
from strobe.workers.map_combine import rows_of_processes

_NO_MODEL = "the models of the GPUs are not in this trace: only the time in which kernels ran is known"
# So much of the time of kernels may be unknown in what it fills.
_UNKNOWN = 0.01
_SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_COLUMNS = (*_SHAPE, "registers_per_thread", "shared_memory_bytes")


def run(trace: Trace) -> Table:
    """Return the answer; see `strobe.analyses.gpu.utilisation`."""
    gpus = devices(trace)
    models = {number: gpu_model(trace, number) for number in {device.number for device in gpus}}
    rows = rows_of_processes(trace, _of_process, models=models, means=measured_means(trace.path))
    note = no_device(trace) if not len(rows) else "" if any(models.values()) else _NO_MODEL
    return Table(rows, about="GPUs from first to last work", note=note)


def _of_process(
    part: Trace, models: Mapping[int | None, GpuModel | None], means: Mapping[str, Mapping[str, float]]
) -> pa.Table:
    gpus = devices(part)
    work = Work(part, means) if gpus else None
    # What the process itself knows of its GPU comes first: others may mean another one by the same number.
    model_of = {device: gpu_model(part, device.number) or models[device.number] for device in gpus}
    rows = [row for device in gpus for row in _of_device(part, device, model_of[device], work)]
    return make_table(ANALYSIS.columns, rows).to_arrow()


def _of_device(
    trace: Trace, device: Device, model: GpuModel | None, work: Work | None
) -> Iterator[Mapping[str, object]]:
    """Yield the row of a GPU, if kernels ran on it."""
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
            grid, block = (product(launch, names) for names in (_SHAPE[:3], _SHAPE[3:]))
            unknown_ns += int(duration[grid == 0].sum())
            possible = model.occupancy(block, *(integers(launch.column(name), 0) for name in _COLUMNS[6:]))
            held = grid * -(-block // 32) / (model.multiprocessors * (model.threads // 32))
            np.add.at(filled_ns, found.region[at], duration * np.minimum(grid / model.multiprocessors, 1))
            np.add.at(warps_ns, found.region[at], duration * np.fmin(held, possible))
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
    yield {
        **device.cells,
        "duration_ns": duration_ns,
        "busy_share": busy,
        "sms_filled_share": filled,
        "warps_there_share": warps,
        "roofline_share": roofline,
        "roofline_known_share": known_share,
        "lost": lost,
        "kernels": int(calls.sum()),
    }
