"""What follows from what: links by hand, and on public traces against a plain join."""

from collections import Counter
from pathlib import Path

import pytest

from strobe.gpu.devices import devices
from strobe.gpu.idle import CAUSES, gaps
from strobe.server.spans.idle_gaps import gap
from strobe.server.spans.span_links import links
from strobe.server.trace_context import TraceContext
from strobe.sums.single_spans import span_at, span_of_row
from tests.deep.kineto import US, call, copy, kernel, operator, profile


def location_of(trace, name):
    (found,) = trace.sql(
        f"select distinct s.location from spans s join regions r using (region) where r.name = '{name}'"
    ).to_pylist()
    return found["location"]


def ends(trace, name, start_us, depth=0):
    found = links(TraceContext(trace, Path()), location_of(trace, name), start_us * US, depth)
    return [(each["kind"], each["way"], each["name"], each["start_ns"] // US) for each in found["links"]]


@pytest.fixture
def trained(tmp_path):
    return profile(
        tmp_path,
        operator("aten::linear", 0, 40, Sequence_number=5),
        operator("aten::addmm", 10, 20, Sequence_number=5),
        call(12, 3, correlation=1),
        call(16, 3, "cudaMemcpyAsync", correlation=2),
        kernel("gemm", 50, 10, correlation=1),
        copy("Memcpy HtoD (Pageable -> Device)", 61, 2, correlation=2),
        operator("autograd::engine::evaluate_function: AddmmBackward0", 100, 30, thread=2, Sequence_number=5,
                 Fwd_thread_id=1),
        operator("AddmmBackward0", 105, 20, thread=2, Sequence_number=5, Fwd_thread_id=1),
    )  # fmt: skip


def test_a_call_and_what_it_launched_lead_to_each_other(trained):
    assert ends(trained, "gemm", 50) == [("launch", "from", "cudaLaunchKernel", 12)]
    assert ends(trained, "cudaLaunchKernel", 12, 2) == [("launch", "to", "gemm", 50)]


def test_an_operator_leads_to_all_that_was_launched_inside_of_it(trained):
    found = ends(trained, "aten::linear", 0)
    assert found == [("launch", "to", "gemm", 50), ("launch", "to", "Memcpy HtoD (Pageable -> Device)", 61)]


def test_the_innermost_forward_operator_and_the_outermost_backward_one_belong_together(trained):
    backward = "autograd::engine::evaluate_function: AddmmBackward0"
    assert ends(trained, "aten::addmm", 10, 1)[-1] == ("launch", "to", "Memcpy HtoD (Pageable -> Device)", 61)
    assert ("backward", "to", backward, 100) in ends(trained, "aten::addmm", 10, 1)
    assert ends(trained, backward, 100) == [("backward", "from", "aten::addmm", 10)]


def test_what_is_too_much_to_look_through_is_left_out_and_named(trained, monkeypatch):
    monkeypatch.setattr("strobe.ranks.links.MOST_INDEXED", 3)  # four calls and activities, four operators
    found = links(TraceContext(trained, Path()), location_of(trained, "gemm"), 50 * US, 0)
    assert (found["links"], found["left_out"]) == ([], ["launch", "backward"])


def test_messages_lead_from_the_sender_to_the_receiver(public):
    trace = public("otf2/ping-pong-otf2")
    facts = TraceContext(trace, Path())
    names, found = Counter(), 0
    for location in (0, 1):
        spans = trace.span_arrays(location)
        for start, depth, region in zip(spans["start_ns"], spans["depth"], spans["region"], strict=True):
            for each in links(facts, location, int(start), int(depth))["links"]:
                if not facts.names.names[region].startswith("MPI_"):
                    continue
                found += 1
                assert each["location"] == 1 - location
                names[facts.names.names[region], each["way"], each["name"]] += 1
                back = links(facts, each["location"], each["start_ns"], each["depth"])["links"]
                assert (location, int(start)) in {(one["location"], one["start_ns"]) for one in back}
    # 16 messages, seen from both ends.
    assert names == {("MPI_Send", "to", "MPI_Recv"): 16, ("MPI_Recv", "from", "MPI_Send"): 16}
    assert found == 32


def test_every_kernel_of_a_public_trace_has_the_launch_that_a_join_finds(public):
    trace = public("kineto/alexnet_critical_path.json.gz")
    joined = trace.sql(
        "select k.location, k.row, min(c.row) as called, min(c.location) as thread "
        "from kernel_spans k join call_spans c using (correlation) group by 1, 2"
    ).to_pylist()
    assert len(joined) > 50
    facts = TraceContext(trace, Path())
    for row in joined:
        span = span_of_row(trace, row["location"], row["row"])
        found = links(facts, row["location"], int(span["start_ns"][0]), int(span["depth"][0]))["links"]
        calls = [(each["location"], each["start_ns"]) for each in found if each["way"] == "from"]
        wanted = span_of_row(trace, row["thread"], row["called"])
        assert calls == [(row["thread"], int(wanted["start_ns"][0]))]


def test_a_span_is_found_by_its_row_and_by_a_moment(public):
    trace = public("kineto/v100_train_rank1of2.json.gz")
    for location in range(4):
        spans = trace.span_arrays(location)
        count = len(spans["row"])
        for row in range(0, count, count // 60):
            found = span_of_row(trace, location, row)
            assert (found["row"][0], found["start_ns"][0]) == (row, spans["start_ns"][row])
            middle = int(spans["start_ns"][row] + spans["duration_ns"][row] // 2)
            inside = (spans["start_ns"] <= middle) & (spans["start_ns"] + spans["duration_ns"] >= middle)
            assert span_at(trace, location, middle)["depth"][0] == spans["depth"][inside].max()
        assert span_of_row(trace, location, count) is None


@pytest.mark.parametrize("name", ["kineto/alexnet_critical_path.json.gz", "kineto/two_ranks"])
def test_gaps_that_are_clicked_are_those_of_the_analysis_with_the_same_causes(public, name):
    trace = public(name)
    facts, compared = TraceContext(trace, Path()), 0
    for device in devices(trace):
        for found in gaps(trace, device, per_stream=True, kernel_gap_ns=30_000):
            for at in range(0, len(found.key), 3):
                begin, end = int(found.start_ns[at]), int(found.end_ns[at])
                one = gap(facts, int(found.location[at]), "at", (begin + end) // 2, 0, 1, 0)
                assert (one["start_ns"], one["end_ns"]) == (begin, end)
                parts = {part["cause"]: part["ns"] for part in one["cause"]["parts"]}
                assert parts == {CAUSES[k]: ns for k, ns in enumerate(found.time_ns[:, at].tolist()) if ns}
                assert one["cause"]["main"] == CAUSES[int(found.cause[at])]
                compared += 1
    assert compared > 30


def test_work_of_a_stream_that_overlaps_leaves_no_gap(tmp_path):
    trace = profile(
        tmp_path,
        kernel("a", 0, 30), kernel("b", 10, 40), kernel("c", 45, 5), kernel("d", 70, 10), call(60, 2, correlation=9),
    )  # fmt: skip
    lane = location_of(trace, "a")
    facts = TraceContext(trace, Path())
    assert gap(facts, lane, "at", 35 * US, 0, 1, 0) is None
    found = gap(facts, lane, "next", 0, 0, 1, 0)
    assert (found["start_ns"], found["end_ns"]) == (50 * US, 70 * US)
    assert found["cause"]["main"] == "other"
    assert found["cause"]["call"] is None
