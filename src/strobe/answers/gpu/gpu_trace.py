"""Every kernel, copy and memory set of the GPUs, one by one, in the order in which they began."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strobe.analyses.gpu.gpu_trace import ANALYSIS
from strobe.errors import UsageError
from strobe.gpu.capabilities import gpu_name
from strobe.gpu.copies import parts_of_name
from strobe.gpu.devices import Device, devices, no_device
from strobe.gpu.folded_work import folded_note
from strobe.gpu.work import Work, beginning, stretches
from strobe.sums.attributes import Attributes
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace

_OF_BOTH = ("correlation", "context", "stream")
_OF_KERNELS = (
    *("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
    *("registers_per_thread", "static_shared_bytes", "dynamic_shared_bytes", "shared_memory_bytes"),
)
_OF_COPIES = ("size_bytes", "bandwidth_gb_s", "source_kind", "destination_kind")


def run(trace: Trace, *, limit: int) -> Table:
    """Return the answer; see `strobe.analyses.gpu.gpu_trace`."""
    if limit < 0:
        raise UsageError(f"--limit: {limit} is not a number of activities", do="--limit 1000, or --limit 0 for all")
    gpus = devices(trace)
    parts: list[pa.Table] = []
    whole = sum(device.spans for device in gpus)
    for device in gpus:
        attributes = _Attributes(trace, device)
        left = limit or device.spans
        for start_ns, end_ns in stretches(device):
            parts.append(attributes.rows(beginning(trace, device, start_ns, end_ns)).slice(0, left))
            left -= len(parts[-1])
            if not left:
                break
    found = pa.concat_tables(parts) if parts else None
    rows = {column.name: found.column(column.name) if found else [] for column in ANALYSIS.columns}
    listed = len(found) if found else 0
    shown = f"the first {listed} of {whole}: --limit 0 lists all" if listed < whole else ""
    note = "; ".join(filter(None, (shown, folded_note(trace, gpus)))) if gpus else no_device(trace)
    about = "all that ran on GPUs"
    table = make_table(ANALYSIS.columns, rows, about=about, note=note).to_arrow()
    # Models are of the GPUs, not of a row; nvprof's layout shows them.
    models = {f"gpu {each.number}": model for each in gpus if (model := gpu_name(trace, each.number))}
    described = table.replace_schema_metadata({**(table.schema.metadata or {}), **models})
    table = Table(described, about=about, note=note)
    return table if len(gpus) < 2 else table.sort("start_ns", descending=False)


class _Attributes:
    """The columns of the answer for activities of one GPU, asked in order of start."""

    def __init__(self, trace: Trace, device: Device) -> None:
        self._device = device
        self._names = trace.regions.to_arrow().column("name").combine_chunks()
        parts = [parts_of_name(name) for name in self._names.to_pylist()]
        self._sources, self._destinations = (pa.array([each[k] for each in parts], pa.string()) for k in (1, 2))
        self._kernels, self._copies = (
            {at: Attributes(trace, table, at, (*_OF_BOTH, *columns)) for at in device.locations}
            for table, columns in (("kernel_spans", _OF_KERNELS), ("copy_spans", _OF_COPIES))
        )

    def rows(self, found: Work) -> pa.Table:
        order = np.argsort(found.location, kind="stable")
        where = found.location[order]
        kernels, copies = (
            pa.concat_tables(
                [table.of(found.row[order[where == at]]) for at, table in side.items()], promote_options="permissive"
            ).take(pa.array(np.argsort(order)))
            for side in (self._kernels, self._copies)
        )
        duration = found.end_ns - found.start_ns
        size = copies.column("size_bytes").cast(pa.float64())
        text, region = pa.string(), pa.array(found.region)
        shapes = {
            what: pc.binary_join_element_wise(*(kernels.column(f"{what}_{axis}").cast(text) for axis in "xyz"), "x")
            for what in ("grid", "block")
        }
        same = len(found)
        return pa.table(
            {
                "rank": pa.repeat(pa.scalar(self._device.rank, pa.int64()), same),
                "start_ns": found.start_ns,
                "duration_ns": duration,
                **shapes,
                **{name: kernels.column(name).cast(pa.int64()) for name in _OF_KERNELS[6:]},
                "size_bytes": copies.column("size_bytes").cast(pa.int64()),
                "throughput_gb_s": pc.coalesce(
                    copies.column("bandwidth_gb_s").cast(pa.float64()),
                    pc.divide(size, pa.array(duration.astype(float), mask=duration == 0)),
                ),
                "source": pc.coalesce(copies.column("source_kind").cast(text), self._sources.take(region)),
                "destination": pc.coalesce(
                    copies.column("destination_kind").cast(text), self._destinations.take(region)
                ),
                "device": pa.repeat(pa.scalar(self._device.number, pa.int64()), same),
                **{
                    name: pc.coalesce(*(side.column(name).cast(pa.int64()) for side in (kernels, copies)))
                    for name in _OF_BOTH
                },
                "name": self._names.take(region).cast(text),
                "process": np.full(same, self._device.process, dtype=np.uint32),
                "location": found.location,
                "row": found.row,
            }
        )
