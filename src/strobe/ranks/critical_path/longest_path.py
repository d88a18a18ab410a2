"""The critical path: the longest way through a graph of moments, also with some times changed.

An edge leads from a moment to one that had to wait for it; its weight is the time in between. Of all that a moment
waited for, the last to come gets the whole time in between: so the longest way from the begin to the end of a stretch
is as long as the stretch, and shows how each part of it was spent. What came earlier has the least time that it takes
for itself, which counts only once other edges become shorter.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from strobe.tables.column_arrays import Columns, Ints

# Phase of the moment in which a window begins, see Builder.
_BEGIN = -1
# What bounds the time of an edge.
KINDS = ("host", "data", "launch", "queue", "computation", "communication", "copy", "sync", "unexplained")
HOST, DATA, LAUNCH, QUEUE, COMPUTATION, COMMUNICATION, COPY, SYNC, UNEXPLAINED = range(9)


@dataclass(frozen=True)
class Edges(Columns):
    """`location`, `row`, `region`: of which span; -1 where of none.

    `call_path`: where the time is that of what runs in it; -1 if it is waiting.
    """

    source: Ints
    target: Ints
    weight_ns: Ints
    kind: Ints
    location: Ints
    row: Ints
    region: Ints
    call_path: Ints


@dataclass(frozen=True)
class Graph:
    """Moments in order: every edge leads to a later number. Edges are in order of their targets."""

    time_ns: Ints
    edges: Edges


class Path(NamedTuple):
    """A way through a graph: the numbers of its edges, in order, and the sum of their weights."""

    edges: Ints
    length_ns: int


@dataclass
class Builder:
    """Collects moments and edges in any order, and makes a graph of them.

    Moments of the same time are ordered: ends of what a GPU did, then starts, then what threads did. So work may begin
    at the moment in which what it waited for ends, and a call may return at the moment in which its work is done.
    """

    _times: list[Ints] = field(default_factory=list)
    _phases: list[Ints] = field(default_factory=list)
    _edges: list[Edges] = field(default_factory=list)
    _windows: list[Ints] = field(default_factory=list)
    _window: int = -1
    _count: int = 0

    def begin_window(self, time_ns: int) -> None:
        """Begin the window of a process: each moment added from now on is reached from there."""
        self._window = self._count
        self.moments(np.array([time_ns]), _BEGIN)

    def moments(self, time_ns: Ints, phase: Ints | int) -> Ints:
        """Add moments, at equal times and phases in order; return their numbers."""
        self._times.append(time_ns)
        self._phases.append(np.broadcast_to(phase, len(time_ns)))
        self._windows.append(np.full(len(time_ns), self._window))
        first, self._count = self._count, self._count + len(time_ns)
        return np.arange(first, self._count)

    def edges(self, source: Ints, target: Ints, weight_ns: Ints, kind: Ints | int, *whose: Ints | int) -> None:
        """Add edges; `whose`: location, row, region, call path; -1 if left out. Those from or to -1 are left out."""
        given = [kind, *whose, *(-1,) * (4 - len(whose))]
        columns = [np.broadcast_to(np.asarray(each, dtype=np.int64), len(source)) for each in given]
        self._edges.append(Edges(source, target, weight_ns, *columns).chosen((source >= 0) & (target >= 0)))

    def graph(self, left_out: Ints) -> Graph:
        """Return the graph. Edges back in time (clocks that differ) are left out.

        The time until a moment that nothing accounts for is `unexplained`, from the last that it is known to have
        waited for: so the longest path is as long as the window. Except before the moments `left_out`.
        """
        none = np.zeros(0, dtype=np.int64)
        times = np.concatenate((none, *self._times))
        order = np.lexsort((np.concatenate((none, *self._phases)), times))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        edges = Edges.joined(self._edges)
        edges = replace(edges, source=place[edges.source], target=place[edges.target])
        edges = edges.chosen((edges.source < edges.target) & (edges.weight_ns >= 0))
        times, windows = times[order], np.concatenate((none, *self._windows))[order]
        begins = np.where(windows >= 0, place[windows], np.arange(len(times)))
        edges = Edges.joined([edges, _unexplained(times, edges, begins, place[left_out])])
        return Graph(times, edges.chosen(np.argsort(edges.target, kind="stable")))


def _unexplained(times: Ints, edges: Edges, begins: Ints, left_out: Ints) -> Edges:
    """Return an edge to each moment that no edge leads to in the whole time since its source.

    `begins`: the moment in which the window of each begins; its own where it has none.
    """
    source = begins.copy()
    np.maximum.at(source, edges.target, edges.source)
    explained = times <= times[begins]
    explained[edges.target[edges.weight_ns == times[edges.target] - times[edges.source]]] = True
    explained[left_out] = True
    (target,) = np.nonzero(~explained)
    source = source[target]
    # What begins then.
    following = np.full(len(times), -1)
    following[edges.source[::-1]] = np.arange(len(edges))[::-1]
    whose = edges.or_missing(following[target])
    none, kind = np.full(len(target), -1), np.full(len(target), UNEXPLAINED)
    return Edges(source, target, times[target] - times[source], kind, whose.location, whose.row, whose.region, none)


def longest_path(graph: Graph, weight_ns: Ints | None = None) -> Path:
    """Return the longest path of a graph, by other weights if those are given. Linear in the number of edges."""
    edges = graph.edges
    if not len(edges):
        return Path(np.zeros(0, dtype=np.int64), 0)
    longest, last = _longest(graph, edges, edges.weight_ns if weight_ns is None else weight_ns)
    at = int(np.argmax(longest))
    length, found = longest[at], []
    while (edge := last[at]) >= 0:
        found.append(edge)
        at = int(edges.source[edge])
    return Path(np.array(found[::-1], dtype=np.int64), length)


def slack_ns(graph: Graph, length_ns: int) -> Ints:
    """Return by how much each edge could take longer, ns, before the longest path, of that length, were longer."""
    edges = graph.edges
    back = edges.chosen(slice(None, None, -1))
    back = replace(back, source=back.target, target=back.source)
    until, onward = (np.array(_longest(graph, each, each.weight_ns)[0]) for each in (edges, back))
    return np.asarray(length_ns - until[edges.source] - edges.weight_ns - onward[edges.target])


def _longest(graph: Graph, edges: Edges, weight_ns: Ints) -> tuple[list[int], list[int]]:
    """Return by moment the length of the longest way to it, and the last edge of that, -1 for none.

    The edges to a moment come before those from it. What it waits for is known only once its sources are: so this is
    the one loop in Python, on plain lists.
    """
    longest, last = [0] * len(graph.time_ns), [-1] * len(graph.time_ns)
    columns = (edges.source.tolist(), edges.target.tolist(), weight_ns.tolist())
    for edge, (source, target, weight) in enumerate(zip(*columns, strict=True)):
        length = longest[source] + weight
        if length > longest[target]:
            longest[target], last[target] = length, edge
    return longest, last


class Parts(NamedTuple):
    """The parts of a path, in order of time: columns of equal length, as those of Edges.

    `start_ns`: when it began. `recorded_ns`: what it took, where weights are others.
    """

    start_ns: Ints
    weight_ns: Ints
    kind: Ints
    location: Ints
    row: Ints
    region: Ints
    recorded_ns: Ints


def parts(graph: Graph, path: Path, weight_ns: Ints | None = None) -> Parts:
    """Return the parts of a path, by other weights if given; consecutive edges of one span are one part."""
    edges = graph.edges.chosen(path.edges)
    weights = edges.weight_ns if weight_ns is None else weight_ns[path.edges]
    edges, weights = edges.chosen(weights > 0), weights[weights > 0]
    whose = np.stack((edges.kind, edges.location, edges.row, edges.region))
    first = np.concatenate(([True], (whose[:, 1:] != whose[:, :-1]).any(axis=0)))[: len(weights)]
    begins = np.flatnonzero(first)
    sums = np.add.reduceat((weights, edges.weight_ns), begins, axis=1) if len(begins) else np.zeros((2, 0), np.int64)
    # The time that was recorded for an edge ends with its target.
    start = (graph.time_ns[edges.target] - edges.weight_ns)[begins]
    kind, location, row, region = whose[:, begins]
    return Parts(start, sums[0], kind, location, row, region, sums[1])
