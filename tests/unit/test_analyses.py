"""Each analysis on a trace of a few spans, with the answer computed by hand."""

from __future__ import annotations

import pytest

from strobe.errors import UsageError
from strobe.operators.labels import type_of
from tests.unit.hand_made import MS, HandMadeProcess, make_trace, span, train_steps

pytestmark = pytest.mark.every_python

# step [0..100]: mm 10..40 (empty 12..15), load 50..90; step [100..220]: mm 110..150
TRAIN = [
    span("step", 0, 100, span("aten::mm", 10, 40, span("aten::empty", 12, 15)), span("load", 50, 90, role="data")),
    span("step", 100, 220, span("aten::mm", 110, 150)),
]


def row(table, key, *columns):
    found = [r for r in table.to_arrow().to_pylist() if key in r.values()]
    assert len(found) == 1, found
    return tuple(found[0][column] for column in columns)


def test_operators_count_sum_and_share():
    table = make_trace({"main": TRAIN}).operators(step="all")
    facts = ("calls", "total_ns", "self_ns", "avg_ns", "median_ns", "min_ns", "max_ns")
    assert table.columns[0] == "name"
    assert row(table, "aten::mm", *facts) == (2, 70, 67, 35.0, 35.0, 30, 40)
    assert row(table, "aten::empty", *facts) == (1, 3, 3, 3.0, 3.0, 3, 3)
    assert sum(table.column("share")) == pytest.approx(1.0)
    assert table.column("name") == ["aten::mm", "aten::empty"], "the most expensive first"


def test_the_optimizer_is_listed_with_the_operators_and_waiting_for_data_is_not():
    names = make_trace({"main": train_steps(30)}).operators(by="type").column("type")
    assert names == ["convolution backward", "conv2d", "Optimizer.step", "Optimizer.zero_grad"]


def test_an_operator_inside_itself_is_counted_once_in_the_total():
    # to 0..100 calls to 10..60: total 100, self 50 + 50
    table = make_trace({"main": [span("aten::to", 0, 100, span("aten::to", 10, 60))]}).operators(step="all")
    assert row(table, "aten::to", "calls", "total_ns", "self_ns") == (2, 100, 100)


def test_operators_by_type_join_variants():
    table = make_trace({"main": [span("aten::add", 0, 10), span("aten::add_", 10, 40)]}).operators(
        by="type", step="all"
    )
    assert row(table, "add", "calls", "total_ns") == (2, 40)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aten::add_", "add"),
        ("aten::_convolution", "convolution"),
        ("aten::convolution_backward", "convolution backward"),
        ("ConvolutionBackward0", "convolution backward"),
        ("autograd::engine::evaluate_function: MaxPool2DWithIndicesBackward0", "max_pool2_dwith_indices backward"),
        ("Optimizer.step#SGD.step", "Optimizer.step"),
        ("mkldnn::_linear_pointwise", "linear_pointwise"),
    ],
)
def test_type_of_an_operator(name, expected):
    assert type_of(name) == expected


def test_operators_of_a_program_without_any_say_how_to_record_them():
    table = make_trace({"main": [span("f", 0, 10)]}).operators()
    assert len(table) == 0
    assert "--trace +torch" in table.note


def test_a_flat_profile_counts_recursion_once():
    # f 0..100 > f 10..60 > g 20..30
    trace = make_trace({"main": [span("f", 0, 100, span("f", 10, 60, span("g", 20, 30)))]})
    table = trace.profile(step="all")
    assert row(table, "f", "calls", "total_ns", "self_ns", "min_ns", "max_ns") == (2, 100, 90, 50, 100)
    assert row(table, "g", "calls", "total_ns", "self_ns", "share") == (1, 10, 10, 0.1)


def test_a_tree_has_callers_before_callees_and_the_bigger_first():
    table = make_trace({"main": TRAIN}).profile(form="tree", step="all")
    assert [(r[0], r[1], r[2], r[3], r[4]) for r in table.rows()] == [
        ("step", 0, 2, 220, 110),
        ("aten::mm", 1, 2, 70, 67),
        ("aten::empty", 2, 1, 3, 3),
        ("load", 1, 1, 40, 40),
    ]


def test_a_tree_of_some_steps_is_in_order_even_below_what_began_before_them():
    # main began before the first step and is not in the selection; what it calls is, and outweighs the other root
    steps = train_steps(30)
    trace = make_trace({"main": [span("main", 0, 1000 * MS, *steps)], "helper": [span("small", 100 * MS, 101 * MS)]})
    names = trace.profile(form="tree", step="5..24").column("name")
    assert "main" not in names
    assert names.index("train_step") < names.index("small")


