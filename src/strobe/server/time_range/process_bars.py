"""Where the time of each process went in a time range: a bar for each, and those that are alike as clusters."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from strobe.model.kinds import GROUPS, Group
from strobe.ranks.clusters import MOST_CLUSTERS, cluster_ranks, vectors
from strobe.server.routing.endpoints import MB, TIME_RANGE, parameter, route
from strobe.server.time_range.range_sums import process_sums
from strobe.server.trace_context import TraceContext
from strobe.tables.column_arrays import Bools, Floats, Ints
from strobe.trace.definition_rows import rank_processes

BY = ("group", "region")
ALL, RANKS = "all", "ranks"
# Bars that are sent at most; the clusters are of all processes.
MOST_BARS = 2000
_MOST_PARTS = 11
_MOST_MEMBERS = 256
_MOST_DIFFERENCES = 3
FOLDED = "folded steps"


class BarPart(TypedDict):
    """What a part of the bars is: a group, a region, or folded steps, which have no group."""

    name: str
    group: str


class Bar(TypedDict):
    """The time of a process by part, its cluster, and how far it is from the medoid of that, 0 to 1."""

    process: int
    cluster: int
    distance: float
    ns: list[int]


class Difference(TypedDict):
    """A region with its mean time in a cluster and in all others."""

    name: str
    group: Group
    mean_ns: int
    others_ns: int


class Cluster(TypedDict):
    """Processes that are alike: see `bars`."""

    size: int
    members: list[int]
    typical: int
    farthest: float
    ns: list[int]
    differs: list[Difference]


class Bars(TypedDict):
    """Where the time of each process went: see `bars`."""

    parts: list[BarPart]
    processes: int
    bars: list[Bar]
    clusters: list[Cluster]


@route(
    "window/bars",
    *TIME_RANGE,
    parameter("by", "what bars are made of", str, "group", choices=BY),
    parameter("of", "which processes; ranks: without those that have none, if some have one", str, ALL, (ALL, RANKS)),
    parameter("clusters", "number of clusters; 0: as many as stand out", default=0, most=MOST_CLUSTERS),
    parameter("limit", "bars at most", default=MOST_BARS, most=MOST_BARS),
    most_bytes=8 * MB,
)
def bars(
    context: TraceContext,
    start_ns: int,
    end_ns: int,
    by: str = "group",
    of: str = ALL,
    clusters: int = 0,
    limit: int = MOST_BARS,
) -> Bars:
    """Where the time of every process went in a time range, and clusters of those that are alike.

    parts: what `ns` of a bar and of a cluster is of, in order. bars: those of at most `limit` processes, of more
    those that are farthest from the medoids of their clusters, in order of process; `processes` is the number of
    all. clusters: see `strobe.ranks.clusters`, which compares times by region whatever `by` is; `ns` is the mean of
    the members, and `differs` names the regions in which their mean differs most from that of all others.
    """
    process, profiles, folded = _profiles(context, start_ns, end_ns, of)
    regions = np.flatnonzero(profiles.any(axis=0)) if len(process) else np.zeros(0, dtype=np.int64)
    profiles = profiles[:, regions]
    parts, shown = _parts(context, regions, profiles, folded, by)
    # Folded steps have no group: each of their parts is one.
    groups = [*(GROUPS.index(context.names.groups[each]) for each in regions.tolist()), *range(-folded.shape[1], 0)]
    points = vectors(np.column_stack((profiles, folded)), np.array(groups, dtype=np.int64))
    found = cluster_ranks(points, np.zeros(len(points), dtype=np.int64), clusters or None)
    sent = np.sort(np.argsort(-found.distance, kind="stable")[:limit])
    return {
        "parts": parts,
        "processes": len(process),
        "bars": [
            {
                "process": int(process[at]),
                "cluster": int(found.cluster[at]),
                "distance": float(found.distance[at]),
                "ns": shown[at].astype(np.int64).tolist(),
            }
            for at in sent.tolist()
        ],
        "clusters": [
            {
                "size": int((found.cluster == number).sum()),
                "members": process[found.cluster == number][:_MOST_MEMBERS].tolist(),
                "typical": int(process[typical]),
                "farthest": float(found.distance[found.cluster == number].max()),
                "ns": shown[found.cluster == number].mean(axis=0).astype(np.int64).tolist(),
                "differs": _differs(context, regions, profiles, found.cluster == number),
            }
            for number, typical in enumerate(found.medoid.tolist())
        ],
    }


def _profiles(context: TraceContext, start_ns: int, end_ns: int, of: str) -> tuple[Ints, Floats, Floats]:
    """Return which processes did anything, their exclusive times by region, and times of folded steps by part."""
    own, _, found = process_sums(context, start_ns, end_ns)
    names = sorted({name for each in found.values() for name in each.folded})
    folded = np.zeros((len(own), len(names)))
    for at, each in found.items():
        folded[at] = [each.folded.get(name, 0) for name in names]
    process = np.flatnonzero(own.any(axis=1) | folded.any(axis=1))
    if of == RANKS:
        process = process[np.isin(process, rank_processes(context.trace))]
    return process, own[process], folded[process]


def _parts(
    context: TraceContext, regions: Ints, profiles: Floats, folded: Floats, by: str
) -> tuple[list[BarPart], Floats]:
    """Return what bars are made of, most first, and the time of each process in each part."""
    parts: list[BarPart]
    groups = np.array([GROUPS.index(context.names.groups[region]) for region in regions.tolist()], dtype=np.int64)
    if by == "group":
        parts = [{"name": group, "group": group} for group in GROUPS]
        number, size = groups, len(GROUPS)
    else:
        top = np.argsort(-profiles.sum(axis=0), kind="stable")[:_MOST_PARTS]
        number = np.full(len(regions), len(top), dtype=np.int64)
        number[top] = np.arange(len(top))
        parts = [{"name": context.names.names[at], "group": context.names.groups[at]} for at in regions[top].tolist()]
        parts.append({"name": "other regions", "group": "other"})
        size = len(top) + 1
    member = (number[:, None] == np.arange(size)).astype(np.float64)
    shown = np.column_stack((profiles @ member, folded.sum(axis=1)))
    parts.append({"name": FOLDED, "group": ""})
    kept = np.flatnonzero(shown.any(axis=0)) if len(shown) else np.zeros(0, dtype=np.int64)
    return [parts[at] for at in kept.tolist()], shown[:, kept]


def _differs(context: TraceContext, regions: Ints, profiles: Floats, inside: Bools) -> list[Difference]:
    if inside.all() or not len(regions):
        return []
    mean, others = profiles[inside].mean(axis=0), profiles[~inside].mean(axis=0)
    most = np.argsort(-np.abs(mean - others), kind="stable")[:_MOST_DIFFERENCES]
    return [
        {
            "name": context.names.names[regions[at]],
            "group": context.names.groups[regions[at]],
            "mean_ns": int(mean[at]),
            "others_ns": int(others[at]),
        }
        for at in most.tolist()
        if mean[at] != others[at]
    ]
