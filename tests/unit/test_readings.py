"""Readings of a window: what each pixel says is what a loop over its readings finds."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from strobe.server.run.series import Series, readings_table, series_table
from strobe.server.trace_context import TraceContext
from tests.unit.hand_made import HandMadeProcess, make_trace, train_steps

VALUES = st.floats(-1e6, 1e6, allow_nan=False) | st.just(math.nan)
READINGS = st.lists(st.tuples(st.integers(0, 500), VALUES), min_size=1, max_size=120)


def series_of(readings: list[tuple[int, float]]) -> Series:
    ordered = sorted(readings, key=lambda each: each[0])
    times, values = np.array([t for t, _ in ordered], dtype=np.int64), np.array([v for _, v in ordered])
    return Series("m", "B", 0, None, times, values)


@settings(max_examples=300, deadline=None)
@given(READINGS, st.integers(-20, 400), st.integers(1, 400), st.integers(1, 9))
@example([(at, math.nan) for at in range(40)], 0, 40, 3)
def test_every_pixel_is_least_mean_and_greatest_of_its_readings(
    readings: list[tuple[int, float]], start: int, length: int, width: int
) -> None:
    series = series_of(readings)
    found = readings_table([series], [0], start, start + length, width).to_pylist()

    pairs = list(zip(series.time_ns.tolist(), series.values.tolist(), strict=True))
    before = [each for each in pairs if each[0] < start][-1:]
    after = [each for each in pairs if each[0] >= start + length][:1]
    shown = [*before, *(each for each in pairs if start <= each[0] < start + length), *after]
    if len(shown) <= 2 * width:
        assert [row["time_ns"] for row in found] == [time for time, _ in shown]
        for name in ("low", "mean", "high"):
            assert [row[name] for row in found] == pytest.approx([value for _, value in shown], nan_ok=True)
        return
    pixels: dict[int, list[tuple[int, float]]] = {}
    for time, value in shown:
        pixels.setdefault(min(max((time - start) * width // length, 0), width - 1), []).append((time, value))
    assert len(found) == len(pixels)
    for row, (_, inside) in zip(found, sorted(pixels.items()), strict=True):
        numbers = [value for _, value in inside if not math.isnan(value)]
        assert row["time_ns"] == inside[0][0]
        if numbers:
            assert (row["low"], row["high"]) == (min(numbers), max(numbers))
            assert row["mean"] == pytest.approx(math.fsum(numbers) / len(numbers), abs=1e-6)
        else:
            assert all(math.isnan(row[name]) for name in ("low", "mean", "high"))


def test_axes_do_not_suffer_from_what_is_no_number() -> None:
    rows = series_table([series_of([(1, math.nan)]), series_of([(1, math.nan), (2, 5.0), (3, -2.0)])]).to_pylist()
    assert [(row["lowest"], row["highest"]) for row in rows] == [(0.0, 0.0), (-2.0, 5.0)]


def test_times_of_months_are_told_apart_to_the_nanosecond() -> None:
    month = 31 * 86_400 * 10**9
    times = np.concatenate([np.arange(month - 5000, month), np.arange(month, month + 5000)])
    series = Series("m", "", 0, None, times, np.repeat([1.0, 2.0], 5000))
    rows = readings_table([series], [0], 0, 2 * month, 2).to_pylist()
    assert [(row["low"], row["mean"], row["high"]) for row in rows] == [(1.0, 1.0, 1.0), (2.0, 2.0, 2.0)]


def test_cpu_time_of_children_is_no_curve_because_it_counts_at_once_when_they_end():
    metrics = [
        {"metric": number, "name": name, "unit": "cores", "location": 2**32 - 1, "time_ns": [10, 20], "value": value}
        for number, (name, value) in enumerate([("cpu main thread", [1, 1]), ("cpu ended child processes", [0, 34])])
    ]  # fmt: skip
    trace = make_trace(HandMadeProcess({"main": train_steps(3)}, metrics=metrics))
    assert [each.metric for each in TraceContext(trace, trace.path).series] == ["cpu main thread"]
