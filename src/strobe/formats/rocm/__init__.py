"""rocprofv3 of ROCm 6.2 and later: its databases (rocpd), its JSON, and its CSV files, those of one run together.

The agents of a run are numbered as its GPUs are: 0 is the first one. Kernels and copies lie on the HIP streams that the
file has, else on the queues of the hardware. Counters are readings, and means by kernel; of runs that only count, the
dispatches are kernels. Samples of program counters are samples below their kernel, and hits of source lines.

Not kept: which thread launched a kernel (its call has it), addresses of copies, types of arguments, symbols of code
objects, the environment, the instances that counters were summed over; of samples, which lanes and units were running.
"""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import PurePosixPath

from strobe.formats.reading.csv_input import first_cells
from strobe.formats.reading.sqlite_input import MAGIC, SqliteInput
from strobe.formats.rocm.rocpd import read_rocpd
from strobe.formats.rocm.texts import FILES, read_csv, read_json
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

_COLUMNS = (
    {"Correlation_Id", "Start_Timestamp", "End_Timestamp"},
    {"Correlation_Id", "Counter_Name", "Counter_Value"},
    {"Correlation_Id", "Sample_Timestamp", "Instruction"},
    {"Alloc_Flags", "Start_Timestamp", "End_Timestamp"},
)
_JSON = b'"rocprofiler-sdk-tool"'
_WHOLE = ("results.db", "results.json")  # what rocprofv3 calls them, behind the number of the process
_OF_RUN = (*_WHOLE, *(f"{name}.csv" for name in FILES))
_RUN = re.compile(f"(.*?)({'|'.join(map(re.escape, _OF_RUN))})")


def sniff(head: bytes) -> bool:
    """Return whether it is a database with rocpd's tables, JSON of the tool, or a CSV file with its columns."""
    if head.startswith(MAGIC):
        return b"rocpd_" in head
    cells = set(first_cells(head))
    return _is_json(head) or any(columns <= cells for columns in _COLUMNS)


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file; if the database or the JSON of the same run lies beside it, that, which has more.

    Times are the file's own: nanoseconds since the node started. Raises ValueError if it is damaged from the beginning.
    """
    run = _RUN.fullmatch(PurePosixPath(source.name.replace(":", "/")).name)
    # All are looked up, so that none of them is a trace of its own.
    beside = {each: source.beside(f"{run[1]}{each}") for each in _OF_RUN if run is not None and each != run[2]}
    files = [source, *(beside.get(each) for each in _WHOLE)]
    found = [(next(iter(each.chunks()), b""), each) for each in files if each is not None]
    for head, each in found:
        if head.startswith(MAGIC) and b"rocpd_" in head:
            with closing(SqliteInput(each.local_path())) as database:
                return read_rocpd(source, target, database)
    return next((read_json(each, target) for head, each in found if _is_json(head)), None) or read_csv(source, target)


def _is_json(head: bytes) -> bool:
    return head.lstrip().startswith(b"{") and _JSON in head[:256]


FORMAT = Format(
    "rocm", "rocprofv3 (ROCm): rocpd database, JSON, CSV", suffixes=(".db", ".json", ".csv"), sniff=sniff, read=read
)
