"""Where the time of each process went in a stretch of time: a bar for each, and those that are alike as clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from strobe.model.kinds import GROUPS
from strobe.server.window import process_sums
from strobe.structure.clusters import cluster_profiles

if TYPE_CHECKING:
    from strobe.server.facts import Facts

Floats = npt.NDArray[np.float64]

BY = ("group", "region")
# Bars that are sent; the clusters are of all processes.
MOST_BARS = 2000
_MOST_PARTS = 11
_MOST_MEMBERS = 256
_MOST_DIFFERENCES = 3
FOLDED = "folded steps"


def bars(facts: Facts, start_ns: int, end_ns: int, *, by: str = "group", count: int | None = None) -> dict[str, Any]:
    """Return the exclusive time of every process in [start_ns, end_ns) by group or by region, and clusters of them.

    parts: what `ns` of a bar and of a cluster is of, in order. bars: those of at most `MOST_BARS` processes, of more
    those that are farthest from the centres of their clusters, in order of process; `processes` says how many there
    are. clusters: see `strobe.structure.clusters`, which compares times by region whatever `by` is; `ns` is the mean of
    the members, and `differs` names the regions in which their mean differs most from that of all others.
    """
    process, profiles, folded = _profiles(facts, start_ns, end_ns)
    regions = np.flatnonzero(profiles.any(axis=0)) if len(process) else np.zeros(0, dtype=np.int64)
    profiles = profiles[:, regions]
    parts, shown = _parts(facts, regions, profiles, folded, by)
    found = cluster_profiles(np.column_stack((profiles, folded)), count)
    sent = np.sort(np.argsort(-found.distance, kind="stable")[:MOST_BARS])
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
                "differs": _differs(facts, regions, profiles, found.cluster == number),
            }
            for number, typical in enumerate(found.typical.tolist())
        ],
    }


def _profiles(facts: Facts, start_ns: int, end_ns: int) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """Return which processes did anything, their exclusive times by region, and times of folded steps by part."""
    sums = process_sums(facts, start_ns, end_ns)
    process = np.array([at for at, each in enumerate(sums) if each.own.any() or each.folded], dtype=np.int64)
    own = np.array([sums[at].own for at in process.tolist()]).reshape(len(process), len(facts.names.names))
    names = sorted({name for each in sums for name in each.folded})
    folded = np.array([[float(sums[at].folded.get(name, 0)) for name in names] for at in process.tolist()])
    return process, own, folded.reshape(len(process), len(names))


def _parts(
    facts: Facts, regions: npt.NDArray[np.int64], profiles: Floats, folded: Floats, by: str
) -> tuple[list[dict[str, str]], Floats]:
    """Return what bars are made of, most first, and the time of each process in each part."""
    groups = np.array([GROUPS.index(facts.names.groups[region]) for region in regions.tolist()], dtype=np.int64)
    if by == "group":
        parts = [{"name": group, "group": group} for group in GROUPS]
        number, size = groups, len(GROUPS)
    else:
        top = np.argsort(-profiles.sum(axis=0), kind="stable")[:_MOST_PARTS]
        number = np.full(len(regions), len(top), dtype=np.int64)
        number[top] = np.arange(len(top))
        parts = [{"name": facts.names.names[at], "group": facts.names.groups[at]} for at in regions[top].tolist()]
        parts.append({"name": "other regions", "group": "other"})
        size = len(top) + 1
    member = (number[:, None] == np.arange(size)).astype(np.float64)
    shown = np.column_stack((profiles @ member, folded.sum(axis=1)))
    parts.append({"name": FOLDED, "group": ""})
    kept = np.flatnonzero(shown.any(axis=0)) if len(shown) else np.zeros(0, dtype=np.int64)
    return [parts[at] for at in kept.tolist()], shown[:, kept]


def _differs(
    facts: Facts, regions: npt.NDArray[np.int64], profiles: Floats, inside: npt.NDArray[np.bool_]
) -> list[dict[str, Any]]:
    if inside.all() or not len(regions):
        return []
    mean, others = profiles[inside].mean(axis=0), profiles[~inside].mean(axis=0)
    most = np.argsort(-np.abs(mean - others), kind="stable")[:_MOST_DIFFERENCES]
    return [
        {
            "name": facts.names.names[regions[at]],
            "group": facts.names.groups[regions[at]],
            "mean_ns": int(mean[at]),
            "others_ns": int(others[at]),
        }
        for at in most.tolist()
        if mean[at] != others[at]
    ]
