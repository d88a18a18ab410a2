"""Advice about backward passes, on steps whose forward operators and nodes are known."""

from __future__ import annotations

import pytest

from strobe.advice.rank import BESIDE, findings
from strobe.model.kinds import OPTIMIZED_PARAMETERS
from tests.unit.hand_made import MS, HandMadeProcess, make_trace, span

NODE = "autograd::engine::evaluate_function: "


def training(forward, *passes, parameters=0, function="Net.forward", steps=60, elsewhere=()):
    """Steps with forward operators in a function, and backward passes: lists of names, a ms each.

    elsewhere: nodes of another process, which has no steps.
    """
    spans, now = [], 0
    for step in range(steps):
        begin, inside = now, []

        def run(names, prefix, into):
            nonlocal now
            for name in names:
                into.append(span(prefix + name, now, now + MS))
                now += MS

        operators, at = [], now
        run(forward, "aten::", operators)
        inside.append(span(function, at, now, *operators))
        for names in passes:
            nodes, at = [], now
            run(names, NODE, nodes)
            inside.append(span("autograd::engine::run_backward", at, now, *nodes, paradigm="torch"))
        now += 1000 * (1 + (step * 7) % 11)
        spans.append(span("train_step", begin, now, *inside))
    metric = {
        "metric": 0, "name": OPTIMIZED_PARAMETERS, "unit": "", "location": 2**32 - 1,
        "time_ns": [1], "value": [parameters],
    }  # fmt: skip
    process = HandMadeProcess({"main": [span("fit", 0, now + 1, *spans)]}, metrics=[metric] if parameters else [])
    nodes = [span(NODE + name, at * MS, (at + 1) * MS) for at, name in enumerate(elsewhere)]
    one_pass = span("autograd::engine::run_backward", 0, len(nodes) * MS, *nodes, paradigm="torch")
    others = [HandMadeProcess({"main": [one_pass]}, pid=2)] if nodes else []
    return {each.rule: each for each in findings(make_trace(process, *others))}


ONE = ["MmBackward0", "ReluBackward0", "MmBackward0", "torch::autograd::AccumulateGrad"]


def test_two_passes_through_the_same_operators_do_half_of_it_again():
    """4 evaluations of mm and 2 of relu, of 2 and 1 operators: 3 of 6 ms by number; at most half of these and of the
    accumulating: 4 of 8 ms."""
    found = training(["mm", "relu", "mm"], ONE, ONE)["backward.again"]
    assert found.what.startswith("2 backward passes a step go through the same operators: up to 4.00 ms (36 %)")
    assert found.gain_low_ns == pytest.approx(0.75 * 3 * MS, rel=0.01)
    assert found.gain_high_ns == pytest.approx(4 * MS * BESIDE, rel=0.01)


def test_nodes_of_other_processes_count_for_nothing():
    alone, beside = (training(["mm", "relu", "mm"], ONE, ONE, elsewhere=each) for each in ((), ["MseLossBackward0"]))
    assert beside["backward.again"].gain_low_ns == pytest.approx(alone["backward.again"].gain_low_ns, rel=0.01)


@pytest.mark.parametrize("more", [[], ["MmBackwardBackward0"]])
def test_passes_of_their_own_forward_passes_and_gradients_of_gradients_are_meant(more):
    twice = [] if more else ["mm", "relu", "mm"]
    assert "backward.again" not in training(["mm", "relu", "mm", *twice], ONE, [*ONE, *more])


@pytest.mark.parametrize(("parameters", "gains"), [(1, True), (4, False), (0, False)])
def test_gradients_of_what_no_optimizer_has(parameters, gains):
    """Three of four gradients are of no optimizer's; the pass takes 7 of 10 ms: half of 3/4 of it, or more."""
    leaves = ["torch::autograd::AccumulateGrad"] * 4
    found = training(["mm", "relu", "mm"], [*ONE[:3], *leaves], parameters=parameters).get("backward.unused")
    assert (found is not None) == gains
    if found is not None:
        assert found.what.startswith("a backward pass computes 4 gradients, and optimizers have 1 parameters: 3 are")
        assert found.gain_low_ns == pytest.approx(0.7 * 0.75 * 7 * MS, rel=0.01)
        assert found.gain_high_ns == pytest.approx(BESIDE * (7 * MS), rel=0.01)


