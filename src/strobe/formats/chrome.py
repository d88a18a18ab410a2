"""Chrome's trace event JSON: Kineto (PyTorch's profiler), VizTracer, and whatever else writes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from strobe import native
from strobe.model.plugins import Format, Imported

if TYPE_CHECKING:
    from collections.abc import Mapping

    from strobe.model.plugins import ImportSource, ImportTarget


def sniff(head: bytes) -> bool:
    """Say whether it is an object with traceEvents, or a list of objects with a phase."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"{"):
        return b'"traceEvents"' in text or (b'"schemaVersion"' in text and b'"deviceProperties"' in text)
    return text.startswith(b"[") and b'"ph"' in text


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file, in pieces as they come."""
    reader = native.ChromeReader(str(target.folder), target.next_number(), target.buffer_bytes)
    for chunk in source.chunks():
        reader.feed(chunk)
    report = json.loads(reader.finish(source.name).decode("utf-8", "replace"))
    processes = report["processes"]
    told: Mapping[str, object] = report["properties"]
    distributed = told.get("distributedInfo")
    rank = distributed.get("rank") if isinstance(distributed, dict) else None
    ranks = distributed.get("world_size") if isinstance(distributed, dict) else None
    base = told.get("baseTimeNanoseconds")
    return Imported(
        processes=len(processes),
        first_ns=min((each["first_ns"] for each in processes), default=0),
        last_ns=max((each["last_ns"] for each in processes), default=0),
        base_ns=base if isinstance(base, int) else None,
        rank=rank if isinstance(rank, int) else None,
        ranks=ranks if isinstance(ranks, int) else None,
        host=str(told.get("host_name", "")),
        properties=told,
        counters=report["counters"],
    )


FORMAT = Format(
    "chrome",
    "Chrome trace event JSON: PyTorch profiler (Kineto), VizTracer, ...",
    suffixes=(".json", ".json.gz", ".json.zst"),
    sniff=sniff,
    read=read,
)
