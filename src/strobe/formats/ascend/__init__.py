"""Profiles of Huawei's Ascend NPUs, as msprof, torch_npu and MindSpore write them.

Databases (`ascend_pytorch_profiler_*.db`, `ascend_mindspore_profiler_*.db`, `msprof_*.db`) hold everything. Timelines
(`trace_view.json`, `msprof_*.json`) hold the host, too, and `kernel_details.csv` or `op_summary_*.csv` the shapes and
types of what ran on the NPU. `op_statistic*.csv` has sums of that by type of operator, and `step_trace_time.csv` what
the time of each step went into. Of these files in one folder the first that is there is read, with what the next one
adds, and not the sums. A timeline that is opened alone is read as Chrome's format. What older versions of MindSpore
wrote is read, too: see `mindspore`.
"""

from __future__ import annotations

from strobe import registry
from strobe.formats.ascend.first_bytes import csv_kind, mindspore_kind
from strobe.formats.reading.inputs import SQLITE_MAGIC
from strobe.formats.reading.text_input import first_cells
from strobe.model.plugins import Format


def sniff(head: bytes) -> bool:
    """Return whether it is a database with CANN's tables, or a CSV file with the columns of one that is known."""
    if head.startswith(SQLITE_MAGIC):
        return b"STRING_IDS" in head and (b"globalTaskId" in head or b"ENUM_API_TYPE" in head)
    cells = first_cells(head)
    return csv_kind(cells) != "" or mindspore_kind(cells, head) != ""


FORMAT = Format(
    "ascend",
    "Ascend NPUs: msprof, torch_npu, MindSpore (databases, CSV)",
    suffixes=(".db", ".csv"),
    sniff=sniff,
    read=registry.later("strobe.formats.ascend.reader:read"),
)
