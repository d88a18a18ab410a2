"""Drift: where the usual duration of a class of steps departs for good from what it was at first."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from strobe.steps.thread_spans import Ints

# The steps of a class are divided into so many windows of as many steps each, if that makes so many a window.
WINDOWS = 16
LEAST_STEPS = 10
# So many windows must lie before the change, and as many after it: what comes back is no drift.
LEAST_WINDOWS = 2
# The medians before and after differ by this part at least.
LEAST_CHANGE = 0.1


def change_for_good(duration_ns: Ints) -> int | None:
    """Return the first of the durations (of one class, in order of time) after the change; None if there is none.

    Every window's median after the change is above (or every one below) all medians before it. Of several such places
    the one is taken that divides the windows best: least sum of squares around the two medians.
    """
    count = min(WINDOWS, len(duration_ns) // LEAST_STEPS)
    if count < 2 * LEAST_WINDOWS:
        return None
    edges = np.linspace(0, len(duration_ns), count + 1).astype(np.int64)
    medians = np.array([np.median(duration_ns[low:high]) for low, high in pairwise(edges)])
    best, least = None, np.inf
    for window in range(LEAST_WINDOWS, count - LEAST_WINDOWS + 1):
        before, after = medians[:window], medians[window:]
        apart = after.min() > before.max() or after.max() < before.min()
        low, high = sorted((float(np.median(before)), float(np.median(after))))
        spread = float(((before - np.median(before)) ** 2).sum() + ((after - np.median(after)) ** 2).sum())
        if apart and high >= (1 + LEAST_CHANGE) * low and spread < least:
            best, least = int(edges[window]), spread
    return best
