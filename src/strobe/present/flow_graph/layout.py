"""Where the nodes and edges of a folded flow graph are drawn: rows from top to bottom, jumps in lanes beside them.

A flow graph of a training is nearly a line: nodes come in order of first occurrence, most edges lead to the next one.
So nodes stand in rows (what follows the same node side by side), edges to the next row are straight, longer ones run
through lanes: forward on the right, back on the left, the shorter ones closer to the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from strobe.steps.loops.folded_graph import FlowEdge, Graph

# Nodes side by side in one row.
_WIDEST = 3


@dataclass(frozen=True)
class Place:
    """Row of a node, and its place in the row: `column` of `columns`."""

    row: int
    column: int
    columns: int


@dataclass(frozen=True)
class Layout:
    """Places of all nodes, and lanes of the edges that need one: number 1 is the closest to the nodes."""

    places: tuple[Place, ...]
    rows: int
    right: dict[FlowEdge, int]
    left: dict[FlowEdge, int]


def lay_out(graph: Graph) -> Layout:
    """Return where everything is drawn."""
    rows = _rows(graph)
    members: dict[int, list[int]] = {}
    for node, row in enumerate(rows):
        members.setdefault(row, []).append(node)
    places = [Place(row, members[row].index(node), len(members[row])) for node, row in enumerate(rows)]
    back = [edge for edge in graph.edges if edge.back]
    far = [edge for edge in graph.edges if not edge.back and rows[edge.target] != rows[edge.source] + 1]
    return Layout(tuple(places), len(members), _lanes(far, rows), _lanes(back, rows))


def _rows(graph: Graph) -> list[int]:
    """A node stands beside the one before it if both follow the same node, and neither follows the other."""
    before: list[set[int]] = [set() for _ in graph.nodes]
    joined = set()
    for edge in graph.edges:
        if not edge.back:
            before[edge.target].add(edge.source)
            joined.add((edge.source, edge.target))
    rows: list[int] = []
    beside: list[int] = []
    for node in range(len(graph.nodes)):
        branches = bool(beside) and len(beside) < _WIDEST and bool(before[node])
        if branches and all(
            before[node] & before[other]
            and (other, node) not in joined
            and graph.nodes[other].level == graph.nodes[node].level
            for other in beside
        ):
            beside.append(node)
            rows.append(rows[-1])
        else:
            beside = [node]
            rows.append(rows[-1] + 1 if rows else 0)
    return rows


def _lanes(edges: Iterable[FlowEdge], rows: Sequence[int]) -> dict[FlowEdge, int]:
    """Give each edge the closest lane that is free between its rows, short ones first."""
    taken: list[list[tuple[int, int]]] = []
    lanes: dict[FlowEdge, int] = {}
    for edge in sorted(edges, key=lambda each: abs(rows[each.source] - rows[each.target])):
        low, high = sorted((rows[edge.source], rows[edge.target]))
        for lane, used in enumerate(taken):
            if all(high < begin or end < low for begin, end in used):
                used.append((low, high))
                lanes[edge] = lane + 1
                break
        else:
            taken.append([(low, high)])
            lanes[edge] = len(taken)
    return lanes
