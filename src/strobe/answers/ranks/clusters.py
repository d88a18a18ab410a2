"""Which ranks behave alike: clusters by how they spend their time and with whom they communicate."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.analyses.ranks.clusters import ANALYSIS
from strobe.model.units import format_number_of, format_share
from strobe.ranks.clusters import Clusters, RankProfiles, rank_clusters, rank_profiles, separating, shares
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace

_FUNCTIONS = 3  # that separate a cluster
_SHOWN = 8  # outliers of a cluster, and clusters of a sentence
_FUNCTION_CELLS = ("function", "inside_ns", "outside_ns", "inside_share", "outside_share")
_ONE_RANK = "this trace has one rank, and clusters need two: strobe import takes the files of all ranks, or a folder"


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.ranks.clusters`."""
    profiles, found = rank_profiles(trace), rank_clusters(trace)
    rows = list({"cluster": _by_cluster, "function": _by_function, "rank": _by_rank}[by](profiles, found))
    note = _note(profiles, found) if len(profiles.rank) > 1 else _ONE_RANK
    about = f"{format_number_of(len(profiles.rank), 'rank')}, {profiles.about}"
    note = "; ".join(filter(None, (note, profiles.note)))
    return make_table(ANALYSIS.columns_with(by=by), rows, about=about, note=note)


def _by_cluster(profiles: RankProfiles, found: Clusters) -> Iterator[dict[str, object]]:
    for number, medoid in enumerate(found.medoid.tolist()):
        (own,) = np.nonzero(found.cluster == number)
        farthest = own[np.argsort(-found.distance[own], kind="stable")]
        outliers = [str(profiles.rank[at]) for at in farthest[found.outlier[farthest]].tolist()]
        more = [f"and {len(outliers) - _SHOWN} more"] * (len(outliers) > _SHOWN)
        yield {
            "cluster": number,
            "size": len(own),
            "medoid_rank": profiles.rank[medoid],
            "worst_rank": profiles.rank[farthest[0]],
            **dict.fromkeys(_FUNCTION_CELLS),
            **next(_separating(profiles, found, number, 1), {}),
            "outliers": ", ".join(outliers[:_SHOWN] + more) or None,
            "role": profiles.roles[profiles.role[medoid]] or None,
        }


def _by_function(profiles: RankProfiles, found: Clusters) -> Iterator[dict[str, object]]:
    for number in range(len(found.medoid)):
        yield from ({"cluster": number, **row} for row in _separating(profiles, found, number, _FUNCTIONS))


def _by_rank(profiles: RankProfiles, found: Clusters) -> Iterator[dict[str, object]]:
    columns = (found.cluster.tolist(), found.distance.tolist(), found.outlier.tolist())
    for rank, *cells in zip(profiles.rank, *columns, strict=True):
        yield {"rank": rank, **dict(zip(("cluster", "distance", "outlier"), cells, strict=True))}


def _separating(profiles: RankProfiles, found: Clusters, number: int, most: int) -> Iterator[dict[str, object]]:
    inside, share = found.cluster == number, shares(profiles.time_ns)
    for at in separating(share, inside, most).tolist():
        yield {
            "function": profiles.functions[at],
            **{f"{side}_ns": float(profiles.time_ns[of, at].mean()) for side, of in _sides(inside)},
            **{f"{side}_share": float(share[of, at].mean()) for side, of in _sides(inside)},
        }


def _sides(inside: np.ndarray) -> tuple[tuple[str, np.ndarray], ...]:
    return (("inside", inside), ("outside", ~inside))


def _note(profiles: RankProfiles, found: Clusters) -> str:
    """Return a sentence: the clusters, what separates the largest from the others, and how many outliers there are."""
    count, sizes = len(found.medoid), np.bincount(found.cluster).tolist()
    odd = f", but {format_number_of(int(found.outlier.sum()), 'outlier')}" if found.outlier.any() else ""
    if count == 1:
        return f"all {len(profiles.rank)} ranks behave alike{odd}"
    named = [f"{sizes[k]} like rank {profiles.rank[found.medoid[k]]}" for k in range(min(count, _SHOWN))]
    named += [f"{sum(sizes[_SHOWN:])} others"] * (count > _SHOWN)
    first = next(_separating(profiles, found, 0, 1), None)
    why = first and (
        f"; the first spend {format_share(float(str(first['inside_share'])))} of the time of their threads in"
        f" {first['function']}, the others {format_share(float(str(first['outside_share'])))}"
    )
    return f"ranks behave in {count} ways: {', '.join(named)}{why or '; they differ in whom they talk to'}{odd}"
