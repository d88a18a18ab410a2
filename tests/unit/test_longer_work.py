"""What one rank spends longer in than the others, computed on paper."""

from __future__ import annotations

import pytest

from strobe.api.trace import Trace
from strobe.breakdown.longer_work import longer_work
from tests.unit.hand_made import HandMadeProcess, make_trace, span

MS = 1_000_000
PLACES = {"step": ("/job/train.py", 10), "augment": ("/job/train.py", 3), "load": ("/job/train.py", 5)}


def ranks(augment_ms: tuple[int, ...], load_ms: tuple[int, ...]) -> Trace:
    """Ranks that run 30 steps of 20 ms: `augment`, half of it in an operator, then `load`, then a wait for others."""
    processes = []
    for rank, (augment, load) in enumerate(zip(augment_ms, load_ms, strict=True)):
        steps = []
        for at in range(0, 30 * 20 * MS, 20 * MS):
            end = at + augment * MS
            operator = span("aten::mul", at + augment * MS // 2, end)
            wait = span("MPI_Allreduce", end + load * MS, at + 20 * MS, paradigm="mpi", role="collective")
            inside = [span("augment", at, end, operator), span("load", end, end + load * MS), wait]
            steps.append(span("step", at, at + 20 * MS, *inside))
        main = {"main": [span("main", 0, 30 * 20 * MS, *steps)]}
        processes.append(HandMadeProcess(main, pid=100 + rank, main=rank == 0, rank=rank, places=PLACES))
    return make_trace(*processes)


def test_the_function_that_takes_longer_is_named_with_its_operators() -> None:
    found = longer_work(ranks((4, 4, 12, 4), (2, 2, 3, 2)), 2, [0, 1, 3])
    assert found is not None
    assert (found.name, found.where) == ("augment", "/job/train.py:3")
    assert found.time_ns / found.usual_ns == pytest.approx(3)


def test_a_rank_that_waits_longer_for_others_does_not_work_longer() -> None:
    assert longer_work(ranks((4, 4, 12, 4), (2, 2, 3, 2)), 0, [1, 2, 3]) is None


def test_what_is_as_long_everywhere_is_not_named() -> None:
    assert longer_work(ranks((8, 8, 9, 8), (2, 2, 2, 2)), 2, [0, 1, 3]) is None
    assert longer_work(ranks((8,), (2,)), 0, []) is None
