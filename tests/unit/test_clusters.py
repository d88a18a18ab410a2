"""Ranks that spend their time alike: planted groups are found, whatever the order, and nothing is random."""

from __future__ import annotations

import numpy as np
import pytest

from strobe.sums.clusters import ALIKE, MOST_CLUSTERS, cluster_profiles


def ranks(count: int, regions: int = 30, noise: float = 0.002) -> np.ndarray:
    random = np.random.default_rng(7)
    return random.exponential(1e6, regions) * (1 + random.normal(0, noise, (count, regions)))


def groups_of(cluster: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(cluster == number).tolist()) for number in np.unique(cluster).tolist()}


def test_planted_groups_are_found_and_numbered_by_size() -> None:
    profiles = ranks(200)
    profiles[::4, 0] += profiles[0].sum() * 0.5
    profiles[13, 3] += profiles[0].sum() * 2
    found = cluster_profiles(profiles)
    slow = {*range(0, 200, 4)}
    assert groups_of(found.cluster) == {frozenset(slow), frozenset({13}), frozenset({*range(200)} - slow - {13})}
    assert np.bincount(found.cluster).tolist() == [149, 50, 1]
    assert [int(found.cluster[at]) for at in found.typical.tolist()] == [0, 1, 2]
    assert found.distance.max() < ALIKE


def test_the_order_of_ranks_does_not_matter() -> None:
    profiles = ranks(60, noise=0.01)
    profiles[20:35, 1] *= 9
    shuffled = np.random.default_rng(3).permutation(60)
    first, second = cluster_profiles(profiles), cluster_profiles(profiles[shuffled])
    assert groups_of(first.cluster) == {frozenset(shuffled[[*group]].tolist()) for group in groups_of(second.cluster)}


def test_ranks_that_are_alike_are_one_cluster_and_so_are_those_without_groups() -> None:
    assert len(cluster_profiles(ranks(50))) == 1
    # Each a little farther from the first than the one before: no number of clusters stands out.
    assert len(cluster_profiles(1 + np.arange(40)[:, None] * np.ones((40, 3)) / 100)) == 1


def test_the_number_of_clusters_can_be_chosen() -> None:
    profiles = np.repeat([[9.0, 1], [1, 9], [5, 5]], [5, 3, 2], axis=0)
    assert cluster_profiles(profiles, 3).cluster.tolist() == [0] * 5 + [1] * 3 + [2] * 2
    assert len(cluster_profiles(profiles, 1)) == 1
    assert len(cluster_profiles(profiles, MOST_CLUSTERS)) == 3, "there are no more than different profiles"


def test_distance_is_the_sum_of_differences_as_a_part_of_the_mean_total() -> None:
    # Medians (6, 4): rank 1 is nearest to them, and the centre stays there.
    found = cluster_profiles(np.array([[4.0, 6], [6, 4], [8, 2]]), 1)
    assert found.distance.tolist() == pytest.approx([0.4, 0, 0.4])
    assert found.typical.tolist() == [1]


def test_of_many_regions_those_that_differ_least_count_together() -> None:
    profiles = ranks(40, regions=1000)
    profiles[10:, 999] += profiles[0].sum()
    assert groups_of(cluster_profiles(profiles).cluster) == {frozenset(range(10)), frozenset(range(10, 40))}


def test_nothing_has_no_clusters_and_idle_ranks_are_alike() -> None:
    assert len(cluster_profiles(np.zeros((0, 4)))) == 0
    assert cluster_profiles(np.zeros((3, 4))).cluster.tolist() == [0, 0, 0]
    assert cluster_profiles(np.zeros((2, 0))).cluster.tolist() == [0, 0]
