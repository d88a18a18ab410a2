"""Rules: each fires on a trace with its problem, promises what fixing it would gain, and is silent on a sound one."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strobe import registry
from strobe.advice.outlier import ordinal, rhythm
from strobe.advice.rank import BESIDE, findings, judged
from strobe.breakdown.known_work import what_to_do
from strobe.model.kinds import CORES, OPERATOR_THREADS
from strobe.present.summary import summarise
from strobe.present.summary_text import summary_text
from tests.unit.hand_made import FETCH, FETCH_ALONE, MS, HandMadeProcess, make_trace, move, span, train_steps


def by_rule(trace):
    return {finding.rule: finding for finding in findings(trace)}


def test_a_sound_training_gets_no_advice():
    assert findings(make_trace({"main": train_steps(60, wait_ns=MS // 10)})) == []


def test_waiting_for_data_without_workers_gains_what_a_worker_could_do_beside_the_step():
    # 8 ms of 19 ms are the fetch; a worker would hide all 8 behind the 11 of the step; half of that for sure
    finding = by_rule(make_trace({"main": train_steps(60, wait_ns=8 * MS, loader=FETCH_ALONE)}))["data.wait"]
    assert (finding.gain_low_ns, finding.gain_high_ns) == (
        pytest.approx(4 * MS, rel=0.01),
        pytest.approx(8 * MS, rel=0.01),
    )
    assert "num_workers=2" in finding.do
    assert "42 %" in finding.what


def test_waiting_longer_than_the_step_computes_gains_half_the_computing_and_at_most_the_fetch():
    # 30 ms fetch, 11 ms step: beside each other they take 30 instead of 41; a fetch without work takes nothing
    finding = by_rule(make_trace({"main": train_steps(60, wait_ns=30 * MS, loader=FETCH_ALONE)}))["data.wait"]
    assert finding.gain_low_ns == pytest.approx(5.5 * MS, rel=0.01)
    assert finding.gain_high_ns == pytest.approx(30 * MS, rel=0.01)


def test_waiting_for_busy_workers_advises_more_of_them_and_promises_nothing_for_sure():
    fetches = {"worker": [span("DataLoader.fetch", 0, 100, paradigm="torch", role="data")]}
    own = HandMadeProcess(fetches, pid=200, parent_pid=100, main=False)
    others = HandMadeProcess(fetches, pid=201, parent_pid=199, main=False)  # a worker of another rank, or a rank
    main = HandMadeProcess({"main": train_steps(60, wait_ns=8 * MS)})
    finding = by_rule(make_trace(main, own, others))["data.wait"]
    assert finding.gain_low_ns == 0
    assert "with 1 loader worker" in finding.what
    assert "num_workers above 1" in finding.do


def test_workers_that_were_not_recorded_are_known_by_the_name_of_the_wait():
    finding = by_rule(make_trace({"main": train_steps(60, wait_ns=8 * MS)}))["data.wait"]
    assert (finding.gain_low_ns, finding.confidence) == (0, "medium")
    assert "some loader workers" in finding.what
    assert "raise num_workers while" in finding.do


def test_a_loader_that_stalls_sometimes_is_an_outlier_and_not_a_data_wait():
    found = by_rule(
        make_trace({"main": train_steps(75, wait_ns=MS // 10, stalls=dict.fromkeys(range(11, 75, 20), 80 * MS))})
    )
    assert set(found) == {"outlier"}
    finding = found["outlier"]
    assert "every 20th step takes 80.00 ms longer, in waiting for data" in finding.what
    # 4 stalls of 80 ms in 75 steps
    assert finding.gain_high_ns == pytest.approx(BESIDE * (4 * 80 * MS / 75), rel=0.01)
    assert finding.gain_low_ns == pytest.approx(finding.gain_high_ns / BESIDE, rel=0.01)
    assert [place["text"] for place in finding.evidence] != []


def test_slow_steps_that_make_their_batch_for_long_do_not_wait_for_it():
    making = dict.fromkeys(range(11, 75, 20), 80 * MS)
    found = by_rule(make_trace({"main": train_steps(75, wait_ns=MS // 10, making=making)}))
    assert set(found) == {"outlier"}
    # The function that holds the loop's body is what grew; no loader is blamed.
    assert "every 20th step takes 80.00 ms longer, in train_step" in found["outlier"].what
    assert "fetch" not in found["outlier"].do


def test_what_slow_steps_wait_is_named_and_promises_nothing():
    # 1 ms of 12 in each of 75 steps, and four stalls of 80 ms: (75 + 320) / 75 = 5.27 ms on average, 4.32 of it slow:
    # the stalls and what these steps wait as others do.
    steps = train_steps(75, stalls=dict.fromkeys(range(11, 75, 20), 80 * MS))
    finding = by_rule(make_trace({"main": steps}))["data.wait"]
    assert "waits 5.27 ms (32 %) of a step on average for its next batch, 4.32 ms of it in slow steps" in finding.what
    assert (finding.gain_low_ns, finding.gain_high_ns, finding.do) == (0, 0, "")
    assert finding.informative


SLOW = (21, 33, 40)


def slow_steps(*, after_ns=0, **more):
    """75 steps, of which three take longer: by what `more` gives to `train_steps`, and a pause after them."""
    steps, now = [], 0
    for number in range(75):
        usual = {"wait_ns": MS // 10, "python_ns": MS + 1000 * (number % 11)}
        one = train_steps(1, **usual | (more if number in SLOW else {}))
        steps += [move(each, now) for each in one]
        now = steps[-1].end_ns + (after_ns if number in SLOW else 0)
    return steps


def busy(waited):
    """A reading every 100 ms of how much of its time the main thread waited for a core."""
    times = [100 * MS * number for number in range(12)]
    return {
        "metric": 0, "name": "main thread waits for a core", "unit": "cores", "location": 2**32 - 1,
        "time_ns": times, "value": [waited] * len(times),
    }  # fmt: skip


def test_the_call_that_grew_is_named_with_what_it_usually_takes():
    finding = by_rule(make_trace({"main": slow_steps(forward_ns=64 * MS)}))["outlier"]
    assert "60.00 ms longer, in aten::conv2d: step 21, 33, 40" in finding.what
    assert finding.do == "it takes 64.00 ms there, 4.00 ms in a usual step"


@pytest.mark.parametrize(("slow_ms", "count", "gains"), [(100, 75, False), (160, 75, True), (160, 600, False)])
def test_a_call_that_grew_a_little_is_the_machine_as_well(slow_ms, count, gains):
    """Without a rhythm, three slow steps promise a gain only if their call takes 3 times its usual 40 ms, and if that
    is much of the run."""
    steps, now = [], 0
    for number in range(count):
        one = train_steps(1, forward_ns=(slow_ms if number in SLOW else 40) * MS, python_ns=MS + 1000 * (number % 11))
        steps += [move(each, now) for each in one]
        now = steps[-1].end_ns
    finding = by_rule(make_trace({"main": steps}))["outlier"]
    assert re.fullmatch(rf"it takes {slow_ms}.0+ ms there, 40.00 ms in a usual step", finding.do)
    assert (finding.gain_high_ns > 0) == gains


def test_a_function_whose_own_time_grew_is_named():
    finding = by_rule(make_trace({"main": slow_steps(python_ns=61 * MS)}))["outlier"]
    assert "ms longer, in train_step: step 21, 33, 40" in finding.what


def every_tenth(role):
    """80 iterations of 10 ms, of which every tenth takes 40 ms."""
    steps, now = [], 0
    for number in range(80):
        took = (40 if number % 10 == 9 else 10) * MS + 1000 * (number % 7)
        steps.append(span("loop in fit at fit.py:3", now, now + took, role=role))
        now += took + 1000
    return span("fit", 0, now, *steps)


@pytest.mark.parametrize("role", ["loop", "function"])
def test_what_a_loop_does_every_so_often_promises_nothing(role):
    """Every tenth iteration computes an error and prints it: the loop does so on purpose, and what it is is unknown."""
    finding = by_rule(make_trace({"main": [every_tenth(role)]}))["outlier"]
    assert "every 10th step takes 30.00 ms longer, in loop in fit" in finding.what
    assert (finding.gain_high_ns > 0) == (role == "function")


def test_steps_that_are_longer_as_a_whole_may_have_more_to_do():
    """The last of 39 candidates are fitted with more trees, deeper in a function that calls itself."""
    steps, now = [], 0
    for number in range(39):
        took = (600 if number in (30, 36, 37, 38) else 100) * MS + 1000 * (number % 7)
        steps.append(span("fit", now, now + took))
        now += took + 1000
    deeper = span("halve", steps[30].start_ns - 500, now, *steps[30:])
    finding = by_rule(make_trace({"main": [span("halve", 0, now + 500, *steps[:30], deeper)]}))["outlier"]
    assert "4 of 39 steps take 500.0 ms longer, in fit: step 30, 36, 37, 38" in finding.what
    assert finding.do == "it takes 600.0 ms there, 100.0 ms in a usual step"
    assert finding.informative


def test_waiting_for_another_rank_promises_nothing():
    """Every tenth step the other rank comes 30 ms later: what it does there could be saved, not the wait for it."""
    steps, now = [], 0
    for number in range(80):
        took = (40 if number % 10 == 9 else 10) * MS + 1000 * (number % 7)
        work = span("advance", now, now + 5 * MS)
        steps += [work, span("MPI_Allreduce", now + 5 * MS, now + took, paradigm="mpi")]
        now += took + 1000
    finding = by_rule(make_trace({"main": [span("fit", 0, now, *steps)]}))["outlier"]
    assert "every 10th step takes 30.00 ms longer, in MPI_Allreduce" in finding.what
    assert finding.informative
    assert finding.gain_high_ns == 0
    assert "the other ranks" in finding.do


def test_where_no_call_grew_nothing_is_guessed():
    finding = by_rule(make_trace({"main": slow_steps(after_ns=60 * MS)}))["outlier"]
    assert "60.00 ms longer, in work outside of operators: step 21, 33, 40" in finding.what
    assert finding.do.startswith("no recorded call grew by half of that")


@pytest.mark.parametrize("waited", [0.0, 0.9])
def test_a_busy_machine_is_no_fault_of_the_program(waited):
    process = HandMadeProcess({"main": slow_steps(forward_ns=64 * MS)}, metrics=[busy(waited)])
    finding = by_rule(make_trace(process))["outlier"]
    assert finding.informative == (waited > 0)
    assert ("waited" in finding.do) == (waited > 0)
    assert (finding.gain_high_ns == 0) == (waited > 0)
    remarks = summarise(make_trace(process)).quality.remarks
    assert any("waited for a core" in each for each in remarks) == (waited > 0)


def renamed(each, old, new):
    """The same span, and what lies in it, with another word in their names."""
    children = tuple(renamed(child, old, new) for child in each.children)
    return dataclasses.replace(each, name=each.name.replace(old, new), children=children)


def test_slow_steps_are_those_of_the_main_loop():
    """Three slow steps of a warm-up with an optimizer of its own are none of the 300 of the training after it."""
    first = slow_steps(forward_ns=64 * MS)
    assert "outlier" in by_rule(make_trace({"main": first}))
    end_ns = first[-1].end_ns
    then = [move(renamed(each, "Optimizer.step#", "Optimizer.step#Other"), end_ns) for each in train_steps(300)]
    trace = make_trace({"main": [*first, *then]})
    assert len(set(trace.steps().column("loop"))) == 2
    assert "outlier" not in by_rule(trace)


def test_what_keeps_to_a_rhythm_is_not_the_machine():
    process = HandMadeProcess({"main": [every_tenth("function")]}, metrics=[busy(0.9)])
    finding = by_rule(make_trace(process))["outlier"]
    assert "every 10th step" in finding.what
    assert "waited" not in finding.do


def test_two_slow_steps_are_mentioned_without_a_promise():
    finding = by_rule(make_trace({"main": train_steps(60, wait_ns=MS // 10, stalls={20: 80 * MS, 33: 80 * MS})}))[
        "outlier"
    ]
    assert finding.informative
    assert finding.gain_high_ns == 0
    assert "2 of 60 steps take 80.00 ms longer, in waiting for data: step 20, 33" in finding.what


def test_validation_is_good_to_know_and_no_problem():
    extras = dict.fromkeys(range(24, 75, 25), ("validate", 30 * MS))
    steps = train_steps(75, wait_ns=MS // 10, extras=extras)
    process = HandMadeProcess({"main": steps}, places={"validate": ("/home/me/train.py", 30)})
    finding = by_rule(make_trace(process))["classes"]
    assert finding.informative
    assert finding.where == "/home/me/train.py:30"
    assert "validation: 3 of 75 steps take 30.00 ms longer" in finding.what


@pytest.mark.parametrize("every", [5, 2])
def test_what_takes_much_of_all_steps_gains_two_thirds_by_a_third_as_often(every):
    """30 ms in every fifth step of 11, or in every second one, where most steps have it: 6 of 17 ms, 15 of 26."""
    extras = dict.fromkeys(range(0, 75, every), ("validate", 30 * MS))
    trace = make_trace({"main": train_steps(75, wait_ns=MS // 10, extras=extras)})
    finding = by_rule(trace)["classes"]
    assert re.match(r"validation: \d+ of 7\d steps take 30.00 ms longer, (35|58) %", finding.what), finding.what
    assert finding.do.startswith("do it less often (a third as often saves two thirds)")
    assert not finding.informative
    assert finding.gain_high_ns == pytest.approx(BESIDE * (30 * MS / every * (1 + every / 75)), rel=0.05)
    assert finding.gain_low_ns == pytest.approx(20 * MS / every, rel=0.05)


def test_python_inside_the_step_is_named_with_its_function():
    finding = by_rule(make_trace({"main": train_steps(60, wait_ns=MS // 10, python_ns=8 * MS)}))["python"]
    assert finding.what.startswith("train_step itself takes 8.00 ms (44 %)")
    assert finding.confidence == "low"
    assert finding.informative  # a C library's work is in its own time, too: nobody knows what a rewrite gains


@pytest.mark.parametrize("callers", [["closest"], ["closest", "nearest"]])
def test_who_calls_the_function_is_told_where_nearly_all_calls_are_its_own(callers):
    """That is where a repair begins: not in what a distance is, but in who asks for so many."""
    steps, now = [], 0
    for number in range(60):
        begin, caller = now + MS // 2, callers[number % len(callers)]
        distance = span("distance", begin, begin + 8 * MS)
        steps += [span("fetch", now, now + MS // 2), span(caller, begin, begin + 8 * MS, distance)]
        now = begin + 8 * MS + 1000
    finding = by_rule(make_trace({"main": [span("fit", 0, now, *steps)]}))["python"]
    assert finding.what.startswith("distance itself takes ")
    assert finding.do.startswith("called by closest (") == (len(callers) == 1)


def with_samples(steps, *stacks, state="python"):
    """These steps, each with a sample in `zero_grad`: the call stacks in turn."""
    found = []
    for number, one in enumerate(each for each in steps if each.name == "train_step"):
        first, *others = one.children
        stack = "\n".join(stacks[number % len(stacks)])
        row = {"time_ns": first.start_ns, "call_stack": stack, "state": state, "line": 9, "period_ns": MS, "cpu_ns": MS}
        found.append(replace(one, children=(replace(first, tables={"samples": row}), *others)))
    return [found.pop(0) if each.name == "train_step" else each for each in steps]


@pytest.mark.parametrize(
    ("state", "spent"),
    [
        ("native", ", mostly in native code that it calls"),
        ("python", ", mostly in the interpreter"),
        ("waiting", ", mostly waiting for another thread or process"),
        ("", ", mostly in the interpreter"),
    ],
)
def test_samples_show_what_a_function_does_there(state, spent):
    steps = train_steps(60, wait_ns=MS // 10, python_ns=8 * MS)
    spans = with_samples(steps, ["train_step (/home/me/train.py:0)"], state=state)
    assert by_rule(make_trace({"main": spans}))["python"].what.endswith(f"of a step{spent}")


def test_of_a_function_that_calls_what_was_not_recorded_samples_show_nothing():
    steps = train_steps(60, wait_ns=MS // 10, python_ns=8 * MS)
    beside = ["train_step (/home/me/train.py:0)", "inner (/home/me/train.py:9)"]
    spans = with_samples(steps, beside[:1], *[beside] * 9, state="native")
    assert by_rule(make_trace({"main": spans}))["python"].what.endswith("of a step")


@pytest.mark.parametrize(
    ("called", "least", "do"),
    [
        ("dumps (/usr/lib/python3.11/json/__init__.py:183)", 0.6, "write JSON only where it is read"),
        ("Logger.info (/usr/lib/python3.12/logging/__init__.py:1479)", 0.7, "log less often"),
        ("Tensor.__format__ (/v/lib/python3.11/site-packages/torch/_tensor.py:1136)", 0.7, "make text of tensors only"),
        ("_mean (/v/lib/python3.11/site-packages/numpy/_core/_methods.py:117)", None, ""),
    ],
)
def test_what_a_loop_can_do_without_gains_its_time_less_the_error_of_the_samples(called, least, do):
    """Of 8 ms three samples of four are in the call: 6 ms, of 45 samples in 60 steps."""
    steps = train_steps(60, wait_ns=MS // 10, python_ns=8 * MS)
    own = "train_step (/home/me/train.py:0)"
    spans = with_samples(steps, *[[own, called, "_encode (/usr/lib/python3.11/re/__init__.py:9)"]] * 3, [own])
    finding = by_rule(make_trace({"main": spans}))["python"]
    assert finding.what.endswith(f", 75 % of that in {called.split()[0]}")
    assert finding.informative == (least is None)
    if least is not None:
        assert finding.do.startswith(do)
        assert finding.gain_high_ns == pytest.approx(BESIDE * 8 * MS, rel=0.03)
        assert finding.gain_low_ns == pytest.approx(6 * MS * least * (1 - 45**-0.5), rel=0.03)


def test_a_call_of_a_library_that_takes_less_than_half_of_a_function_is_not_named():
    steps = train_steps(60, wait_ns=MS // 10, python_ns=8 * MS)
    own, called = "train_step (/home/me/train.py:0)", "dumps (/usr/lib/python3.11/json/__init__.py:183)"
    finding = by_rule(make_trace({"main": with_samples(steps, [own, called], [own], [own])}))["python"]
    assert finding.informative
    assert "dumps" not in finding.what


FETCHING = "fetch (/opt/torch/utils/data/_utils/fetch.py:50)"


@pytest.mark.parametrize(("others", "named"), [(0, True), (4, False)])
def test_the_function_in_which_most_of_the_fetching_passes_is_named(others, named):
    stacks = [
        [FETCHING, "__getitem__ (/home/me/data.py:20)"],
        *([FETCHING, f"f{n} (/x/f.py:1)"] for n in range(others)),
    ]
    spans = with_samples(train_steps(60, wait_ns=8 * MS), *stacks)
    finding = by_rule(make_trace({"main": spans}))["data.wait"]
    assert finding.what.endswith(", mostly in __getitem__") == named
    assert finding.where == ("/home/me/data.py:20" if named else "")


def test_a_sampler_in_which_most_of_the_fetching_passes_is_named():
    """In a loader without workers; the loop's wait for workers is nobody's work."""
    loader = "__next__ (/opt/torch/utils/data/dataloader.py:700)"
    sampler = [loader, "__iter__ (/opt/torch/utils/data/sampler.py:8)", "hardest (/home/me/data.py:40)"]
    stacks = [sampler, sampler, [loader, FETCHING, "__getitem__ (/home/me/data.py:20)"]]
    trace = make_trace({"main": with_samples(train_steps(60, wait_ns=8 * MS), *stacks)})
    assert by_rule(trace)["data.wait"].where == "/home/me/data.py:40"
    waits = with_samples(train_steps(60, wait_ns=8 * MS), *stacks, state="waiting")
    assert by_rule(make_trace({"main": waits}))["data.wait"].where == "/home/me/data.py:20"


def test_a_gain_that_the_run_would_not_notice_is_no_finding():
    # 8 us of 19 us a step, in 60 steps: half a millisecond of the whole run
    steps = train_steps(60, wait_ns=8000, forward_ns=4000, backward_ns=5000, optimizer_ns=1000, python_ns=1000)
    assert [finding for finding in findings(make_trace({"main": steps})) if not finding.informative] == []


def test_the_best_gain_comes_first_and_what_is_only_good_to_know_last():
    extras = dict.fromkeys(range(24, 75, 25), ("validate", 30 * MS))
    trace = make_trace({"main": train_steps(75, wait_ns=8 * MS, python_ns=4 * MS, extras=extras)})
    assert [finding.rule for finding in findings(trace)] == ["data.wait", "python", "classes"]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([18, 55, 92], 37),
        ([18, 55, 129, 166], 37),
        ([11, 44, 47], 0),
        ([5, 6, 7], 0),
        ([4, 8], 0),
        ([10, 13, 47, 61], 0),
        ([], 0),
    ],
)
def test_a_rhythm_is_exact_or_none(steps, expected):
    every, members = rhythm(np.array(steps, dtype=np.int64), np.ones(len(steps)))
    assert every == expected
    assert members.sum() == (len(steps) if expected else 0)


def test_a_rhythm_of_very_many_steps_holds_for_all_of_them():
    stalls, noise = np.arange(7, 200_000, 10), np.random.default_rng(1).integers(0, 200_000, 5000)
    rows = np.union1d(stalls, noise)
    every, members = rhythm(rows, np.where(np.isin(rows, stalls), 110.0, 30.0))
    assert every == 10
    assert set(rows[members]) == set(stalls)
    # That of the middle alone is none.
    rows = np.union1d(np.arange(80_000, 120_000, 10), np.random.default_rng(2).integers(0, 200_000, 9000))
    assert rhythm(rows, np.ones(len(rows)))[0] == 0


def test_a_rhythm_is_heard_through_the_noise_of_a_busy_machine():
    stalls, noise = list(range(18, 500, 37)), [50, 54, 60, 102, 144, 145, 147, 156, 159, 161, 163, 164, 335, 458, 460]
    rows = np.array(sorted(stalls + noise))
    every, members = rhythm(rows, np.where(np.isin(rows, stalls), 110.0, 30.0))
    assert every == 37
    assert rows[members].tolist() == stalls


def test_what_comes_a_few_times_must_go_on_through_the_run():
    """Three of 51 steps can be equally spaced by chance, close to each other; a report every 50th step is a habit."""
    ones = np.ones(4)
    assert rhythm(np.array([45, 47, 49]), ones[:3], 25)[0] == 0
    assert rhythm(np.array([49, 99, 149, 199]), ones, 100)[0] == 50


@given(st.lists(st.integers(0, 500), unique=True, max_size=30).map(sorted))
def test_a_rhythm_is_what_it_says(steps):
    every, members = rhythm(np.array(steps, dtype=np.int64), np.ones(len(steps)))
    if every:
        kept = np.array(steps)[members]
        assert not (np.diff(kept) % every).any()
        assert len(kept) >= 0.75 * ((kept[-1] - kept[0]) // every + 1)
        assert 2 * len(kept) >= len(steps)


def test_ordinals():
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 21, 37, 112)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "21st", "37th", "112th"
    ]  # fmt: skip


def test_every_rule_is_silent_on_a_program_without_steps():
    assert findings(make_trace({"main": [span("main", 0, 10 * MS, span(FETCH, 0, 9 * MS))]})) == []
    assert len(registry.names("advice")) >= 4


@pytest.mark.parametrize(
    ("caller", "named"), [("keep_weights", True), ("Net.forward", False), ("nn.Module: Net", False)]
)
def test_operators_outside_of_the_model_are_named_by_who_calls_them(caller, named):
    """Each step, the update included, copies for 3 of 15 ms: in a function of its own, or in the model."""
    steps = []
    for number, each in enumerate(train_steps(60)):
        by_ns = (number // 2 + 1) * 3 * MS  # a wait and a step in turn
        steps.append(move(each, by_ns - 3 * MS))
        if each.name == "train_step":
            begin = each.end_ns + by_ns - 3 * MS
            steps.append(span(caller, begin, begin + 3 * MS, span("aten::copy_", begin, begin + 3 * MS)))
    finding = by_rule(make_trace({"main": [span("fit", 0, steps[-1].end_ns + 1, *steps)]})).get("operators")
    assert (finding is not None) == (caller == "keep_weights")
    if finding is not None:
        assert finding.what.startswith("operators that keep_weights calls outside of modules take 3.00 ms (20 %)")
        assert finding.what.endswith("most of all aten::copy_")
        assert finding.do.startswith("1 calls of aten::copy_ a step")
        assert finding.informative


@pytest.mark.parametrize(("count", "each_us", "gains"), [(120, 20, True), (90, 20, False), (100, 30, False)])
def test_very_many_short_operators_of_one_function_gain_their_time_and_that_of_the_code_around_them(
    count, each_us, gains
):
    """Each step, 3 ms of 15 in a function that copies one piece at a time."""
    steps = []
    for number, each in enumerate(train_steps(60)):
        by_ns = (number // 2 + 1) * 3 * MS
        steps.append(move(each, by_ns - 3 * MS))
        if each.name == "train_step":
            begin, apart = each.end_ns + by_ns - 3 * MS, 3 * MS // count
            copies = [span("aten::copy_", begin + k * apart, begin + k * apart + each_us * 1000) for k in range(count)]
            steps.append(span("keep_weights", begin, begin + 3 * MS, *copies))
    found = [
        each
        for each in findings(make_trace({"main": [span("fit", 0, steps[-1].end_ns + 1, *steps)]}))
        if "keep_weights" in each.what
    ]
    assert [each.rule for each in found] == ["operators"]
    assert found[0].informative == (not gains)
    if gains:
        assert f"instead of {count} calls of aten::copy_ a step, 20.00 us each" in found[0].do
        assert found[0].gain_low_ns == pytest.approx(2.1 * MS, rel=0.005)
        assert found[0].gain_high_ns == pytest.approx(BESIDE * (3 * MS), rel=0.005)


def reading(number, name, value):
    none = 2**32 - 1
    return {"metric": number, "name": name, "unit": "", "location": none, "time_ns": [1], "value": [value]}


@pytest.mark.parametrize(("threads", "gains"), [(8, True), (2, False), (1, False)])
def test_more_threads_than_cores_gain_at_most_the_part_of_the_operators_that_the_cores_lack(threads, gains):
    """Of 12 ms a step operators take 9: 4 forward and 5 backward. With two cores for eight threads a quarter stays."""
    metrics = [reading(0, OPERATOR_THREADS, threads), reading(1, CORES, 2)]
    trace = make_trace(HandMadeProcess({"main": train_steps(60)}, metrics=metrics))
    finding = by_rule(trace).get("threads")
    assert (finding is not None) == gains
    if finding is not None:
        assert finding.what.startswith("operators run on 8 threads, where 2 cores may be used; they take 9.00 ms")
        assert finding.do == "torch.set_num_threads(2), or OMP_NUM_THREADS=2"
        assert (finding.gain_low_ns, finding.gain_high_ns) == (0, pytest.approx(6.75 * MS * BESIDE, rel=0.01))


def test_a_metric_without_readings_is_no_obstacle():
    nothing = {**reading(0, OPERATOR_THREADS, 8), "time_ns": [], "value": []}
    trace = make_trace(HandMadeProcess({"main": train_steps(60)}, metrics=[nothing]))
    assert "threads" not in by_rule(trace)


def test_the_threads_of_all_ranks_share_the_cores():
    metrics = [reading(0, OPERATOR_THREADS, 2), reading(1, CORES, 4)]
    ranks = [
        HandMadeProcess({"main": train_steps(60)}, pid=10 + rank, main=rank == 0, rank=rank, metrics=metrics)
        for rank in range(4)
    ]
    finding = by_rule(make_trace(*ranks))["threads"]
    assert finding.what.startswith("operators run on 8 threads of 4 ranks together, where 4 cores may be used")
    assert finding.do == "torch.set_num_threads(1), or OMP_NUM_THREADS=1 for each rank"


def test_ranks_that_have_one_thread_each_are_not_told_to_use_one():
    metrics = [reading(0, OPERATOR_THREADS, 1), reading(1, CORES, 2)]
    ranks = [
        HandMadeProcess({"main": train_steps(60)}, pid=10 + rank, main=rank == 0, rank=rank, metrics=metrics)
        for rank in range(4)
    ]
    finding = by_rule(make_trace(*ranks))["threads"]
    assert finding.what.startswith("operators run on 4 threads of 4 ranks together, where 2 cores may be used")
    assert finding.do.startswith("ranks share cores")
    assert finding.informative


@pytest.mark.parametrize(
    ("name", "usual_ms", "rule"),
    [("torch.compile", 0, "classes"), ("compile_inner", 0, "classes"), ("compile_inner", 1, "outlier")],
)
def test_steps_that_compile_are_told_how_to_compile_once(name, usual_ms, rule):
    usual = dict.fromkeys(range(75), (name, usual_ms * MS)) if usual_ms else {}
    steps = train_steps(75, wait_ns=MS // 10, extras=usual | dict.fromkeys(SLOW, (name, 60 * MS)))
    assert "TORCH_LOGS=recompiles" in by_rule(make_trace({"main": steps}))[rule].do


def calling(name):
    """Advice about 75 steps that each call a function of this name."""
    steps = train_steps(75, wait_ns=MS // 10, extras=dict.fromkeys(range(75), (name, MS)))
    return by_rule(make_trace({"main": steps}))


def test_graph_breaks_are_counted_with_their_lines():
    finding = calling("torch_dynamo_resume_in_forward_at_57")["compiled"]
    assert "breaks off once a step, in forward (line 57)" in finding.what
    assert finding.informative


def test_a_function_that_was_compiled_eight_times_is_information_and_one_that_was_compiled_once_is_not():
    assert "8 times" in calling("Torch-Compiled Region: 0/7")["compiled"].what
    assert "compiled" not in calling("Torch-Compiled Region: 0/0")


def test_a_file_of_generated_code_is_not_a_sign_of_compiling():
    assert "compiled again" in what_to_do(["compile_fx", "/site-packages/torch/_inductor/compile_fx.py"])
    assert what_to_do(["call", "/tmp/torchinductor_root/ov/cov463.py"]) == ""


def compiling(compile_ms):
    """75 steps, of which five compile `work` again for another size; each event is noted in the span of a compilation.

    Returns the trace and the time of all steps, ns."""
    again = [20, 30, 40, 50, 60]
    steps = train_steps(75, wait_ns=MS // 10, extras=dict.fromkeys(again, ("torch.compile", int(compile_ms * MS))))
    numbers = iter(range(1, 6))
    noted = []
    for one in steps:
        if one.name == "torch.compile":
            facts = {"time_ns": one.start_ns, "compile_id": f"0/{next(numbers)}", "function": "work", "file": "a.py"}
            row = {**facts, "event": "compile", "line": 7, "duration_ns": one.end_ns - one.start_ns}
            one = replace(one, tables={"compilations": row})
        noted.append(one)
    return make_trace({"main": noted}), steps[-1].end_ns - steps[0].start_ns


def test_code_that_is_compiled_again_in_the_loop_gains_the_time_of_that():
    trace, loop_ns = compiling(60)
    finding = by_rule(trace)["compiled"]
    assert finding.what.startswith("torch.compile compiles again in 5 steps, most often work; that takes 300.0 ms")
    assert finding.gain_low_ns == pytest.approx(300 * MS / 75, rel=1e-3)
    assert finding.gain_high_ns == pytest.approx(300 * MS / 75 * BESIDE, rel=1e-3)
    assert [each["text"] for each in finding.evidence] == ["0/1", "0/2", "0/3"]
    assert loop_ns > 300 * MS
    rows = trace.ask("compile", by="compilation").to_pylist()
    assert [(row["compile_id"], row["step"], row["again"]) for row in rows] == [
        (f"0/{number}", step, True) for number, step in enumerate((20, 30, 40, 50, 60), 1)
    ]


def test_the_summary_states_the_time_of_compiling_from_five_percent_of_the_run_on():
    text = summary_text(summarise(compiling(60)[0]))
    assert "COMPILING 300.0 ms, 26 % of the run, for 5 graphs: strobe compile" in text
    assert "COMPILING" not in summary_text(summarise(compiling(5)[0]))


def test_compiling_that_takes_less_than_a_percent_of_the_loop_is_no_finding():
    assert "compiled" not in by_rule(compiling(0.1)[0])


def test_a_class_that_is_slower_only_in_the_mean_is_no_finding():
    """Five of six such steps are faster; the sixth makes them slower on average."""
    extras = {n: ("validate", 60 * MS if n == 55 else MS) for n in range(5, 60, 10)}
    faster = dict.fromkeys(extras, -2 * MS)
    slower = dict.fromkeys(extras, 2 * MS)
    for stalls, found in ((faster, False), (slower, True)):
        trace = make_trace({"main": train_steps(60, wait_ns=4 * MS, stalls=stalls, extras=extras)})
        assert ("classes" in by_rule(trace)) == found


def test_no_rule_promises_gains_of_which_less_than_four_in_five_were_held():
    """Counted on programs and profiles with a known problem: a rule that falls below must not promise any more."""
    kinds = json.loads((Path(__file__).parents[1] / "injector" / "figures.json").read_text())
    gains, held = (
        sum((Counter({rule: of.get(what, 0) for rule, of in rules.items()}) for rules in kinds.values()), Counter())
        for what in ("gains", "held")
    )
    judged = [rule for rule, count in gains.items() if count >= 5]
    assert len(judged) >= 10
    assert [rule for rule in judged if held[rule] < 0.8 * gains[rule]] == []


def test_a_silent_rule_has_what_it_measured():
    # 0.1 of some 11 ms; a finding is from 5 % on
    checked = {each.rule: each for each in judged(make_trace({"main": train_steps(60, wait_ns=MS // 10)}))[1]}
    assert checked["data.wait"].share == pytest.approx(0.1 / 11, rel=0.1)
    assert checked["data.wait"].least == 0.05
    found, checked = judged(make_trace({"main": train_steps(60, wait_ns=8 * MS)}))
    assert "data.wait" in {each.rule for each in found}
    assert "data.wait" not in {each.rule for each in checked}
