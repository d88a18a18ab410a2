"""rocprofv3 of ROCm 6.2 and later: its databases (rocpd), its JSON, and its CSV files, those of one run together.

Also the CSV files of rocprof, versions 1 and 2, the sums of all versions (`--stats`), and the databases of
rocmProfileData (RPD), whose tables have nearly the names of rocpd's.

The agents of a run are numbered as its GPUs are: 0 is the first one. Kernels and copies lie on the HIP streams that the
file has, else on the queues of the hardware. Counters are readings, and means by kernel; of runs that only count, the
dispatches are kernels. Samples of program counters are samples below their kernel, and hits of source lines.

Not kept: which thread launched a kernel (its call has it), addresses of copies, types of arguments, symbols of code
objects, the environment, the instances that counters were summed over; of samples, which lanes and units were running.
"""

from __future__ import annotations

from strobe import registry
from strobe.formats.reading.inputs import SQLITE_MAGIC
from strobe.formats.reading.text_input import first_cells
from strobe.formats.rocm.first_bytes import is_json
from strobe.model.plugins import Format

_COLUMNS = (
    {"Correlation_Id", "Start_Timestamp", "End_Timestamp"},
    {"Correlation_Id", "Counter_Name", "Counter_Value"},
    {"Correlation_Id", "Sample_Timestamp", "Instruction"},
    {"Alloc_Flags", "Start_Timestamp", "End_Timestamp"},
    {"Name", "Calls", "TotalDurationNs", "AverageNs", "Percentage"},
    # rocprof, versions 1 and 2
    {"KernelName", "gpu-id", "queue-id"},
    {"Kernel_Name", "GPU_ID", "Queue_ID"},
    {"Kernel_Name", "GPU_ID", "End_Timestamp"},  # rocprof-compute: Omniperf
    {"Function", "Start_Timestamp", "Correlation_ID"},
)


def sniff(head: bytes) -> bool:
    """Return whether it is a database with rocpd's tables, JSON of the tool, or a CSV file with its columns."""
    if head.startswith(SQLITE_MAGIC):
        return b"rocpd_" in head
    cells = set(first_cells(head))
    return is_json(head) or any(columns <= cells for columns in _COLUMNS)


FORMAT = Format(
    "rocm",
    "rocprof and rocprofv3 (ROCm): rocpd database, JSON, CSV; rocmProfileData (.rpd)",
    suffixes=(".db", ".rpd", ".json", ".csv"),
    sniff=sniff,
    read=registry.later("strobe.formats.rocm.reader:read"),
)
