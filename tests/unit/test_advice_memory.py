"""Advice about memory that each step touches anew."""

from __future__ import annotations

import pytest

from strobe.advice.rank import BESIDE, findings
from tests.unit.hand_made import MS, HandMadeProcess, make_trace, train_steps


@pytest.mark.parametrize(
    ("faults", "found", "gains"), [(200_000, True, True), (155_000, True, False), (90_000, False, False)]
)
def test_page_faults_of_steps_cost_a_microsecond_each_or_so(faults, found, gains):
    """Of 17 ms steps: 3400 faults of 0.5 to 2 us; below 8 % for sure no gain, below 15 % no word."""
    times = [10 * MS * number for number in range(80)]
    metric = {
        "metric": 0, "name": "minor page faults", "unit": "1/s", "location": 2**32 - 1, "time_ns": times,
        "value": [faults] * len(times),
    }  # fmt: skip
    trace = make_trace(HandMadeProcess({"main": train_steps(60, python_ns=6 * MS)}, metrics=[metric]))
    (finding,) = [each for each in findings(trace) if each.rule == "memory.fresh"] or [None]
    assert (finding is not None) == found
    if finding is not None:
        step_ms = 17.03
        assert finding.informative == (not gains)
        assert "of new memory" in finding.what
        assert finding.what.endswith("; train_step takes more of it than any other function, 35 %")  # 6 ms of Python
        if gains:
            assert finding.gain_low_ns == pytest.approx(0.5 * faults / 1e6 * step_ms * MS, rel=0.02)
            assert finding.gain_high_ns == pytest.approx(BESIDE * 2 * faults / 1e6 * step_ms * MS, rel=0.02)
