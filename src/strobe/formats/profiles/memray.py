"""memray: captures through `memray transform csv`, where memray is installed, and what that writes.

The bytes that were in use at the peak (with `--leaks`: at the end), and the allocations that they came from, by call
stack and thread. Which allocator gave them is not kept.
"""

from __future__ import annotations

import re

from strobe.formats.reading.conversion import INPUT, OUTPUT, converted
from strobe.formats.reading.csv_input import csv_rows
from strobe.formats.reading.profile_import import ROOT, CallTree, Function, ProfileProcess, Weight
from strobe.formats.reading.text_input import first_cells
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

# Captures are packed with LZ4: the mark lies among the first bytes, which nothing can repeat.
_CAPTURE = re.compile(rb"(?:\x04\x22\x4d\x18.{7,19})?memray\0", re.DOTALL)
_COLUMNS = ("num_allocations", "size", "tid", "thread_name", "stack_trace")
_TRANSFORM = ("memray", "transform", "csv", "-o", OUTPUT, INPUT)
_WEIGHTS = (Weight("allocations", "count"), Weight("in use", "bytes"))


def sniff(head: bytes) -> bool:
    """Return whether it is a capture, or a table of one."""
    return _CAPTURE.match(head) is not None or first_cells(head) == ["allocator", *_COLUMNS]


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a capture or a table. Raises ValueError if memray, which the first needs, is not installed or fails."""
    process = ProfileProcess(source, target)
    if _CAPTURE.match(next(iter(source.chunks()), b"")):
        with converted(source, _TRANSFORM, ".csv") as table:
            _read(process, table)
    else:
        _read(process, source)
    return process.finish({"profiler": "memray"})


def _read(process: ProfileProcess, source: ImportSource) -> None:
    trees: dict[str, CallTree] = {}
    for row in csv_rows(source, lambda: process.core.left_out("samples_not_understood")):
        count, size, thread, name, stack = (row.get(column, "") for column in _COLUMNS)
        if not all(re.fullmatch(r"\d{1,18}", cell) for cell in (count, size)):
            process.core.left_out("samples_not_understood")
            continue
        title = name if name and not re.fullmatch(r"0x[0-9a-f]+", name) else f"thread {thread}"
        number = int(thread) if re.fullmatch(r"\d{1,18}", thread) else 0
        path = ROOT
        for frame in reversed(stack.split("|")):
            name_of_function, _, place = frame.partition(";")
            file, found, line = place.rpartition(";")
            if not found or not re.fullmatch(r"\d{1,9}", line):
                process.core.count("frames_not_understood", bool(frame))
                continue
            path = process.path(path, process.region(Function(name_of_function, file, int(line))))
        if path == ROOT:
            path = process.path(ROOT, process.region(Function("<no Python function>")))
        key = f"{title} {thread}"
        if key not in trees:
            trees[key] = CallTree(process, process.location(title, number), _WEIGHTS)
        trees[key].add(path, [int(count), int(size)])
    for tree in trees.values():
        tree.save()


FORMAT = Format(
    "memray", "memray capture (.bin), or memray transform csv", suffixes=(".bin", ".csv"), sniff=sniff, read=read
)
