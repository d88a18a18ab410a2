"""Collapsed stacks: a line for each call path, `main;solve;dot 42` (Brendan Gregg's tools, py-spy --format raw).

The number counts samples, whose length is unknown. The tables show a sample as a nanosecond, with a note. Those of
Python's profiling.sampling have threads, and the line that ran in each function.
"""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from strobe.formats.reading.profile_import import ROOT, SAMPLES, CallTree, Function, ProfileProcess
from strobe.formats.reading.text_input import lines_of
from strobe.formats.writing.output_files import new_file
from strobe.formats.writing.profile_export import Profile
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget
from strobe.trace.trace import Trace

_LINE = re.compile(r"(.*\S)\s+(\d{1,18}(?:\.\d{0,40})?)\s*")
# py-spy and others: function (file.py:12)
_FRAME = re.compile(r"(.+) \(([^()]+):(\d{1,9})\)")
# profiling.sampling: tid:71;x.py:function:12, with the line that ran
_LINE_FRAME = re.compile(r"([^:]+\.py|<[^<>]+>):(.+):(\d{1,9})")
_THREAD = re.compile(r"tid:(\d{1,18})")
_SNIFFED_LINES = 200


def sniff(head: bytes) -> bool:
    """Return whether most lines are stacks with a number behind them, and one of them has two frames."""
    if b"\0" in head:
        return False
    lines = head.decode("utf-8", "replace").split("\n")
    whole = (lines[:-1] if not head.endswith(b"\n") and len(lines) > 1 else lines)[:_SNIFFED_LINES]
    whole = [line for line in whole if line.strip() and not line.startswith("#")]
    found = [line for line in whole if _LINE.fullmatch(line)]
    return any(";" in line for line in found) and len(found) > len(whole) / 2


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file, line by line: memory grows with the different call paths, not with the lines."""
    process = ProfileProcess(source, target)
    trees: dict[int, CallTree] = {}  # by thread
    frames: dict[str, tuple[Function, int, int]] = {}  # with its region and the line that ran
    lines: dict[tuple[int, Function, int], int | Fraction] = {}

    def understood(frame: str) -> tuple[Function, int, int]:
        known = frames.get(frame)
        if known is None:
            function, line = _function(frame)
            known = function, process.region(function), line
            if len(frames) < 1 << 20:
                frames[frame] = known
        return known

    for raw in lines_of(source, lambda: process.core.left_out("lines_not_understood")):
        if not raw.strip() or raw.startswith(b"#"):
            continue
        line = raw.decode("utf-8", "replace")
        match = _LINE.fullmatch(line)
        if match is None:
            without_stack = line.strip().isdecimal()
            process.core.left_out("samples_without_stack" if without_stack else "lines_not_understood")
            continue
        samples = Fraction(match[2]) if "." in match[2] else int(match[2])
        stack = [frame.strip() for frame in match[1].split(";")]
        thread = _THREAD.fullmatch(stack[0]) if len(stack) > 1 else None
        number = int(thread[1]) if thread else 0
        location = process.location(f"thread {number}" if thread else "samples", number)
        path = ROOT
        for frame in stack[1:] if thread else stack:
            path = process.path(path, understood(frame)[1])
        trees.setdefault(location, CallTree(process, location, [SAMPLES])).add(path, [samples])
        function, _, ran = understood(stack[-1])
        if ran:
            lines[location, function, ran] = lines.get((location, function, ran), 0) + samples
    for tree in trees.values():
        tree.save()
    for (location, function, ran), hits in lines.items():
        process.line(location, function, function.file, ran, None, round(hits))
    return process.finish({"weight": "samples", "shown": "a sample as 1 ns"})


def _function(frame: str) -> tuple[Function, int]:
    """Return the function of a frame, and the line that ran, 0 if it is unknown."""
    if (ran := _LINE_FRAME.fullmatch(frame)) is not None:
        return Function(ran[2], ran[1]), int(ran[3])
    match = _FRAME.fullmatch(frame)
    return (Function(match[1], match[2], int(match[3])) if match else Function(frame)), 0


def write(trace: Trace, path: Path) -> None:
    """Write a line for each call path: own time in ns (or the samples that were imported), all locations together."""
    profile = Profile(trace)
    names = [_frame(frame.name, frame.file, frame.line) for frame in profile.frames]
    summed: dict[int, int] = {}
    for _, totals in profile.totals():
        for each in profile.weighted(totals):
            summed[each.path] = summed.get(each.path, 0) + each.own_ns
    with new_file(path) as work, open(work, "w", encoding="utf-8", newline="\n") as out:
        for call_path, own_ns in sorted(summed.items()):
            out.write(";".join(names[region] for region in profile.regions_of(call_path)) + f" {max(own_ns, 0)}\n")


def _frame(name: str, file: str, line: int) -> str:
    shown = f"{name} ({file}:{line})" if file else name
    return re.sub(r"[\r\n]", " ", shown).replace(";", ":")


FORMAT = Format(
    "collapsed",
    "Collapsed stacks: flamegraph.pl, py-spy --format raw, stackcollapse-*",
    suffixes=(".collapsed", ".folded", ".txt"),
    sniff=sniff,
    read=read,
    write=write,
)
