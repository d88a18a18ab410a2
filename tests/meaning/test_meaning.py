"""The corpus can be run: a program writes its truth, and is judged by it."""

from __future__ import annotations

import pytest

from tests.meaning.judge import HERE, judge


@pytest.mark.torch
def test_a_plain_training_is_judged_by_its_own_truth() -> None:
    row = judge(HERE / "programs" / "zero_first_classifier.py")
    assert (row["true"], row["found"], row["in place"]) == (150, 150, 150)
    assert row["right"], row
