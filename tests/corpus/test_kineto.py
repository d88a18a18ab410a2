"""The steps of public traces of trainings on GPUs: the profiler's own are the truth, and hidden from the search."""

from functools import lru_cache

import numpy as np
import pytest

from strobe.steps.finding.offline_search import steps_of
from strobe.steps.loop_choice.events import events_of
from strobe.steps.thread_spans import Stream
from tests.corpus.judge import FIRST, is_right
from tests.corpus.kineto import SINGLE_PASSES, TRAININGS, TWO_STEPS, Trace
from tests.public import needs_public_traces

pytestmark = needs_public_traces

SEQUENCES = ("operators", "disguised_operators", "kernels")


@lru_cache(maxsize=1)
def trace(name: str) -> Trace:
    return Trace(name)


def true_level_among_five(stream: Stream, begins_ns: np.ndarray) -> bool:
    """Whether some sequence of the stream has the true level among its first five."""
    return any(
        is_right(np.sort(stream.start_ns[events.rows[level.positions]]), begins_ns)
        for events in events_of(stream).values()
        for level in events.levels()[:FIRST]
    )


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("name", TRAININGS)
def test_steps_of_a_training(name: str, sequence: str) -> None:
    stream = getattr(trace(name), sequence)()
    found = steps_of(stream)
    assert is_right(np.sort(found.start_ns), trace(name).begins_ns), found.reason
    assert true_level_among_five(stream, trace(name).begins_ns)
    assert len(found) == len(trace(name).begins_ns)


@pytest.mark.parametrize("name", TWO_STEPS)
def test_two_steps_are_told_with_two_updates_of_an_optimizer(name: str) -> None:
    assert len(steps_of(trace(name).operators())) == 2


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("name", SINGLE_PASSES)
def test_a_single_pass_has_no_steps(name: str, sequence: str) -> None:
    assert len(steps_of(getattr(trace(name), sequence)())) == 0
