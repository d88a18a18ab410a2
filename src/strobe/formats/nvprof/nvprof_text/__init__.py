"""The output of nvprof, as CSV or as text: --print-gpu-trace, --print-api-trace, summaries, --metrics and --events."""

from strobe import registry
from strobe.formats.nvprof.nvprof_text.first_bytes import (
    BANNER_BYTES,
    CPU_BYTES,
    HEADER_BYTES,
    LAUNCHES_BYTES,
    METRICS_BYTES,
)
from strobe.model.plugins import Format


def sniff(head: bytes) -> bool:
    """Return whether it has nvprof's banner, or the head of one of its tables."""
    marks = (BANNER_BYTES, HEADER_BYTES, METRICS_BYTES, LAUNCHES_BYTES, CPU_BYTES)
    return any(each.search(head) is not None for each in marks)


FORMAT = Format(
    "nvprof_text",
    "nvprof's printed traces, summaries, metrics and CPU profiles, as CSV and text",
    suffixes=(".csv", ".txt", ".log"),
    sniff=sniff,
    read=registry.later("strobe.formats.nvprof.nvprof_text.reader:read"),
)
