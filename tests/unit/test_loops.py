"""Loops and chains of flow graphs: the native search against brute force, and graphs whose loops are known."""

import random

import numpy as np
from hypothesis import given, settings

from strobe.steps.loops.flow_graph import FlowGraph, build_graph
from strobe.steps.loops.flow_graph_loops import Loop, chains_of, loops_of
from tests.unit import loops_twin
from tests.unit.programs import sequences


def graph_of(ids: list[int]) -> FlowGraph:
    return build_graph(np.array(ids, dtype=np.uint64), np.arange(len(ids)) * 10)


def successors_of(graph: FlowGraph) -> list[list[int]]:
    return [graph.edges.target[graph.edges.source == node].tolist() for node in range(len(graph.nodes))]


def assert_equal_to_brute_force(graph: FlowGraph) -> None:
    loops = loops_of(graph)
    twins = loops_twin.loops_of(successors_of(graph), graph.first) if graph.first is not None else []
    assert len(loops) == len(twins)
    by_header = {loop.header: loop for loop in loops}
    for twin in twins:
        loop = by_header[twin.header]
        members = twin.nodes | {twin.header}
        assert sorted(loop.nodes.tolist()) == sorted(members)
        assert loop.irreducible == twin.irreducible
        around = [other for other in twins if other is not twin and twin.header in other.nodes]
        assert loop.depth == len(around)
        innermost = min(around, key=lambda other: len(other.nodes), default=None)
        assert (loops[loop.parent].header if loop.parent >= 0 else None) == (innermost.header if innermost else None)
        assert_figures(graph, loop, members)


def assert_figures(graph: FlowGraph, loop: Loop, members: set[int]) -> None:
    entries, time = int(graph.first in members), 0
    columns = (graph.edges.source, graph.edges.target, graph.edges.count, graph.edges.sum_ns)
    for source, target, count, spent in zip(*(column.tolist() for column in columns), strict=True):
        entries += count * (source not in members and target in members)
        time += spent * (source in members and target in members)
    assert (loop.entries, loop.time_ns) == (entries, time)
    assert loop.iterations == graph.nodes.count[loop.header]


@settings(max_examples=300, deadline=None)
@given(sequences())
def test_loops_of_programs_agree_with_brute_force(ids: list[int]) -> None:
    assert_equal_to_brute_force(graph_of(ids))


def test_loops_of_ten_thousand_random_graphs_agree_with_brute_force() -> None:
    """A random walk over few nodes is a random graph, most of them irreducible."""
    draw = random.Random(4)
    irreducible = nested = 0
    for _ in range(10_000):
        kinds, size = draw.randint(1, 12), draw.randint(1, 30)
        graph = graph_of([draw.randrange(kinds) for _ in range(size)])
        loops = loops_of(graph)
        twins = {twin.header: twin for twin in loops_twin.loops_of(successors_of(graph), 1)}
        assert {loop.header: (set(loop.nodes.tolist()), loop.irreducible) for loop in loops} == {
            header: (twin.nodes | {header}, twin.irreducible) for header, twin in twins.items()
        }
        irreducible += sum(loop.irreducible for loop in loops)
        nested += sum(loop.depth > 0 for loop in loops)
    assert irreducible > 1000
    assert nested > 1000


def test_a_loop_in_a_loop() -> None:
    graph = graph_of([0, *[1, *[2, 3] * 4, 4] * 5, 6])
    outer, inner = loops_of(graph)
    names = [graph.nodes.signature[loop.nodes].tolist() for loop in (outer, inner)]
    assert [sorted(each) for each in names] == [[1, 2, 3, 4], [2, 3]]
    assert (outer.iterations, outer.entries, outer.parent, outer.depth) == (5, 1, -1, 0)
    assert (inner.iterations, inner.entries, inner.parent, inner.depth) == (20, 5, 0, 1)
    assert (outer.irreducible, inner.irreducible) == (False, False)
    assert (outer.time_ns, inner.time_ns) == (49 * 10, 35 * 10)


def test_a_loop_entered_from_two_sides_is_irreducible() -> None:
    # 0 leads to 1 in the first iteration and to 2 in the second one; 1 and 2 alternate.
    outer, inner = loops_of(graph_of([0, *[1, 2] * 2, 8, 0, *[2, 1] * 2, 8]))
    assert (outer.irreducible, outer.entries, len(outer.nodes)) == (False, 1, 4)
    assert (inner.irreducible, inner.entries, len(inner.nodes)) == (True, 2, 2)
    graph = graph_of([0, *[1, 2] * 2, 8, 0, *[2, 1] * 2, 8])
    (edge,) = inner.re_entries
    names = graph.nodes.signature
    assert (names[graph.edges.source[edge]], names[graph.edges.target[edge]]) == (0, 2)


def test_a_deep_graph_needs_no_stack() -> None:
    ids = [*range(60_000), *range(60_000)]
    (loop,) = loops_of(graph_of(ids))
    assert (len(loop.nodes), loop.iterations) == (60_000, 2)


def test_chains_fold_what_can_only_follow_each_other() -> None:
    prologue, body, epilogue = [0, 1, 2], [3, 4, 5, 6], [7, 8]
    graph = graph_of([*prologue, *body * 4, *epilogue])
    chains = chains_of(graph)
    assert [graph.nodes.signature[nodes].tolist() for nodes in chains.nodes] == [prologue, body, epilogue]
    edges = zip(chains.source.tolist(), chains.target.tolist(), chains.count.tolist(), strict=True)
    assert sorted(edges) == [(0, 1, 1), (1, 1, 3), (1, 2, 1)]
    assert chains.chain_of.tolist() == [-1, 0, 0, 0, 1, 1, 1, 1, 2, 2]


@settings(max_examples=200, deadline=None)
@given(sequences())
def test_chains_hold_every_node_once_and_cannot_grow(ids: list[int]) -> None:
    graph = graph_of(ids)
    chains = chains_of(graph)
    occurred = sorted(set(range(1, len(graph.nodes))))
    assert sorted(node for nodes in chains.nodes for node in nodes.tolist()) == occurred
    # Degrees in the folded graph, with START and END as edges.
    out, into = [0] * len(chains), [0] * len(chains)
    for source, target in zip(chains.source.tolist(), chains.target.tolist(), strict=True):
        out[source] += 1
        into[target] += 1
    if graph.first is not None:
        into[chains.chain_of[graph.first]] += 1
        out[chains.chain_of[graph.last]] += 1
    for source, target in zip(chains.source.tolist(), chains.target.tolist(), strict=True):
        assert source == target or out[source] > 1 or into[target] > 1
    inside = int(graph.edges.count.sum()) - int(chains.count.sum())
    assert inside == sum(int(graph.nodes.count[nodes[:-1]].sum()) for nodes in chains.nodes)
