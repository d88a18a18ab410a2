"""Sums of rocprof and rocprofv3 by name (`--stats`): a CSV file each for kernels, copies, and the calls of an API."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from strobe.formats.reading.csv_input import csv_rows
from strobe.formats.reading.import_process import NO_PATH, ImportProcess, finish_all
from strobe.formats.reading.sqlite_input import NONE
from strobe.formats.reading.text_input import first_cells
from strobe.model.kinds import role_of_cuda_call
from strobe.model.plugins import Imported, ImportSource, ImportTarget

_COLUMNS = {"Name", "Calls", "TotalDurationNs", "AverageNs", "Percentage"}
# rocprofv3 puts the kind behind the number of the process. rocprof puts `.stats` behind any name: of kernels.
_KERNELS = re.compile(r"(^|_)kernel_stats\.csv$|^(?!.*(_api|copy|hip_|hsa_)).*\.stats\.csv$")
_COPIES = re.compile(r"copy_stats\.csv$")
_DOMAINS = "domain_stats"  # sums of the others
_WHOLE, _REAL = re.compile(r"\d{1,18}"), re.compile(r"\d{1,18}(\.\d+)?")
FILES = (
    *("kernel_stats", "memory_copy_stats", "memory_allocation_stats", "scratch_memory_stats"),
    *("hip_api_stats", "hsa_api_stats", "rccl_api_stats", "marker_api_stats", _DOMAINS),
)


def is_sums(head: bytes) -> bool:
    """Return whether these are the first bytes of such a file."""
    return set(first_cells(head)) >= _COLUMNS


def read_sums(files: Sequence[ImportSource], target: ImportTarget) -> Imported:
    """Import the files of a run. They have no times, and not which call was in which: own times are the totals."""
    process = ImportProcess(target, 0)
    chosen = [each for each in files if _DOMAINS not in each.name] or files
    for source in chosen:
        title = PurePosixPath(source.name.replace(":", "/")).name.lower()
        role = "kernel" if _KERNELS.search(title) else "copy" if _COPIES.search(title) else ""
        for row in csv_rows(source, lambda: process.left_out("unreadable_rows")):
            calls, total = (_WHOLE.fullmatch(row.get(column, "")) for column in ("Calls", "TotalDurationNs"))
            name = row.get("Name", "")
            if calls is None or total is None or not name:
                process.left_out("unreadable_rows")
                continue
            path = process.out.path(NO_PATH, process.region(name, "hip", role or role_of_cuda_call(name)))
            location = process.stream(NONE, NONE) if role else process.location("calls", "calls", 0)
            least, most = (_nearest(row.get(column, "")) for column in ("MinNs", "MaxNs"))
            process.out.totals(location, path, int(calls[0]), int(total[0]), int(total[0]), least, most)
            process.taken()
    properties = {"files": [each.name for each in chosen]}
    return finish_all({0: process}, files[0], lambda key: files[0].name, counters={}, properties=properties)


def _nearest(cell: str) -> int | None:
    return round(float(cell)) if _REAL.fullmatch(cell) else None
