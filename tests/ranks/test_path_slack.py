"""Imbalance and slack of critical paths: cases computed by hand, and what holds for every graph and program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strobe
from strobe.ranks.critical_path.longest_path import Builder, Graph, longest_path, slack_ns
from tests.deep.kineto import US, call, kernel, operator, profile
from tests.ranks import wait_archives
from tests.ranks.path_cases import CASES, PathCase, all_reduce
from tests.ranks.wait_case import Case, Event, around

KEY = ("rank", "call_path")


def opened(folder: Path, ranks: dict[int, list[Event]]) -> strobe.Trace:
    """The program as an OTF2 archive."""
    return strobe.open(wait_archives.write(Case("", "", ranks, []), folder / f"run{len(list(folder.iterdir()))}"))


def at_places(trace: strobe.Trace, **options: str) -> dict[tuple[object, str], dict[str, object]]:
    """The rows of call paths by rank and call; those that wait have none."""
    rows = trace.critical_path(by="location", step="all", **options).to_pylist()
    return {(row["rank"], row["call_path"].split(" < ")[0]): row for row in rows if row["call_path"]}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_slack_and_imbalance_are_those_computed_by_hand(case: PathCase, tmp_path: Path) -> None:
    with opened(tmp_path, case.ranks) as trace:
        found = at_places(trace)
        by_call = trace.critical_path(by="call").to_pylist()
        whole = sum(row["time_ns"] for row in trace.critical_path().to_pylist())
    own = {key: (row["own_ns"], row["slack_ns"]) for key, row in found.items()}
    assert own == {key: row[1:] for key, row in case.rows.items()}
    # Of several that end at the same moment, either is the path.
    on_path = {name: [0, 0] for _, name in case.rows}
    for (rank, name), (time, _, _) in case.rows.items():
        on_path[name][0] += time
        on_path[name][1] += found[rank, name]["time_ns"]
    assert all(expected == there for expected, there in on_path.values())
    imbalance = {row["call_path"].split(" < ")[0]: row["imbalance_ns"] for row in by_call if row["call_path"]}
    assert imbalance == {name: round(case.imbalance.get(name, 0)) for name in imbalance}
    assert sum(row["time_ns"] for row in by_call) == whole == sum(row["time_ns"] for row in found.values())


def test_what_a_rank_lacks_is_charged_to_what_the_path_does_meanwhile(tmp_path: Path) -> None:
    """Rank 0 has 40 of 110 to spare, and only in `work` less than the path; rank 1 is the path."""
    with opened(tmp_path, CASES[0].ranks) as trace:
        rows = trace.critical_path(by="call", step="all").to_pylist()
    assert {row["call_path"]: row["impact_ns"] for row in rows} == {"work": 40, "MPI_Allreduce": 0}


@pytest.mark.parametrize(("longer", "moved"), [(39, 0), (40, 0), (41, 1)])
def test_work_that_takes_longer_by_its_slack_does_not_move_the_end(tmp_path: Path, longer: int, moved: int) -> None:
    ranks = {
        0: around(0, 60 + longer, "work") + all_reduce(60 + longer, 110 + moved),
        1: around(0, 100, "work") + all_reduce(100, 110 + moved),
    }
    with opened(tmp_path, ranks) as trace:
        assert at_places(trace)[0, "work"]["slack_ns"] == 40 + moved - longer
        assert sum(row["time_ns"] for row in trace.critical_path(by="call").to_pylist()) == 110 + moved


def test_a_change_is_predicted_by_call_path_too(tmp_path: Path) -> None:
    with opened(tmp_path, CASES[0].ranks) as trace:
        rows = trace.critical_path(by="call", step="all", what_if="work=0.5").to_pylist()
    assert {row["call_path"]: row["predicted_ns"] for row in rows} == {"work": 50, "MPI_Allreduce": 10}


def test_kernels_of_a_stream_beside_the_path_have_slack(tmp_path: Path) -> None:
    """The host waits until 105 for `long`; `short`, on another stream, could end 55 us later."""
    trace = profile(
        tmp_path,
        call(0, 5, correlation=1),
        call(5, 5, correlation=2),
        call(10, 95, "cudaDeviceSynchronize", correlation=3),
        operator("aten::after", 105, 15),
        kernel("long", 10, 90, correlation=1, stream=7),
        kernel("short", 20, 30, correlation=2, stream=8),
    )
    rows = trace.critical_path(by="location", step="all").to_pylist()
    named = {row["call_path"].split(" < ")[0]: row for row in rows if row["call_path"] and row["kind"] != "launch"}
    assert (named["short"]["slack_ns"], named["short"]["own_ns"]) == (55 * US, 30 * US)
    assert (named["long"]["slack_ns"], named["long"]["time_ns"]) == (0, 90 * US)
    # One GPU runs each: in the path as long as on it. And so is the one thread.
    assert {row["imbalance_ns"] for row in rows} == {0}
    # The 5 us until the call returned are waiting, which no call path has.
    assert [row["time_ns"] for row in rows if row["call_path"] is None] == [5 * US]
    assert named["cudaDeviceSynchronize"]["own_ns"] == 0
    assert named["aten::after"]["slack_ns"] == 0


def test_a_thread_that_nobody_waits_for_has_until_the_end(tmp_path: Path) -> None:
    trace = profile(
        tmp_path,
        operator("aten::mul", 0, 20),
        operator("aten::copy_", 22, 38, thread=2),
        operator("aten::add_", 63, 17),
    )
    rows = {row["call_path"]: row for row in trace.critical_path(by="call", step="all").to_pylist()}
    assert rows["aten::copy_"]["slack_ns"] == 20 * US
    # Two threads: 20 - 20 / 2, and 17 - 17 / 2.
    assert [rows[name]["imbalance_ns"] / US for name in ("aten::mul", "aten::add_")] == [10, 8.5]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Graph, np.ndarray]:
    """Graphs with any edges onward in time, and by edge the operation that it is of."""
    times = draw(st.lists(st.integers(0, 20), min_size=1, max_size=8))
    edge = st.tuples(st.integers(0, len(times) - 1), st.integers(0, len(times) - 1), st.integers(0, 9))
    given_ = [(a, b, w) for a, b, w in draw(st.lists(edge, max_size=16)) if times[a] < times[b]]
    builder = Builder()
    nodes = builder.moments(np.array(times), 0)
    source, target, weight = (np.array([each[k] for each in given_], dtype=np.int64) for k in range(3))
    operation = np.array([draw(st.integers(0, 3)) for _ in given_], dtype=np.int64)
    builder.edges(nodes[source], nodes[target], weight, 0, operation)
    return builder.graph(nodes), operation


@given(graphs(), st.data())
def test_the_end_moves_if_and_only_if_an_operation_takes_more_than_its_slack(
    drawn: tuple[Graph, np.ndarray], data: st.DataObject
) -> None:
    graph, _ = drawn
    path = longest_path(graph)
    slack = slack_ns(graph, path.length_ns)
    assert (slack >= 0).all()
    assert (slack[path.edges] == 0).all()
    for operation in np.unique(graph.edges.location):
        (own,) = np.nonzero(graph.edges.location == operation)
        # Its slack, spread over its parts.
        left, longer = int(slack[own].min()), graph.edges.weight_ns.copy()
        for edge in own.tolist():
            part = data.draw(st.integers(0, left))
            longer[edge] += part
            left -= part
        assert longest_path(graph, longer).length_ns == path.length_ns
        tightest = own[slack[own].argmin()]
        beyond = graph.edges.weight_ns.copy()
        beyond[tightest] += slack[tightest] + 1
        assert longest_path(graph, beyond).length_ns == path.length_ns + 1
