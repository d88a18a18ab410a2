"""Chrome's trace event JSON: Kineto (PyTorch's profiler), VizTracer, and whatever else writes it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, cast

import pyarrow as pa

from strobe import native
from strobe.formats.chrome.export import Writer
from strobe.formats.writing.output_files import new_file
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget
from strobe.trace.trace import Trace

_NO_PLACE = ("lines", "call_edges", "path_metrics", "message_totals", "sample_totals")  # sums: they have no times


def sniff(head: bytes) -> bool:
    """Return whether it is an object with traceEvents, or a list of objects with a phase."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"{"):
        return b'"traceEvents"' in text or (b'"schemaVersion"' in text and b'"deviceProperties"' in text)
    return text.startswith(b"[") and b'"ph"' in text


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file, in pieces as they come."""
    reader = native.chrome_reader(str(target.folder), target.next_number(), target.buffer_bytes)
    for chunk in source.chunks():
        reader.feed(chunk)
    report = json.loads(reader.finish(source.name).decode("utf-8", "replace"))
    processes = report["processes"]
    for _ in processes[1:]:
        target.next_number()  # the reader numbered them on from the first
    told: Mapping[str, object] = report["properties"]
    distributed = told.get("distributedInfo")
    rank = distributed.get("rank") if isinstance(distributed, dict) else None
    ranks = distributed.get("world_size") if isinstance(distributed, dict) else None
    base = told.get("baseTimeNanoseconds")
    own = told.get("strobe")
    zero = own.get("zero_ns") if isinstance(own, dict) else None
    first = min((each["first_ns"] for each in processes), default=0)
    return Imported(
        processes=len(processes),
        first_ns=min(first, zero) if isinstance(zero, int) else first,
        last_ns=max((each["last_ns"] for each in processes), default=0),
        base_ns=base if isinstance(base, int) else None,
        rank=rank if isinstance(rank, int) else None,
        ranks=ranks if isinstance(ranks, int) else None,
        host=str(told.get("host_name", "")),
        properties=told,
        counters=report["counters"],
    )


def write(trace: Trace, path: Path) -> list[str]:
    """Write a trace as Kineto does: its categories, names of arguments and metadata, and exact times.

    Metadata events `strobe_process`, `strobe_region`, `strobe_row`, `strobe_metric` and `strobe_stack` hold what
    Chrome's format has no place for; viewers skip them, and strobe reads with them what it wrote: all of it is equal.
    Executions that were folded into statistics have no events, and are left out, as are tables without times.
    """
    notes = []
    if trace.folded_count:
        folded = f"{trace.folded_count} executions that were folded into statistics"
        notes.append(f"{folded} are left out: Chrome's format has no place for sums")
    for name in _NO_PLACE:
        rows = sum(reader.tables().get(name, 0) for reader in trace.readers)
        if rows:
            notes.append(f"{rows} rows of the table {name} are left out: Chrome's format has no place for them")
    with new_file(path) as work, _opened(work, path.name) as out:
        Writer(trace, out, notes).write()
    return notes


def _opened(path: Path, name: str) -> IO[bytes]:
    if name.endswith(".gz"):
        return cast("IO[bytes]", gzip.GzipFile("", "wb", 5, path.open("wb"), mtime=0))
    if name.endswith(".zst"):
        return cast("IO[bytes]", pa.CompressedOutputStream(str(path), "zstd"))
    return path.open("wb")


FORMAT = Format(
    "chrome",
    "Chrome trace event JSON: PyTorch profiler (Kineto), VizTracer, ...",
    suffixes=(".json", ".json.gz", ".json.zst"),
    sniff=sniff,
    read=read,
    write=write,
)
