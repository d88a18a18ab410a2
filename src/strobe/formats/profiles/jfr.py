"""Java Flight Recorder: recordings through `jfr print` where a JDK is installed, and what `jfr print --json` writes.

The samples of Java threads are counted by call path; each thread is a location, and so is each in native code, where
it may wait. How long a sample stands for is not in them. Lines, moments and all other events are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from strobe.formats.reading.conversion import INPUT, converted
from strobe.formats.reading.json_input import fields, integer, items, objects_in, text
from strobe.formats.reading.profile_import import ROOT, SAMPLES, CallTree, Function, ProfileProcess
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

_MAGIC = b"FLR\0"
_NATIVE = {"jdk.ExecutionSample": "", "jdk.NativeMethodSample": " (native code)"}
# Otherwise jfr prints five frames of a stack.
_PRINT = ("jfr", "print", "--json", "--stack-depth", "2048", "--events", ",".join(_NATIVE), INPUT)


def sniff(head: bytes) -> bool:
    """Return whether it is a recording, or one printed as JSON."""
    return head.startswith(_MAGIC) or re.match(rb'\s*\{\s*"recording"\s*:\s*\{\s*"events"\s*:\s*\[', head) is not None


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import the samples. Raises ValueError if it is not JSON, or a recording that jfr does not read."""
    process = ProfileProcess(source, target)
    if next(iter(source.chunks()), b"").startswith(_MAGIC):
        with converted(source, _PRINT, ".json", named=".jfr") as printed:
            _samples(process, printed)
    else:
        _samples(process, source)
    return process.finish({"profiler": "Java Flight Recorder"})


def _samples(process: ProfileProcess, source: ImportSource) -> None:
    trees: dict[tuple[str, str, int], CallTree] = {}
    regions: dict[Function, int] = {}
    for event in objects_in(source, "events", lambda: process.core.count("truncated")):
        kind, values = text(event.get("type")), fields(event.get("values"))
        if kind not in _NATIVE:
            process.core.left_out("events_of_other_kinds")
            continue
        stack = fields(values.get("stackTrace"))
        process.core.count("stacks_cut", int(stack.get("truncated") is True))
        path = ROOT
        for frame in reversed(items(stack.get("frames"))):
            function = _function(fields(frame))
            if function not in regions:
                regions[function] = process.region(function)
            path = process.path(path, regions[function])
        if path == ROOT:
            process.core.left_out("samples_without_stack")
            continue
        thread = fields(values.get("sampledThread"))
        name = text(thread.get("javaName")) or text(thread.get("osName")) or "thread"
        key = kind, name, integer(thread.get("osThreadId"))
        if key not in trees:
            location = process.core.location(key, name + _NATIVE[kind], key[2] if 0 <= key[2] < 1 << 62 else 0)
            trees[key] = CallTree(process, location, [SAMPLES])
        trees[key].add(path, [1])
    for tree in trees.values():
        tree.save()


def _function(frame: Mapping[str, object]) -> Function:
    method = fields(frame.get("method"))
    owner = fields(method.get("type"))
    name = ".".join(filter(None, (text(owner.get("name")).replace("/", "."), text(method.get("name")))))
    return Function(name, module=text(fields(fields(owner.get("package")).get("module")).get("name")))


FORMAT = Format(
    "jfr", "Java Flight Recorder (.jfr, jfr print --json)", suffixes=(".jfr", ".json"), sniff=sniff, read=read
)
