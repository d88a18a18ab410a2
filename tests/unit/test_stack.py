"""The iteration stack over programs whose every stall is known, because the test put it there."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from strobe.errors import UsageError
from strobe.steps.finding.offline_search import steps_of
from strobe.steps.iteration_stack.alignment import MOST_POSITIONS, align, align_steps
from strobe.steps.iteration_stack.stack import END, Stack, build_stack, stack_of
from tests.unit.hand_made import MS, make_trace, span, train_steps
from tests.unit.streams import BACKWARD, FORWARD, SINGLE_WAIT, STEP, ZERO, Program, sample

UPDATE = ("aten::mul_", "aten::add_")
# What a step of `train` below does, in order: the functions around it are looked into.
PATH = (SINGLE_WAIT, ZERO, *FORWARD, *BACKWARD, *UPDATE)


def train(
    steps: int,
    *,
    stalls: dict[int, int] | None = None,
    slow: dict[int, int] | None = None,
    extra: tuple[int, ...] = (),
    without: tuple[int, ...] = (),
) -> Stack:
    """A training in which step s sleeps 20 ms before position stalls[s], and takes four times as long in slow[s].

    Steps in `extra` have a dropout after the first two operators, those in `without` lack the second one.
    """
    program, noise = Program(), random.Random(7)
    for step in range(steps):

        def run(name: str, position: int, step: int = step) -> None:
            program.pause(20_000 if (stalls or {}).get(step) == position else noise.uniform(5, 8))
            program.run(name, us=noise.uniform(95, 105) * (4 if (slow or {}).get(step) == position else 1))

        run(SINGLE_WAIT, 0)
        with program.inside("train_step"):
            run(ZERO, 1)
            with program.inside("Net.forward"):
                for place, name in enumerate(FORWARD):
                    if not (place == 1 and step in without):
                        run(name, 2 + place)
                    if place == 1 and step in extra:
                        program.run("aten::dropout", us=50)
            for place, name in enumerate(BACKWARD):
                run(name, 6 + place)
            with program.inside(STEP):
                for place, name in enumerate(UPDATE):
                    run(name, 10 + place)
    stream = program.stream()
    return stack_of(stream, steps_of(stream))


def test_positions_are_the_operators_of_the_usual_path_from_the_cut_on() -> None:
    stack = train(30)
    assert stack.names == (*PATH, END)
    assert stack.shape == (30, len(PATH) + 1)
    assert set(stack.path.tolist()) == {0}
    assert np.all(np.abs(stack.medians_ns["duration"][:-1] - 100_200) < 3000), (
        "100 us and 100 ns each to enter and leave"
    )


def test_every_stall_is_found_as_a_gap_before_its_position() -> None:
    stalls = {9: 4, 17: 0, 23: 11, 31: 7, 40: 1, 52: 6}
    outliers = train(60, stalls=stalls).outliers()
    found = {(row["step"], row["position"], row["metric"]) for row in outliers.to_pylist()}
    # The wait for data is where a step begins: sleeping before it makes the step before longer, at its end.
    ends = {(step - 1, len(PATH), "gap") for step, position in stalls.items() if position == 0}
    assert found == {(step, position, "gap") for step, position in stalls.items() if position} | ends
    assert all(19 * MS < ns < 21 * MS for ns in outliers.column("excess_ns"))


def test_a_slow_operator_is_found_as_a_duration() -> None:
    stack = train(60, slow={12: 3, 44: 8})
    found = [(row["step"], row["name"], row["metric"]) for row in stack.outliers(least_share=0.01).to_pylist()]
    assert sorted(found) == [(12, PATH[3], "duration"), (44, PATH[8], "duration")]
    assert stack.values("duration")[12, 3] == pytest.approx(2, abs=0.15), "four times as long: two octaves"


def test_nothing_stands_out_in_a_calm_run() -> None:
    outliers = train(60).outliers()
    assert len(outliers) == 0
    assert outliers.note == "no cell stands out"


def test_steps_that_do_something_else_have_a_path_of_their_own_and_stay_aligned() -> None:
    odd = tuple(range(11, 11 + 19 * 2, 2))
    stack = train(60, extra=odd)
    assert len(odd) == 19
    assert set(np.flatnonzero(stack.path == 1).tolist()) == set(odd)
    assert set(np.flatnonzero(stack.extra_counts).tolist()) == set(odd)
    assert {stack.region_names[region] for region in stack.extras.region} == {"aten::dropout"}
    assert set(stack.extras.before.tolist()) == {4}
    assert not np.isnan(stack.to_numpy()[:, :-1]).any(), "no position is absent or shifted"
    assert np.all(np.abs(stack.values()[:, :-1]) < 0.3)


def test_an_absent_position_is_absent_there_alone() -> None:
    stack = train(40, without=(5, 6, 30))
    assert np.argwhere(np.isnan(stack.to_numpy()[:, :-1])).tolist() == [[5, 3], [6, 3], [30, 3]]
    assert not np.isnan(stack.to_numpy("gap")[:, -1]).any(), "every step has an end"


def test_gaps_durations_and_extras_add_up_to_the_step() -> None:
    stack = train(40, extra=(7, 8), without=(5,), stalls={9: 4})
    inside = np.nansum(stack.to_numpy("duration").astype(np.float64), axis=1)
    between = np.nansum(stack.to_numpy("gap").astype(np.float64), axis=1)
    times_ns = stack.extras.duration_ns + stack.extras.gap_ns
    extras = np.bincount(stack.extras.row, weights=times_ns, minlength=len(stack))
    assert np.abs(inside + between + extras - stack.step_ns).max() < 20, "ns; floats of 32 bits round"


def test_only_a_class_can_be_stacked_up() -> None:
    trace = make_trace({"main": train_steps(40, extras=dict.fromkeys((9, 19, 29), ("validate", 5 * MS)))})
    whole = trace.stack()
    assert (len(whole), len(trace.stack(class_name="train+validation"))) == (40, 3)
    assert set(np.flatnonzero(whole.extra_counts).tolist()) == {9, 19, 29}
    with pytest.raises(UsageError, match="no class of steps 'test'"):
        trace.stack(class_name="test")
    with pytest.raises(UsageError, match="no metric 'colour'"):
        trace.stack("colour")
    with pytest.raises(UsageError, match="process 3 has no steps"):
        trace.stack(process=3)


def test_the_metric_chosen_first_is_what_is_returned() -> None:
    trace = make_trace({"main": train_steps(20)})
    assert trace.stack("gap").to_numpy() is trace.stack("gap").gaps_ns
    assert trace.stack().to_numpy() is trace.stack().durations_ns


def test_json_holds_the_matrices_in_whole_nanoseconds() -> None:
    stack = train(20, without=(4,))
    told = json.loads(stack.to_json())
    assert told["positions"] == list(stack.names)
    assert told["duration_ns"][4][3] is None
    assert told["duration_ns"][5][3] == pytest.approx(float(stack.to_numpy()[5, 3]), abs=1)
    assert told["gap_ns"][5][-1] is not None


def test_a_run_without_a_loop_gives_an_empty_stack_that_says_why() -> None:
    stack = build_stack(make_trace({"main": [span("main", 0, 1000, span("load", 0, 400))]}))
    assert stack.shape == (0, 0)
    assert "nothing repeats" in stack.reason
    assert len(stack.outliers()) == 0
    assert json.loads(stack.to_json())["steps"] == []


def test_steps_without_events_are_no_rows() -> None:
    program = Program()
    for step in range(10):
        if step in (3, 4, 5):
            program.pause(300)
        else:
            program.run("a", "b", "c", us=100)
    stream = program.stream()
    begins = np.arange(10, dtype=np.int64) * 300_600
    begins[4:6], begins[6:] = (1_201_800, 1_501_800), begins[6:] - 1800
    aligned = align_steps(stream, begins, np.append(begins[1:], stream.end_ns[-1]), np.ones(10, dtype=bool))
    assert np.flatnonzero(aligned.path < 0).tolist() == [3, 4, 5]
    assert set(aligned.step.tolist()) == {0, 1, 2, 6, 7, 8, 9}


@pytest.mark.parametrize("mark", ["ProfilerStep#{}", "train step: {}", "epoch {}"])
def test_steps_whose_marks_have_numbers_are_on_one_path(mark: str) -> None:
    program, begins = Program(), []
    for number in range(5):
        begins.append(program.now_ns)
        with program.inside(mark.format(number + 8)):
            program.run("aten::linear", "aten::relu", us=100)
            if number == 3:
                program.run("aten::item", us=70)
    start = np.array(begins, dtype=np.int64)
    end = np.append(start[1:], program.now_ns)
    aligned = align_steps(program.stream(), start, end, np.ones(5, dtype=bool))
    assert aligned.path.tolist() == [0, 0, 0, 1, 0]
    extras = aligned.region[aligned.position < 0]
    assert [program.stream().names[region] for region in extras] == ["aten::item"]


def test_a_function_that_holds_the_loop_is_no_event_of_the_step_in_which_it_begins() -> None:
    """The cut lies inside: what was called in one step goes on in the next ones."""
    program = Program()
    for _ in range(6):
        with program.inside("batch"):
            for _ in range(4):
                program.run("aten::linear", "aten::relu", us=100)
            program.run("aten::sum", us=50)
    stream = program.stream()
    begins = stream.start_ns[[stream.names[region] == "aten::linear" for region in stream.region]]
    aligned = align_steps(stream, begins, np.append(begins[1:], stream.end_ns.max()), np.ones(24, dtype=bool))
    assert [stream.names[region] for region in aligned.regions] == ["aten::linear", "aten::relu"]
    assert np.bincount(aligned.path).tolist() == [18, 6], "the last layer of a batch is followed by its sum"
    assert (aligned.position >= 0).sum() == 48


def test_what_would_need_more_columns_than_a_screen_has_stays_closed() -> None:
    program = Program()
    for _ in range(12):
        with program.inside("step"):
            with program.inside("few"):
                program.run(*"abcde", us=500)
            with program.inside("many"):
                program.run(*(["x"] * (2 * MOST_POSITIONS)), us=1)
    stream = program.stream()
    begins = stream.start_ns[stream.parent < 0]
    aligned = align_steps(stream, begins, np.append(begins[1:], stream.end_ns.max()), np.ones(12, dtype=bool))
    assert [stream.names[region] for region in aligned.regions] == [*"abcde", "many"]


def test_the_recorded_training_is_stacked_up_from_its_waits_to_its_updates() -> None:
    stream, truth = sample()
    stack = stack_of(stream, steps_of(stream))
    stalled = {number for number, step in enumerate(truth) if step["stalled"]}
    assert stack.names[0].startswith("enumerate(DataLoader)#")
    assert sum(name == "aten::conv2d" for name in stack.names) == 3, "the model has three convolutions"
    assert sum("ConvolutionBackward0" in name for name in stack.names) == 3
    waits = {r["step"] for r in stack.outliers(least_share=0.5).to_pylist() if r["position"] == 0 and r["step"] > 0}
    assert waits >= stalled
    assert len(waits - stalled) <= 1
    assert (stack.path == 0).mean() > 0.8


def longest_common(a: list[int], b: list[int]) -> int:
    """Length of a longest common subsequence, by the textbook's table."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def test_alignment_is_a_longest_common_subsequence() -> None:
    chance = random.Random(3)
    for _ in range(600):
        letters = chance.choice([2, 3, 9])
        a = [chance.randrange(letters) for _ in range(chance.randrange(0, 24))]
        b = [chance.randrange(letters) for _ in range(chance.randrange(0, 24))]
        if chance.random() < 0.5:
            b = [x for x in a if chance.random() < 0.9]
        places = align(a, b)
        matched = [place for place in places if place >= 0]
        assert len(places) == len(b)
        assert all(a[place] == b[i] for i, place in enumerate(places) if place >= 0)
        assert matched == sorted(set(matched)), "each place once, in order"
        assert len(matched) == longest_common(a, b)


def test_one_layer_more_shifts_nothing_behind_it() -> None:
    layers = [1, 2, 3] * 12
    usual = [0, *layers, 9]
    longer = [0, *layers[:15], 1, 2, 3, *layers[15:], 9]
    places = align(usual, longer)
    assert places[0] == 0
    assert places[-1] == len(usual) - 1
    assert places.count(-1) == 3
    assert align(usual, longer, exact=False) == places, "one insertion lies between two ends that are equal"