@pytest.mark.parametrize("checked", [True, False])
def test_anomaly_detection_is_named_where_each_node_looks_for_nan(checked):
    """Each of 4 nodes of 1 ms takes half of it in that: 2 of 7 ms; one node that does so is the program's own."""
    spans, now = [], 0
    for step in range(60):
        begin, nodes = now, []
        forward = span("Net.forward", now, now + 3 * MS, span("aten::mm", now, now + 3 * MS))
        now += 3 * MS
        for number, name in enumerate(ONE):
            half = (now + MS // 2, now + 3 * MS // 4, now + MS)
            checks = (
                [span("aten::isnan", *half[:2]), span("aten::_is_any_true", *half[1:])] if checked or not number else []
            )
            nodes.append(span(NODE + name, now, now + MS, *checks))
            now += MS
        root = span("autograd::engine::run_backward", begin + 3 * MS, now, *nodes, paradigm="torch")
        now += 1000 * (1 + (step * 7) % 11)
        spans.append(span("train_step", begin, now, forward, root))
    found = {each.rule: each for each in findings(make_trace({"main": [span("fit", 0, now + 1, *spans)]}))}
    assert ("backward.anomaly" in found) == checked
    if checked:
        assert "2.00 ms (29 %) of a step" in found["backward.anomaly"].what
        assert found["backward.anomaly"].gain_low_ns == pytest.approx(1.5 * MS, rel=0.01)
        assert found["backward.anomaly"].gain_high_ns == pytest.approx(BESIDE * 4 * MS, rel=0.01)


@pytest.mark.parametrize("pieces", [20, 10])
def test_gradients_of_pieces_are_named_with_the_function_that_takes_them(pieces):
    forward = ["select"] * pieces + ["add"] * pieces
    found = training(forward, ["SelectBackward0"] * pieces + ["AddBackward0"] * pieces, steps=20).get("backward.pieces")
    assert (found is not None) == (pieces == 20)
    if found is not None:
        assert found.what.startswith("the backward pass of 20 pieces of tensors (x[:, t]) takes 20.00 ms (25 %)")
        assert "Net.forward takes most of them" in found.what
        assert found.gain_low_ns == pytest.approx(15 * MS, rel=0.01)
        assert found.gain_high_ns == pytest.approx(BESIDE * (40 * MS), rel=0.01)


@pytest.mark.parametrize(
    ("function", "often", "gains"), [("norm", 15, True), ("Net.forward", 120, True), ("Net.forward", 15, False)]
)
def test_very_many_short_operators_of_the_code_of_a_model(function, often, gains):
    """120 operators of 20 us a step in the model: in a function of its own, in one long loop, in many calls."""
    spans, now = [], 0
    for step in range(60):
        begin, inside = now, []
        for _ in range(120 // often):
            at, short = now, []
            for _ in range(often):
                short.append(span("aten::mul", now, now + 20_000))
                now += 25_000
            own = span(function, at, now, *short)
            inside.append(
                span("nn.Module: Net", at, now, own if function != "norm" else span("Net.forward", at, now, own))
            )
        now += 4 * MS + 1000 * (1 + (step * 7) % 11)
        spans.append(span("train_step", begin, now, *inside))
    trace = make_trace({"main": [span("fit", 0, now + 1, *spans)]})
    found = [each for each in findings(trace) if each.rule == "operators" and not each.informative]
    assert bool(found) == gains
    if gains:
        assert found[0].what.startswith(f"operators that {function} calls itself take 2.40 ms (34 %) of a step")
        assert (found[0].gain_low_ns, found[0].gain_high_ns) == (
            pytest.approx(2.1 * MS, rel=0.01), pytest.approx(3 * MS * BESIDE, rel=0.01)
        )  # fmt: skip
