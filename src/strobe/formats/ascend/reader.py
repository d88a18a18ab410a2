"""Reads a file of Ascend's profilers, with what the others of its folder add."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import PurePosixPath

from strobe.formats.ascend.database import read_database
from strobe.formats.ascend.first_bytes import csv_kind, mindspore_kind
from strobe.formats.ascend.mindspore import read_mindspore
from strobe.formats.ascend.tables import read_kernels, read_statistic, read_step_trace
from strobe.formats.ascend.timeline import read_timeline
from strobe.formats.reading.ascend_folders import together
from strobe.formats.reading.inputs import SQLITE_MAGIC
from strobe.formats.reading.sqlite_input import SqliteInput
from strobe.formats.reading.text_input import first_cells
from strobe.model.plugins import Imported, ImportSource, ImportTarget

_READERS = {"kernels": read_kernels, "statistic": read_statistic, "steps": read_step_trace}


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file. Times are nanoseconds of the node's clock, since 1970. Raises ValueError if it is damaged."""
    head = next(iter(source.chunks()), b"")
    kind = mindspore_kind(first_cells(head), head)
    if kind:
        return read_mindspore(source, target, kind)
    own = PurePosixPath(source.name.replace(":", "/")).name
    # All are looked up, so that none of them is a trace of its own.
    beside = {name: source.beside(name) for name in together(own, source.around("*"))}
    if head.startswith(SQLITE_MAGIC):
        with closing(SqliteInput(source.local_path())) as database:
            return read_database(source, target, database)
    has = csv_kind(first_cells(head))
    if not has:
        raise ValueError("it has no columns that are known")
    timeline, tasks = (
        next((each for name, each in beside.items() if each is not None and name.startswith(begin)), None)
        for begin in (("trace_view", "msprof"), ("kernel_details", "op_summary"))
    )
    if timeline is None:
        return _READERS[has](source, target)
    return read_timeline(timeline, target, source if has == "kernels" else tasks, _rank(source))


def _rank(source: ImportSource) -> int | None:
    """Return the rank in the name of a file beside the folder: profiler_info_3.json."""
    found = [re.search(r"profiler_info_(\d{1,9})\.json$", name) for name in source.around("../profiler_info_*.json")]
    return int(found[0][1]) if len(found) == 1 and found[0] is not None else None
