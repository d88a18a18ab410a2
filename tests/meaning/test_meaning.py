"""The corpus can be run: a program writes its truth, and is judged by it."""

from __future__ import annotations

import pytest

from tests.meaning.judge import HERE, judge


@pytest.mark.torch
def test_a_training_is_judged_by_its_own_truth() -> None:
    row = judge(HERE / "programs" / "accumulate_micro.py")
    assert (row["true"], row["found"], row["in place"]) == (30, 30, 30)
    assert row["right"], row
