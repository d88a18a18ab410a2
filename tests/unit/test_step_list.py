"""What the page is told of the steps beside their table: which it opens on, and which is the worst."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np

from strobe.server.run.step_list import StepList, StepsAbout
from strobe.steps.steps import find_steps
from strobe.steps.usual_steps import usual_steps
from tests.unit.hand_made import MS, make_trace, span, train_steps


def about_of(*spans: object, **more: object) -> StepsAbout:
    found = StepList(find_steps(make_trace({"main": spans or train_steps(60, **more)})))  # type: ignore[arg-type,dict-item]
    about: StepsAbout = json.loads(found.table(100).schema.metadata[b"about"])
    return about


def test_it_opens_on_the_three_neighbours_that_are_nearest_to_usual() -> None:
    stalls = {20: 50 * MS, 41: 90 * MS}
    spans = train_steps(60, stalls=stalls)
    starts = [each.start_ns for each in spans if each.name.startswith("enumerate")]
    lengths = np.array([end - start for start, end in pairwise([*starts, spans[-1].end_ns])])
    usual = np.median(np.delete(lengths, list(stalls)))
    typical = about_of(stalls=stalls)["typical"]
    first = typical[0]["step"]
    assert [each["step"] for each in typical] == [first, first + 1, first + 2]
    assert not set(range(first, first + 3)) & set(stalls)
    sums = np.convolve(lengths, np.ones(3), "valid")
    allowed = [at for at in range(len(sums)) if not set(range(at, at + 3)) & set(stalls)]
    nearest = min(abs(sums[at] - 3 * usual) for at in allowed)
    assert abs(sums[first] - 3 * usual) <= nearest + 3000, "the jitter of a median of other steps"


def test_the_worst_step_is_slow_by_most() -> None:
    worst = about_of(stalls={20: 50 * MS, 41: 90 * MS})["worst"]
    assert worst is not None
    assert worst["step"] == 41


def test_without_steps_there_is_neither() -> None:
    about = about_of(span("main", 0, 1000, span("load", 10, 20)))
    assert (about["typical"], about["worst"]) == ([], None)


def test_the_median_of_a_class_is_that_of_its_usual_steps() -> None:
    """As in the summary: two pages that show it agree."""
    trace = make_trace({"main": train_steps(20, stalls={4: 50 * MS, 11: 90 * MS, 15: 70 * MS})})
    (only,) = StepList(find_steps(trace)).about["classes"]
    usual = usual_steps(trace)
    assert usual is not None
    assert only["outliers"] == 3
    assert only["median_ns"] == usual.median_ns
    assert only["median_ns"] < np.median(usual.steps.duration_ns)
