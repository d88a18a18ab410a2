"""The event flow graph in numbers: its size beside that of the events, and how it grows from step to step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.steps.loop_choice.events import Events, events_of
from strobe.steps.loops.flow_graph import build_graph
from strobe.steps.loops.flow_graph_loops import chains_of, loops_of
from strobe.steps.loops.graph_and_expression import drawn_events
from strobe.steps.thread_spans import Ints, Stream
from strobe.tables.column_arrays import Bools, Columns


@dataclass(frozen=True)
class GraphSize:
    """Sizes of a flow graph: see `strobe.analyses.steps.flow_graph`."""

    events: int
    nodes: int
    edges: int
    chains: int
    loops: int
    events_per_node: float
    sequence_bytes: int
    graph_bytes: int
    compression: float


@dataclass(frozen=True)
class Growth(Columns):
    """By step: its events, the kinds of them that no step before had, and whether its path is new; sums so far."""

    events: Ints
    new_nodes: Ints
    nodes: Ints
    new_path: Bools
    paths: Ints


def size_of(stream: Stream, kind: str) -> GraphSize | None:
    """Return the size of the flow graph of a sequence of events; None if there are none."""
    events = _events(stream, kind)
    if events is None:
        return None
    graph = build_graph(events.ids + 1, events.starts_ns)
    nodes = int((graph.nodes.count > 0).sum())
    sequence_bytes = len(events) * np.min_scalar_type(max(nodes - 1, 0)).itemsize
    graph_bytes = graph.native.structure_bytes(True)
    return GraphSize(
        events=len(events),
        nodes=nodes,
        edges=len(graph.edges),
        chains=len(chains_of(graph).nodes),
        loops=len(loops_of(graph)),
        events_per_node=len(events) / nodes,
        sequence_bytes=sequence_bytes,
        graph_bytes=graph_bytes,
        compression=sequence_bytes / graph_bytes,
    )


def growth_of(stream: Stream, kind: str, start_ns: Ints, end_ns: Ints) -> Growth | None:
    """Return how the graph of a sequence grows over the steps [start_ns, end_ns), in order of time."""
    events = _events(stream, kind)
    if events is None:
        return None
    begin, end = np.searchsorted(events.starts_ns, start_ns), np.searchsorted(events.starts_ns, end_ns)
    nodes, paths = set[int](), set[bytes]()
    new_nodes, new_path = np.zeros(len(begin), dtype=np.int64), np.zeros(len(begin), dtype=bool)
    for step, (low, high) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
        ids, before = events.ids[low:high], len(nodes)
        nodes.update(np.unique(ids).tolist())
        new_nodes[step] = len(nodes) - before
        new_path[step] = (path := ids.tobytes()) not in paths
        paths.add(path)
    return Growth(end - begin, new_nodes, np.cumsum(new_nodes), new_path, np.cumsum(new_path))


def _events(stream: Stream, kind: str) -> Events | None:
    events = events_of(stream).get(kind)
    return None if events is None else drawn_events(stream, events)
