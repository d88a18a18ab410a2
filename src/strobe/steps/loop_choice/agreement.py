"""Whether the ranks of a job have the same steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from strobe.steps.thread_spans import Ints

# Ranks whose steps begin closer to each other than this share of a step run them together.
_TOGETHER = 0.5
_MOST_SHIFT = 2


def usual_count(counts: Sequence[int]) -> int | None:
    """The number of steps of a job whose ranks count so many each: the median; None if most ranks are off by more."""
    median = sorted(counts)[(len(counts) - 1) // 2]
    return median if 2 * sum(abs(count - median) <= 1 for count in counts) > len(counts) else None


def first_numbers(starts_ns: Sequence[Ints]) -> list[int]:
    """The number of the first step of each rank, so that steps of the same number are run together.

    They are 0 unless a rank has a step more or less than the first one, and its steps begin together with those of the
    first rank after a shift by one or two.
    """
    reference, shifts = starts_ns[0], []
    step_ns = float(np.median(np.diff(reference))) if len(reference) > 1 else 0.0
    for starts in starts_ns:
        if len(starts) == len(reference):
            shifts.append(0)
            continue
        apart = {shift: _apart_ns(reference, starts, shift) for shift in range(-_MOST_SHIFT, _MOST_SHIFT + 1)}
        best = min(apart, key=lambda shift: (apart[shift], abs(shift)))
        shifts.append(best if apart[best] < _TOGETHER * step_ns < apart[0] else 0)
    return [shift - min(shifts) for shift in shifts]


def _apart_ns(reference: Ints, starts: Ints, shift: int) -> float:
    """How far apart steps begin if the first of `starts` is number `shift` of the reference; the median."""
    one, other = reference[max(0, shift) :], starts[max(0, -shift) :]
    count = min(len(one), len(other))
    return float(np.median(np.abs(one[:count] - other[:count]))) if count else np.inf
