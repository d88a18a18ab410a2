"""SEQ/LOOP expressions: the native fold against its twin, exact round trips, and what a person would write."""

import numpy as np
import pytest
from hypothesis import given, settings

from strobe.steps.loops.expression import Expression, fold
from tests.unit import expression_twin
from tests.unit.programs import program, sequences


def written(expression: Expression) -> str:
    """As the twin writes it."""

    def part(begin: int, end: int) -> str:
        words = []
        while begin < end:
            size = int(expression.size[begin])
            if size:
                trips = ",".join(map(str, expression.trip_counts(begin).tolist()))
                words.append(f"({trips})[{part(begin + 1, begin + 1 + size)}]")
            else:
                words.append(str(expression.id[begin]))
            begin += 1 + size
        return " ".join(words)

    return part(0, len(expression))


@settings(max_examples=300, deadline=None)
@given(sequences())
def test_the_kernel_agrees_with_its_twin(ids: list[int]) -> None:
    expression = fold(np.array(ids, dtype=np.int64))
    assert written(expression) == expression_twin.fold(ids)
    assert expression.expand().tolist() == ids


def test_two_thousand_random_programs_come_back_exactly() -> None:
    for seed in range(2_000):
        ids = program(seed, most=300)
        expression = fold(np.array(ids))
        assert expression.expand().tolist() == ids
        assert len(expression) <= len(ids)


def test_a_loop_in_a_loop_is_written_as_in_the_paper() -> None:
    ids = np.array([0, *[1, *[2, 3] * 20, 4] * 100])
    expression = fold(ids)
    names = {0: "A", 1: "B", 2: "C", 3: "B'", 4: "D"}
    assert expression.text(names) == "SEQ A LOOP(100x) SEQ[ B LOOP(20x) SEQ[C B'] D ]"
    assert expression.text(names, max_depth=1) == "SEQ A LOOP(100x) SEQ[ B LOOP(20x) SEQ[...] D ]"
    assert expression.text(names, max_depth=0) == "SEQ A LOOP(100x) SEQ[...]"
    assert expression.text() == "SEQ 0 LOOP(100x) SEQ[ 1 LOOP(20x) SEQ[2 3] 4 ]"
    assert len(expression) == 7


def test_iterations_that_differ_in_trip_counts_only_are_one_loop() -> None:
    trips = [3, 5, 5, 2, 17, 9]
    ids = [event for n in trips for event in (0, *[1, 2] * n, 3, *[4] * n)]
    expression = fold(np.array(ids))
    assert expression.text("abcde") == "SEQ LOOP(6x) SEQ[ a LOOP(2..17x) SEQ[b c] d LOOP(2..17x) SEQ[e] ]"
    inner = [k for k in range(len(expression)) if expression.size[k]][1:]
    assert [expression.trip_counts(k).tolist() for k in inner] == [trips, trips]
    assert expression.expand().tolist() == ids


def test_an_iteration_of_nothing_but_loops_is_found() -> None:
    ids = [event for n in (4, 2, 6, 3) for event in ([0, 1] * n + [0, 2] * n)]
    assert fold(np.array(ids)).text("xyz") == "SEQ LOOP(4x) SEQ[ LOOP(2..6x) SEQ[x y] LOOP(2..6x) SEQ[x z] ]"


@pytest.mark.parametrize(
    ("ids", "text"), [([], "SEQ"), ([7], "SEQ 7"), ([7, 7], "SEQ LOOP(2x) SEQ[7]"), ([-1, 2**60], f"SEQ -1 {2**60}")]
)
def test_short_sequences(ids: list[int], text: str) -> None:
    expression = fold(np.array(ids, dtype=np.int64))
    assert expression.text() == text
    assert expression.expand().tolist() == ids


def test_one_event_a_million_times_and_a_million_events_once() -> None:
    assert fold(np.zeros(1_000_000, dtype=np.int64)).text() == "SEQ LOOP(1000000x) SEQ[0]"
    distinct = fold(np.arange(1_000_000))
    assert (len(distinct), len(distinct.trips)) == (1_000_000, 0)


def test_an_expression_that_is_not_sound_is_refused() -> None:
    sound = fold(np.array([1, 2] * 5))
    broken = Expression(sound.id, sound.size + np.uint32(7) * (sound.size > 0), *list(vars(sound).values())[2:])
    with pytest.raises(ValueError, match="not sound"):
        broken.expand()
