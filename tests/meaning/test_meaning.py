"""The corpus can be run: programs and traces write their truth, and are judged by it."""

from __future__ import annotations

import pytest

from tests.meaning.judge import HERE, judge


@pytest.mark.parametrize("name", sorted(path.stem for path in (HERE / "traces").glob("*.py")))
def test_steps_of_traces_are_where_their_writers_put_them(name: str) -> None:
    row = judge(HERE / "traces" / f"{name}.py", "10")
    assert row["true"] == row["found"] == row["in place"]
    assert row["right"] or "starved" in row["verdict"], row  # other programs may have the cores


@pytest.mark.torch
def test_a_training_is_judged_by_its_own_truth() -> None:
    row = judge(HERE / "programs" / "accumulate_micro.py", "10")
    assert (row["true"], row["found"], row["in place"]) == (30, 30, 30)
    assert row["right"], row
