"""Which ranks behave alike: clusters by how they spend their time and with whom they communicate.

A profile is how a rank spends its steady steps, also folded ones (the whole run, if no steps were found): the time of
each function without what it calls, in all of the rank's threads and streams, as a part of all of it; `outside of
calls` is the time of the main thread in none of the recorded calls. Distance: the quadratic mean of the Hellinger
distances of two profiles by function and by group of functions, 0 to 1. Functions that have less than 1 % in every
rank count as one.

Ranks whose roles differ are in different clusters: a role is in which collectives a rank takes part, and to and from
whom it sends messages, counted from itself (modulo the number of ranks), at least once a step. With more than 16
roles, these are not looked at. Ranks of a role are joined by average linkage, up to the largest gap in the distances
of what is joined, if the mean silhouette is 0.25 or more; else they are one cluster. Distances below 0.05 separate
nothing. Of more than 2000 different profiles, every n-th is joined in this way; the others belong to the nearest
medoid (mini-batch k-medoids). Nothing is random.

The medoid is the rank of a cluster that is nearest to all others, the worst rank the one that is farthest from it.
Outliers are farther than the median by more than 6 median absolute deviations. Functions separate a cluster by the
difference of their mean shares inside and outside, divided by the pooled median absolute deviation.
"""

from strobe.model.columns import RANK, Column, when
from strobe.model.option import one_of
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "Which ranks behave alike, and what separates them from the others?",
    options=(one_of("by", "One row per cluster, separating function, or rank.", "cluster", "function", "rank"),),
    columns=(
        *when(RANK, by="rank"),
        Column("cluster", "int64", "", "number of the cluster, 0 is the largest"),
        *when(
            Column("size", "int64", "", "ranks in it"),
            Column("medoid_rank", "int64", "", "the rank that is nearest to all others of it"),
            Column("worst_rank", "int64", "", "the rank that is farthest from the medoid"),
            by="cluster",
        ),
        *when(
            Column("function", "string", "", "the function that separates it most, null of a single cluster"),
            Column("inside_ns", "float64", "ns", "mean time of it on the ranks inside"),
            Column("outside_ns", "float64", "ns", "mean time of it on all other ranks"),
            Column("inside_share", "float64", "", "mean part of the time inside", extra=True),
            Column("outside_share", "float64", "", "mean part of the time on all other ranks", extra=True),
            by=("cluster", "function"),
        ),
        *when(
            Column("outliers", "string", "", "ranks that are far from the medoid, the farthest first"),
            Column("role", "string", "", "with whom its ranks communicate once a step", extra=True),
            by="cluster",
        ),
        *when(
            Column("distance", "float64", "", "to the medoid"),
            Column("outlier", "bool", "", "whether it is an outlier"),
            by="rank",
        ),
    ),
)
