"""Outliers: steps that take much longer than their class usually does, and the part that made them so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from strobe.structure.activities import PARTS
from strobe.structure.classes import PARTIAL
from strobe.structure.stream import Bools, Ints

# A step is an outlier beyond median + max(5 robust standard deviations, a quarter of the median) of its class. The
# median and the median absolute deviation (times 1.4826: the standard deviation, if normal) ignore the outliers.
DEVIATIONS = 5 * 1.4826
LEAST_EXCESS = 0.25
# A class with fewer steps has no usual duration.
MIN_STEPS = 5
# The first steps may be slow because caches, allocators and loaders warm up.
MOST_WARM_UP = 10


def find_outliers(duration_ns: Ints, parts_ns: Ints, classes: Sequence[str]) -> tuple[Bools, Bools, list[str]]:
    """Return which steps are outliers, which are warm-up, and the cause of each (one of PARTS, "" for usual steps)."""
    names = np.array(classes, dtype=object)
    slow = np.zeros(len(names), dtype=bool)
    cause = [""] * len(names)
    for name in dict.fromkeys(classes):
        members = np.flatnonzero(names == name)
        if name == PARTIAL or len(members) < MIN_STEPS:
            continue
        slow[members] = duration_ns[members] > limit_ns(duration_ns[members])
        excess = parts_ns[members] - np.median(parts_ns[members], axis=0)
        for step, worst in zip(members, excess.argmax(axis=1), strict=True):
            if slow[step]:
                cause[step] = PARTS[worst]
    warm_up = np.zeros(len(names), dtype=bool)
    usual = np.flatnonzero(~slow & (names != PARTIAL))
    first_usual = int(usual[0]) if len(usual) else 0
    warm_up[: min(first_usual, MOST_WARM_UP, len(names) // 5)] = True
    warm_up &= slow
    return slow & ~warm_up, warm_up, cause


def limit_ns(duration_ns: Ints) -> float:
    """Duration beyond which a step of a class is an outlier, from the durations of the class."""
    median = float(np.median(duration_ns))
    deviation = float(np.median(np.abs(duration_ns - median)))
    return median + max(DEVIATIONS * deviation, LEAST_EXCESS * median)