def test_an_inverted_tree_gives_a_functions_self_time_to_its_callers():
    # a 0..50 > f 10..40; b 50..100 > f 60..70: f has 40 alone, 30 for a, 10 for b
    trace = make_trace({"main": [span("a", 0, 50, span("f", 10, 40)), span("b", 50, 100, span("f", 60, 70))]})
    rows = trace.profile(form="inverted", step="all").rows()
    assert [(r[0], r[1], r[2], r[4]) for r in rows] == [
        ("f", 0, 2, 40),
        ("a", 1, 1, 30),
        ("b", 1, 1, 10),
        ("b", 0, 1, 40),
        ("a", 0, 1, 20),
    ]


def test_rows_below_the_smallest_share_are_left_out():
    table = make_trace({"main": TRAIN}).profile(form="tree", step="all", min_share=0.1)
    assert table.column("name") == ["step", "aten::mm", "load"]


def test_info_lists_what_was_recorded_and_lost():
    table = make_trace(HandMadeProcess({"main": TRAIN}, quality={"records_lost": 7})).ask("info")
    facts = dict(table.rows())
    assert facts["spans"] == "6"
    assert facts["recorded"] == "python, torch"
    assert facts["lost"] == "7 records lost (buffers were full)"
    assert facts["ended"] == "ended with exit code 0"


def test_selecting_steps_where_there_are_none_is_one_sentence():
    with pytest.raises(UsageError, match="no steps were found"):
        make_trace({"main": TRAIN}).operators(step="steady")


def test_an_unknown_option_lists_the_known_ones():
    with pytest.raises(UsageError, match="no option 'nosuch'") as caught:
        make_trace({"main": TRAIN}).operators(nosuch=1)
    assert "step_class" in caught.value.do


def test_steps_can_be_selected_and_a_worker_lives_in_the_steps_of_the_main_process():
    # steps of 12 ms; the worker fetches for 1 ms at the start of steps 0, 10, 20, ...
    fetches = [
        span("DataLoader.fetch", i * 120 * MS, i * 120 * MS + MS, paradigm="torch", role="data") for i in range(6)
    ]
    trace = make_trace({"main": train_steps(60)}, {"worker": fetches})
    profile = trace.profile(step="5..24")
    assert profile.about == "20 steps"
    assert row(profile, "DataLoader.fetch", "calls", "self_per_step_ns") == (2, MS / 10)
    assert row(profile, "aten::conv2d", "calls", "self_per_step_ns") == (20, 4 * MS)
    steady = trace.operators()
    assert steady.about == "60 steady steps"
    assert row(steady, "aten::conv2d", "calls", "calls_per_step", "self_per_step_ns") == (60, 1.0, 4 * MS)
    assert row(trace.operators(step="7"), "aten::conv2d", "calls") == (1,)
    assert row(trace.operators(step="50.."), "aten::conv2d", "calls") == (10,)


def test_a_class_of_steps_can_be_selected_by_name():
    extras = dict.fromkeys(range(9, 60, 10), ("validate", 30 * MS))
    trace = make_trace({"main": train_steps(60, extras=extras)})
    profile = trace.profile(step_class="train+validation")
    assert row(profile, "validate", "calls", "self_per_step_ns") == (6, 30 * MS)
    with pytest.raises(UsageError, match="no class of steps 'nosuch'") as caught:
        trace.profile(step_class="nosuch")
    assert "train+validation (6)" in caught.value.do


def test_sql_knows_the_step_of_every_span():
    trace = make_trace({"main": [*train_steps(60), span("after", 10_000 * MS, 10_001 * MS)]})
    found = trace.sql("select step, count(*) as n from spans where name = 'aten::conv2d' group by 1 order by 1").rows()
    assert found == [(i, 1) for i in range(60)]
    assert trace.sql("select step from spans where name = 'after'").rows() == [(None,)]
    assert trace.sql("select * from spans where name = 'after'").column("step") == [None]
    assert trace.sql("select max(step) from spans").rows() == [(59,)]


def test_sql_does_not_look_for_steps_that_the_query_cannot_see(monkeypatch):
    monkeypatch.setattr("strobe.steps.steps.find_steps", None)
    trace = make_trace({"main": train_steps(30)})
    assert trace.sql("select count(*), sum(duration_ns) > 0 from spans where role = 'operator'").rows() == [(60, True)]


@pytest.mark.parametrize("step", ["abc", "..", "1...3", "-1", ""])
def test_what_names_no_steps_is_refused(step):
    with pytest.raises(UsageError, match="names no steps"):
        make_trace({"main": train_steps(30)}).operators(step=step)
