"""The graph of the critical path of a window (a step): of one process, or of all ranks with what links them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strobe.gpu.devices import devices
from strobe.ranks.critical_path import gpu_edges, rank_edges, thread_edges
from strobe.ranks.critical_path.longest_path import Builder, Graph
from strobe.steps.thread_spans import main_location
from strobe.trace.definition_rows import location_rows, ranks_of
from strobe.trace.trace import Trace


@dataclass(frozen=True)
class Window:
    """A stretch of the life of a process: [start_ns, end_ns) on its threads, and what they launched in it."""

    process: int
    start_ns: int
    end_ns: int


def graph(trace: Trace, windows: Sequence[Window]) -> Graph:
    """Return the graph of all that processes did in their windows, linked by collectives and messages.

    Every span of a thread gives two moments, where it begins and ends, and so does everything on a GPU.
    """
    builder = Builder()
    parts = [_of_process(trace, builder, window) for window in windows]
    rank_edges.link(trace, builder, parts)
    kinds = thread_edges.kind_of_path(trace)
    for part in parts:
        gpu_edges.add_edges(trace, builder, part.chains, part.calls, part.work, part.syncs, part.early)
        for chain in part.chains:
            chain.add_edges(builder, kinds)
    return builder.graph()


def _of_process(trace: Trace, builder: Builder, window: Window) -> rank_edges.Part:
    begin, end = window.start_ns, window.end_ns
    main = main_location(trace, window.process)
    # Before a thread's first span and after its last one nobody knows what it did.
    chains = [
        thread_edges.chain(
            trace, builder, at.location, max(begin, at.first_ns), min(end, at.last_ns),
            main=at.location == main,
        )
        for at in location_rows(trace)
        if at.process == window.process and at.kind == "thread"
        if at.first_ns < end and at.last_ns > begin
    ]  # fmt: skip
    thread_edges.link(trace, chains)
    own = [device for device in devices(trace) if device.process == window.process]
    calls = gpu_edges.calls_of(trace, chains)
    work = gpu_edges.activities_of(trace, builder, own, calls, begin, end)
    syncs = gpu_edges.syncs_of(trace, own, calls, begin, end)
    work = gpu_edges.in_order(builder, calls, work, syncs)
    rank = ranks_of(trace)[window.process]
    return rank_edges.Part(rank, chains, calls, work, syncs, np.zeros(len(work.row), dtype=bool))
