"""Nsight Compute: the tables of `ncu --csv`, of the pages raw and details, and of summaries by kernel; and its text.

Of a report ncu prints the page raw, where it is installed.

A kernel was measured alone and perhaps several times, so it has a duration and no start: a file is a profile. Its
metrics stand beside it, as `strobe metrics --trace` keeps them. The shapes of single launches are left out.
"""

from __future__ import annotations

import re

from strobe import registry
from strobe.formats.ncu.first_bytes import MAGIC
from strobe.formats.ncu.printed import is_printed
from strobe.model.plugins import Format

_HEADER = re.compile(rb'^(?:\xef\xbb\xbf)?"(?:ID|Process ID)",(?:.*,)?"Kernel Name",', re.MULTILINE)


def sniff(head: bytes) -> bool:
    """Return whether it is a report, or has the head of such a table, or a kernel as ncu prints it."""
    return head.startswith(MAGIC) or _HEADER.search(head) is not None or is_printed(head)


FORMAT = Format(
    "ncu",
    "Nsight Compute reports (through ncu), CSV (ncu --csv) and text",
    suffixes=(".ncu-rep", ".csv", ".txt", ".log"),
    sniff=sniff,
    read=registry.later("strobe.formats.ncu.reader:read"),
)
