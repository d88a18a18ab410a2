"""Outliers among very many steps, of which the usual ones are known from some."""

from __future__ import annotations

import numpy as np
import pytest

from strobe.model.kinds import PARTS
from strobe.steps.finding.outliers import find_outliers

pytestmark = pytest.mark.every_python


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
