"""Event flow graphs: which events follow which, how often, how fast, and (as long as memory allowed it) in what order.

Nodes are kinds of events (signatures), edges are transitions. The temporal flow graph (t-EFG) adds to every edge the
visits of its source that took it, as partitions; from these the whole sequence can be replayed.
X. Aguilar, K. Fürlinger, E. Laure: MPI Trace Compression Using Event Flow Graphs (Euro-Par 2014).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from strobe.errors import InconclusiveError, TraceError
from strobe.native import core
from strobe.tables.column_arrays import Columns

Column = npt.NDArray[Any]


@dataclass(frozen=True)
class Nodes(Columns):
    """Kinds of events, in order of first occurrence. Node 0 is `<other>`: all signatures beyond the limit.

    signature: what the events are called; 0 for `<other>`.
    count: events. left: those that ended, whose durations these are: sum_ns, min_ns, max_ns.
    first_ns: when the first one began.
    """

    signature: Column
    count: Column
    left: Column
    sum_ns: Column
    min_ns: Column
    max_ns: Column
    first_ns: Column


@dataclass(frozen=True)
class Edges(Columns):
    """Transitions, in order of (source, first occurrence). Times go from the enter of the source to that of the target.

    source, target: numbers of nodes. count: transitions.
    sum_ns, min_ns, max_ns, squares_ns2: their times; all sums add up to the time between the first and the last event.
    partitions_begin, partitions_end: rows of the partitions; none for the only edge of a node, which takes every visit.
    replayable: whether the partitions hold all visits of the source that took this edge.
    """

    source: Column
    target: Column
    count: Column
    sum_ns: Column
    min_ns: Column
    max_ns: Column
    squares_ns2: Column
    partitions_begin: Column
    partitions_end: Column
    replayable: Column


@dataclass(frozen=True)
class Partitions(Columns):
    """Which visits of a node took an edge, counted from 1: blocks of `block` in a row, one every `stride`.

    The first of them is at `first`, the last visit of all is `last`. Stride 0: a single block.
    """

    first: Column
    last: Column
    stride: Column
    block: Column


class FlowGraph:
    """The event flow graph of one sequence: `nodes`, `edges` and `partitions` as columns.

    first, last: nodes of the first and the last event (the edges START -> first and last -> END); None without events.
    lost_transitions: counted in the edge 0 -> 0 only, because the table of edges was full.
    native: the graph in the core.
    """

    def __init__(self, native: core.Graph) -> None:
        self.native = native
        self.nodes = Nodes(**native.nodes())
        self.edges = Edges(**{**(edges := native.edges()), "replayable": edges["replayable"].astype(bool)})
        self.partitions = Partitions(*native.partitions())
        events = bool(self.nodes.count.any())
        self.first: int | None = native.first if events else None
        self.last: int | None = native.last if events else None
        self.lost_transitions = native.lost_transitions

    @property
    def events(self) -> int:
        """How many events the graph saw."""
        return int(self.nodes.count.sum())

    @property
    def replayable(self) -> bool:
        """Whether the order of all events is known."""
        return self.native.replayable()

    def replay(self) -> npt.NDArray[np.uint64]:
        """Signatures of all events, in order; 0 where the signature is not known (`<other>`).

        InconclusiveError if the memory for the order did not suffice.
        """
        if not self.replayable:
            missing = int((~self.edges.replayable).sum())
            raise InconclusiveError(
                f"the order of the events is not known: the memory for it did not suffice for {missing} transitions",
                do="Counts and times are complete; look at nodes and edges",
            )
        return self.nodes.signature[self.native.replay()]


def build_graph(
    ids: npt.NDArray[np.integer],
    times_ns: npt.NDArray[np.integer],
    durations_ns: npt.NDArray[np.integer] | None = None,
    *,
    max_nodes: int = 65536,
    max_edges: int = 262144,
    partition_bytes: int = 64 << 20,
) -> FlowGraph:
    """Build the flow graph of a sequence of events.

    `ids` name what happened (any integers from 0 to 2^64 - 1), `times_ns` when it began, in ascending order,
    `durations_ns` how long it took (-1: it did not end). Beyond `max_nodes` ids are counted as `<other>`, beyond
    `max_edges` transitions as lost, and without space in `partition_bytes` the order of an edge is forgotten.
    """
    return FlowGraph(
        core.build_graph(
            np.ascontiguousarray(ids, dtype=np.uint64),
            np.ascontiguousarray(times_ns, dtype=np.int64),
            None if durations_ns is None else np.ascontiguousarray(durations_ns, dtype=np.int64),
            max_nodes,
            max_edges,
            partition_bytes,
        )
    )


def decode_graph(payload: bytes) -> FlowGraph:
    """Read the payload of a `graph` chunk; TraceError if it is damaged."""
    native = core.decode_graph(payload)
    if native is None:
        raise TraceError("the flow graph is damaged", do="Record again; everything else in the trace can be read")
    return FlowGraph(native)
