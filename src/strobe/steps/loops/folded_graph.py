"""The flow graph as people look at it: chains of events folded to one node, in order of first occurrence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from strobe.model.kinds import Group
from strobe.steps.loops.flow_graph import FlowGraph
from strobe.steps.loops.flow_graph_loops import chains_of, loops_of
from strobe.steps.thread_spans import Ints

# More nodes are not looked at: the rest, which takes the least time, is drawn as one.
MOST_NODES = 60
# Names of the events of one node that are handed on.
_MOST_MEMBERS = 200
OTHER = "<other>"


@dataclass(frozen=True)
class FlowNode:
    """Events that only follow each other.

    id: its number. name: of the first, and how many more there are. group: what they are coloured as: that of the event
    that takes most time. count: executions of the chain. time_ns: from each of its events to the next one. level: index
    of the innermost loop of the tree around it, -1 outside of all. members: names of all of them, "..." for the rest.
    """

    id: int
    name: str
    group: Group
    count: int
    time_ns: int
    level: int
    members: tuple[str, ...]


@dataclass(frozen=True)
class FlowEdge:
    """What follows what; `back` leads to something that had begun before, as the end of a loop does."""

    source: int
    target: int
    count: int
    time_ns: int
    back: bool


@dataclass(frozen=True)
class FlowLoop:
    """A loop of the graph (Wei et al. 2007): header (node), index of the loop around it or -1, number of its nodes.

    irreducible: it is also entered elsewhere than at its header. count: visits of the header.
    """

    header: int
    parent: int
    members: int
    irreducible: bool
    count: int


@dataclass(frozen=True)
class Graph:
    """A flow graph, folded. overflow: events or transitions are missing in it, because there were too many kinds."""

    nodes: tuple[FlowNode, ...] = ()
    edges: tuple[FlowEdge, ...] = ()
    loops: tuple[FlowLoop, ...] = ()
    overflow: bool = False


@dataclass(frozen=True)
class Labels:
    """What the nodes of a flow graph are called, by number of the node: name, group, and level of the loop tree."""

    names: Sequence[str]
    groups: Sequence[str]
    levels: Sequence[int]


def fold(flow: FlowGraph, labels: Labels) -> Graph:
    """Fold the chains of a flow graph, and what takes least time into one node where there are more than MOST_NODES."""
    chains = chains_of(flow)
    first_ns = [int(flow.nodes.first_ns[nodes[0]]) for nodes in chains.nodes]
    # Time of a chain: from its first event to what follows its last.
    time_ns = np.zeros(len(flow.nodes), dtype=np.int64)
    np.add.at(time_ns, flow.edges.source, flow.edges.sum_ns)
    took = np.array([int(time_ns[nodes].sum()) for nodes in chains.nodes], dtype=np.int64)
    place = _places(first_ns, took)
    at_place: dict[int, FlowNode] = {}
    for number, members, took_ns in zip(place.tolist(), chains.nodes, took.tolist(), strict=True):
        made = _node(number, members, flow, labels, took_ns)
        at_place[number] = _together(at_place[number], made) if number in at_place else made
    # Only some of the events of a long chain are named.
    nodes = [
        replace(node, members=(*node.members[:_MOST_MEMBERS], "...")) if len(node.members) > _MOST_MEMBERS else node
        for _, node in sorted(at_place.items())
    ]
    edges = _edges(place[chains.source], place[chains.target], chains.count, chains.sum_ns)
    of_node = np.append(place, -1)[np.append(chains.chain_of, -1)]
    loops = tuple(
        FlowLoop(int(of_node[loop.header]), loop.parent, len(loop.nodes), loop.irreducible, loop.iterations)
        for loop in loops_of(flow)
    )
    overflow = bool(flow.lost_transitions) or (len(flow.nodes) > 0 and int(flow.nodes.count[0]) > 0)
    return Graph(tuple(nodes), edges, loops, overflow)


def _places(first_ns: Sequence[int], took: Ints) -> Ints:
    """The drawn node of every chain: in order of first occurrence; what takes least time shares the last one."""
    order = np.argsort(np.array(first_ns, dtype=np.int64), kind="stable")
    kept = np.ones(len(order), dtype=bool)
    if len(order) > MOST_NODES:
        kept[np.argsort(took, kind="stable")[: len(order) - MOST_NODES + 1]] = False
    place = np.full(len(order), int(kept.sum()), dtype=np.int64)
    place[order[kept[order]]] = np.arange(int(kept.sum()))
    return place


def _node(number: int, members: Ints, flow: FlowGraph, labels: Labels, took: int) -> FlowNode:
    names = [labels.names[node] for node in members]
    heaviest = int(members[np.argmax(flow.nodes.sum_ns[members])])
    levels = [labels.levels[node] for node in members]
    count = int(flow.nodes.count[members[0]])
    name = names[0] if len(names) == 1 else f"{names[0]} +{len(names) - 1}"
    level = max(set(levels), key=levels.count)
    return FlowNode(number, name, labels.groups[heaviest], count, took, level, tuple(names))


def _together(one: FlowNode, other: FlowNode) -> FlowNode:
    """Two chains that are drawn as one node."""
    count, took = one.count + other.count, one.time_ns + other.time_ns
    return replace(
        one, name=OTHER, group="other", count=count, time_ns=took, level=-1, members=one.members + other.members
    )


def _edges(source: Ints, target: Ints, count: Ints, sum_ns: Ints) -> tuple[FlowEdge, ...]:
    pairs, number = np.unique(np.stack([source, target]), axis=1, return_inverse=True)
    counts, times = np.zeros(pairs.shape[1], dtype=np.int64), np.zeros(pairs.shape[1], dtype=np.int64)
    np.add.at(counts, number.ravel(), count)
    np.add.at(times, number.ravel(), sum_ns)
    rows = zip(*pairs.tolist(), counts.tolist(), times.tolist(), strict=True) if pairs.size else ()
    return tuple(FlowEdge(a, b, how_often, took, b <= a) for a, b, how_often, took in rows)
