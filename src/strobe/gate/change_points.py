"""Change points of a history: where its values differ for good, by energy distance.

A permutation repeats the search for the best split, too: to test the split that was chosen as the best as if it had
been given raises false alarms. Neighbouring values may be alike: what is permuted are the innovations of an
autoregressive series of the first order, not the values.
Source: Matteson and James, J. Am. Stat. Assoc. 109 (2014) 334 (e-divisive).
"""

from __future__ import annotations

import numpy as np

from strobe.tables.column_arrays import Floats

_LEAST = 3  # points on either side
_PERMUTATIONS = 999
_BATCH = 37
_MOST_CORRELATED = 0.95


def change_points(values: Floats, level: float = 0.002) -> list[int]:
    """Return the index of the first value behind each change, in order.

    `level`: the probability of a false alarm in a history without a change. The same history has the same answer.
    """
    random = np.random.default_rng(0)
    found: list[int] = []
    waiting = [(0, len(values))]
    while waiting:
        begin, end = waiting.pop()
        if end - begin < 2 * _LEAST:
            continue
        part = values[begin:end]
        split, score = (each[0] for each in _best_splits(part[None]))
        if score > 0 and _chance(part, int(split), float(score), level, random) <= level:
            found.append(begin + int(split))
            waiting += [(begin, found[-1]), (found[-1], end)]
    return sorted(found)


def _best_splits(series: Floats) -> tuple[np.ndarray, Floats]:
    """Return, of each row, the split with the largest energy statistic, and that: mn / (m + n) * E."""
    count = series.shape[1]
    sums = np.abs(series[:, :, None] - series[:, None, :]).cumsum(axis=1).cumsum(axis=2)
    left = np.arange(_LEAST, count - _LEAST + 1)
    right = count - left
    inside = sums[:, left - 1, left - 1]
    across = sums[:, left - 1, -1] - inside
    behind = sums[:, -1, -1][:, None] - inside - 2 * across
    energy = 2 * across / (left * right) - inside / left**2 - behind / right**2
    score = energy * left * right / count
    best = score.argmax(axis=1)
    return left[best], score[np.arange(len(score)), best]


def _chance(values: Floats, split: int, score: float, level: float, random: np.random.Generator) -> float:
    """Return how often series without a change, of the same innovations, have a split as good."""
    centred = np.concatenate([part - np.median(part) for part in (values[:split], values[split:])])
    count = len(values)
    correlation = float((centred[1:] * centred[:-1]).sum() / max(1e-300, (centred**2).sum()))
    # Unbiased to the first order (Kendall, Biometrika 41 (1954) 403): two means were taken away. And two standard
    # errors more, because the split that was chosen hides correlation.
    correlation = (count * correlation + 2) / max(1, count - 4)
    correlation += 2 * np.sqrt(max(0.0, 1 - correlation**2) / count)
    correlation = float(np.clip(correlation, 0, _MOST_CORRELATED))
    innovations = np.append(centred[0] * np.sqrt(1 - correlation**2), centred[1:] - correlation * centred[:-1])
    as_good = 0
    for done in range(0, _PERMUTATIONS, _BATCH):
        series = random.permuted(np.tile(innovations, (_BATCH, 1)), axis=1)
        series[:, 0] /= np.sqrt(1 - correlation**2)
        for at in range(1, count):
            series[:, at] += correlation * series[:, at - 1]
        as_good += int((_best_splits(series)[1] >= score).sum())
        if as_good > level * (_PERMUTATIONS + 1) - 1 + 10:
            return (as_good + 1) / (done + _BATCH + 1)
    return (as_good + 1) / (_PERMUTATIONS + 1)
