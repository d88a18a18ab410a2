"""Outliers: steps that take much longer than their class usually does, and the part that made them so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from strobe.structure.activities import PARTS
from strobe.structure.classes import PARTIAL
from strobe.structure.stream import Bools, Ints

# A step is an outlier if it exceeds the median of its class by more than 5 robust standard deviations and by more than
# a quarter; or if one of its parts exceeds its own median so much, and by more than a whole usual step: noise in one
# part must not hide a stall in another. The median, and the median absolute deviation (times 1.4826: the standard
# deviation, if normal), ignore the outliers themselves.
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
    usual_ns = float(np.median(duration_ns)) if len(names) else 0.0
    for name in dict.fromkeys(classes):
        members = np.flatnonzero(names == name)
        if name == PARTIAL or len(members) < MIN_STEPS:
            continue
        excess, unusual_part = _excess(parts_ns[members], usual_ns)
        least = LEAST_EXCESS * float(np.median(duration_ns[members]))
        _, unusual = _excess(duration_ns[members, None], least)
        slow[members] = unusual[:, 0] | unusual_part.any(axis=1)
        for step, worst in zip(members, excess.argmax(axis=1), strict=True):
            if slow[step]:
                cause[step] = PARTS[worst]
    warm_up = np.zeros(len(names), dtype=bool)
    usual = np.flatnonzero(~slow & (names != PARTIAL))
    first_usual = int(usual[0]) if len(usual) else 0
    warm_up[: min(first_usual, MOST_WARM_UP, len(names) // 5)] = True
    warm_up &= slow
    return slow & ~warm_up, warm_up, cause


def _excess(values_ns: Ints, least_ns: float) -> tuple[npt.NDArray[np.float64], Bools]:
    """Return by how much each value exceeds the median of its column, and whether that is unusual and not little."""
    excess = values_ns - np.median(values_ns, axis=0)
    deviation = np.median(np.abs(excess), axis=0)
    return excess, excess > np.maximum(DEVIATIONS * deviation, least_ns)
