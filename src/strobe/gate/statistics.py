"""Tests of paired runs: signed ranks, their interval, alpha spent over several looks, lists of tests.

A difference is the log ratio of one pair of runs. If both runs of a pair are of the same program, its sign is a
coin's: every pattern of signs is equally likely. That holds for noise of any shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from strobe.tables.column_arrays import Bools, Floats


def greater_p(differences: Floats) -> float:
    """Return how likely signed ranks as large as these are by chance: exact, one-sided, conditional on ties.

    The statistic is the sum of the ranks of the differences above 0; a difference of 0 is left out. 1 for none.
    Source: Wilcoxon, Biometrics Bulletin 1 (1945) 80; the shift algorithm of Streitberg and Roehmel, 1986.
    """
    known = differences[differences != 0]
    _, tied, times = np.unique(np.abs(known), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(times) - times + 1)[tied]  # mean ranks, doubled so that they are whole
    return float(_distribution(doubled.tolist())[int(doubled[known > 0].sum()) :].sum())


def _distribution(ranks: Iterable[int]) -> Floats:
    """Return the probability of each sum of ranks, each of which is there or not."""
    chances = np.ones(1)
    for rank in ranks:
        chances = (np.pad(chances, (0, rank)) + np.pad(chances, (rank, 0))) / 2
    return chances


def middle(differences: Floats) -> float:
    """Return the centre of differences: the median of the means of all pairs of them (Hodges and Lehmann, 1963)."""
    return float(np.median(_walsh(differences)))


def interval(differences: Floats, alpha: float) -> tuple[float, float]:
    """Return both ends of the shifts that the test, one-sided at `alpha` each, does not reject; infinite if all are.

    Source: Tukey's inversion of the signed-rank test, Hollander and Wolfe, Nonparametric Statistical Methods, 3.3.
    """
    walsh = _walsh(differences)
    below = np.cumsum(_distribution(range(1, len(differences) + 1)))
    outside = int((below <= alpha).sum())
    return (float(walsh[outside - 1]), float(walsh[-outside])) if outside else (-math.inf, math.inf)


def _walsh(differences: Floats) -> Floats:
    first, second = np.triu_indices(len(differences))
    return np.sort((differences[first] + differences[second]) / 2)


def least_pairs(alpha: float) -> int:
    """Return how many pairs it takes at least to reject at `alpha`, if all of them agree."""
    return math.ceil(-math.log2(alpha))


def further_pairs(differences: Floats, alpha: float, threshold: float) -> int:
    """Return about how many more pairs tell the shift from `threshold`: intervals shrink with the root of the pairs."""
    count, least = len(differences), least_pairs(alpha)
    if count < least:
        return least - count
    low, high = interval(differences, alpha)
    far = abs(middle(differences) - threshold)
    needed = count * (max((high - low) / 2, 1e-9) / max(far, 1e-6)) ** 2
    return max(1, min(10_000, math.ceil(needed)) - count)


def spent(alpha: float, part: float) -> float:
    """Return how much of `alpha` may be spent when `part` (0 to 1) of the budget is: as Pocock's boundary does.

    Source: Lan and DeMets, Biometrika 70 (1983) 659: alpha * log(1 + (e - 1) * part).
    """
    return alpha * math.log1p((math.e - 1) * min(1.0, part))


def discoveries(p: Floats, share: float) -> Bools:
    """Return which of a list of tests to believe, so that at most `share` of these are false on average.

    Source: Benjamini and Hochberg, J. R. Stat. Soc. B 57 (1995) 289.
    """
    ordered = np.sort(p)
    passing = np.flatnonzero(ordered <= share * np.arange(1, len(p) + 1) / max(1, len(p)))
    return p <= ordered[passing[-1]] if len(passing) else np.zeros(len(p), dtype=bool)
