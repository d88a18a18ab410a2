"""The pivot of a stretch of time by phase: spans begin before, in or after the passes of their step."""

from __future__ import annotations

from pathlib import Path

import pytest

from strobe.errors import InconclusiveError
from strobe.server.time_range.flat_profile import flat_profile
from strobe.server.trace_context import TraceContext
from tests.deep.kineto import US, operator, profile, step

BACKWARD = "autograd::engine::evaluate_function: MmBackward0"


def by_phase(context: TraceContext, start_us: int, end_us: int) -> dict[str, tuple[int, int]]:
    """Executions, and exclusive us, of each phase in a stretch."""
    found = flat_profile(context, start_us * US, end_us * US, "phase").to_pylist()
    return {row["name"]: (row["executions"], row["exclusive_ns"] // US) for row in found}


def test_spans_are_summed_by_the_phase_that_they_begin_in(tmp_path: Path) -> None:
    events = []
    for n in range(4):
        at = 1000 * n
        events += [step(n, at, 1000), operator("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 100)]
        events += [operator("aten::mm", at + 150, 200), operator(BACKWARD, at + 400, 300)]
        events += [operator("Optimizer.step#SGD.step", at + 750, 150)]
    trace = profile(tmp_path, *events)
    context = TraceContext(trace, trace.path)
    # Of each step: its mark (which begins with it, and has 250 us of its own) and the wait; both passes; the update.
    assert by_phase(context, 0, 4000) == {
        "before the forward pass": (8, 4 * (100 + 250)),
        "forward and backward": (8, 4 * 500),
        "after the backward pass": (4, 4 * 150),
    }
    # From within the backward pass of step 1 on.
    assert by_phase(context, 1500, 2000) == {
        "before the forward pass": (0, 150),
        "forward and backward": (0, 200),
        "after the backward pass": (1, 150),
    }


def test_without_passes_there_are_no_phases(tmp_path: Path) -> None:
    trace = profile(tmp_path, *(operator("load", 100 * n, 50) for n in range(3)))
    with pytest.raises(InconclusiveError, match="no step of this trace has a forward and a backward pass"):
        flat_profile(TraceContext(trace, trace.path), 0, 300 * US, "phase")
