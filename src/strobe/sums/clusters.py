"""Clusters: ranks (or whatever has a profile) that spend their time alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.tables.column_arrays import Floats, Ints

MOST_CLUSTERS = 16
# Regions that are compared one by one: those in which profiles differ most. The others count together.
_MOST_FEATURES = 128
# Profiles that differ in less than this part of their time are alike; below it, no difference separates clusters.
ALIKE = 0.05
_NOTHING = 0.01
# So much closer must one more centre bring the farthest profile: evenly spread ones come up to 2 times closer.
_WORTH = 2.5
_ROUNDS = 6


@dataclass(frozen=True)
class Clusters:
    """Which cluster each profile is in; clusters are numbered by size, the largest first.

    typical: of each cluster the member that is nearest to its centre. distance: by profile, to the centre of its
    cluster. spread: what the distance was to the nearest centre at most, with 1, 2, ... centres.
    """

    cluster: Ints
    typical: Ints
    distance: Floats
    spread: Floats

    def __len__(self) -> int:
        """Return the number of clusters."""
        return len(self.typical)


def cluster_profiles(profiles: Floats, count: int | None = None) -> Clusters:
    """Sort profiles (a row each, of times by region) into `count` clusters, or as many as stand out.

    Distance: the sum of absolute differences by region (L1, Manhattan), as a part of the mean total time: twice the
    part of the time that would have to be spent elsewhere for two profiles to be the same. Centres: the profile nearest
    to the medians of all, then each time the one that is farthest from its nearest centre (Gonzalez, "Clustering to
    minimize the maximum intercluster distance", 1985); then k-medians with these for a start (Bradley, Mangasarian and
    Street, "Clustering via concave minimization", 1996), at most six rounds. Where `count` is None, it is 1 if no
    profile is farther than 5 % from the first centre, else the number of centres whose last one shortens the farthest
    distance most, if it does so to less than 40 %. Nothing is random: equal profiles give equal clusters.
    """
    if not len(profiles):
        nothing = np.zeros(0, dtype=np.int64)
        return Clusters(nothing, nothing, np.zeros(0), np.zeros(0))
    features = _features(profiles)
    starts, spread = _farthest_first(features, MOST_CLUSTERS if count is None else max(1, count))
    wanted = _standing_out(spread) if count is None else len(starts)
    centres, cluster = _medians(features, features[starts[:wanted]])
    # By size; of equal ones the one with the first member comes first.
    found, first, sizes = np.unique(cluster, return_index=True, return_counts=True)
    order = np.lexsort((first, -sizes))
    number = np.zeros(len(centres), dtype=np.int64)
    number[found[order]] = np.arange(len(found))
    distance = np.abs(features - centres[cluster]).sum(axis=1)
    cluster = number[cluster]
    typical = [int(own[np.argmin(distance[own])]) for own in (np.flatnonzero(cluster == k) for k in range(len(found)))]
    return Clusters(cluster, np.array(typical, dtype=np.int64), distance, spread)


def _features(profiles: Floats) -> Floats:
    """Return the profiles as parts of the mean total, with the regions that differ least as one."""
    mean = float(profiles.sum(axis=1).mean())
    scaled = profiles / mean if mean > 0 else np.zeros_like(profiles)
    if scaled.shape[1] <= _MOST_FEATURES:
        return scaled
    differ = np.argsort(-np.ptp(scaled, axis=0), kind="stable")
    kept = scaled[:, differ[: _MOST_FEATURES - 1]]
    return np.column_stack((kept, scaled[:, differ[_MOST_FEATURES - 1 :]].sum(axis=1)))


def _farthest_first(features: Floats, count: int) -> tuple[list[int], Floats]:
    """Return which profiles are the first centres, and the farthest distance with 1, 2, ... of them."""
    middle = np.abs(features - np.median(features, axis=0)).sum(axis=1)
    centres, spread = [int(np.argmin(middle))], []
    nearest = np.full(len(features), np.inf)
    while True:
        nearest = np.minimum(nearest, np.abs(features - features[centres[-1]]).sum(axis=1))
        farthest = int(np.argmax(nearest))
        spread.append(float(nearest[farthest]))
        if len(centres) == count or spread[-1] == 0:
            return centres, np.array(spread)
        centres.append(farthest)


def _standing_out(spread: Floats) -> int:
    if spread[0] <= ALIKE or len(spread) == 1:
        return 1
    floored = np.maximum(spread, _NOTHING)
    shortens = floored[:-1] / floored[1:]
    best = int(np.argmax(shortens))
    return best + 2 if shortens[best] >= _WORTH else 1


def _medians(features: Floats, centres: Floats) -> tuple[Floats, Ints]:
    """Return centres as medians of their members, and to which of them each profile is nearest."""
    nearest = np.zeros(len(features), dtype=np.int64)
    for turn in range(_ROUNDS):
        away = np.stack([np.abs(features - centre).sum(axis=1) for centre in centres])
        before, nearest = nearest, away.argmin(axis=0)
        if turn and (before == nearest).all():
            break
        centres = np.stack(
            [
                np.median(features[nearest == k], axis=0) if (nearest == k).any() else own
                for k, own in enumerate(centres)
            ]
        )
    return centres, nearest
