"""pyinstrument: `--renderer json`, and sessions (`-o x.pyisession`).

The tree of the JSON has times in microseconds; a frame's own time is what its callees leave. Sessions have every stack
with its time: each thread is a location, and lines have the time of the samples in them. The order of the stacks, the
time awaited, and pyinstrument's groups are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from strobe.formats.reading.json_input import exact_number, fields, integer, items, read_json, text
from strobe.formats.reading.profile_import import ROOT, CallTree, Function, ProfileProcess, Weight
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

_TIME = Weight("time", "s")
_NS_A_SECOND = 1_000_000_000
_OWN = "[self]"  # stands for the own time of the frame around it
_THREAD = "\x00<thread>\x00"


def sniff(head: bytes) -> bool:
    """Return whether it is an object that begins as pyinstrument's."""
    begins = re.match(rb'\s*\{\s*"start_time"\s*:[^,]*,\s*"duration"\s*:', head) and b'"sample_count"' in head
    return bool(begins) or re.match(rb'\s*\{\s*"frame_records"\s*:\s*\[\[\["', head) is not None  # version 4


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a profile. Raises ValueError if it is not JSON, or holds no sample."""
    body = read_json(source)
    process = ProfileProcess(source, target)
    if fields(body.get("root_frame")):
        _tree(process, fields(body["root_frame"]))
    elif items(body.get("frame_records")):
        _records(process, items(body["frame_records"]))
    else:
        raise ValueError("it holds no sample")
    keys = ("target_description", "program", "duration", "sample_count", "cpu_time")
    name = text(body.get("target_description")) or text(body.get("program"))
    return process.finish({"name": name} | {key: str(body[key]) for key in keys if body.get(key) is not None})


def _tree(process: ProfileProcess, root: Mapping[str, object]) -> None:
    sums = CallTree(process, process.location("samples"), [_TIME], calls=True)
    waiting = [(root, ROOT)]
    while waiting:
        frame, caller = waiting.pop()
        time = exact_number(frame.get("time"))
        if time is None or not text(frame.get("function")):
            process.core.count("frames_not_understood")
        time = time or Fraction(0)
        file = text(frame.get("file_path")) or text(frame.get("file_path_short"))
        name = ".".join(filter(None, (text(frame.get("class_name")), text(frame.get("function")))))
        path = process.path(caller, process.region(Function(name, file, integer(frame.get("line_no")))))
        for child in items(frame.get("children")):
            found = fields(child)
            if text(found.get("function")) != _OWN:
                time -= exact_number(found.get("time")) or 0
                waiting.append((found, path))
        sums.add(path, [time])
        process.core.count("calls_not_counted")
    sums.save()


def _records(process: ProfileProcess, records: list[object]) -> None:
    trees: dict[str, CallTree] = {}
    frames: dict[str, tuple[Function, int, int]] = {}  # with its region and the line that ran
    lines: dict[tuple[int, Function, int], tuple[int, Fraction]] = {}
    for record in records:
        stack, time = (*items(record), None, None)[:2]
        value, stack = exact_number(time), [text(each) for each in items(stack)]
        if value is None or not all(stack):
            process.core.left_out("samples_not_understood")
            continue
        thread = stack.pop(0) if stack and _THREAD in stack[0] else ""
        if not stack:
            process.core.left_out("samples_without_stack")
            continue
        path = ROOT
        for each in stack:
            if each not in frames:
                function, line = _frame(each)
                frames[each] = function, process.region(function), line
            path = process.path(path, frames[each][1])
        if thread not in trees:
            name, _, number = thread.partition(_THREAD)
            ident = int(number) if number.isdecimal() and len(number) < 19 else 0
            location = process.core.location(thread, name or "samples", ident)
            trees[thread] = CallTree(process, location, [_TIME])
        trees[thread].add(path, [value])
        function, _, line = frames[stack[-1]]
        if line:
            key = process.core.location(thread, "", 0), function, line
            hits, before = lines.get(key, (0, Fraction(0)))
            lines[key] = hits + 1, before + value
    for tree in trees.values():
        tree.save()
    for (location, function, line), (hits, spent) in lines.items():
        process.line(location, function, function.file, line, round(spent * _NS_A_SECOND), hits)


def _frame(identifier: str) -> tuple[Function, int]:
    """Return the function, and the line that ran, of name, file and line, then letters with attributes."""
    code, *attributes = identifier.split("\x01")
    name, file, line = (*code.split("\x00"), "", "")[:3]
    of = {attribute[:1]: attribute[1:] for attribute in attributes}
    name = f"{of['c']}.{name}" if of.get("c") else name
    return Function(name, file, _whole(line)), _whole(of.get("l", ""))


def _whole(digits: str) -> int:
    return int(digits) if digits.isdecimal() and len(digits) < 10 else 0


FORMAT = Format(
    "pyinstrument",
    "pyinstrument JSON and sessions",
    suffixes=(".pyisession", ".json"),
    sniff=sniff,
    read=read,
)
