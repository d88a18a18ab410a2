"""Profiles of V8: node --cpu-prof and --heap-prof, Chrome's DevTools.

Nodes are call paths. A sample lasts until the next one, the last one until the end of the profile. In the older form
the nodes are nested in `head`, lines begin at 1, and the samples have times instead of differences of times; without
either, samples are counted. A heap profile has bytes instead of samples. Columns and reasons of deoptimisation are not
kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from urllib.parse import unquote

from strobe.formats.reading.json_input import exact_number, fields, integer, items, read_json, text
from strobe.formats.reading.prefix_tree import PrefixTree
from strobe.formats.reading.profile_import import ROOT, SAMPLES, CallTree, Function, ProfileProcess, Weight
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

_TIME, _BYTES = Weight("time", "us"), Weight("allocated", "bytes")
_US_A_SECOND = 1_000_000
_Node = Mapping[str, object]


def sniff(head: bytes) -> bool:
    """Return whether it is an object with V8's nodes at its beginning."""
    begins = re.match(
        rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:nodes|head|startTime|endTime|samples|timeDeltas|title)"\s*:', head
    )
    nodes = re.search(rb'"callFrame"\s*:\s*\{|"callUID"\s*:', head) is not None
    return begins is not None and nodes and b'"traceEvents"' not in head


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a profile. Raises ValueError if it is not JSON, or has no nodes."""
    body = read_json(source)
    process = ProfileProcess(source, target)
    nodes, caller_of = _nodes(process, body)
    if not nodes:
        raise ValueError("it has no nodes")
    functions = {number: _function(node) for number, node in nodes.items()}
    regions = {
        number: () if function is None else (process.region(function, paradigm="other"),)
        for number, function in functions.items()
    }
    tree = PrefixTree(process, caller_of.get, regions.__getitem__)
    location = process.location("main")
    for number, node in nodes.items():
        for tick in items(node.get("positionTicks")):
            function, line, hits = functions[number], *(integer(fields(tick).get(key)) for key in ("line", "ticks"))
            if function is not None and line > 0 and hits > 0:
                process.line(location, function, function.file, line, None, hits)
    if any("selfSize" in node for node in nodes.values()):
        _counted(process, CallTree(process, location, [_BYTES]), tree, nodes, "selfSize")
    elif (times := _times(process, body)) is not None:
        _sampled(process, CallTree(process, location, [_TIME]), tree, nodes, times)
    else:
        _counted(process, CallTree(process, location, [SAMPLES]), tree, nodes, "hitCount")
    return process.finish({"profiler": "V8"} | {key: text(body[key]) for key in ("title",) if text(body.get(key))})


def _nodes(process: ProfileProcess, body: _Node) -> tuple[dict[int, _Node], dict[int, int]]:
    """Return the nodes by their ids, and the caller of each."""
    nodes: dict[int, _Node] = {}
    caller_of: dict[int, int] = {}
    waiting: list[tuple[object, int | None]] = [(node, None) for node in items(body.get("nodes"))]
    if not waiting and "head" in body:
        waiting = [(body["head"], None)]
    for node, caller in waiting:  # grows by the nodes that are nested in others
        found = fields(node)
        number = found.get("id", ~len(nodes))  # older heap profiles have none
        if not isinstance(number, int) or number in nodes or not {"callFrame", "functionName"} & found.keys():
            process.core.count("functions_not_understood")
            continue
        nodes[number] = found
        above = found.get("parent", caller)
        if isinstance(above, int):
            caller_of[number] = above
        for child in items(found.get("children")):
            if isinstance(child, int):
                caller_of[child] = number
            else:
                waiting.append((child, number))
    return nodes, {callee: caller for callee, caller in caller_of.items() if callee in nodes and caller in nodes}


def _function(node: _Node) -> Function | None:
    """Return the function of a node; None for the root of all."""
    frame = fields(node.get("callFrame", node))
    name, url = text(frame.get("functionName")) or "(anonymous)", text(frame.get("url"))
    if name == "(root)" and not url:
        return None
    line = integer(frame.get("lineNumber")) + ("callFrame" in node)
    return Function(name, unquote(url[len("file://") :]) if url.startswith("file://") else url, max(line, 0))


def _times(process: ProfileProcess, body: _Node) -> list[tuple[Fraction, object]] | None:
    """Return the samples with their times in microseconds, in order, and the end; None without times."""
    start, end = exact_number(body.get("startTime")), exact_number(body.get("endTime"))
    samples, deltas, stamps = (items(body.get(key)) for key in ("samples", "timeDeltas", "timestamps"))
    given = deltas or stamps
    if not samples or not given or start is None:
        return None
    # Node 10 writes one time more than samples.
    process.core.left_out("samples_without_weight", max(len(samples) - len(given), 0))
    found: list[tuple[Fraction, object]] = []
    now = start
    for sample, each in zip(samples, given, strict=False):
        value = exact_number(each)
        if value is None:
            process.core.left_out("samples_not_understood")
            continue
        now = now + value if deltas else value
        found.append((now, sample))
    found.sort(key=lambda each: each[0])  # V8 writes some of them late
    until = None if end is None else end if deltas else end * _US_A_SECOND
    found.append((max(until or now, found[-1][0] if found else now), None))
    return found


def _sampled(
    process: ProfileProcess,
    sums: CallTree,
    tree: PrefixTree,
    nodes: Mapping[int, _Node],
    times: list[tuple[Fraction, object]],
) -> None:
    for (at, sample), (until, _) in pairwise(times):
        if not isinstance(sample, int) or sample not in nodes:
            process.core.left_out("samples_not_understood")
        elif (path := tree.path(sample)) == ROOT:
            process.core.left_out("samples_without_stack")
        else:
            sums.add(path, [until - at])
    sums.save()


def _counted(process: ProfileProcess, sums: CallTree, tree: PrefixTree, nodes: Mapping[int, _Node], key: str) -> None:
    for number, node in nodes.items():
        value = exact_number(node.get(key))
        if value and (path := tree.path(number)) != ROOT:
            sums.add(path, [value])
        elif value:
            process.core.left_out("samples_without_stack")
    sums.save()


FORMAT = Format(
    "cpuprofile",
    "V8 CPU and heap profiles (node --cpu-prof, Chrome's DevTools)",
    suffixes=(".cpuprofile", ".heapprofile"),
    sniff=sniff,
    read=read,
)
