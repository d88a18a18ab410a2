"""What if? Collectives among more ranks, and beside computation."""

from __future__ import annotations

from math import log, log2

import numpy as np

from strobe.breakdown.what_if.changes import Change, unknown
from strobe.ranks.collective_kinds import bus_factor, kind_of
from strobe.ranks.critical_path.longest_path import COMMUNICATION, COMPUTATION, Edges, Graph
from strobe.tables.column_arrays import Bools, Floats, rows_by
from strobe.trace.definition_rows import location_rows
from strobe.trace.trace import Trace

# The part of a training's computation that is the backward pass: twice the forward one.
_BACKWARD = 2 / 3


def more_ranks(trace: Trace, graph: Graph, change: Change, both: list[Floats]) -> None:
    """Multiply the ranks of each collective; each rank computes what one computes now.

    What a collective takes once all have come, from n to m ranks: at least as its bytes grow (nccl-tests' factors, for
    an all-reduce 2(n-1)/n), or the steps of a tree, log2(n), if these grow less; at most as the steps of a ring do,
    n - 1. The last of m comes no earlier than that of n; with exponential delays, whose tail is long, later by
    s ln(m/n), where s is the standard deviation of the arrivals (the expected maximum of n of these is s H_n).
    """
    edges, times = graph.edges, change.most
    # The moments in which all have come.
    arrivals = (edges.kind == COMMUNICATION) & (edges.location < 0)
    if not arrivals.any():
        raise unknown("no collective in its steps has the spans of several ranks")
    count, late = np.zeros(len(graph.time_ns), dtype=np.int64), np.zeros(len(graph.time_ns))
    (at,) = np.nonzero(arrivals)
    for moment, own in rows_by(edges.target[at]):
        count[moment] = len(own)
        late[moment] = float(graph.time_ns[edges.source[at[own]]].std(ddof=1)) * log(times)
    transfers = (edges.kind == COMMUNICATION) & (count[edges.source] > 1)
    names = trace.regions.column("name")
    for key, own in rows_by(np.where(transfers, edges.region * (count.max() + 1) + count[edges.source], -1)):
        if key < 0:
            continue
        ranks = key % (int(count.max()) + 1)
        least, most = _growth(str(names[int(edges.region[own[0]])]), ranks, round(times * ranks))
        both[0][own] *= least
        both[1][own] = both[1][own] * most + late[edges.source[own]]


def _growth(name: str, ranks: int, more: int) -> tuple[float, float]:
    """Return by which factors a collective takes longer among more ranks: the least, and the most."""
    kind = kind_of(name)
    now, then = bus_factor(kind, ranks), bus_factor(kind, more)
    of_tree, of_ring = log2(more) / log2(ranks), (more - 1) / (ranks - 1)
    return min(of_tree, then / now if now and then else of_tree), of_ring


def overlap(trace: Trace, graph: Graph, change: Change, both: list[Floats]) -> None:
    """Let collectives run beside computation.

    At best they wait for no computation, and nothing waits for them: a step is as long as the longer one of both. At
    worst the longest of a step is needed at once (an embedding's gradient comes last), and only the others are hidden,
    if they are shorter than the backward pass. What communicates in a thread,
    or in a stream that computes, too, takes no time at best; at worst nothing that could run beside it is independent.
    """
    edges = graph.edges
    communicates = (edges.kind == COMMUNICATION) & (edges.location >= 0)
    if not communicates.any():
        raise unknown("nothing communicates in its steps")
    # In streams of their own.
    on_streams = _on_streams(trace, edges)
    apart = communicates & on_streams
    apart &= ~np.isin(edges.location, edges.location[edges.kind == COMPUTATION])
    begins, ends = (np.zeros(len(graph.time_ns), dtype=bool) for _ in range(2))
    begins[edges.source[apart & (edges.call_path >= 0)]] = True
    ends[edges.target[apart & (edges.call_path >= 0)]] = True
    least, most = both
    least[ends[edges.source] != begins[edges.target]] = np.nan
    (own,) = np.nonzero(apart & (edges.call_path >= 0))
    own = own[np.lexsort((edges.source[own], edges.location[own]))]
    is_awaited = np.zeros(len(graph.time_ns), dtype=bool)
    is_awaited[edges.source[ends[edges.source] & ~begins[edges.target]]] = True
    awaited = is_awaited[edges.target[own]]
    # Each with those since the one before that something waited for.
    group = np.cumsum(np.append(False, awaited[:-1])) if len(own) else own
    longest = np.zeros(len(own))
    np.maximum.at(longest, group, most[own])
    if most[own].sum() <= _BACKWARD * most[on_streams & (edges.kind == COMPUTATION)].sum():
        most[own] = np.where(awaited, longest[group], 0)
    least[communicates & ~apart] *= 0


def _on_streams(trace: Trace, edges: Edges) -> Bools:
    is_stream = np.array([each.kind == "stream" for each in location_rows(trace)] + [False], dtype=bool)
    return is_stream[edges.location]
