"""The verdict and the host time it is made of, on hand-made runs whose shares are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strobe.advice.host_wait import run as host_waits
from strobe.breakdown.host_time import host_times
from strobe.present.summary import summarise
from strobe.sums.samples import RUNNING, WAITING
from strobe.trace.trace import Trace
from tests.unit.hand_made import MS, HandMadeProcess, Span, make_trace, span

pytestmark = pytest.mark.every_python

OWN, LIBRARY = "solve (/home/me/model.py:12)", "wait (/usr/lib/python3.11/threading.py:300)"


def sampled(states: Sequence[str], *, of_step: int = 10, stack: str = OWN) -> list[Span]:
    """Calls of `solve`, each with a sample of 1 ms for `of_step` states in turn, in calls of their own."""
    spans: list[Span] = []
    for step in range(len(states) // of_step):
        begin = step * of_step * MS
        parts = []
        for number in range(of_step):
            at, state = begin + number * MS, states[step * of_step + number]
            ran = state in RUNNING
            row: Mapping[str, int | str] = {
                "time_ns": at + MS - 1,
                "call_stack": f"<module> (/home/me/model.py:1)\n{stack}",
                "state": state,
                "line": 14,
                "period_ns": MS,
                "cpu_ns": MS if ran else 0,
            }
            parts.append(span(f"part{number}", at, at + MS, tables={"samples": row}))
        spans.append(span("solve", begin, begin + of_step * MS, *parts))
    return spans


def of_states(*states: str, stack: str = OWN) -> Trace:
    """Thirty steps whose ten milliseconds are in these states."""
    return make_trace({"main": sampled(states * 30, stack=stack)})


@pytest.mark.parametrize(
    ("states", "kind", "share"),
    [
        (["python"] * 7 + ["native"] * 3, "python-bound", 0.7),
        (["python"] * 2 + ["native"] * 8, "compute-bound", 0.8),
        (["python"] * 3 + ["lock"] * 7, "lock-bound", 0.7),
        (["native"] * 4 + ["file"] * 6, "io-bound", 0.6),
        (["collecting"] * 7 + ["python"] * 3, "gc-bound", 0.7),
        (["gil"] * 9 + ["python"], "gil-bound", 0.9),
        (["sleep"] * 8 + ["python"] * 2, "sleeping", 0.8),
        # Who waits for a core does what it would do with one.
        (["ready"] * 6 + ["python"] * 4, "python-bound", 1.0),
    ],
)
def test_the_kind_with_most_time_limits_the_loop(states, kind, share):
    verdict = summarise(of_states(*states)).verdict
    assert verdict.kind == kind
    assert verdict.share == pytest.approx(share, abs=0.01)
    assert "100 % of it in solve (model.py:14)" in verdict.text
    assert verdict.confidence == "high"


def test_what_waits_in_a_library_is_told_of_the_function_that_called_it():
    (finding,) = host_waits(of_states(*["lock"] * 5, *["python"] * 5, stack=f"{OWN}\n{LIBRARY}"))
    assert finding.where == "/home/me/model.py:12"
    assert finding.gain_high_ns == pytest.approx(5 * MS, rel=0.02)
    assert finding.gain_low_ns == 0


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([*RUNNING, "gil", *WAITING]), min_size=10, max_size=10))
def test_kinds_add_up_to_the_steps_and_are_what_was_sampled(states):
    (found,) = host_times(of_states(*states))
    assert sum(found.kinds_ns.values()) == found.duration_ns
    for state in {*states}:
        assert found.kinds_ns[state] / found.duration_ns == pytest.approx(states.count(state) / 10, abs=0.01)


def ranks(*works_ms: int, step_ms: int = 40) -> Trace:
    """Forty steps of ranks that work and then wait for each other."""
    processes = []
    for rank, works in enumerate(works_ms):
        spans: list[Span] = []
        for step in range(40):
            begin = step * step_ms * MS
            spans.append(span("compute", begin, begin + works * MS))
            spans.append(span("MPI_Allreduce", begin + works * MS, begin + step_ms * MS, paradigm="mpi"))
        processes.append(HandMadeProcess({"main": spans}, pid=100 + rank, main=rank == 0, rank=rank))
    return make_trace(*processes)


def test_a_rank_that_works_longer_than_the_others_is_named():
    verdict = summarise(ranks(10, 40, 10)).verdict
    assert verdict.kind == "imbalanced"
    assert "rank 1 works 40.00 ms of every step, the median of the 2 others 10.00 ms" in verdict.text
    assert verdict.share == pytest.approx(0.5, abs=0.01)  # (40 - 20) / 40


@pytest.mark.parametrize(("works", "kind"), [((10, 10, 10), "communication-bound"), ((10, 40, 40), "host-bound")])
def test_where_no_single_rank_is_late_none_is_named(works, kind):
    verdict = summarise(ranks(*works)).verdict
    assert verdict.kind == kind
    assert "rank 1" not in verdict.text
