"""Loop levels: the native kernel against its twin, and against loops whose structure is known."""

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strobe.native import core
from strobe.steps.loop_choice.levels import Level, find_levels
from tests.unit import levels_twin


def levels_of(ids: list[int], step_ns: int = 10) -> list[Level]:
    return find_levels(np.array(ids), np.arange(len(ids)) * step_ns)


def assert_equal_to_twin(
    ids: list[int], times: list[int], *, min_count: int = 3, max_levels: int = 64, most_open: int = 1024
) -> None:
    options = {"min_count": min_count, "max_levels": max_levels, "most_open": most_open}
    found = core.find_levels(np.array(ids, dtype=np.uint32), np.array(times, dtype=np.int64), **options)
    native = [Level(positions.astype(np.int64), *measures) for positions, *measures in found]
    twin = levels_twin.find_levels(ids, times, **options)
    assert len(native) == len(twin)
    for ours, theirs in zip(native, twin, strict=True):
        expected = asdict(theirs)
        assert ours.positions.tolist() == expected.pop("positions")
        measured = {name: getattr(ours, name) for name in expected}
        assert measured == pytest.approx(expected, abs=1e-9, nan_ok=False)


@st.composite
def nested_loops(draw: st.DrawFn) -> list[int]:
    """A program: nested loops with varying trip counts and a random prologue."""
    ids = draw(st.lists(st.integers(0, 9), max_size=20))
    outer_body = draw(st.lists(st.integers(0, 12), min_size=1, max_size=6))
    inner_body = draw(st.lists(st.integers(5, 17), min_size=1, max_size=4))
    for _ in range(draw(st.integers(1, 12))):
        ids += outer_body
        for _ in range(draw(st.integers(0, 5))):
            ids += inner_body
    return ids


@settings(max_examples=300, deadline=None)
@given(st.one_of(nested_loops(), st.lists(st.integers(0, 5), max_size=120)), st.data())
def test_the_kernel_agrees_with_its_twin(ids: list[int], data: st.DataObject) -> None:
    gaps = data.draw(st.lists(st.integers(0, 1000), min_size=len(ids), max_size=len(ids)))
    assert_equal_to_twin(ids, np.cumsum(np.array(gaps, dtype=np.int64)).tolist(), min_count=3, max_levels=64)


def test_the_kernel_agrees_with_its_twin_when_levels_are_cut_off_and_rare_items_count() -> None:
    ids = [*range(30), *([40, 41, 42, 42] * 9), *range(30)]
    assert_equal_to_twin(ids, list(range(len(ids))), min_count=2, max_levels=3)


def shuffled(kinds: int, rounds: int) -> list[int]:
    """Everything once in each round, in another order each time: hardly two items alternate."""
    draw = np.random.default_rng(kinds)
    return [int(kind) for _ in range(rounds) for kind in draw.permutation(kinds)]


def noisy(body: int, rounds: int, share: float) -> list[int]:
    """A loop in which any event may be another one."""
    draw = np.random.default_rng(body)
    ids = np.tile(draw.integers(0, body, body), rounds)
    ids[draw.random(len(ids)) < share] = body
    return [int(event) for event in ids]


def uniform(kinds: int, events: int) -> list[int]:
    return [int(kind) for kind in np.random.default_rng(kinds).integers(0, kinds, events)]


@pytest.mark.parametrize("most_open", [1, 300, 1024])
@pytest.mark.parametrize(
    "ids",
    [shuffled(700, 4), shuffled(600, 9), shuffled(400, 14), noisy(300, 12, 0.05), uniform(700, 5000), uniform(9, 900)],
    ids=["rounds of 4", "rounds of 9", "rounds of 14", "noise", "700 kinds", "9 kinds"],
)
def test_the_kernel_agrees_with_its_twin_where_almost_nothing_repeats(ids: list[int], most_open: int) -> None:
    # Hundreds of classes of one count at a time, which the kernel does not look at one by one.
    assert_equal_to_twin(ids, list(range(len(ids))), most_open=most_open)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 12), max_size=150), st.integers(1, 4), st.integers(2, 4))
def test_the_kernel_compares_with_the_latest_classes(ids: list[int], most_open: int, min_count: int) -> None:
    assert_equal_to_twin(ids, list(range(len(ids))), min_count=min_count, most_open=most_open)


def test_a_loop_among_more_noise_than_is_compared_keeps_its_level() -> None:
    # 2000 kinds once per iteration in any order: far more classes of the loop's count than are open at a time.
    draw = np.random.default_rng(3)
    ids = [event for _ in range(20) for event in (5000, *draw.permutation(2000).tolist(), 5001, 5002)]
    loop = next(level for level in levels_of(ids) if level.marker == 5000)
    assert (loop.count, loop.cvn) == (20, 0.0)
    assert loop.positions.tolist() == [2003 * k for k in range(20)]


def test_large_signatures_are_as_good_as_small_ones() -> None:
    small = levels_of([1, 2, 3, 3] * 10)
    large = levels_of([i * 0x3FFF_FFFF for i in (1, 2, 3, 3)] * 10)
    assert [level.count for level in large] == [level.count for level in small]
    assert large[0].marker == small[0].marker * 0x3FFF_FFFF


def test_a_loop_in_a_loop_gives_two_levels_with_their_trip_counts() -> None:
    best, *others = levels_of(([0, 1] + [2, 3] * 4 + [5]) * 20)
    assert (best.count, best.cvn, best.coverage) == (20, 0.0, 1.0)
    inner = next(level for level in others if level.count == 80)
    assert (inner.trips_min, inner.trips_median, inner.trips_max) == (4, 4.0, 4)
    assert [best, *others][inner.parent].count == 20


def test_varying_trip_counts_do_not_hide_the_outer_loop() -> None:
    trips = [3, 5, 2, 7, 4, 6, 3, 2, 8, 5]
    ids = [event for n in trips for event in (0, 1, *[2, 3] * n, 4)]
    best, *others = levels_of(ids)
    assert best.count == len(trips)
    inner = next(level for level in others if level.count == sum(trips))
    assert (inner.trips_min, inner.trips_max) == (2, 8)  # the last iteration of the outer loop has no end


def test_a_level_marks_the_beginning_of_its_first_iteration() -> None:
    ids = [9, 8, 7, *([0, 1, 2] * 6)]
    best = levels_of(ids)[0]
    assert (best.marker, best.marker_source) == (0, None)
    assert best.positions.tolist() == [3, 6, 9, 12, 15, 18]


def test_an_event_that_is_missing_once_is_a_soft_member() -> None:
    body = [0, 1, 2]
    whole = levels_of(body * 40)[0]
    once_without = levels_of([*body * 20, 0, 1, *body * 19])
    same = next(level for level in once_without if level.count == 40)
    assert same.spine < whole.spine
    assert same.spine % 1 == 0.5 or same.spine > 3


@pytest.mark.parametrize("ids", [[], [1], [1, 1], [1, 2, 3, 4]])
def test_what_does_not_repeat_has_no_levels(ids: list[int]) -> None:
    assert levels_of(ids) == []


def test_ids_and_times_must_belong_together() -> None:
    with pytest.raises(ValueError, match="length"):
        find_levels(np.zeros(3), np.zeros(4))
