"""PyTorch's memory timelines (`profile.export_memory_timeline`, JSON): memory of one device by what it is for.

`[times, sizes]` has microseconds and a column for each category; the raw form (`.raw.json.gz`) has every change, in
nanoseconds. Changes become `allocations` whose kind of memory is the category, and curves in the timeline. What was
there before the recording counts from its first moment on. Which device it is about is not in the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import numpy as np

from strobe.formats.reading.import_process import ImportProcess, finish_all
from strobe.formats.reading.profile_import import read_whole
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

# In the order of torch/profiler/_memory_profiler.py, _CATEGORY_TO_COLORS.
_CATEGORIES = (
    *("parameters", "optimizer state", "inputs", "temporary", "activations", "gradients", "autograd details"),
    "unknown",
)
_RAW = re.compile(rb"\s*\[\s*\[\s*-?\d{1,19}\s*,\s*[1-4]\s*,\s*-?\d{1,19}\s*,\s*[0-7]\s*\]\s*[,\]]")
# Microseconds since 1970: 16 digits until 2286.
_COLUMNS = re.compile(rb"\s*\[\s*\[\s*(?:-1\s*,\s*)?\d{16}\s*[,\]]")
_LARGEST = 1 << 62
_Change = tuple[int, int, int]  # time in ns (below 0: before the recording), category, bytes


def sniff(head: bytes) -> bool:
    """Return whether it is a list of changes, or of a list of times and one of sizes."""
    return _RAW.match(head) is not None or _COLUMNS.match(head) is not None


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a timeline. Raises ValueError if it is no JSON of that form, or has no change."""
    data = read_whole(source)
    try:
        body = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("it is no text") from None
    process = ImportProcess(target, 0, buffers=1)
    changes = list(_of_raw(process, body) if _RAW.match(data) else _of_columns(process, body))
    if not changes:
        raise ValueError("it has no change of memory")
    first = min((time for time, _, _ in changes if time >= 0), default=0)
    rows = np.array([(max(time, first) if time < 0 else time, *rest) for time, *rest in changes], dtype=np.int64)
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    location = process.location("memory", "memory", 0, "task")
    for category in np.unique(rows[:, 1]).tolist():
        time_ns, _, change = rows[rows[:, 1] == category].T
        level, name = np.cumsum(change), _CATEGORIES[category]
        last = np.append(time_ns[1:] != time_ns[:-1], True)  # of several changes at once
        process.samples(f"memory: {name}", "bytes", time_ns[last], level[last].astype(np.float64))
        number = np.full(len(change), process.text(name), dtype=np.int64)
        cells = {"time_ns": time_ns, "size_bytes": change, "total_allocated_bytes": level, "memory_kind": number}
        where = np.full(len(change), location, dtype=np.uint32)
        process.rows("allocations", where, {key: (np.ascontiguousarray(each), None) for key, each in cells.items()})
    properties = {"categories": list(_CATEGORIES)}
    return finish_all({0: process}, source, lambda _: "memory", counters={}, properties=properties, base_ns=0)


def _of_raw(process: ImportProcess, body: object) -> Iterator[_Change]:
    for each in body if isinstance(body, list) else ():
        if _is_row(each, 4) and 0 <= each[3] < len(_CATEGORIES):
            yield each[0], each[3], each[2]
        else:
            process.count("events_not_understood")


def _of_columns(process: ImportProcess, body: object) -> Iterator[_Change]:
    times, sizes = body if isinstance(body, list) and len(body) == 2 else ([], [])
    if not isinstance(times, list) or not isinstance(sizes, list):
        return
    process.count("events_not_understood", abs(len(times) - len(sizes)))
    before = [0] * len(_CATEGORIES)
    for time, row in zip(times, sizes, strict=False):
        # The first column is the lower edge of the picture that the tool draws.
        if not _is_row(row, len(_CATEGORIES) + 1) or not _is_row([time], 1) or time >= _LARGEST // 1000:
            process.count("events_not_understood")
            continue
        for category, size in enumerate(row[1:]):
            if size != before[category]:
                yield (time * 1000 if time >= 0 else -1), category, size - before[category]
        before = row[1:]


def _is_row(row: object, length: int) -> bool:
    return (
        isinstance(row, list) and len(row) == length and all(type(each) is int and abs(each) < _LARGEST for each in row)
    )


FORMAT = Format(
    "memory_timeline",
    "PyTorch memory timeline (export_memory_timeline, JSON)",
    suffixes=(".json", ".raw.json.gz"),
    sniff=sniff,
    read=read,
)
