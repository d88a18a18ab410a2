"""stackprof's JSON (`stackprof --json`), of Ruby programs.

With raw samples there are call paths; without, functions and their callers. A sample stands for the interval, in wall
mode for the time since the sample before it, if the file has that; the samples of allocations and of other events are
counted. The moments of samples are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction

from strobe.formats.reading.json_input import exact_number, fields, integer, items, read_json, text
from strobe.formats.reading.profile_import import ROOT, CallTree, Function, ProfileProcess, Weight
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

_TIME = Weight("time", "us")
_NS_A_MICROSECOND = 1000
_UNKNOWN = Function("(unknown)")


def sniff(head: bytes) -> bool:
    """Return whether it is an object with stackprof's version and mode."""
    return re.match(rb'\s*\{\s*"version"\s*:\s*1(?:\.\d+)?\s*,\s*"mode"\s*:\s*"\w+"', head) is not None


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a profile. Raises ValueError if it is not JSON, or has no frames."""
    body = read_json(source)
    frames = {number: fields(frame) for number, frame in fields(body.get("frames")).items()}
    if not frames:
        raise ValueError("it has no frames")
    process = ProfileProcess(source, target)
    functions = {number: _function(frame) for number, frame in frames.items()}
    mode, interval = text(body.get("mode")), exact_number(body.get("interval")) or Fraction(0)
    timed = mode in ("wall", "cpu") and interval > 0
    weight = _TIME if timed else Weight("objects" if mode == "object" else "samples", "count")
    step = interval if timed or (mode == "object" and interval > 0) else Fraction(1)
    location = process.location("main")
    if raw := items(body.get("raw")):
        deltas = items(body.get("raw_timestamp_deltas")) if mode == "wall" else []
        _paths(process, CallTree(process, location, [weight]), functions, raw, deltas, step)
    else:
        _graph(process, location, frames, functions, step * (_NS_A_MICROSECOND if timed else 1))
        process.core.count("weights_are_no_time", 0 if timed else len(frames))
    for number, frame in frames.items():
        for line, hits in fields(frame.get("lines")).items():
            own = integer(items(hits)[-1]) if items(hits) else integer(hits)  # [in all samples, innermost], or either
            if own and line.isdecimal() and len(line) < 10:
                spent = round(own * step * _NS_A_MICROSECOND) if timed else None
                process.line(location, functions[number], functions[number].file, int(line), spent, own)
    keys = ("mode", "interval", "samples", "gc_samples", "missed_samples")
    return process.finish({key: str(body[key]) for key in keys if body.get(key) is not None})


def _function(frame: Mapping[str, object]) -> Function:
    return Function(text(frame.get("name")), text(frame.get("file")), max(integer(frame.get("line")), 0))


def _paths(
    process: ProfileProcess,
    sums: CallTree,
    functions: Mapping[str, Function],
    raw: list[object],
    deltas: list[object],
    step: Fraction,
) -> None:
    regions = {number: process.region(function, paradigm="other") for number, function in functions.items()}
    stacks = list(_stacks(process, raw))
    # They are as many as the samples, or of no use.
    times = [exact_number(each) for each in deltas] if len(deltas) == sum(count for _, count in stacks) else []
    seen = 0
    for stack, count in stacks:
        spent = [each for each in times[seen : seen + count] if each is not None]
        seen += count
        path = ROOT
        for frame in stack:
            number = str(frame)
            if number not in regions:
                process.core.count("frames_not_understood")
                regions[number] = process.region(_UNKNOWN, paradigm="other")
            path = process.path(path, regions[number])
        if path == ROOT:
            process.core.left_out("samples_without_stack", count)
        else:
            sums.add(path, [sum(spent, Fraction(0)) if times else step * count], count, records=count)
    sums.save()


def _stacks(process: ProfileProcess, raw: list[object]) -> Iterator[tuple[list[object], int]]:
    """Yield the stacks, outermost first, and how many samples in a row had each: number of frames, frames, samples."""
    at = 0
    while at < len(raw):
        depth = raw[at]
        if not isinstance(depth, int) or depth < 0 or at + depth + 1 >= len(raw):
            process.core.count("truncated")
            return
        count = integer(raw[at + depth + 1])
        if 0 < count < 1 << 48:
            yield raw[at + 1 : at + 1 + depth], count
        else:
            process.core.left_out("samples_not_understood")
        at += depth + 2


def _graph(
    process: ProfileProcess,
    location: int,
    frames: Mapping[str, Mapping[str, object]],
    functions: Mapping[str, Function],
    step: Fraction,
) -> None:
    process.core.taken(len(frames))
    for number, frame in frames.items():
        total, own = integer(frame.get("total_samples")), integer(frame.get("samples"))
        path = process.path(ROOT, process.region(functions[number], paradigm="other"))
        process.totals(location, path, total, round(total * step), round(own * step))
        for callee, samples in fields(frame.get("edges")).items():
            total_ns = round(integer(samples) * step)
            process.call_edge(location, functions[number], functions.get(callee, _UNKNOWN), total_ns=total_ns)


FORMAT = Format("stackprof", "stackprof JSON (--json)", suffixes=(".json",), sniff=sniff, read=read)
