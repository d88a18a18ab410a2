"""What answers about GPUs share: rows of every GPU of every process, and the note that explains what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized

import pyarrow as pa

from strobe.gpu.devices import devices, devices_of_sums, no_device
from strobe.gpu.folded_work import folded_note
from strobe.model.schema import Column
from strobe.tables.table import make_table
from strobe.trace.trace import Trace
from strobe.workers.map_combine import Known, rows_of_processes


def rows_of_gpus(
    trace: Trace,
    of_device: Callable[..., Iterable[Mapping[str, object]]],
    columns: Sequence[Column],
    *,
    known: Known | None = None,
    sums: bool = False,
    **options: object,
) -> pa.Table:
    """Return the rows that `of_device(part, device, **options)` yields for each GPU: see `rows_of_processes`.

    `sums`: also for GPUs of profiles, which have sums instead of spans.
    """
    of_all = {"of_device": of_device, "columns": columns, "sums": sums, **options}
    return rows_of_processes(trace, _of_process, known=known, **of_all)


def _of_process(
    part: Trace,
    of_device: Callable[..., Iterable[Mapping[str, object]]],
    columns: Sequence[Column],
    sums: bool,
    **options: object,
) -> pa.Table:
    found = devices(part) or (devices_of_sums(part) if sums else [])
    rows = [row for device in found for row in of_device(part, device, **options)]
    return make_table(columns, rows).to_arrow()


def gpu_note(trace: Trace, rows: Sized, nothing: str) -> str:
    """Return what the rows of single activities lack; without rows `nothing`, or why no GPU is in the trace."""
    there = devices(trace)
    return folded_note(trace, there) if len(rows) else nothing if there else no_device(trace)
