"""Chrome's trace event JSON: Kineto (PyTorch's profiler), VizTracer, Ascend's msprof, and whatever else writes it."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path, PurePath

from strobe import native
from strobe.formats.chrome.export import Output, Writer
from strobe.formats.writing.left_out import sums_left_out
from strobe.formats.writing.output_files import new_file
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget
from strobe.tables.lazy_pyarrow import pa
from strobe.trace.trace import Trace

# The folder beside a profile in which the captures of its graphs are.
_CAPTURES = "capture_traces"
_RANK = re.compile(r"rank[-_]?(\d+)")
_SNIFFED = 1 << 12


def sniff(head: bytes) -> bool:
    """Return whether it is an object with traceEvents, or a list of objects with a phase."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"{"):
        return b'"traceEvents"' in text or (b'"schemaVersion"' in text and b'"deviceProperties"' in text)
    return text.startswith(b"[") and b'"ph"' in text


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file, in pieces as they come."""
    reader = native.chrome_reader(str(target.folder), target.next_number(), target.buffer_bytes)
    for capture in _captures(source):
        reader.begin_capture()
        for chunk in capture.chunks():
            reader.feed(chunk)
        reader.end_capture()
    for chunk in source.chunks():
        reader.feed(chunk)
    report = json.loads(reader.finish(source.name).decode("utf-8", "replace"))
    processes = report["processes"]
    for _ in processes[1:]:
        target.next_number()  # the reader numbered them on from the first
    properties: Mapping[str, object] = report["properties"]
    zero = _integer(properties.get("strobe"), "zero_ns")
    first = min((each["first_ns"] for each in processes), default=0)
    distributed = properties.get("distributedInfo")
    return Imported(
        processes=len(processes),
        first_ns=first if zero is None else min(first, zero),
        last_ns=max((each["last_ns"] for each in processes), default=0),
        base_ns=_integer(properties, "baseTimeNanoseconds"),
        rank=_integer(distributed, "rank"),
        ranks=_integer(distributed, "world_size"),
        host=str(properties.get("host_name", "")),
        properties=properties,
        counters=report["counters"],
    )


def _captures(source: ImportSource) -> list[ImportSource]:
    """Return the profiles of captures of CUDA graphs that lie beside a profile: vLLM and SGLang are profiled so.

    Where they are of several ranks, those whose name has the rank that the name of the profile has.
    """
    names = dict.fromkeys(name for suffix in FORMAT.suffixes for name in source.around(f"{_CAPTURES}/*{suffix}"))
    beside = {name: source.beside(name) for name in names}
    found = {name: each for name, each in beside.items() if each is not None and sniff(_beginning(each))}
    if len({_rank_in(name) for name in found}) > 1:
        found = {name: each for name, each in found.items() if _rank_in(name) == _rank_in(source.name)}
    return list(found.values())


def _rank_in(name: str) -> str:
    """Return the rank that the name of a file has, "" for none."""
    match = _RANK.search(PurePath(name).name)
    return match[1] if match else ""


def _beginning(source: ImportSource) -> bytes:
    head = b""
    for chunk in source.chunks():
        head += chunk
        if len(head) >= _SNIFFED:
            break
    return head[:_SNIFFED]


def _integer(members: object, key: str) -> int | None:
    value = members.get(key) if isinstance(members, dict) else None
    return value if isinstance(value, int) else None


def write(trace: Trace, path: Path) -> list[str]:
    """Write a trace as Kineto does: its categories, names of arguments and metadata, and exact times.

    Metadata events `strobe_process`, `strobe_region`, `strobe_row`, `strobe_metric` and `strobe_stack` hold what
    Chrome's format has no place for. Viewers skip them; with them strobe reads exactly what it wrote. Executions that
    were folded into statistics have no events, and are left out, as are tables without times.
    """
    notes = sums_left_out(trace, "Chrome's format")
    with new_file(path) as work, _opened(work, path.name) as out:
        Writer(trace, out, notes).write()
    return notes


def _opened(path: Path, name: str) -> AbstractContextManager[Output]:
    if name.endswith(".gz"):
        return gzip.GzipFile("", "wb", 5, path.open("wb"), mtime=0)
    return pa.CompressedOutputStream(str(path), "zstd") if name.endswith(".zst") else path.open("wb")


FORMAT = Format(
    "chrome",
    "Chrome trace event JSON: PyTorch profiler (Kineto), VizTracer, ...",
    suffixes=(".json", ".json.gz", ".json.zst"),
    sniff=sniff,
    read=read,
    write=write,
)
