"""speedscope's JSON, as py-spy, pyinstrument and speedscope itself write it.

Evented profiles have a time axis: they become spans. Sampled ones become totals by call path. Each profile of the file
is a location.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TextIO

import numpy as np

from strobe.formats.reading.json_input import exact_number, read_json
from strobe.formats.reading.profile_import import ROOT, CallTree, Function, ProfileProcess, Weight
from strobe.formats.writing.output_files import new_file
from strobe.formats.writing.profile_export import Profile, weight_is_time
from strobe.model.option import Option
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget
from strobe.trace.trace import Trace

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_LARGEST = 1 << 62


def sniff(head: bytes) -> bool:
    """Return whether it is an object with speedscope's schema, or its two main keys."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not text.startswith(b"{") or b'"traceEvents"' in text:
        return False
    known = b"speedscope.app/file-format-schema" in text
    return known or (b'"shared"' in text and re.search(rb'"frames"\s*:', text) is not None)


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file. Raises ValueError if it is not JSON, or has no profiles."""
    body = read_json(source)
    shared, profiles = body.get("shared"), body.get("profiles")
    frames = shared.get("frames") if isinstance(shared, dict) else None
    if not isinstance(frames, list) or not isinstance(profiles, list):
        raise ValueError("it has no profiles with shared frames")
    process = ProfileProcess(source, target)
    regions = [_region(process, frame) for frame in frames]
    for number, profile in enumerate(profiles):
        if not isinstance(profile, dict):
            process.core.left_out("profiles_not_understood")
            continue
        location = process.location(str(profile.get("name") or f"profile {number}"), number + 1)
        weight = _weight(profile)
        if profile.get("type") == "evented" and weight.ns is not None:
            _spans(process, location, profile, regions, weight.ns)
        elif profile.get("type") == "evented":
            _stretches(process, location, profile, regions, weight)
        elif profile.get("type") == "sampled":
            _samples(process, location, profile, regions, weight)
        else:
            process.core.left_out("profiles_not_understood")
    properties = ("name", "exporter", "activeProfileIndex")
    return process.finish({key: str(body[key]) for key in properties if body.get(key) is not None})


def _region(process: ProfileProcess, frame: object) -> int:
    if not isinstance(frame, dict):
        process.core.count("frames_not_understood")
        frame = {}
    line = frame.get("line")
    if frame.get("col") is not None:
        process.core.count("columns_not_kept")
    name, file = str(frame.get("name", "")), str(frame.get("file") or "")
    return process.region(Function(name, file, line if isinstance(line, int) else 0))


def _weight(profile: Mapping[str, object]) -> Weight:
    unit = str(profile.get("unit", "none"))
    return Weight("bytes" if unit == "bytes" else "samples" if unit == "none" else "time", unit)


def _samples(
    process: ProfileProcess, location: int, profile: Mapping[str, object], regions: Sequence[int], weight: Weight
) -> None:
    stacks, weights = (each if isinstance(each := profile.get(key), list) else [] for key in ("samples", "weights"))
    process.core.left_out("samples_without_weight", abs(len(stacks) - len(weights)))
    tree = CallTree(process, location, [weight])
    for stack, given in zip(stacks, weights, strict=False):
        value = exact_number(given)
        if value is None or not isinstance(stack, list) or not stack:
            # Time in which nothing ran has no call path.
            process.core.left_out("samples_without_stack" if stack == [] else "samples_not_understood")
            continue
        path = ROOT
        for frame in stack:
            if isinstance(frame, int) and 0 <= frame < len(regions):
                path = process.path(path, regions[frame])
            else:
                process.core.count("frames_not_understood")
        if path != ROOT:
            tree.add(path, [value])
        else:
            process.core.left_out("samples_not_understood")
    tree.save()


def _events(process: ProfileProcess, profile: Mapping[str, object], frames: int) -> list[tuple[Fraction, bool, int]]:
    """Events as (when, whether it opens, frame), in the order of the file."""
    found = []
    events = profile.get("events")
    for event in events if isinstance(events, list) else []:
        at = exact_number(event.get("at")) if isinstance(event, dict) else None
        frame, phase = (event.get("frame"), event.get("type")) if isinstance(event, dict) else (None, None)
        if at is None or phase not in ("O", "C") or not isinstance(frame, int) or not 0 <= frame < frames:
            process.core.left_out("events_not_understood")
        else:
            found.append((at, phase == "O", frame))
    return found


def _spans(
    process: ProfileProcess, location: int, profile: Mapping[str, object], regions: Sequence[int], ns: Fraction
) -> None:
    start, end, region = array("q"), array("q"), array("I")
    open_: list[tuple[int, int]] = []  # (row, frame)
    last = rounded = 0
    for at, opens, frame in _events(process, profile, len(regions)):
        exact = at * ns
        now = round(exact)
        if abs(now) >= _LARGEST:
            process.core.left_out("times_out_of_range")
            continue
        rounded += now != exact
        last = max(last, now) if start else now
        if opens:
            open_.append((len(start), frame))
            start.append(now)
            end.append(now)
            region.append(regions[frame])
            process.core.taken()
            continue
        if all(each != frame for _, each in open_):
            process.core.left_out("unmatched_leaves")
            continue
        process.core.taken()
        while open_:
            row, closed = open_.pop()
            end[row] = now
            if closed == frame:
                break
            process.core.count("spans_cut")  # its caller returned before it did
    of_all = exact_number(profile.get("endValue"))
    process.core.count("spans_cut", len(open_))
    until = max(last, round(of_all * ns)) if of_all is not None and of_all * ns < _LARGEST else last
    for row, _ in open_:
        end[row] = until
    process.core.count("times_rounded", rounded)
    places, regions_of = np.full(len(start), location, dtype=np.uint32), np.array(region, dtype=np.uint32)
    process.core.spans(places, np.array(start, dtype=np.int64), np.array(end, dtype=np.int64), regions_of)


def _stretches(
    process: ProfileProcess, location: int, profile: Mapping[str, object], regions: Sequence[int], weight: Weight
) -> None:
    """Events along an axis of bytes or counts: the amount between two of them belongs to the open stack."""
    tree = CallTree(process, location, [weight])
    stack: list[tuple[int, int]] = []  # (path, frame)
    before = Fraction(0)
    for at, opens, frame in _events(process, profile, len(regions)):
        if stack and at != before:
            tree.add(stack[-1][0], [at - before], records=0)
        before = at
        if opens:
            stack.append((process.path(stack[-1][0] if stack else ROOT, regions[frame]), frame))
        elif stack and stack[-1][1] == frame:
            stack.pop()
        else:
            process.core.left_out("unmatched_leaves")
            continue
        process.core.taken()
    tree.save()


def write(trace: Trace, path: Path, *, events: bool = False) -> None:
    """Write a profile for each location: own time by call path; with `events`, every span with its exact times.

    Weights and times are nanoseconds (of a profile of other quantities: its numbers, without a unit).
    """
    profile = Profile(trace)
    frames = [
        {"name": each.name, **({"file": each.file} if each.file else {}), **({"line": each.line} if each.line else {})}
        for each in profile.frames
    ]
    with new_file(path) as work, open(work, "w", encoding="utf-8") as out:
        beginning = {"$schema": _SCHEMA, "exporter": "strobe", "name": trace.path.name, "shared": {"frames": frames}}
        out.write(json.dumps(beginning, ensure_ascii=False)[:-1] + ', "profiles": [')
        if events:
            _write_events(trace, profile, out)
        else:
            _write_samples(profile, "nanoseconds" if weight_is_time(trace) else "none", out)
        out.write("]}\n")


def _write_samples(profile: Profile, unit: str, out: TextIO) -> None:
    for number, (location, totals) in enumerate(profile.totals()):
        rows = profile.weighted(totals)
        body = {
            "type": "sampled",
            "name": profile.locations[location],
            "unit": unit,
            "startValue": 0,
            "endValue": sum(max(each.own_ns, 0) for each in rows),
            "samples": [profile.regions_of(each.path) for each in rows],
            "weights": [max(each.own_ns, 0) for each in rows],
        }
        out.write((",\n" if number else "\n") + json.dumps(body, ensure_ascii=False))


def _write_events(trace: Trace, profile: Profile, out: TextIO) -> None:
    written = 0
    for location, name in enumerate(profile.locations):
        spans = trace.span_arrays(location)
        if not len(spans["row"]):
            continue
        starts, ends = spans["start_ns"], spans["start_ns"] + spans["duration_ns"]
        head = {"type": "evented", "name": name, "unit": "nanoseconds"}
        bounds = f'"startValue": {starts[0]}, "endValue": {ends.max()}'
        out.write((",\n" if written else "\n") + json.dumps(head, ensure_ascii=False)[:-1] + f', {bounds}, "events": [')
        written += 1
        between = ""
        stack: list[tuple[int, int]] = []  # (end, region)

        def event(phase: str, at: int, frame: int) -> None:
            nonlocal between
            out.write(f'{between}{{"type": "{phase}", "at": {at}, "frame": {frame}}}')
            between = ",\n"

        rows = zip(starts.tolist(), ends.tolist(), spans["region"].tolist(), spans["depth"].tolist(), strict=True)
        for start_ns, end_ns, region, depth in rows:
            while len(stack) > depth:
                event("C", *stack.pop())
            stack.append((end_ns, region))
            event("O", start_ns, region)
        while stack:
            event("C", *stack.pop())
        out.write("]}")


FORMAT = Format(
    "speedscope",
    "speedscope JSON: py-spy, pyinstrument, speedscope",
    suffixes=(".speedscope.json", ".json"),
    sniff=sniff,
    read=read,
    write=write,
    options=(Option("events", "speedscope: Write every span with its times instead of sums.", bool, False),),
)
