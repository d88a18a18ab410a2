"""Clocks of nodes: lines through readings, messages that cannot be, and their repair; numbers worked out by hand."""

import numpy as np
import pytest

from strobe.ranks.clock_check import Found, Meetings, added, counted, solve
from strobe.trace.clocks.node_clocks import columns, from_readings, from_time_of_day, time_on_axis

S = 1_000_000_000


def test_readings_on_a_line_give_its_offset_and_drift() -> None:
    # Ours is 500 ns ahead at 10 s and gains 40 ns a second: the trace's clock is at ours - 500 - 40 (t - 10 s).
    readings = [(t * S, -500 - 40 * (t - 10), 20) for t in (10, 11, 13, 20)]
    clock = from_readings(readings)
    assert (clock.ahead_ns, clock.error_ns, clock.readings) == (500, 20, 4)
    assert clock.drift_ppm == pytest.approx(0.04)
    points = columns(clock.points)
    assert [time_on_axis(points, t * S) for t in (10, 12, 20)] == [10 * S - 500, 12 * S - 580, 20 * S - 900]
    assert time_on_axis(points, 30 * S) == 30 * S - 1300  # beyond the last: on the same line


def test_the_error_is_how_far_a_reading_may_be_from_the_line() -> None:
    # The mean of three equal weights is 10; the second reading is 20 from it, and wrong by 30 itself.
    clock = from_readings([(0, 0, 30), (1 * S, 30, 30), (2 * S, 0, 30)])
    assert clock.error_ns == 50
    assert clock.drift_ppm == pytest.approx(0)


def test_a_reading_that_took_long_says_nothing() -> None:
    good = [(t * S, 1000, 10) for t in range(5)]
    assert from_readings([*good, (2 * S + S // 2, 400_000, 500_000)]).points == from_readings(good).points


def test_a_clock_that_changes_its_speed_goes_from_reading_to_reading() -> None:
    readings = [(0, 0, 10), (1 * S, 0, 10), (2 * S, 10_000, 10), (3 * S, 20_000, 10)]
    clock = from_readings(readings)
    assert clock.points == [(local, local + offset) for local, offset, _ in readings]
    assert clock.error_ns == 10


def test_readings_of_several_processes_at_one_moment_count_once() -> None:
    clock = from_readings([(0, 100, 15), (300_000, 110, 10), (5 * S, 105, 10)])
    assert clock.points[0][0] == 300_000  # the better one of the two that are 0.3 ms apart
    assert clock.readings == 3


def test_the_time_of_day_relates_clocks_where_nobody_answered() -> None:
    # 7 s after the start of one machine it is 1007 s; 2 s after that of the other, 1003 s.
    clock = from_time_of_day((7 * S, 1007 * S, 3000), (2 * S, 1003 * S, 500))
    assert time_on_axis(columns(clock.points), 7 * S) == 6 * S  # when it is 1007 s, the other one says 6 s
    assert clock.error_ns == 3500
    assert from_time_of_day((7 * S, 1007 * S, -1), (2 * S, 1003 * S, 500)).error_ns is None


def met(messages: list[tuple[int, int, int, int]], collectives: list[list[tuple[int, int, int]]] = []) -> Meetings:  # noqa: B006
    """Messages (sender's clock, sent, receiver's clock, received), collectives of (clock, begin, end) each."""
    rows = []
    for number, (sender, sent, receiver, received) in enumerate(messages):
        rows += [(number, sender, sent, 0, True, False), (number, receiver, 0, received, False, True)]
    for number, parties in enumerate(collectives, len(messages)):
        rows += [(number, clock, begin, end, True, True) for clock, begin, end in parties]
    meeting, clock, begin, end, begins, ends = (np.array(column) for column in zip(*rows, strict=True))
    names = [f"clock {number}" for number in range(int(clock.max()) + 1)]
    return Meetings(names, meeting, clock, begin, end, begins, ends, len(messages))


def test_messages_and_collectives_in_the_wrong_order_are_counted() -> None:
    found = counted(
        met(
            [(0, 100, 1, 150), (1, 300, 0, 290), (0, 400, 1, 400)],  # good, 10 too early, just so
            # All come before the first leaves; clock 1 leaves 25 before clock 0 comes; a party meets itself only.
            [[(0, 10, 30), (1, 20, 25)], [(0, 95, 120), (1, 60, 70)], [(0, 500, 510), (0, 600, 610)]],
        )
    )
    assert found == Found(messages=3, bad_messages=1, collectives=2, bad_collectives=1, worst_ns=25)


def test_one_shift_repairs_a_clock_that_is_wrong_all_the_time() -> None:
    # Clock 1 is 1000 behind: what it receives comes 970 to 980 too early, what it sends arrives 1030 after.
    messages = [(0, t, 1, t - 970 - t % 20) for t in range(10_000, 10_020)]
    messages += [(1, t, 0, t + 1030) for t in range(10_000, 10_020)]
    shifts, knots = solve(met(messages))
    assert shifts[0] == 0
    assert 989 <= shifts[1] <= 1030  # between the shortest ways: -970 - 19 of one, 1030 of the other
    assert knots == {}


def test_what_no_shift_repairs_jumps_and_goes_back_by_a_hundredth() -> None:
    # The second message wants clock 1 later by 500, the third wants it no later than 100: no shift does both.
    shifts, knots = solve(met([(0, 10_500, 1, 10_000), (1, 90_000, 0, 90_100)]))
    assert (shifts.tolist(), list(knots)) == ([0, 0], [1])
    one = np.ones(5, dtype=np.int64)
    moments = np.array([9_999, 10_000, 20_000, 60_399, 62_000])
    assert np.abs(added(knots, one, moments) - [0, 504, 404, 1, 0]).max() <= 1


def test_after_repair_nothing_is_wrong_and_no_stretch_is_much_shorter() -> None:
    random = np.random.default_rng(7)
    for _ in range(20):
        clocks, count = 4, 300
        sent = np.sort(random.integers(0, 10**7, count))
        received = sent + random.integers(1_000, 5_000, count)
        sender = random.integers(0, clocks, count)
        receiver = (sender + random.integers(1, clocks, count)) % clocks
        # Each clock is wrong by up to 10 us, and wanders.
        wave, phase = random.integers(10**5, 10**6, clocks), random.random(clocks) * 6

        told = [
            (time + 10_000 * np.sin(time / wave[clock] + phase[clock])).astype(np.int64).tolist()
            for clock, time in ((sender, sent), (receiver, received))
        ]
        before = met(list(zip(sender.tolist(), told[0], receiver.tolist(), told[1], strict=True)))
        assert counted(before).bad_messages > 0
        shifts, knots = solve(before)
        moved = shifts[before.clock]
        begin, end = (
            time + moved + added(knots, before.clock, time + moved) for time in (before.begin_ns, before.end_ns)
        )
        assert (end[1::2] >= begin[::2]).all()  # what was received, and the same as it was sent
        times = np.arange(0, 12 * 10**6, 997)
        for clock in range(clocks):
            goal = times + added(knots, np.full(len(times), clock), times)
            assert (np.diff(goal) >= 0.99 * np.diff(times) - 2).all()
