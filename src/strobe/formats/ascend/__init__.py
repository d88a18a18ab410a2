"""Profiles of Huawei's Ascend NPUs, as msprof, torch_npu and MindSpore write them.

Databases (`ascend_pytorch_profiler_*.db`, `ascend_mindspore_profiler_*.db`, `msprof_*.db`) hold everything. Timelines
(`trace_view.json`, `msprof_*.json`) hold the host, too, and `kernel_details.csv` or `op_summary_*.csv` the shapes and
types of what ran on the NPU. `op_statistic*.csv` has sums of that by type of operator, and `step_trace_time.csv` what
the time of each step went into. Of these files in one folder the first that is there is read, with what the next one
adds, and not the sums. A timeline that is opened alone is read as Chrome's format. What older versions of MindSpore
wrote is read, too: see `mindspore`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import PurePosixPath

from strobe.formats.ascend.database import read_database
from strobe.formats.ascend.mindspore import kind_of, read_mindspore
from strobe.formats.ascend.tables import KERNEL_FILES, read_kernels, read_statistic, read_step_trace
from strobe.formats.ascend.timeline import read_timeline
from strobe.formats.reading.ascend_folders import together
from strobe.formats.reading.csv_input import first_cells
from strobe.formats.reading.sqlite_input import MAGIC, SqliteInput
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

_STATISTIC = {"OP Type", "Core Type", "Count", "Total Time(us)"}
_STEPS = {"Step", "Computing", "Communication(Not Overlapped)", "Free"}


def sniff(head: bytes) -> bool:
    """Return whether it is a database with CANN's tables, or a CSV file with the columns of one that is known."""
    if head.startswith(MAGIC):
        return b"STRING_IDS" in head and (b"globalTaskId" in head or b"ENUM_API_TYPE" in head)
    cells = first_cells(head)
    return _reader(cells) is not None or kind_of(cells, head) != ""


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file. Times are nanoseconds of the node's clock, since 1970. Raises ValueError if it is damaged."""
    head = next(iter(source.chunks()), b"")
    kind = kind_of(first_cells(head), head)
    if kind:
        return read_mindspore(source, target, kind)
    own = PurePosixPath(source.name.replace(":", "/")).name
    # All are looked up, so that none of them is a trace of its own.
    beside = {name: source.beside(name) for name in together(own, source.around("*"))}
    if head.startswith(MAGIC):
        with closing(SqliteInput(source.local_path())) as database:
            return read_database(source, target, database)
    reader = _reader(first_cells(head))
    if reader is None:
        raise ValueError("it has no columns that are known")
    timeline, tasks = (
        next((each for name, each in beside.items() if each is not None and name.startswith(begin)), None)
        for begin in (("trace_view", "msprof"), ("kernel_details", "op_summary"))
    )
    if timeline is None:
        return reader(source, target)
    return read_timeline(timeline, target, source if reader is read_kernels else tasks, _rank(source))


def _rank(source: ImportSource) -> int | None:
    """Return the rank in the name of a file beside the folder: profiler_info_3.json."""
    found = [re.search(r"profiler_info_(\d{1,9})\.json$", name) for name in source.around("../profiler_info_*.json")]
    return int(found[0][1]) if len(found) == 1 and found[0] is not None else None


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
