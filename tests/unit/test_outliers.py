"""Outliers among very many steps, of which the usual ones are known from some."""

from __future__ import annotations

import numpy as np
import pytest

from strobe.model.kinds import PARTS
from strobe.steps.finding.outliers import find_outliers
from strobe.tables.column_arrays import median, rows_by


@pytest.mark.parametrize("every", [3, 4, 10])
def test_a_rhythm_does_not_hide_slow_steps_among_very_many(every: int) -> None:
    """Every third step of 600 000 is slow: steps at equal distances would be all slow, and so usual."""
    count = 600_000
    noise_ns = np.random.default_rng(1).integers(0, 10_000, count)
    slow = np.arange(count) % every == 0
    duration_ns = 1_000_000 + noise_ns + 3_000_000 * slow
    parts_ns = np.zeros((count, len(PARTS)), dtype=np.int64)
    parts_ns[:, -1] = duration_ns
    found = find_outliers(duration_ns, parts_ns, ("step",) * count)
    assert np.array_equal(found.outlier | found.warm_up, slow)


@pytest.mark.parametrize("count", [1, 2, 7, 50])
def test_the_median_is_that_of_numpy(count: int) -> None:
    values = np.random.default_rng(count).integers(-(2**60), 2**60, (count, 3))
    assert median(values).tolist() == np.median(values, axis=0).tolist()
    assert median(values[:, 0] / 7) == np.median(values[:, 0] / 7)


def test_rows_are_listed_by_their_value() -> None:
    assert [(value, rows.tolist()) for value, rows in rows_by(np.array([3, -1, 3, 0]))] == [
        (-1, [1]),
        (0, [3]),
        (3, [0, 2]),
    ]
    assert not list(rows_by(np.zeros(0, dtype=np.int64)))
