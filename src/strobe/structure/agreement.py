"""Agreement: whether two sequences of events, or two ranks, tell of the same steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from strobe.structure.stream import Ints, Stream

# Marks that say the same alternate: so many of the intervals between two of one hold exactly one of the other ...
_ALTERNATE = 0.9
# ... while both are there, and that is so much of the time of the first.
_COMMON = 0.9


def agree(stream: Stream, marks: Ints, others: Ints) -> bool:
    """Whether two lists of rows mark the same iterations: the same number, give or take one, over their common time."""
    if len(marks) < 2 or len(others) < 2:
        return False
    one, other = stream.start_ns[marks], stream.start_ns[others]
    low, high = max(one[0], other[0]), min(one[-1], other[-1])
    if high - low < _COMMON * (one[-1] - one[0]) and len(marks) > 3:
        # Of few marks the last interval may be a good part of the time.
        counted = np.count_nonzero((one >= low) & (one <= high))
        if counted < len(marks) - 2:
            return False
    counts = [np.count_nonzero((each >= low) & (each <= high)) for each in (one, other)]
    if abs(int(counts[0]) - int(counts[1])) > 1:
        return False
    inside = np.diff(np.searchsorted(other, one[(one >= low) & (one <= high)]))
    return not len(inside) or bool(np.mean(inside == 1) >= _ALTERNATE)


def median_count(counts: Sequence[int]) -> int:
    """The number of steps of a job whose ranks count so many each: the lower median, which one of them has."""
    return sorted(counts)[(len(counts) - 1) // 2]


def odd_ranks(counts: Sequence[int]) -> list[int]:
    """Indices of the ranks whose count is off the median by more than one."""
    median = median_count(counts)
    return [rank for rank, count in enumerate(counts) if abs(count - median) > 1]
