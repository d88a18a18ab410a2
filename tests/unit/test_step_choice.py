"""Which level is the step: the native decision against its twin, on generated nests of loops."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strobe.native import core
from strobe.steps.loop_choice.events import KINDS, MPI, Events, events_of, without_peers
from strobe.steps.loop_choice.levels import as_native, find_levels
from strobe.steps.thread_spans import Stream
from tests.unit import step_choice_twin as twin
from tests.unit.native_choice import Choice, choose
from tests.unit.streams import Program, sample

MOST_EVENTS = 4000
NAMES = ("solve", "sweep", "report", "read", "merge", "key", "MPI_Send", "MPI_Bcast", "aten::mm", "aten::add_")

# What a program does, as (what, how often, inside of which function, the parts of it).
Part = tuple[str, int, str, list["Part"]]
leaves = st.one_of(
    st.tuples(st.just("run"), st.integers(1, 400), st.sampled_from(NAMES), st.just([])),
    st.tuples(st.just("different"), st.integers(2, 60), st.sampled_from(NAMES), st.just([])),
    st.tuples(st.just("same"), st.integers(2, 20), st.sampled_from(NAMES), st.just([])),
)
parts = st.recursive(
    leaves,
    lambda inner: st.tuples(
        st.sampled_from(["loop", "varying", "every", "sometimes", "two of", "inside"]),
        st.integers(2, 30),
        st.sampled_from(["", "", "solve", "train", "epoch"]),
        st.lists(inner, min_size=1, max_size=4),
    ),
    max_leaves=12,
)


@st.composite
def through_it_twice(draw: st.DrawFn) -> Part:
    """A loop with much in it, and something else that is done as often."""
    times = draw(st.integers(4, 20))
    inner: Part = ("loop", times, draw(st.sampled_from(["", "solve"])), draw(st.lists(leaves, min_size=1, max_size=4)))
    return "inside", 1, "", [inner, ("same", times, draw(st.sampled_from(NAMES)), [])]


class Interpreter:
    """Runs parts until there are enough events. Times vary, and so do some numbers of iterations."""

    def __init__(self, seed: int) -> None:
        self.program, self._random, self._left = Program(), np.random.default_rng(seed), MOST_EVENTS

    def run(self, part: Part, number: int) -> None:
        """Run a part in iteration `number` of the loop around it."""
        what, times, function, body = part
        left_out = (what == "every" and number % times) or (what == "sometimes" and self._random.random() < 0.6)
        if self._left <= 0 or left_out:
            return
        if what == "run":
            self._left -= 1
            self.program.run(function, us=times * self._random.uniform(0.9, 1.5))
            return
        if what in ("different", "same"):
            self._left -= times
            self.program.run(*[f"{function}{kind if what == 'different' else ''}" for kind in range(times)], us=5)
            return
        iterations = {"loop": times, "varying": int(self._random.integers(1, times + 1)), "two of": 1}.get(what, 1)
        chosen = [body[int(self._random.integers(len(body)))]] if what == "two of" else body
        if function:
            self._left -= 1
            with self.program.inside(function):
                self._repeat(chosen, iterations, number)
        else:
            self._repeat(chosen, iterations, number)

    def _repeat(self, body: list[Part], iterations: int, number: int) -> None:
        for iteration in range(iterations):
            for part in body:
                self.run(part, iteration if iterations > 1 else number)


@st.composite
def programs(draw: st.DrawFn) -> Stream:
    """A program: something before a loop, the loop with a nest in it, something behind it."""
    interpreter = Interpreter(draw(st.integers(0, 1000)))
    for part in draw(st.lists(leaves, max_size=3)):
        interpreter.run(part, 0)
    times = draw(st.just(2) | st.integers(3, 300))
    body = draw(st.lists(parts | through_it_twice(), min_size=1, max_size=5))
    interpreter.run(("loop", times, draw(st.sampled_from(["", "main"])), body), 0)
    for part in draw(st.lists(leaves, min_size=1, max_size=3)):
        interpreter.run(part, 0)
    return interpreter.program.stream()


def told(choice: Choice | None) -> object:
    """What a choice says, to compare."""
    if choice is None:
        return None
    level = choice.level
    flags = choice.promotion, choice.rival, choice.enclosing, choice.below, choice.confidence, len(choice.levels)
    return level.marker_source, level.marker, level.count, level.positions.tolist(), *flags


def sequences(stream: Stream) -> Iterator[Events]:
    """All sequences of a stream, and calls of MPI without their peers."""
    for events in events_of(stream).values():
        yield events
        if (blind := without_peers(stream, events)) is not None:
            yield blind


@settings(max_examples=300, deadline=None)
@given(programs())
def test_the_native_decision_is_that_of_its_twin(stream: Stream) -> None:
    for events in sequences(stream):
        assert told(choose(stream, events)) == told(twin.choose(stream, events))


@settings(max_examples=200, deadline=None)
@given(programs(), st.booleans(), st.booleans(), st.floats(0, 1))
def test_ends_that_are_cut_off_tell_both_as_little(stream: Stream, before: bool, goes_on: bool, at: float) -> None:
    for kind, whole in events_of(stream).items():
        edge = int(at * len(whole))
        part = whole.chosen(slice(edge if before else 0, edge if goes_on and not before else None))
        events = twin.CutOut(kind, part.rows, part.ids, part.starts_ns, part.times_ns, before, goes_on)
        duration_ns = stream.duration_ns[events.rows]
        found = core.choose_step(
            KINDS.index(kind),
            events.ids.astype(np.uint32),
            events.starts_ns,
            events.times_ns,
            np.cumsum(duration_ns) - duration_ns if kind == MPI else np.empty(0, dtype=np.int64),
            events.rows,
            stream.parent,
            [as_native(level) for level in events.levels()],
            before,
            goes_on,
        )
        expected = twin.choose(stream, events)
        if found is None or expected is None:
            assert found is expected
            continue
        pair, index, promotion, _, *flags = found
        assert (0 if pair else index) == [level is expected.level for level in expected.levels].index(True)
        assert expected.promotion.startswith(promotion)
        assert flags == [expected.rival, expected.enclosing, expected.below, expected.confidence, None, ""]


@settings(max_examples=100, deadline=None)
@given(programs(), st.sampled_from(NAMES), st.data())
def test_the_innermost_loop_around_an_anchor_is_that_of_its_twin(
    stream: Stream, name: str, data: st.DataObject
) -> None:
    for events in events_of(stream).values():
        at = np.flatnonzero([stream.names[region] == name for region in stream.region[events.rows]])
        if not len(at):
            continue
        at = at[data.draw(st.integers(0, len(at) - 1)) :]
        levels = events.levels()
        found = core.innermost_with(at.astype(np.uint32), [as_native(level) for level in levels])
        assert (None if found < 0 else levels[found]) is twin.innermost_with(events.rows[at], events, levels)


@pytest.mark.parametrize("part", [slice(None), slice(0, 40_000), slice(15_000, 40_000)])
def test_both_choose_the_same_in_a_real_training(part: slice) -> None:
    stream, _ = sample()
    for events in sequences(stream.part(*part.indices(len(stream))[:2])):
        assert told(choose(stream, events)) == told(twin.choose(stream, events))


def test_long_sequences_are_judged_by_their_middle() -> None:
    ids = np.concatenate([np.arange(1 << 20), *[np.arange(256)] * (1 << 13), np.arange(1 << 20)])
    (best, *_) = find_levels(ids, np.arange(len(ids)))
    assert best.count == 1 << 13
    assert best.positions[0] == 1 << 20
    assert best.coverage == 1
