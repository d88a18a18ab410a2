"""rocprofv3 of ROCm 6.2 and later: its databases (rocpd), its JSON, and its CSV files, those of one run together.

The agents of a run are numbered as its GPUs are: 0 is the first one. Kernels and copies lie on the HIP streams that the
file has, else on the queues of the hardware. Not kept: which thread launched a kernel (its call has it), addresses of
copies, symbols of code objects, instructions of PC sampling, the environment. Arguments of calls are counted.
"""

from __future__ import annotations

from contextlib import closing

from strobe.formats.reading.csv_input import first_cells
from strobe.formats.reading.sqlite_input import MAGIC, SqliteInput
from strobe.formats.rocm.rocpd import read_rocpd
from strobe.formats.rocm.texts import read_csv, read_json
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

_JSON = b'"rocprofiler-sdk-tool"'


def sniff(head: bytes) -> bool:
    """Return whether it is a database with rocpd's tables, JSON of the tool, or a CSV file with its columns."""
    if head.startswith(MAGIC):
        return b"rocpd_" in head
    return _is_json(head) or {"Correlation_Id", "Start_Timestamp", "End_Timestamp"} <= set(first_cells(head))


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file, and the other CSV files of its run. Times are the file's own: nanoseconds since the node started.

    Raises ValueError if it is damaged from the beginning.
    """
    head = next(iter(source.chunks()), b"")
    if _is_json(head):
        return read_json(source, target)
    if not head.startswith(MAGIC):
        return read_csv(source, target)
    with closing(SqliteInput(source.local_path())) as database:
        return read_rocpd(source, target, database)


def _is_json(head: bytes) -> bool:
    return head.lstrip().startswith(b"{") and _JSON in head[:256]


FORMAT = Format(
    "rocm", "rocprofv3 (ROCm): rocpd database, JSON, CSV", suffixes=(".db", ".json", ".csv"), sniff=sniff, read=read
)
