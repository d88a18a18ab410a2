"""Loops and chains of a flow graph.

Loops are those of T. Wei, J. Mao, W. Zou, Y. Chen: A New Algorithm for Identifying Loops in Decompilation (SAS 2007):
one depth-first search from the first event. They follow from the graph alone; the main loop of a program is found by
strobe.steps.loop_choice.levels, because operators that are used at many places weld many loops of the graph into one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.steps.loops.flow_graph import FlowGraph
from strobe.steps.thread_spans import Ints

_NONE = 2**32 - 1  # in no loop


@dataclass(frozen=True)
class Loop:
    """One loop of a flow graph.

    header: the node at which it was entered first.
    parent: index of the loop around it in the list, -1 without one. depth: 0 without one.
    nodes: all that belong to it, the header among them, those of inner loops last.
    iterations: visits of the header. entries: times that it was entered from outside.
    time_ns: of all transitions inside of it.
    irreducible: it is also entered elsewhere than at the header.
    re_entries: the edges that do so and lead to a node of this loop that is in no inner one.
    """

    header: int
    parent: int
    depth: int
    nodes: Ints
    iterations: int
    entries: int
    time_ns: int
    irreducible: bool
    re_entries: Ints


@dataclass(frozen=True)
class Chains:
    """A flow graph with its chains folded: nodes that can only follow each other are one.

    nodes: the nodes of each chain, in order. chain_of: the chain of every node, -1 if the node never occurred.
    source, target: chains; count, sum_ns: of the transitions between them.
    """

    nodes: list[Ints]
    chain_of: Ints
    source: Ints
    target: Ints
    count: Ints
    sum_ns: Ints

    def __len__(self) -> int:
        return len(self.nodes)


def loops_of(graph: FlowGraph) -> list[Loop]:
    """Find the loops of a flow graph, outer ones before what is inside, siblings in order of first occurrence."""
    header, is_header, irreducible, re_entries = graph.native.loops()
    around = np.where(header == _NONE, -1, header.astype(np.int64))  # per node: the header around it
    headers, parent, depth = _nest(np.flatnonzero(is_header), around)
    count = len(headers)
    index = np.full(len(graph.nodes) + 1, count)  # of the loop that a header begins; `count` stands for "in no loop"
    index[headers] = np.arange(count)
    loop_of = np.where(is_header, index[:-1], index[around]) if len(is_header) else index[:-1]

    entries, time = np.zeros(count + 1, dtype=np.int64), np.zeros(count + 1, dtype=np.int64)
    edges = graph.edges
    common = _common(loop_of[edges.source], loop_of[edges.target], parent, depth)
    np.add.at(time, common, edges.sum_ns)
    # An edge enters all loops around its target, but those that are around its source, too. START is in none.
    np.add.at(entries, loop_of[edges.target], edges.count.astype(np.int64))
    np.subtract.at(entries, common, edges.count.astype(np.int64))
    if graph.first is not None:
        entries[loop_of[graph.first]] += 1
    for loop in range(count - 1, -1, -1):
        entries[parent[loop]] += entries[loop]
        time[parent[loop]] += time[loop]

    nodes = _members(loop_of, parent)
    innermost = index[around][edges.target[re_entries]] if len(re_entries) else np.empty(0, dtype=np.int64)
    by_loop = np.argsort(innermost, kind="stable")
    bounds = np.searchsorted(innermost[by_loop], np.arange(count + 1))
    return [
        Loop(
            header=int(h),
            parent=int(parent[k]) if parent[k] < count else -1,
            depth=int(depth[k]) - 1,
            nodes=nodes[k],
            iterations=int(graph.nodes.count[h]),
            entries=int(entries[k]),
            time_ns=int(time[k]),
            irreducible=bool(irreducible[h]),
            re_entries=re_entries[by_loop[bounds[k] : bounds[k + 1]]].astype(np.int64),
        )
        for k, h in enumerate(headers)
    ]


def _nest(headers: Ints, around: Ints) -> tuple[Ints, Ints, Ints]:
    """Headers, outer ones first; per loop its parent (the number of loops: none) and its depth, from 1."""
    depth_of = {-1: 0}
    for h in headers:
        node, chain = int(h), []
        while node not in depth_of:
            chain.append(node)
            node = int(around[node])
        for inner in reversed(chain):
            depth_of[inner] = depth_of[int(around[inner])] + 1
    depth = np.array([depth_of[int(h)] for h in headers], dtype=np.int64)
    order = np.lexsort((headers, depth))
    headers, depth = headers[order], depth[order]
    index = {int(h): k for k, h in enumerate(headers)} | {-1: len(headers)}
    parent = np.array([*(index[int(around[h])] for h in headers), len(headers)], dtype=np.int64)
    return headers, parent, np.append(depth, 0)


def _common(a: Ints, b: Ints, parent: Ints, depth: Ints) -> Ints:
    """The innermost loop that holds both, by doubling: the ancestors 1, 2, 4, ... levels up of every loop."""
    up = [parent]
    while 1 << len(up) <= int(depth.max()):
        up.append(up[-1][up[-1]])
    a, b = a.copy(), b.copy()
    for bit, ancestor in enumerate(up):
        deeper = (np.maximum(depth[a] - depth[b], 0) >> bit & 1).astype(bool)
        shallower = (np.maximum(depth[b] - depth[a], 0) >> bit & 1).astype(bool)
        a[deeper], b[shallower] = ancestor[a[deeper]], ancestor[b[shallower]]
    for ancestor in reversed(up):
        apart = ancestor[a] != ancestor[b]
        a[apart], b[apart] = ancestor[a[apart]], ancestor[b[apart]]
    return np.where(a == b, a, parent[a])


def _members(loop_of: Ints, parent: Ints) -> list[Ints]:
    """The nodes of every loop, as slices of one array, in which inner loops lie inside of outer ones."""
    count = len(parent) - 1
    own = np.bincount(loop_of, minlength=count + 1)
    size = own.copy()
    for loop in range(count - 1, -1, -1):
        size[parent[loop]] += size[loop]
    begin = np.zeros(count + 1, dtype=np.int64)
    free = np.zeros(count + 1, dtype=np.int64)  # where the next inner loop begins
    free[count] = own[count]
    for loop in range(count):
        begin[loop] = free[parent[loop]]
        free[parent[loop]] += size[loop]
        free[loop] = begin[loop] + own[loop]
    flat = np.argsort(begin[loop_of], kind="stable")
    return [flat[begin[loop] : begin[loop] + size[loop]] for loop in range(count)]


def chains_of(graph: FlowGraph) -> Chains:
    """Fold the chains of a flow graph."""
    begin, flat = graph.native.chains()
    nodes = np.split(flat.astype(np.int64), begin[1:-1]) if len(flat) else []
    chain_of = np.full(len(graph.nodes), -1)
    chain_of[flat] = np.repeat(np.arange(len(nodes)), np.diff(begin))
    edges = graph.edges
    # What is inside a chain leads from a node to the one after it.
    place = np.zeros(len(graph.nodes), dtype=np.int64)
    place[flat] = np.arange(len(flat))
    source, target = chain_of[edges.source], chain_of[edges.target]
    outside = (source != target) | (place[edges.target] != place[edges.source] + 1)
    count, sum_ns = edges.count[outside].astype(np.int64), edges.sum_ns[outside]
    return Chains(nodes, chain_of, source[outside], target[outside], count, sum_ns)
