"""The graph of the critical path of a window (a step): of one process, or of all ranks with what links them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from strobe.structure import critical_gpu, critical_ranks, critical_threads
from strobe.structure.critical_path import Builder, Graph
from strobe.structure.device_work import devices
from strobe.structure.stream import main_location

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strobe.store.trace import Trace


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
    critical_ranks.link(trace, builder, parts)
    kinds = critical_threads.kind_of_path(trace)
    for part in parts:
        critical_gpu.add_edges(trace, builder, part.chains, part.calls, part.work, part.syncs, part.early)
        for chain in part.chains:
            chain.add_edges(builder, kinds)
    return builder.graph()


def _of_process(trace: Trace, builder: Builder, window: Window) -> critical_ranks.Part:
    begin, end = window.start_ns, window.end_ns
    main = main_location(trace, window.process)
    # Before a thread's first span and after its last one nobody knows what it did.
    chains = [
        critical_threads.chain(
            trace, builder, at["location"], max(begin, at["first_ns"]), min(end, at["last_ns"]),
            main=at["location"] == main,
        )
        for at in trace.locations.to_arrow().to_pylist()
        if at["process"] == window.process and at["kind"] == "thread"
        if at["first_ns"] < end and at["last_ns"] > begin
    ]  # fmt: skip
    critical_threads.link(trace, chains)
    own = [device for device in devices(trace) if device.process == window.process]
    calls = critical_gpu.calls_of(trace, chains)
    work = critical_gpu.activities_of(trace, builder, own, calls, begin, end)
    syncs = critical_gpu.syncs_of(trace, own, calls, begin, end)
    work = critical_gpu.in_order(builder, calls, work, syncs)
    rank = cast("int | None", trace.processes.column("rank")[window.process])
    return critical_ranks.Part(rank, chains, calls, work, syncs, np.zeros(len(work.row), dtype=bool))
