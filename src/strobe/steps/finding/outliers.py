"""Outliers: steps that take much longer than their class usually does, and the part that made them so.

Where a class drifts, what is usual before is not after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from strobe.steps.finding.step_classes import PARTIAL
from strobe.steps.thread_spans import Bools, Ints
from strobe.steps.training_activities import PARTS
from strobe.tables.column_arrays import Floats, median

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
# The steps of a class are divided into so many windows of as many steps each, if that makes so many a window.
_WINDOWS = 16
_LEAST_STEPS = 10
# So many windows must lie before the change, and as many after it: what comes back is not a drift.
_LEAST_WINDOWS = 2
# The medians before and after differ by this part at least, and so do the fast steps: those at this quantile of a
# window. What else runs on the machine slows most steps down for a while, and leaves some as fast as they were.
_LEAST_CHANGE = 0.1
_FAST = 0.1
# What is usual is known from so many steps, chosen at random: at equal distances they would all have what comes in a
# rhythm, or none.
_MOST_COMPARED = 200_000


@dataclass(frozen=True)
class Drift:
    """A class of a loop that changes for good: from step `since` on its median is `after_ns`, before it `before_ns`."""

    loop: int
    class_name: str
    since: int
    before_ns: float
    after_ns: float


@dataclass(frozen=True)
class Unusual:
    """Which steps are outliers, which are warm-up, the cause of each (one of PARTS, "" for usual steps), and drifts."""

    outlier: Bools
    warm_up: Bools
    cause: tuple[str, ...]
    drifts: tuple[Drift, ...]


def find_outliers(
    duration_ns: Ints, parts_ns: Ints, classes: Sequence[str], loop_sizes: Sequence[int] | None = None
) -> Unusual:
    """Find what is unusual among the steps of a process.

    `loop_sizes` are the numbers of steps of the loops that follow each other: what is usual in one is not in another.
    """
    number = {name: at for at, name in enumerate(dict.fromkeys(classes))}
    numbers = np.fromiter(map(number.__getitem__, classes), dtype=np.int32, count=len(classes))
    slow, warm_up = np.zeros(len(numbers), dtype=bool), np.zeros(len(numbers), dtype=bool)
    cause, drifts = np.full(len(numbers), -1, dtype=np.int8), list[Drift]()
    first = 0
    for loop, size in enumerate([len(numbers)] if loop_sizes is None else loop_sizes):
        rows = np.arange(first, first + size)
        usual_ns = float(median(duration_ns[rows])) if size else 0.0
        for name, at in number.items():
            members = rows[numbers[rows] == at]
            if name == PARTIAL or not len(members):
                continue
            since = _change_for_good(duration_ns[members])
            if since is not None:
                before, after = (float(median(duration_ns[part])) for part in np.split(members, [since]))
                drifts.append(Drift(loop, name, int(members[since]), before, after))
            for alike in [members] if since is None else np.split(members, [since]):
                if len(alike) >= MIN_STEPS:
                    slow[alike], cause[alike] = _slow(duration_ns[alike], parts_ns[alike], usual_ns)
        usual = np.flatnonzero(~slow[rows] & (numbers[rows] != number.get(PARTIAL, -1)))
        first_usual = int(usual[0]) if len(usual) else 0
        warm_up[rows[: min(first_usual, MOST_WARM_UP, size // 5)]] = True
        first += size
    warm_up &= slow
    causes = tuple(map((*PARTS, "").__getitem__, cause.tolist()))
    return Unusual(slow & ~warm_up, warm_up, causes, tuple(drifts))


def _slow(duration_ns: Ints, parts_ns: Ints, usual_ns: float) -> tuple[Bools, npt.NDArray[np.int8]]:
    """Return which of some steps that are alike are slow, and the number of the part that made them so, else -1."""
    excess, unusual_part = _excess(parts_ns, usual_ns)
    _, unusual = _excess(duration_ns[:, None], LEAST_EXCESS * float(median(duration_ns)))
    slow: Bools = unusual[:, 0] | unusual_part.any(axis=1)
    worst = np.full(len(slow), -1, dtype=np.int8)
    worst[slow] = excess[slow].argmax(axis=1)
    return slow, worst


def _excess(values_ns: Ints, least_ns: float) -> tuple[npt.NDArray[np.float64], Bools]:
    """Return by how much each value exceeds the median of its column, and whether that is unusual and not little."""
    some: slice | Ints = slice(None)
    if len(values_ns) > _MOST_COMPARED:
        some = np.random.default_rng(0).integers(0, len(values_ns), _MOST_COMPARED)
    excess = values_ns - median(values_ns[some])
    deviation = median(np.abs(excess[some]))
    return excess, excess > np.maximum(DEVIATIONS * deviation, least_ns)


def _change_for_good(duration_ns: Ints) -> int | None:
    """Return the first of the durations (of one class, in order of time) after the change; None if there is none.

    Every window's median after the change is above (or every one below) all medians before it, and so are its fast
    steps. Of several such places the one is taken that divides the windows best: least sum of squares around the two
    medians.
    """
    count = min(_WINDOWS, len(duration_ns) // _LEAST_STEPS)
    if count < 2 * _LEAST_WINDOWS:
        return None
    edges = np.linspace(0, len(duration_ns), count + 1).astype(np.int64)
    parts = [duration_ns[low:high] for low, high in pairwise(edges)]
    medians, fast = np.array([_quantiles(part, (0.5, _FAST)) for part in parts]).T
    best, least = None, np.inf
    for window in range(_LEAST_WINDOWS, count - _LEAST_WINDOWS + 1):
        before, after = medians[:window], medians[window:]
        spread = float(((before - median(before)) ** 2).sum() + ((after - median(after)) ** 2).sum())
        if spread < least and _apart(before, after) and _apart(fast[:window], fast[window:]):
            best, least = int(edges[window]), spread
    return best


def _quantiles(values: Ints, wanted: Sequence[float]) -> list[float]:
    """Return quantiles as np.quantile does, which takes ten times as long for so few values."""
    ordered, found = np.sort(values).tolist(), []
    for quantile in wanted:
        at, part = divmod((len(ordered) - 1) * quantile, 1)
        low, high = ordered[int(at)], ordered[min(int(at) + 1, len(ordered) - 1)]
        # From the end that is nearer, so that rounding is the same.
        found.append(low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part))
    return found


def _apart(before: Floats, after: Floats) -> bool:
    """Whether all of the one are above all of the other, and their medians differ enough."""
    if not (after.min() > before.max() or after.max() < before.min()):
        return False
    low, high = sorted((float(median(before)), float(median(after))))
    return high >= (1 + _LEAST_CHANGE) * low
