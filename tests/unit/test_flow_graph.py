"""Flow graphs: the native graph, its order and its payload against their twins, and what limits do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.encoded_sizes import order_bytes
from strobe.errors import InconclusiveError, TraceError
from strobe.steps.loops.flow_graph import FlowGraph, build_graph, decode_graph
from strobe.steps.loops.flow_graph_loops import chains_of, loops_of
from tests.unit import flow_graph_twin
from tests.unit.programs import program, sequences


def graph_of(ids: list[int], step_ns: int = 10, **limits: int) -> FlowGraph:
    return build_graph(np.array(ids, dtype=np.uint64), np.arange(len(ids)) * step_ns, **limits)


def partitions_of(graph: FlowGraph, edge: int) -> list[tuple[int, ...]]:
    rows = slice(graph.edges.partitions_begin[edge], graph.edges.partitions_end[edge])
    columns = graph.partitions
    return [tuple(map(int, row)) for row in zip(*(c[rows] for c in vars(columns).values()), strict=True)]


@settings(max_examples=300, deadline=None)
@given(sequences(), st.data())
def test_the_graph_its_order_and_its_payload_agree_with_the_twin(ids: list[int], data: st.DataObject) -> None:
    gaps = data.draw(st.lists(st.integers(0, 10**12), min_size=len(ids), max_size=len(ids)))
    times = np.cumsum([0, *gaps])[1:].tolist()
    names = {event: event * 0x9E3779B97F4A7C15 % 2**64 for event in ids}
    graph = build_graph(np.array([names[e] for e in ids], dtype=np.uint64), np.array(times, dtype=np.int64))
    twin = flow_graph_twin.FlowGraph(ids, times)

    assert graph.nodes.signature.tolist() == [0, *(names[event] for event in twin.number)]
    assert graph.nodes.count.tolist() == [0, *(ids.count(event) for event in twin.number)]
    found = list(zip(graph.edges.source.tolist(), graph.edges.target.tolist(), strict=True))
    assert found == sorted(twin.edges, key=lambda edge: edge[0])  # stable: first occurrences of a node stay in order
    for k, edge in enumerate(found):
        spent = twin.edges[edge].times
        assert graph.edges.count[k] == len(spent)
        assert (graph.edges.sum_ns[k], graph.edges.min_ns[k], graph.edges.max_ns[k]) == (
            sum(spent),
            min(spent),
            max(spent),
        )
        assert graph.edges.squares_ns2[k] == pytest.approx(sum(t * t for t in spent))
        assert partitions_of(graph, k) == twin.partitions(*edge)
    assert int(graph.edges.sum_ns.sum()) == (times[-1] - times[0] if times else 0)
    assert graph.replay().tolist() == [names[event] for event in ids]

    told = flow_graph_twin.read_payload(graph.native.encode())
    assert told.edges == {edge: len(twin.edges[edge].times) for edge in found}
    for source in range(1, len(twin.number) + 1):
        visits = [target for at, target in zip(twin.sequence, twin.sequence[1:], strict=False) if at == source]
        for target in twin.successors(source):
            assert told.taken[source, target] == [k for k, to in enumerate(visits, 1) if to == target]
    again = decode_graph(graph.native.encode())
    assert again.native.encode() == graph.native.encode()
    assert again.replay().tolist() == graph.replay().tolist()


def test_two_thousand_random_programs_are_replayed_exactly() -> None:
    for seed in range(2_000):
        ids = program(seed, most=150)
        graph = graph_of(ids)
        assert graph.replay().tolist() == ids
        if seed % 10 == 0:
            assert decode_graph(graph.native.encode()).replay().tolist() == ids


def test_the_example_of_the_paper() -> None:
    """A B C B C B A D C: visits of B and C as the partitions of Aguilar, Fürlinger, Laure (2014) tell them."""
    a, b, c, d = range(1, 5)
    graph = graph_of([a, b, c, b, c, b, a, d, c])
    orders = {
        (s, t): partitions_of(graph, k)
        for k, (s, t) in enumerate(zip(graph.edges.source.tolist(), graph.edges.target.tolist(), strict=True))
    }
    assert orders == {
        (a, b): [(1, 1, 0, 1)],
        (a, d): [(2, 2, 0, 1)],
        (b, c): [(1, 2, 0, 2)],
        (b, a): [(3, 3, 0, 1)],
        (c, b): [],
        (d, c): [],
    }


def test_every_second_visit_is_one_partition() -> None:
    graph = graph_of([0, 1, 0, 2] * 5)
    assert partitions_of(graph, 0) == [(1, 9, 2, 1)]
    assert partitions_of(graph, 1) == [(2, 10, 2, 1)]


def test_durations_belong_to_the_nodes_and_open_events_have_none() -> None:
    graph = build_graph(np.array([5, 6, 5, 5]), np.array([0, 10, 20, 30]), np.array([4, 8, 6, -1]))
    assert graph.nodes.count.tolist() == [0, 3, 1]
    assert graph.nodes.left.tolist() == [0, 2, 1]
    assert [graph.nodes.sum_ns[1], graph.nodes.min_ns[1], graph.nodes.max_ns[1]] == [10, 4, 6]
    assert graph.nodes.first_ns.tolist() == [0, 0, 10]


def test_nothing_and_one_event() -> None:
    nothing, one = graph_of([]), graph_of([7])
    assert (nothing.events, nothing.first, nothing.last, nothing.replay().tolist()) == (0, None, None, [])
    assert (one.events, one.first, one.last, one.replay().tolist(), len(one.edges)) == (1, 1, 1, [7], 0)
    for graph in (nothing, one):
        assert decode_graph(graph.native.encode()).replay().tolist() == graph.replay().tolist()
        assert loops_of(graph) == []
    assert (len(chains_of(nothing)), len(chains_of(one))) == (0, 1)


def test_a_million_signatures_overflow_into_other_and_all_are_counted() -> None:
    count = 1_000_000
    graph = build_graph(np.arange(1, count + 1), np.arange(count) * 3)
    assert len(graph.nodes) == 65536
    assert graph.nodes.count[0] == count - 65535
    assert graph.events == count
    assert graph.edges.sum_ns.sum() == (count - 1) * 3
    assert graph.replay().tolist() == [*range(1, 65536), *[0] * (count - 65535)]


def test_one_signature_a_million_times_is_one_node_and_one_edge() -> None:
    graph = graph_of([9] * 1_000_000)
    assert (len(graph.nodes), len(graph.edges), graph.edges.count[0]) == (2, 1, 999_999)
    assert len(graph.native.encode()) < 60
    assert (graph.replay() == 9).all()


def test_too_many_transitions_are_counted_as_lost_and_nothing_is_replayed() -> None:
    graph = graph_of([k % 10 for k in range(1000)], max_edges=4)
    assert graph.lost_transitions == graph.edges.count[0] == 999 - 300
    assert graph.edges.count.sum() == 999
    assert graph.edges.sum_ns.sum() == 9990
    assert decode_graph(graph.native.encode()).lost_transitions == graph.lost_transitions
    with pytest.raises(InconclusiveError, match="order of the events is not known"):
        graph.replay()


def test_without_memory_for_the_order_the_counts_stay() -> None:
    ids = np.random.default_rng(1).integers(0, 3, 10_000)
    graph = build_graph(ids, np.arange(10_000), partition_bytes=2000)
    assert not graph.replayable
    assert graph.edges.count.sum() == 9_999
    assert decode_graph(graph.native.encode()).edges.replayable.tolist() == graph.edges.replayable.tolist()


def test_a_damaged_payload_is_an_error() -> None:
    payload = graph_of(program(12)).native.encode()
    for damaged in (b"", payload[:-1], b"\2" + payload[1:], payload + b"\0"):
        with pytest.raises(TraceError, match="damaged"):
            decode_graph(damaged)


def test_ids_and_times_must_belong_together() -> None:
    with pytest.raises(ValueError, match="length"):
        build_graph(np.zeros(3), np.zeros(4))
    with pytest.raises(ValueError, match="length"):
        build_graph(np.zeros(3), np.zeros(3), np.zeros(2))


def test_the_second_level_does_not_grow_with_the_number_of_iterations() -> None:
    """An operator that is used at many places of a step: its choices are irregular, but the same in every step."""
    step = np.random.default_rng(2).integers(0, 20, 400)
    few, many = order_bytes(np.tile(step, 20)), order_bytes(np.tile(step, 400))
    assert many.temporal > 10 * few.temporal
    assert many.second_level < 1.2 * few.second_level
    assert (many.events, many.kinds, many.raw) == (160_000, 20, 160_000)
    assert few.elements == many.elements
    assert many.zstd < many.second_level  # it is not the smallest, and does not claim to be
