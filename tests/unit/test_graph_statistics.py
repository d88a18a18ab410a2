"""The flow graph in numbers, of a training whose events are counted by hand."""

from __future__ import annotations

from strobe.answers import ask
from strobe.trace.trace import Trace
from tests.unit.hand_made import MS, make_trace, train_steps

# A step: wait, zero_grad, forward, backward, update; three of them validate at their end.
EVENTS = 5


def trace() -> Trace:
    return make_trace({"main": train_steps(20, extras=dict.fromkeys((9, 15), ("aten::validate", MS)))})


def test_the_size_of_the_graph_is_compared_with_that_of_its_events() -> None:
    (row,) = ask.ask(trace(), "flow_graph").to_pylist()
    assert (row["stream"], row["events"], row["nodes"]) == ("operators", 20 * EVENTS + 2, EVENTS + 1)
    # One after the other, back to the wait, and by way of what validates.
    assert row["edges"] == EVENTS + 2
    assert row["events_per_node"] == row["events"] / row["nodes"]
    assert row["sequence_bytes"] == row["events"], "six kinds fit into a byte each"
    assert row["compression"] == row["sequence_bytes"] / row["graph_bytes"] > 2
    assert row["loops"] == 1


def test_a_step_has_the_nodes_and_the_path_that_are_new() -> None:
    rows = ask.ask(trace(), "flow_graph", by="step").to_pylist()
    assert [(row["step"], row["new_nodes"]) for row in rows if row["new_nodes"]] == [(0, EVENTS), (9, 1)]
    assert [row["step"] for row in rows if row["new_path"]] == [0, 9]
    assert (rows[-1]["nodes"], rows[-1]["paths"]) == (EVENTS + 1, 2)
    assert [row["events"] for row in rows[8:11]] == [EVENTS, EVENTS + 1, EVENTS]
    assert ask.ask(trace(), "flow_graph").to_pylist()[0]["stable_from"] == 10
