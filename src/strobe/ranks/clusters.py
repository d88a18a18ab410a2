"""Clusters of ranks: which ones spend their time alike and communicate with the same neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strobe.model.kinds import GROUPS
from strobe.ranks.collectives import collectives
from strobe.ranks.transfers import log
from strobe.steps.selection import select
from strobe.sums.attributes import integers
from strobe.sums.path_statistics import process_sums
from strobe.tables.column_arrays import Bools, Floats, Ints, alike
from strobe.trace.definition_rows import path_tree, process_rows, rank_processes, region_rows
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# The time of a main thread in which it is in none of the recorded calls: the computation of a program of MPI.
OUTSIDE = "outside of calls"
# Profiles that are closer are alike: below it, no gap separates clusters, and nothing is an outlier.
ALIKE = 0.05
_LEAST_SHARE = 0.01  # of a function in some rank; the others count together
_LEAST_SILHOUETTE = 0.25
_OUTLIER_MADS = 6
MOST_CLUSTERS = 16  # in a role
_MOST_ROLES = 16  # with more, nearly every rank would have a role of its own
_MOST_LINKED = 2000  # profiles: the distances of all pairs fit into 32 MB
_BATCH = 500  # of more: so large a part of them, which takes some 50 ms
_ROUNDS = 4


@dataclass(frozen=True)
class RankProfiles:
    """Where ranks spend their time: a row per rank, in order of rank.

    time_ns: array (ranks, functions), exclusive, of all threads and streams in the selected steps. group: of each
    function, its number in GROUPS. role: number in `roles`, which has a text for each. about: what was selected.
    """

    process: Ints
    rank: Sequence[int | None]
    functions: Sequence[str]
    group: Ints
    time_ns: Floats
    role: Ints
    roles: Sequence[str]
    about: str
    note: str


@dataclass(frozen=True)
class Clusters:
    """Which cluster each profile is in. Clusters are numbered by size, the largest first.

    medoid: of each cluster, the profile that is nearest to all others. distance: of each profile to its medoid.
    outlier: farther from it than the median of the cluster by more than 6 median absolute deviations, and ALIKE.
    """

    cluster: Ints
    medoid: Ints
    distance: Floats
    outlier: Bools


@cached_on_trace
def rank_profiles(trace: Trace) -> RankProfiles:
    """Return the profiles of ranks over their steady steps, also of folded ones; of the whole run without steps."""
    selection, processes, regions = select(trace), process_rows(trace), region_rows(trace)
    sums = process_sums(trace, selection)
    names, of_region = np.unique([OUTSIDE, *(each.name for each in regions)], return_inverse=True)
    group = np.full(len(names), GROUPS.index("host"))
    group[of_region[1:]] = [GROUPS.index(each.group) for each in regions]
    process, own = (np.concatenate([integers(sums[of].column(name)) for of in sums]) for name in ("process", "own_ns"))
    function = of_region[1:][path_tree(trace)[1]][integers(sums["rows"].column("call_path"))]
    function = np.append(function, np.full(len(sums["outside"]), of_region[0]))
    there = rank_processes(trace)
    place = np.full(len(processes), -1)
    place[there] = np.arange(len(there))
    inside = place[process] >= 0
    time_ns = np.zeros((len(there), len(names)))
    np.add.at(time_ns, (place[process[inside]], function[inside]), own[inside])
    used = time_ns.any(axis=0)
    ranks = [processes[at].rank for at in there]
    role, roles = _roles(trace, ranks, selection.step_count or 1)
    return RankProfiles(
        process=np.array(there, dtype=np.int64),
        rank=ranks,
        functions=names[used].tolist(),
        group=group[used],
        time_ns=np.maximum(0, time_ns[:, used]),
        role=role,
        roles=roles,
        about=selection.about,
        note=selection.note,
    )


@cached_on_trace
def rank_clusters(trace: Trace) -> Clusters:
    """Return the clusters of `rank_profiles`; computed once per open trace."""
    profiles = rank_profiles(trace)
    return cluster_ranks(vectors(profiles.time_ns, profiles.group), profiles.role)


def _roles(trace: Trace, ranks: Sequence[int | None], least: int) -> tuple[Ints, list[str]]:
    """Return the role of each rank: with whom, relative to itself, and in which collectives it communicates.

    Counted is what occurs at least `least` times: once a step. Peers are relative modulo the number of ranks.
    """
    size = max((rank + 1 for rank in ranks if rank is not None), default=1)
    moved, met = log(trace).transfers, collectives(trace)
    known = (moved.sender >= 0) & (moved.receiver >= 0)
    sender, receiver, times = moved.sender[known], moved.receiver[known], moved.count[known]
    offset = (receiver - sender) % size
    of_party = np.array([-1 if each.rank is None else each.rank for each in met.parties], dtype=np.int64)
    words = [f"{'root of ' * root}{kind}" for kind, _ in met.lines for root in (False, True)]
    word = size + np.unique(words, return_inverse=True)[1] if words else np.zeros(0, dtype=np.int64)
    what = word[2 * met.line + (met.root == 1)] if len(met) else met.line
    rank = np.concatenate((sender, receiver, of_party[met.party] if len(met) else met.party))
    code = np.concatenate((offset, size + len(words) + size - offset, what))
    first, which = alike((rank, code))
    often = np.bincount(which, np.concatenate((times, times, np.ones(len(met)))), len(first)) >= least
    own: dict[int, list[str]] = {}
    texts = {size + number: text for number, text in enumerate(np.unique(words).tolist())}
    for at in first[often].tolist():
        number = int(code[at])
        if number < size:
            text = f"sends to {number - size if number > size // 2 else number:+d}"
        elif number >= size + len(words):
            from_ = (number - size - len(words)) % size
            text = f"receives from {from_ - size if from_ > size // 2 else from_:+d}"
        else:
            text = texts[number]
        own.setdefault(int(rank[at]), []).append(text)
    by_rank = [", ".join(own.get(-1 if each is None else each, ())) for each in ranks]
    roles = sorted(set(by_rank))
    if len(roles) > _MOST_ROLES:
        return np.zeros(len(ranks), dtype=np.int64), [""]
    return np.array([roles.index(each) for each in by_rank], dtype=np.int64), roles


def shares(time_ns: Floats) -> Floats:
    """Return times of functions, a row per rank, as parts of all time of the rank."""
    share: Floats = time_ns / np.maximum(1, time_ns.sum(axis=1, keepdims=True))
    return share


def vectors(time_ns: Floats, group: Ints) -> Floats:
    """Return a vector for each profile: a row of times by function, each of a group.

    The Euclidean distances of vectors are those of `cluster_ranks`, 0 to 1: they hold the roots of the shares of
    groups, and of functions with at least 1 % in some rank. So the distance is the quadratic mean of both Hellinger
    distances.
    """
    share = shares(time_ns)
    groups = share @ (group[:, None] == np.unique(group))
    large = share.max(axis=0, initial=0) >= _LEAST_SHARE
    rest = share[:, ~large].sum(axis=1, keepdims=True)
    roots: Floats = np.sqrt(np.hstack((groups, share[:, large], rest)))
    return roots / 2


def cluster_ranks(points: Floats, role: Ints, count: int | None = None) -> Clusters:
    """Sort points (`vectors`) of the same role into clusters, `count` or as many as stand out, by average linkage.

    The tree is cut at its largest gap above ALIKE, if the mean silhouette (Rousseeuw, "Silhouettes", 1987) is 0.25 or
    more; else the role is one cluster. A profile that is alone in its cluster counts as if it was as far from others
    of it as the largest distance that was joined. Equal profiles count once (but for the medoid), and they are sorted:
    neither copies nor the order of ranks change a cluster.
    """
    cluster, medoid = np.zeros(len(points), dtype=np.int64), list[int]()
    for each in np.unique(role).tolist():
        (own,) = np.nonzero(role == each)
        distinct, first, which, times = np.unique(points[own], True, True, True, axis=0)
        found, medoids = (_linked if len(distinct) <= _MOST_LINKED else _by_medoids)(distinct, times, count)
        cluster[own] = len(medoid) + found[which.ravel()]
        medoid += own[first[medoids]].tolist()
    # By size; of equal ones the one with the first member comes first.
    _, first, sizes = np.unique(cluster, return_index=True, return_counts=True)
    order = np.lexsort((first, -sizes))
    cluster, medoids = np.argsort(order)[cluster], np.array(medoid, dtype=np.int64)[order]
    distance = np.linalg.norm(points - points[medoids[cluster]], axis=1)
    outlier = np.zeros(len(points), dtype=bool)
    for number in range(len(medoids)):
        (own,) = np.nonzero(cluster == number)
        away = distance[own] - np.median(distance[own])
        outlier[own] = away > max(ALIKE, _OUTLIER_MADS * float(np.median(np.abs(away))))
    return Clusters(cluster, medoids, distance, outlier)


def separating(share: Floats, inside: Bools, most: int) -> Ints:
    """Return the functions whose shares separate some ranks from all others most, the first one most.

    By the difference of means in units of the pooled median absolute deviation, which is at least 0.1 % of the time.
    """
    if inside.all():
        return np.zeros(0, dtype=np.int64)
    middle = np.where(inside[:, None], np.median(share[inside], axis=0), np.median(share[~inside], axis=0))
    mad = np.maximum(0.001, np.median(np.abs(share - middle), axis=0))
    apart = np.abs(share[inside].mean(axis=0) - share[~inside].mean(axis=0)) / mad
    order = np.argsort(-apart, kind="stable")[:most]
    return np.asarray(order[apart[order] > 0], dtype=np.int64)


def _distances(points: Floats, others: Floats) -> Floats:
    distances: Floats = (points**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)
    distances -= 2 * points @ others.T
    # In place: to get memory takes longer than to compute.
    np.maximum(0, distances, out=distances)
    return np.sqrt(distances, out=distances)


def _linked(points: Floats, times: Ints, count: int | None) -> tuple[Ints, Ints]:
    """Return the cluster of each of some distinct points, by average linkage, and the medoids.

    times: how many profiles each point stands for.
    """
    distance = _distances(points, points)
    np.fill_diagonal(distance, 0)
    merges = _average_linkage(distance)
    height = np.array([each for each, _, _ in merges])
    levels = np.maximum(ALIKE, np.append(0.0, height))
    gaps = np.diff(levels)
    gaps[: max(0, len(points) - MOST_CLUSTERS)] = 0
    cluster = np.zeros(len(points), dtype=np.int64)
    if count:
        cluster = _members(len(points), merges[: max(0, len(points) - count)])
    elif gaps.any():
        joined = len(gaps) - 1 - int(np.argmax(gaps[::-1]))  # merges below the gap; of equal gaps the highest
        cut = _members(len(points), merges[:joined])
        if _silhouette(distance, cut, float(levels[joined])) >= _LEAST_SILHOUETTE:
            cluster = cut
    return cluster, _medoids(distance, cluster, times)


def _average_linkage(distance: Floats) -> list[tuple[float, int, int]]:
    """Return what is joined, and at which mean distance, in order of that, by chains of nearest neighbours.

    Murtagh, "A survey of recent advances in hierarchical clustering algorithms", 1983. Of a cluster, any member.
    """
    away, size, merges, chain = distance.copy(), np.ones(len(distance)), list[tuple[float, int, int]](), list[int]()
    np.fill_diagonal(away, np.inf)
    while len(merges) < len(distance) - 1:
        chain = chain or [int(np.argmax(size > 0))]
        last = chain[-1]
        # The one before comes first among equally near ones, or the chain would not end.
        near = int(np.argmin(away[last]))
        if len(chain) > 1 and away[last, chain[-2]] <= away[last, near]:
            near = chain[-2]
            del chain[-2:]
            merges.append((float(away[last, near]), near, last))
            mean = (size[last] * away[last] + size[near] * away[near]) / (size[last] + size[near])
            away[near], away[:, near] = mean, mean
            away[near, near] = np.inf
            away[last], away[:, last] = np.inf, np.inf
            size[near] += size[last]
            size[last] = 0
        else:
            chain.append(near)
    return sorted(merges, key=lambda merge: merge[0])


def _members(count: int, merges: Sequence[tuple[float, int, int]]) -> Ints:
    """Return the cluster of each point after some merges."""
    cluster = np.arange(count)
    for _, one, other in merges:
        cluster[cluster == cluster[other]] = cluster[one]
    return np.unique(cluster, return_inverse=True)[1]


def _silhouette(distance: Floats, cluster: Ints, joined: float) -> float:
    """Return the mean silhouette; `joined`: the largest distance at which clusters were joined."""
    member = (cluster[:, None] == np.arange(cluster.max() + 1)).astype(np.float64)
    size, sums = member.sum(axis=0), distance @ member
    rows = np.arange(len(cluster))
    inside = np.where(size[cluster] > 1, sums[rows, cluster] / np.maximum(1, size[cluster] - 1), joined)
    outside = sums / size
    outside[rows, cluster] = np.inf
    nearest = outside.min(axis=1)
    return float(((nearest - inside) / np.maximum(np.maximum(nearest, inside), 1e-12)).mean())


def _medoids(distance: Floats, cluster: Ints, times: Ints) -> Ints:
    own = [np.flatnonzero(cluster == number) for number in range(int(cluster.max()) + 1)]
    return np.array([each[np.argmin(distance[np.ix_(each, each)] @ times[each])] for each in own], dtype=np.int64)


def _by_medoids(points: Floats, times: Ints, count: int | None) -> tuple[Ints, Ints]:
    """Return the clusters of many points, and their medoids: those of a part, then improved with other parts.

    Mini-batch k-medoids: as Sculley, "Web-scale k-means clustering", 2010, with medoids, and every n-th of the sorted
    points as a batch instead of random ones.
    """
    batches = -(-len(points) // _BATCH)
    _, medoids = _linked(points[::batches], times[::batches], count)
    medoids = medoids * batches
    for turn in range(min(batches, _ROUNDS)):
        batch = np.union1d(np.arange(turn, len(points), batches), medoids)
        nearest = _distances(points[batch], points[medoids]).argmin(axis=1)
        medoids = batch[_medoids(_distances(points[batch], points[batch]), nearest, times[batch])]
    return _distances(points, points[medoids]).argmin(axis=1), medoids
