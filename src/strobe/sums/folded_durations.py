"""Durations by group where some were folded: counts and sums are exact, medians of those groups are estimates.

Of a profile's sums neither medians nor deviations are known: they are NaN.
"""

from __future__ import annotations

import numpy as np

from strobe.sums.groups import Spread, Summary
from strobe.sums.path_statistics import median_of
from strobe.tables.column_arrays import Ints
from strobe.trace.folded import BUCKETS, Folded, bucket_edges_ns


def with_folded(durations: Spread, groups: int, group: Ints, folded: Folded) -> Summary:
    """Return what is known of the first `groups` groups, with statistics, of which each row belongs to a group."""
    detail = durations.summary(groups)
    added = np.unique(group)
    count, total = detail.count.copy(), detail.total.copy()
    squares = detail.stddev**2 * np.maximum(count - 1, 0) + count * detail.average**2
    np.add.at(count, group, folded.count)
    np.add.at(total, group, folded.total_ns)
    np.add.at(squares, group, folded.sum_squares)
    least, most = np.where(detail.count > 0, detail.least, np.iinfo(np.int64).max), detail.most.copy()
    np.minimum.at(least, group, folded.min_ns)
    np.maximum.at(most, group, folded.max_ns)
    average = total / np.maximum(count, 1)
    variance = (squares - count * average**2) / np.maximum(count - 1, 1)
    stddev, median = detail.stddev.copy(), detail.median.copy()
    stddev[added] = np.sqrt(np.maximum(variance, 0))[added]
    counted = np.zeros((groups, BUCKETS), dtype=np.int64)
    np.add.at(counted, group, folded.histogram)
    own, value, times = durations.pairs(np.iinfo(np.int64).max)
    bucket = np.searchsorted(bucket_edges_ns()[1:-1], value, side="right")
    np.add.at(counted, (own, bucket), times)
    for each in added.tolist():
        known = counted[each].sum() == count[each]
        median[each] = median_of(counted[each], int(least[each]), int(most[each])) if known else np.nan
        stddev[each] = stddev[each] if known else np.nan
    return Summary(count, total, np.where(count > 0, least, 0), most, average, median, stddev)
