"""Profiles of Huawei's Ascend NPUs, as msprof, torch_npu and MindSpore write them.

Databases (`ascend_pytorch_profiler_*.db`, `ascend_mindspore_profiler_*.db`, `msprof_*.db`) hold everything. Of the CSV
files, `kernel_details.csv` and `op_summary_*.csv` have what ran on the NPU, `op_statistic*.csv` sums of that by type of
operator, and `step_trace_time.csv` what the time of each step went into. If there are several in a folder, the first of
these is read, and not the sums of it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from strobe.formats.ascend.database import read_database
from strobe.formats.ascend.tables import KERNEL_FILES, read_kernels, read_statistic, read_step_trace
from strobe.formats.reading.csv_input import first_cells
from strobe.formats.reading.sqlite_input import MAGIC, SqliteInput
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

_STATISTIC = {"OP Type", "Core Type", "Count", "Total Time(us)"}
_STEPS = {"Step", "Computing", "Communication(Not Overlapped)", "Free"}


def sniff(head: bytes) -> bool:
    """Return whether it is a database with CANN's tables, or a CSV file with the columns of one that is known."""
    if head.startswith(MAGIC):
        return b"STRING_IDS" in head and (b"globalTaskId" in head or b"ENUM_API_TYPE" in head)
    return _reader(first_cells(head)) is not None


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file. Times are nanoseconds of the node's clock, since 1970. Raises ValueError if it is damaged."""
    head = next(iter(source.chunks()), b"")
    if not head.startswith(MAGIC):
        reader = _reader(first_cells(head))
        if reader is None:
            raise ValueError("it has no columns that are known")
        return reader(source, target)
    for name in ("kernel_details.csv", "op_statistic.csv", "step_trace_time.csv", "trace_view.json"):
        source.beside(name)  # the same as in the database: no traces of their own
    with closing(SqliteInput(source.local_path())) as database:
        return read_database(source, target, database)


def _reader(cells: list[str]) -> Callable[[ImportSource, ImportTarget], Imported] | None:
    """Return the reader of a CSV file with these columns."""
    names = set(cells)
    if any(columns <= names for columns in KERNEL_FILES):
        return read_kernels
    return read_statistic if names >= _STATISTIC else read_step_trace if names >= _STEPS else None


FORMAT = Format(
    "ascend",
    "Ascend NPUs: msprof, torch_npu, MindSpore (databases, CSV)",
    suffixes=(".db", ".csv"),
    sniff=sniff,
    read=read,
)
