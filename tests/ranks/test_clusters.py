"""Ranks that behave alike: planted groups are found, whatever the order and however many copies there are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strobe
from strobe.ranks.clusters import ALIKE, cluster_ranks, vectors
from tests.ranks import wait_archives
from tests.ranks.wait_case import Case, Event, around, mpi_collective


def clusters(times: np.ndarray, role: np.ndarray | None = None, count: int | None = None) -> np.ndarray:
    points, one = vectors(times, np.arange(times.shape[1]) % 3), np.zeros(len(times), dtype=int)
    return cluster_ranks(points, one if role is None else role, count).cluster


def groups_of(cluster: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(cluster == number).tolist()) for number in np.unique(cluster).tolist()}


def ranks(count: int, noise: float = 0.01) -> np.ndarray:
    random = np.random.default_rng(7)
    return random.exponential(1e6, 12) * (1 + random.normal(0, noise, (count, 12)))


PROFILES = st.lists(st.lists(st.integers(0, 100), min_size=4, max_size=4), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(PROFILES, st.randoms(use_true_random=False), st.data())
def test_neither_order_nor_copies_of_ranks_change_clusters(profiles, random, data) -> None:
    times = np.array(profiles, dtype=float)
    found = clusters(times)
    order = list(range(len(times)))
    random.shuffle(order)
    copies = data.draw(st.lists(st.sampled_from(order), max_size=10))
    chosen = np.array(order + copies)
    # Of the same ranks, two are together as before.
    assert groups_of(clusters(times[chosen])) == {
        frozenset(np.flatnonzero(found[chosen] == number).tolist()) for number in np.unique(found).tolist()
    }


@given(st.lists(st.integers(1, 1000), min_size=3, max_size=3), st.integers(1, 20))
def test_identical_ranks_are_one_cluster(profile, count) -> None:
    assert not clusters(np.array([profile] * count, dtype=float)).any()


@pytest.mark.parametrize("count", [40, 5000])  # of more than 2000 different ones, the others go to the nearest medoid
def test_planted_groups_are_found_and_numbered_by_size(count: int) -> None:
    times = ranks(count)
    times[::4, 0] += times[0].sum() * 0.5
    found = clusters(times)
    slow = {*range(0, count, 4)}
    assert groups_of(found) == {frozenset(slow), frozenset({*range(count)} - slow)}
    assert np.bincount(found).tolist() == [count * 3 // 4, count // 4]


def test_roles_are_apart_though_their_profiles_are_alike() -> None:
    assert clusters(ranks(6, noise=0), np.array([0, 1, 1, 1, 1, 0])).tolist() == [1, 0, 0, 0, 0, 1]


def test_a_rank_far_from_the_medoid_is_an_outlier_of_its_cluster() -> None:
    times = np.repeat([[900.0, 100, 0], [100, 900, 0], [700, 300, 0]], [20, 20, 1], axis=0)
    found = cluster_ranks(vectors(times, np.arange(3)), np.zeros(41, dtype=int), 2)
    assert np.flatnonzero(found.outlier).tolist() == [40]
    # Hellinger distance by hand, the same by function and by group: each function is a group.
    by_hand = np.sqrt(((np.sqrt([0.9, 0.1]) - np.sqrt([0.7, 0.3])) ** 2).sum() / 2)
    assert found.distance[40] == pytest.approx(by_hand)
    assert by_hand > ALIKE


def test_a_job_with_two_roles_has_two_clusters(tmp_path: Path) -> None:
    """Ranks 0 and 2 compute for 80 ns of 100 and read for the rest; ranks 1, 3 and 4 compute for 10 ns."""

    def rank(compute_ns: int) -> list[Event]:
        work = [*around(0, compute_ns, "compute"), *around(compute_ns, 100, "read")]
        return [*work, *mpi_collective(100, 110, "MPI_Barrier")]

    case = Case("two_roles", "Some compute, some read.", {at: rank(80 if at in (0, 2) else 10) for at in range(5)}, [])
    trace = strobe.open(wait_archives.write(case, tmp_path / "roles"))
    table = trace.clusters().to_arrow()
    assert table.select(["size", "medoid_rank", "outliers"]).to_pylist() == [
        {"size": 3, "medoid_rank": 1, "outliers": None},
        {"size": 2, "medoid_rank": 0, "outliers": None},
    ]
    rows = trace.clusters(by="function").to_arrow().to_pylist()
    means = {row["function"]: (row["inside_ns"], row["outside_ns"]) for row in rows if row["cluster"] == 0}
    assert means["compute"] == (10, 80)
    assert means["read"] == (90, 20)
    assert trace.clusters(by="rank").to_arrow().column("cluster").to_pylist() == [1, 0, 1, 0, 0]
    assert "ranks behave in 2 ways: 3 like rank 1, 2 like rank 0" in trace.clusters().note
