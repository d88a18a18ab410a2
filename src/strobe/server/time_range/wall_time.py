"""What the wall-clock time of a time range went into: on main threads, on GPUs, and how much of it is communication.

Time of threads and of GPUs is never added up: both run at once. Each is a part of the same wall-clock time.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from strobe.gpu.devices import devices
from strobe.gpu.work import COMMUNICATION, COMPUTATION, COPY, MASKS, divided
from strobe.model.kinds import GROUPS
from strobe.server.routing.endpoints import MB, TIME_RANGE, route
from strobe.server.spans.span_tables import thread_title
from strobe.server.time_range.folded_steps import folded_process
from strobe.server.time_range.range_sums import clipped_self_ns, spans_in
from strobe.server.trace_context import TraceContext
from strobe.steps.thread_spans import main_location
from strobe.tables.column_arrays import Floats
from strobe.trace.definition_rows import location_rows, rank_processes

# Threads beside the main ones that are listed.
_MOST_THREADS = 5


class WallPart(TypedDict):
    """A part of wall-clock time, 0 to 1. `group`: what it is drawn as; "": nothing ran, "folded": in folded steps."""

    name: str
    group: str
    share: float


class ThreadLoad(TypedDict):
    """For which part of the wall-clock time anything recorded ran on a thread."""

    location: int
    name: str
    share: float


class WallTime(TypedDict):
    """What wall-clock time went into: see `wall_time`."""

    main_threads: int
    host: list[WallPart]
    others: list[ThreadLoad]
    gpus: int
    gpu: list[WallPart]
    host_communication: float
    gpu_communication: float
    hidden_communication: float


@route("window/wall", *TIME_RANGE, most_bytes=MB, slow=True)
def wall_time(context: TraceContext, start_ns: int, end_ns: int) -> WallTime:
    """What the wall-clock time of a time range went into: on main threads, on GPUs, and in communication.

    host: the mean over the main threads of all ranks, of all processes where there are none, by group of what runs
    innermost; the parts add up to 1. `idle` is time in which nothing recorded ran, `folded` is in steps of which only
    the time is known. others: the threads beside them on which most ran, of processes without folded steps. gpu: the
    mean over all GPUs: computation, communication without computation beside it, copies beside neither, idle; they add
    up to 1. gpu_communication: all communication on GPUs; hidden_communication: that with computation beside it.
    """
    wall = end_ns - start_ns
    own, folded, threads = _main_threads(context, start_ns, end_ns)
    by_group = np.zeros(len(GROUPS))
    np.add.at(by_group, [GROUPS.index(group) for group in context.names.groups], own)
    whole = max(1, wall * threads)
    host: list[WallPart] = [
        {"name": group, "group": group, "share": ns / whole}
        for group, ns in zip(GROUPS, by_group.tolist(), strict=True)
        if ns > 0
    ]
    host.sort(key=lambda part: -part["share"])
    if folded:
        host.append({"name": "folded", "group": "folded", "share": folded / whole})
    if threads:
        host.append({"name": "idle", "group": "", "share": max(0.0, 1 - sum(part["share"] for part in host))})
    gpus = devices(context.trace)
    sums = np.zeros(MASKS)
    for device in gpus:
        sums += divided(context.trace, device, start_ns, end_ns)
    mask, time = np.arange(MASKS), sums / max(1, wall * len(gpus))
    computes, communicates = mask & COMPUTATION > 0, mask & COMMUNICATION > 0
    gpu: list[WallPart] = [
        {"name": "computation", "group": "compute", "share": float(time[computes].sum())},
        {"name": "communication", "group": "communication", "share": float(time[communicates & ~computes].sum())},
        {"name": "copy", "group": "copy", "share": float(time[COPY])},
    ]
    gpu.append({"name": "idle", "group": "", "share": max(0.0, 1 - sum(part["share"] for part in gpu))})
    return {
        "main_threads": threads,
        "host": host,
        "others": _others(context, start_ns, end_ns),
        "gpus": len(gpus),
        "gpu": gpu if gpus else [],
        "host_communication": float(by_group[GROUPS.index("communication")]) / whole,
        "gpu_communication": float(time[communicates].sum()),
        "hidden_communication": float(time[communicates & computes].sum()),
    }


def _main_threads(context: TraceContext, start_ns: int, end_ns: int) -> tuple[Floats, int, int]:
    """Return exclusive time by region on all main threads, that in folded steps, ns, and how many threads these are."""
    trace = context.trace
    own, folded_ns = np.zeros(len(context.names.names)), 0
    plain: list[int] = []
    count = 0
    for process in rank_processes(trace):
        main = main_location(trace, process)
        if main is None:
            continue
        count += 1
        folded = folded_process(context, process) if process in trace.folded else None
        if folded is None or folded.whole_in(context, start_ns, end_ns):
            plain.append(main)
        if folded is None:
            continue
        if main in plain:
            _, region_of_path = context.call_path_arrays
            statistics = folded.statistics.chosen(folded.statistics.location == main)
            np.add.at(own, region_of_path[statistics.call_path], statistics.own_ns)
            continue
        spans = spans_in(context, main, start_ns, end_ns)
        own_ns = clipped_self_ns(spans, start_ns, end_ns, folded.stretches)
        own += np.bincount(spans["region"], weights=own_ns, minlength=len(own))
        folded_ns += folded.stretches.inside_ns(start_ns, end_ns)
    for _, _, own_ns in context.profiles(plain, start_ns, end_ns):
        own += own_ns.sum(axis=0)
    return own, folded_ns, count


def _others(context: TraceContext, start_ns: int, end_ns: int) -> list[ThreadLoad]:
    """Return the busiest threads that are no main threads."""
    trace = context.trace
    mains = {main_location(trace, process) for process in range(len(trace.processes))}
    rows = [
        row
        for row in location_rows(trace)
        if row.kind == "thread" and row.span_count and row.location not in mains and row.process not in trace.folded
    ]
    found = list[tuple[int, int]]()
    for some, _, own_ns in context.profiles([row.location for row in rows], start_ns, end_ns):
        found += zip(own_ns.sum(axis=1).tolist(), some, strict=True)
    found.sort(key=lambda each: (-each[0], each[1]))
    wall = end_ns - start_ns
    return [
        {"location": at, "name": thread_title(context, at), "share": ns / wall}
        for ns, at in found[:_MOST_THREADS]
        if ns
    ]
