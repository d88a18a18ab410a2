"""Traces of which most steps were folded into statistics: the same answers as with every span, or it is said."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strobe.errors import UsageError
from strobe.present.summary import summarise
from strobe.present.summary_text import summary_text
from tests.unit.folding import ALL, NONE, FoldedProcess, Iteration, OnlineLoop, iterations_of, part_of
from tests.unit.hand_made import MS, HandMadeProcess, make_trace, move, span, train_steps

KEPT = {12, 13, 30, 41}
VALIDATIONS = dict.fromkeys(range(9, 60, 10), ("validate", 30 * MS))


def program():
    """A training of 60 steps in a function, with validations, one stall, and a thread beside it."""
    steps = train_steps(60, extras=VALIDATIONS, stalls={41: 50 * MS})
    beats = [
        span("beat", i * MS, i * MS + 300_000, span("aten::rand", i * MS, i * MS + 1000)) for i in range(0, 900, 7)
    ]
    return {"main": [span("main", 0, 1000 * MS, *steps)], "helper": beats}


def folded_and_full(**changes):
    full = HandMadeProcess(program())
    iterations = iterations_of(full, since=12, keep=changes.pop("keep", KEPT))
    for number, detail_ns in changes.items():
        each = iterations[at := int(number.removeprefix("part_")) - 12]
        iterations[at] = part_of(each, min(each.start_ns + detail_ns, each.end_ns))
    folded = FoldedProcess(program(), iterations, extras={"train+validation": ["validate"]})
    return make_trace(folded), make_trace(full)


def same(one, other, *, but=()):
    names = [name for name in one.columns if name not in but]
    assert one.select(names).rows() == other.select(names).rows()


def test_all_steps_are_there_with_their_facts_whether_kept_or_not():
    folded, full = folded_and_full()
    same(folded.steps(), full.steps(), but=("detail", "events", "path_hash"))
    steps = folded.steps()
    assert {row["step"] for row in steps.to_pylist() if row["detail"] == "all"} == {*range(12), *KEPT}
    assert steps.column("events")[:12] == [None] * 12, "found afterwards: nobody counted"
    assert steps.column("events")[12] == 6
    assert len(set(steps.column("path_hash")[12:])) == 2
    assert steps.source == "spans and statistics"
    assert "16 of 60 steps kept in detail" in steps.about
    assert [row["step"] for row in folded.steps(only="outliers").to_pylist()] == [41]
    assert folded.steps(step_class="train+validation").column("step") == [9, 19, 29, 39, 49, 59]


@pytest.mark.parametrize("form", ["flat", "tree", "inverted"])
@pytest.mark.parametrize("changes", [{}, {"part_20": 3 * MS, "part_33": 11 * MS}, {"keep": set()}])
def test_a_profile_of_everything_is_exact(form, changes):
    folded, full = folded_and_full(**changes)
    assert folded.span_count < full.span_count / 1.5
    same(folded.profile(form=form, step="all"), full.profile(form=form, step="all"))


@pytest.mark.parametrize("choice", [{"step": "steady"}, {"step_class": "train"}, {"step_class": "train+validation"}])
@pytest.mark.parametrize("changes", [{}, {"part_20": 3 * MS, "part_33": 11 * MS}])
def test_whole_classes_are_exact(choice, changes):
    folded, full = folded_and_full(**changes)
    for form in ("flat", "tree", "inverted"):
        profile = folded.profile(form=form, **choice)
        same(profile, full.profile(form=form, **choice))
        assert profile.note == ""
    same(folded.operators(**choice), full.operators(**choice), but=("median_ns",))
    for exact, estimated in zip(
        full.operators(**choice).column("median_ns"), folded.operators(**choice).column("median_ns"), strict=True
    ):
        assert estimated == pytest.approx(exact, rel=0.42)


def test_a_table_says_what_it_was_computed_from():
    folded, full = folded_and_full()
    assert full.profile().about == "60 steady steps"
    assert full.profile().source == "spans"
    assert folded.profile().about == "60 steady steps, from spans of 16 and statistics of 44"
    assert folded.profile().source == folded.operators().source == "spans and statistics"
    assert json.loads(folded.operators().to_json())["about"] == folded.profile().about
    assert folded.profile(step="all").about == "the whole run, from spans and the statistics of 44 steps"


def test_of_single_steps_only_those_in_detail_are_answered_and_it_is_said():
    folded, full = folded_and_full()
    some = folded.profile(step="8..18")
    assert some.note == "computed from 6 of 11 steps; the others are statistics only"
    assert some.source == "spans"
    kept = {row["name"]: row for row in some.to_pylist()}
    assert kept["aten::conv2d"]["calls"] == 6
    assert kept["aten::conv2d"]["self_per_step_ns"] == 4 * MS
    assert kept["validate"]["calls"] == 1
    none = folded.operators(step="20")
    assert len(none) == 0
    assert "no such step was kept in detail" in none.note
    same(folded.profile(step="13"), full.profile(step="13"))


def test_a_part_of_a_class_is_not_answered_with_the_statistics_of_all_of_it():
    folded, _ = folded_and_full()
    # All folded validations (19, 29, 39, 49, 59) are in the range, and 41 folded steps of class train are not all.
    some = folded.profile(step="15..59")
    calls = dict(zip(some.column("name"), some.column("calls"), strict=True))
    assert calls["validate"] == 5
    assert calls["aten::conv2d"] == 5 + 2
    assert some.note == "computed from 7 of 45 steps; the others are statistics only"


def test_a_trace_of_statistics_only_has_steps_sums_and_a_summary():
    full = HandMadeProcess({"main": train_steps(60)})
    online = OnlineLoop(accepted_iteration=7)
    trace = make_trace(FoldedProcess({"main": train_steps(60)}, iterations_of(full, since=0, keep=()), loops=[online]))
    assert trace.span_count == 0
    assert trace.steps().column("step") == list(range(7, 67)), "seven were seen before, and nothing is known of them"
    same(trace.profile(form="tree"), make_trace(full).profile(form="tree"))
    text = summary_text(summarise(trace))
    assert "kept 0 of 60 steps in detail; statistics for all" in text
    assert "compute-bound" in text


def test_what_a_span_that_stays_holds_is_not_its_own_time():
    # main 0..100 > step 10..40 (folded) and step 40..70 (kept); mm inside of both
    def thread():
        steps = [span("step", b, b + 30, span("aten::mm", b + 5, b + 25)) for b in (10, 40)]
        return {"main": [span("main", 0, 100, *steps)]}

    rest = (0, 0, 0, 0, 0, 30)
    its = [Iteration(10, 40, rest, "step"), Iteration(40, 70, rest, "step", ALL)]
    trace = make_trace(FoldedProcess(thread(), its, loops=[OnlineLoop("structure", "step", 0)]))
    assert trace.span_count == 3
    profile = {
        row["name"]: (row["calls"], row["total_ns"], row["self_ns"]) for row in trace.profile(step="all").to_pylist()
    }
    assert profile == {"main": (1, 100, 40), "step": (2, 60, 20), "aten::mm": (2, 40, 40)}
    assert trace.sql("select name, count, self_ns from statistics order by name").rows() == [
        ("aten::mm", 1, 20),
        ("main", 0, -30),
        ("step", 1, 10),
    ]
    totals = trace.sql("select name, count, total_ns, self_ns, min_ns, max_ns from totals order by name").rows()
    assert totals == [("aten::mm", 2, 40, 40, 20, 20), ("main", 1, 100, 40, 100, 100), ("step", 2, 60, 20, 30, 30)]
    assert trace.sql("select class from statistics group by all").rows() == [("step",)]
    assert "3 executions were folded" not in trace.sql("select 1 from totals").note
    assert "2 executions were folded" in trace.sql("select count(*) from spans").note
    histogram = trace.statistics().to_pylist()[0]["histogram"]
    assert sum(histogram) == 1


def test_a_span_over_some_steps_gives_away_only_what_it_holds():
    # epoch 0 holds steps 0..11 (found afterwards), epoch 1 steps 12..35 (folded), epoch 2 steps 36..59 (folded)
    flat = train_steps(60)
    first = [step.start_ns for step in flat if step.name.startswith("enumerate")]
    edges = [0, first[12], first[36], flat[-1].end_ns]
    epochs = [
        span("epoch", low, high, *(each for each in flat if low <= each.start_ns < high))
        for low, high in pairwise(edges)
    ]
    full = HandMadeProcess({"main": epochs})
    iterations = iterations_of(full, since=12, keep={36})
    folded = make_trace(FoldedProcess({"main": epochs}, iterations))

    def epoch(table):
        return next((row["calls"], row["self_ns"]) for row in table.to_pylist() if row["name"] == "epoch")

    whole = make_trace(full)
    assert epoch(folded.profile(step="all")) == epoch(whole.profile(step="all"))
    assert epoch(folded.profile(step="36")) == epoch(whole.profile(step="36"))


def in_epochs():
    """60 steps of a training in five epochs of twelve, and their records from step 12 on."""
    flat = train_steps(60)
    edges = [*[step.start_ns for step in flat if step.name.startswith("enumerate")][::12], flat[-1].end_ns]
    epochs = [
        span("epoch", low, high, *(each for each in flat if low <= each.start_ns < high))
        for low, high in pairwise(edges)
    ]
    full = HandMadeProcess({"main": epochs})
    iterations = iterations_of(full, since=12, keep=KEPT)
    return make_trace(FoldedProcess({"main": epochs}, iterations)), make_trace(full)


def test_levels_of_a_folded_run_are_counted_as_if_all_of_it_were_kept():
    """Twelve steps an epoch, each with four layers; the last step of an epoch evaluates. Four epochs, most folded."""

    def work():
        now, spans, begun = 0, [], []

        def add(*names):
            nonlocal now
            for name in names:
                spans.append(span(name, now, now + 100_000))
                now += 100_000

        add("aten::empty")
        for number in range(48):
            begun.append(now)
            add(*["aten::conv2d", "aten::relu"] * 4, "aten::nll_loss")
            add("autograd::engine::evaluate_function: ConvolutionBackward0", "aten::neg")
            spans.append(span("Optimizer.step#SGD.step", now, now + 100_000, paradigm="torch", role="range"))
            now += 100_000
            if number % 12 == 11:
                add("aten::argmax", "aten::eq", "aten::mean")
        return spans, begun, now

    spans, begun, until = work()
    edges = [*begun, until]
    rest = (0, 0, 0, 0, 0)
    its = [
        Iteration(low, high, (*rest, high - low), "train", ALL if number in (5, 20, 23) else 0)
        for number, (low, high) in enumerate(pairwise(edges))
    ]
    online = OnlineLoop("optimizer", "Optimizer.step#SGD.step", 0)
    trace = make_trace(FoldedProcess({"main": spans}, its, loops=[online]))
    assert trace.span_count < len(spans) / 3
    outer, step, layers = trace.structure().levels
    assert (outer.count, outer.marker, step.count, step.trips) == (4, "aten::argmax", 48, (12, 12, 12))
    assert (layers.count, layers.in_detail) == (48 * 4, 3 * 4)
    epochs = trace.steps(step_level="+1")
    assert epochs.column("start_ns") == begun[::12]
    assert epochs.column("duration_ns") == [high - low for low, high in pairwise([*begun[::12], until])]
    assert trace.steps(step_level="aten::argmax").column("start_ns") == begun[::12]
    with pytest.raises(UsageError, match="no loop at \\+2"):
        trace.steps(step_level="+2")


def test_steps_around_the_recorded_ones_have_the_parts_of_their_records():
    folded, full = in_epochs()
    epochs, exact = folded.steps(step_at="epoch"), full.steps(step_at="epoch")
    same(epochs, exact, but=("detail", "events", "path_hash"))
    assert exact.column("forward_ns")[2] > 0
    assert epochs.column("detail") == ["all", "part", "part", "part", "part"]
    assert "44 of the 48 recorded iterations in them are statistics only" in epochs.about
    structure = folded.structure(step_at="epoch")
    assert "44 of the 48 recorded iterations" in structure.reason


def test_iterations_inside_of_recorded_ones_are_those_in_detail_and_end_with_them():
    folded, full = in_epochs()
    exact = {row["start_ns"]: row for row in full.steps(step_at="aten::conv2d").to_pylist()}
    inside = folded.steps(step_at="aten::conv2d")
    ends = [step["start_ns"] + step["duration_ns"] for step in full.steps().to_pylist()]
    assert len(inside) == 12 + len(KEPT)
    for row in inside.to_pylist():
        last = min(end for end in ends if end > row["start_ns"])
        until = row["start_ns"] + row["duration_ns"]
        assert until in (last, row["start_ns"] + exact[row["start_ns"]]["duration_ns"]), row
        parts = [row[f"{part}_ns"] for part in ("data_wait", "forward", "backward", "optimizer", "validation", "rest")]
        assert sum(parts) == row["duration_ns"]
    assert "seen only where there is detail: 44 of 48 recorded iterations are statistics only" in inside.about


def test_classes_are_named_as_they_are_afterwards():
    full = HandMadeProcess(program())
    its = iterations_of(full, since=12, keep=())
    once = [Iteration(e.start_ns, e.end_ns, e.parts_ns, "odd" if i == 5 else e.class_name) for i, e in enumerate(its)]
    extras = {"train+validation": ["", "validate"], "odd": ["beat"]}
    names = make_trace(FoldedProcess(program(), once, extras=extras)).steps().column("class")
    assert names[19] == names[9] == "train+validation", "waits and the function are one validation"
    assert names[17] == "train", "what runs once is no class"
    recurring = [
        Iteration(e.start_ns, e.end_ns, e.parts_ns, "odd" if i in (5, 6) else e.class_name) for i, e in enumerate(its)
    ]
    names = make_trace(FoldedProcess(program(), recurring, extras=extras)).steps().column("class")
    assert names[16:19] == ["train", "train+beat", "train+beat"]


def test_a_checkpoint_seen_once_before_the_loop_was_accepted_is_the_class_it_is_later():
    extras = dict.fromkeys(range(8, 60, 12), ("push_metrics", 5 * MS))
    full = HandMadeProcess({"main": train_steps(60, extras=extras)})
    its = iterations_of(full, since=12, keep=())
    folded = make_trace(
        FoldedProcess({"main": train_steps(60, extras=extras)}, its, extras={"train+push_metrics": ["push_metrics"]})
    )
    assert folded.steps(step_class="train+push_metrics").column("step") == [8, 20, 32, 44, 56]


def test_two_loops_are_two_phases_and_what_is_usual_in_one_is_not_in_the_other():
    one = train_steps(60)
    later = one[-1].end_ns + 5 * MS

    two = [move(each, later) for each in train_steps(40, forward_ns=40 * MS, stalls={30: 200 * MS})]
    threads = {"main": [*one, *two]}
    full = HandMadeProcess({"main": one}), HandMadeProcess({"main": two})
    its = iterations_of(full[0], since=12, keep={13})
    its += [
        Iteration(e.start_ns, e.end_ns, e.parts_ns, e.class_name, e.detail, loop=1)
        for e in iterations_of(full[1], since=12, keep={13})
    ]
    trace = make_trace(FoldedProcess(threads, its, loops=[OnlineLoop(), OnlineLoop(reason="the second")]))
    loops = trace.loops().to_pylist()
    assert [(each["steps"], each["kept_steps"], each["accepted_step"]) for each in loops] == [
        (60, 13, 12),
        (40, 13, 72),
    ]
    assert loops[1]["reason"] == "the second"
    steps = trace.steps().to_pylist()
    assert [each["step"] for each in steps if each["outlier"]] == [90]
    assert [each["loop"] for each in steps] == [0] * 60 + [1] * 40
    summary = summarise(trace)
    assert summary.step.class_count == 40, "the usual step is of the loop that takes most time"


def test_the_summary_and_info_say_how_much_was_kept_and_whether_it_stands_for_all():
    folded, full = folded_and_full()
    step = summarise(folded).step
    durations = full.steps().column("duration_ns")
    # Of class train (every tenth is a validation) without 41, which is kept because it is slow.
    usual = [i for i in range(60) if i % 10 != 9 and i != 41]
    kept = [durations[i] for i in usual if i < 12 or i in KEPT]
    assert step.kept_count == 16
    expected = (sum(kept) / len(kept)) / (sum(durations[i] for i in usual) / len(usual))
    assert step.representativeness == pytest.approx(expected, rel=1e-6)
    text = summary_text(summarise(folded))
    assert "kept 16 of 60 steps in detail; statistics for all" in text
    assert f"{step.representativeness:.2f} x the mean" in text
    assert "in detail" not in summary_text(summarise(full))
    facts = dict(folded.info.__class__ and folded.ask("info").rows())
    assert facts["kept_steps"] == "16 of 60 steps in detail (27 %)"
    assert float(facts["kept_mean_ratio"]) == pytest.approx(step.representativeness, abs=1e-4)
    assert "kept_steps" not in dict(full.ask("info").rows())
    assert summarise(folded).hot[0].self_ns == summarise(full).hot[0].self_ns


def test_drift_is_told_where_a_class_changes_for_good():
    slow = dict.fromkeys(range(200, 300), 6 * MS)
    trace = make_trace({"main": train_steps(300, stalls={**slow, 40: 30 * MS})})
    drift = trace.steps().column("drift")
    change = 6 / 12
    assert drift[100] == 0
    assert drift[210] == pytest.approx(change, rel=0.02)
    assert drift[299] == drift[210]
    finding = next(each for each in summarise(trace).findings if each.rule == "drift")
    assert "50 % longer" in finding.what
    less = make_trace({"main": train_steps(300, stalls=dict.fromkeys(range(200), 6 * MS))})
    finding = next(each for each in summarise(less).findings if each.rule == "drift")
    assert "`train` takes 33 % less: 12.01 ms instead of 18.01 ms" in finding.what
    then_ns, before_ns = re.findall(r"([\d.]+) ms", finding.do)
    assert (float(then_ns), float(before_ns)) == (pytest.approx(1, abs=0.1), pytest.approx(6.9, abs=0.2))
    back = dict.fromkeys(range(100, 200), 6 * MS)
    assert set(make_trace({"main": train_steps(300, stalls=back)}).steps().column("drift")) == {0.0}
    # Another program ran for the first half: most steps took longer, and some as long as all did later.
    noise = {number: 9 * MS for number in range(150) if number % 4}
    assert set(make_trace({"main": train_steps(300, stalls=noise)}).steps().column("drift")) == {0.0}


def test_ranks_that_kept_different_steps_are_summed_exactly():
    def rank(number: int, keep: set[int] | None):
        options = {"pid": 100 + number, "main": number == 0}
        full = HandMadeProcess({"main": train_steps(60, forward_ns=(4 + number) * MS)}, **options)
        if keep is None:
            return full
        threads = {"main": train_steps(60, forward_ns=(4 + number) * MS)}
        return FoldedProcess(threads, iterations_of(full, since=12, keep=keep), **options)

    folded = make_trace(rank(0, {12, 20}), rank(1, {13, 40}))
    full = make_trace(rank(0, None), rank(1, None))
    for choice in ({"step": "all"}, {"step": "steady"}):
        same(folded.profile(form="tree", **choice), full.profile(form="tree", **choice))
    assert folded.profile(step="12").note == "no such step of process 1 was kept in detail; " + (
        "what remains: strobe steps, and sums of whole classes"
    )


def test_a_worker_that_folds_by_its_own_iterations_is_counted_with_the_steps_it_worked_for():
    def worker(keep: set[int] | None, after: int):
        # Fetches of 1 ms, one for each of the 60 steps of 12 ms, and some after the last step.
        begins = [i * 12 * MS for i in range(60)] + [(800 + 20 * i) * MS for i in range(after)]
        fetches = [span("fetch", b, b + MS, span("read", b, b + MS // 2)) for b in begins]
        if keep is None:
            return HandMadeProcess({"worker": fetches}, pid=101, main=False)
        rest = (0, 0, 0, 0, 0, MS)
        its = [Iteration(b, b + MS, rest, "step", ALL if i in keep else NONE) for i, b in enumerate(begins)]
        loops = [OnlineLoop("structure", "fetch", 0)]
        return FoldedProcess({"worker": fetches}, its, loops=loops, pid=101, main=False)

    def reads(trace):
        table = trace.profile(step="steady")
        return {row["name"]: row["calls"] for row in table.to_pylist()}.get("read", 0), table.note

    main = {"main": train_steps(60)}
    assert reads(make_trace(main, worker(None, 2))) == (60, "")
    calls, note = reads(make_trace(main, worker({3, 7}, 2)))
    assert calls == 62
    assert note == "the statistics of process 1 hold 2 of its iterations outside of these steps"
    calls, note = reads(make_trace(main, worker({3, 7}, 30)))
    assert calls == 2, "statistics of which a third is of something else are not taken"
    assert note == "58 iterations of process 1 are in statistics of other steps, too, and left out"


@settings(max_examples=12, deadline=None)
@given(st.sets(st.integers(12, 59)), st.dictionaries(st.integers(12, 59), st.integers(0, 13 * MS), max_size=5))
def test_sums_do_not_depend_on_what_was_kept(keep: set[int], parts: dict[int, int]):
    folded, full = folded_and_full(keep=keep, **{f"part_{step}": ns for step, ns in parts.items()})
    for choice in ({"step": "all"}, {"step": "steady"}, {"step_class": "train"}, {"step_class": "train+validation"}):
        same(folded.profile(form="tree", **choice), full.profile(form="tree", **choice))
        same(folded.operators(by="type", **choice), full.operators(by="type", **choice), but=("median_ns",))
    totals = (
        "select call_path, count, total_ns, self_ns, min_ns, max_ns, location from totals order by location, call_path"
    )
    assert folded.sql(totals).rows() == full.sql(totals).rows()
    same(folded.steps(), full.steps(), but=("detail", "events", "path_hash"))


@pytest.mark.parametrize("checks", [0, 20])
def test_a_loop_without_anchor_begins_where_its_marker_ran_first(checks):
    """A short loop that comes behind it is another one, and too short to be a main loop."""

    def thread():
        # 50 iterations of 10 ms: `body` calls `inner` five times; an import before, a report after
        bodies = []
        for i in range(50):
            begin = (100 + 10 * i) * MS + (i % 7) * 1000
            inner = [span("inner", begin + (2 * k) * MS, begin + (2 * k + 1) * MS) for k in range(5)]
            bodies.append(span("body", begin, begin + 10 * MS - 20_000, *inner))
        after = [span("check", (630 + 2 * k) * MS, (632 + 2 * k) * MS - 9_000) for k in range(checks)]
        return [span("imports", 0, 90 * MS), *bodies, span("report", 610 * MS, 620 * MS), *after]

    begins = [each.start_ns for each in thread() if each.name == "body"]
    ends = [*begins[1:], begins[-1] + 10 * MS - 20_000]
    its = [
        Iteration(b, e, (0, 0, 0, 0, 0, e - b), "step", ALL if i == 3 else NONE)
        for i, (b, e) in enumerate(zip(begins, ends, strict=True))
    ]
    trace = make_trace(
        FoldedProcess({"main": thread()}, its[8:], loops=[OnlineLoop("structure", "body", accepted_iteration=8)])
    )
    steps = trace.steps()
    assert steps.column("start_ns") == begins
    assert set(steps.column("class")) == {"step"}
    assert [row["accepted_step"] for row in trace.loops().to_pylist()] == [8]
    calls = {row["name"]: row["calls"] for row in trace.profile(step="all").to_pylist()}
    assert calls == {"imports": 1, "body": 50, "inner": 250, "report": 1} | ({"check": checks} if checks else {})


def test_means_of_a_divided_step_are_of_all_steps_and_not_of_the_kept_ones() -> None:
    """Stalls of every 20th step are all kept, and 3 of 180 others: they stand for the rest, stalls for themselves."""
    stalls, validations = (
        dict.fromkeys(range(19, 200, 20), 100 * MS),
        dict.fromkeys(range(24, 200, 50), ("validate", 30 * MS)),
    )
    threads = {"main": train_steps(200, stalls=stalls, extras=validations)}
    full = make_trace(HandMadeProcess(threads))
    keep = {30, 31, 33, 74, *stalls}
    extras = {"train+validation": ("validate",)}
    folded = make_trace(
        FoldedProcess(threads, iterations_of(HandMadeProcess(threads), since=12, keep=keep), extras=extras)
    )
    for by in ("rank", "class"):
        for whole, part in zip(
            full.ask("step_time", by=by).to_pylist(), folded.ask("step_time", by=by).to_pylist(), strict=True
        ):
            assert part["steps"] == whole["steps"]
            assert part["duration_ns"] == pytest.approx(whole["duration_ns"], rel=1e-6)
            for kind in ("data_loader", "cpu_exec", "other"):
                assert part[f"{kind}_share"] == pytest.approx(whole[f"{kind}_share"], abs=0.005)
    (whole,), (part,) = (each.ask("data_pipeline").to_pylist() for each in (full, folded))
    assert part["wait_share"] == pytest.approx(whole["wait_share"], abs=0.005)


def test_operators_of_folded_steps_count_in_means_and_not_only_those_of_kept_ones() -> None:
    """Batches take from 0 to 9 ms in the loop's own Python, in the kept steps mostly little; waits vary otherwise."""
    making = {step: step * 7 % 10 * MS for step in range(200)}
    stalls = {step: step * 5 % 13 * MS for step in range(200)}
    threads = {"main": train_steps(200, making=making, stalls=stalls)}
    keep = {step for step in range(12, 100) if making[step] <= 3 * MS or (making[step] == 9 * MS and step > 90)}
    folded = make_trace(FoldedProcess(threads, iterations_of(HandMadeProcess(threads), since=12, keep=keep)))
    (whole,) = make_trace(HandMadeProcess(threads)).ask("step_time").to_pylist()
    (part,) = folded.ask("step_time").to_pylist()
    for kind in ("data_loader", "cpu_exec", "other"):
        assert part[f"{kind}_share"] == pytest.approx(whole[f"{kind}_share"], abs=0.001)
