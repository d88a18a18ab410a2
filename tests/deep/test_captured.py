"""Whose the kernels of CUDA graphs are: of the code that captured them, in every table that sums by code. On paper."""

import json

import pytest

from strobe.gpu.devices import devices
from strobe.operators.matrix_products import find
from strobe.ranks.collective_kernels import executions
from tests.unit.hand_made import make_trace, span

MM = json.dumps([[64, 32], [32, 16]])  # 2 * 64 * 32 * 16 = 65,536 FLOP
NCCL = ("nvtx", "collective", "NCCL")


def call(start, name, correlation):
    table = {"call_spans": {"correlation": correlation}}
    return span(name, start, start + 2, paradigm="cuda", role="function", tables=table)


def product(start, end, *inside):
    return span("aten::mm", start, end, *inside, tables={"operator_spans": {"shapes": MM}})


def kernel(name, start, duration, correlation, captured_by=0):
    given = {"correlation": correlation, **({"captured_by": captured_by} if captured_by else {})}
    return span(name, start, start + duration, paradigm="cuda", role="kernel", tables={"kernel_spans": given})


def captured_and_replayed(*, other_thread=False):
    """A product runs once (50 ns) and is captured once with two kernels; three launches of the graph, 30 ns each."""
    capture = span(
        "capture",
        200,
        300,
        span(
            "layer",
            202,
            298,
            product(
                210,
                260,
                call(220, "cudaLaunchKernel", 10),
                call(230, "cudaLaunchKernel", 11),
                call(240, "cudaLaunchKernel", 12),
            ),
            paradigm="nvtx",
            role="range",
        ),
    )
    replays = [
        span(
            "replay",
            1000 * n,
            1000 * n + 100,
            span("aten::run", 1000 * n + 10, 1000 * n + 50, call(1000 * n + 20, "cudaGraphLaunch", 20 + n)),
            paradigm="nvtx",
            role="range",
        )
        for n in (1, 2, 3)
    ]
    eager = product(100, 150, call(110, "cudaLaunchKernel", 9))
    on_gpu = [kernel("gemm", 120, 50, 9)]
    for n in (1, 2, 3):
        on_gpu += [kernel("gemm", 1000 * n + 200, 20, 20 + n, 10), kernel("split", 1000 * n + 230, 6, 20 + n, 11)]
        on_gpu.append(kernel("sum", 1000 * n + 240, 4, 20 + n, 12))
    main = [eager, *([] if other_thread else [capture]), *replays]
    return make_trace({"main": main, **({"other": [capture]} if other_thread else {}), "stream 7": on_gpu})


@pytest.mark.parametrize("other_thread", [False, True])
def test_operators_have_what_they_captured_each_time_that_it_runs(other_thread):
    trace = captured_and_replayed(other_thread=other_thread)
    for by in ("name", "shape"):
        rows = {row["name"]: row for row in trace.operators(by=by).to_pylist()}
        assert (rows["aten::mm"]["calls"], rows["aten::run"]["calls"]) == (2, 3)
        assert (rows["aten::mm"]["device_total_ns"], rows["aten::mm"]["device_self_ns"]) == (140, 140)
        assert rows["aten::mm"]["kernels"] == 10
        assert (rows["aten::run"]["device_total_ns"], rows["aten::run"]["kernels"]) == (0, 0)
    (entry,) = json.loads(trace.op_analyse("aten::mm"))["aten::mm"]
    assert (entry["op_side"], entry["op_occurrences"], entry["op_total_time(us)"]) == ("gpu", 2, 0.14)
    assert {(row["kernel"], row["operator"]) for row in trace.kernels(by="operator").to_pylist()} == {
        ("gemm", "aten::mm"), ("split", "aten::mm"), ("sum", "aten::mm"),
    }  # fmt: skip


def test_what_no_operator_captured_is_of_none():
    on_gpu = [kernel("gemm", 1200, 20, 21, 10)]
    main = [span("capture", 0, 10, call(2, "cudaLaunchKernel", 10))]
    main.append(span("aten::run", 1000, 1100, call(1020, "cudaGraphLaunch", 21)))
    trace = make_trace({"main": main, "stream 7": on_gpu})
    assert [row["kernels"] for row in trace.operators().to_pylist()] == [0]
    assert [row["operator"] for row in trace.kernels(by="operator").to_pylist()] == [None]


def test_where_the_capture_was_not_recorded_the_launch_counts():
    on_gpu = [kernel("gemm", 1200, 20, 21, 10)]
    main = [span("aten::run", 1000, 1100, call(1020, "cudaGraphLaunch", 21))]
    trace = make_trace({"main": main, "stream 7": on_gpu})
    assert [(row["name"], row["kernels"]) for row in trace.operators().to_pylist()] == [("aten::run", 1)]


def test_an_operator_may_have_work_of_gpus_where_it_was_not_executed(tmp_path):
    work = [span("aten::mm", 10, 50, call(20, "cudaLaunchKernel", 10))]
    steps = [
        span(f"ProfilerStep#{n}", 1000 * n, 1000 * n + 900, *inside, paradigm="torch", role="range")
        for n, inside in (
            (0, work),
            *((n, [call(1000 * n + 100, "cudaGraphLaunch", 20 + n)]) for n in (1, 2, 3)),
        )
    ]
    on_gpu = [kernel("gemm", 1000 * n + 200, 25, 20 + n, 10) for n in (1, 2, 3)]
    trace = make_trace({"main": steps, "stream 7": on_gpu})
    rows = {row["name"]: row for row in trace.operators(step="2..3").to_pylist()}
    row = rows["aten::mm"]
    assert (row["calls"], row["total_ns"], row["avg_ns"], row["min_ns"]) == (0, 0, None, None)
    assert (row["device_total_ns"], row["kernels"]) == (50, 2)


def test_a_product_of_a_graph_was_computed_as_often_as_the_graph_ran():
    trace = captured_and_replayed()
    (row,) = trace.gemm(peak_gflops=10_000.0).to_pylist()
    assert (row["calls"], row["device_ns"]) == (4, 140)
    assert row["gflops"] == pytest.approx(4 * 65_536 / 140)
    (gemms,) = find(trace).threads.values()
    assert gemms.replays.tolist() == [0, 3]


def test_sequences_are_what_a_graph_runs_of_an_operator_each_time():
    rows = captured_and_replayed().sequences(least=2).to_pylist()
    assert [(row["operator"], row["count"], row["length"], row["device_ns"], row["host_ns"]) for row in rows] == [
        ("aten::mm", 3, 3, 90, 50)
    ]
    assert rows[0]["sequence"] == "gemm | split | sum"


@pytest.mark.parametrize("other_thread", [False, True])
def test_ranges_have_what_was_launched_and_what_was_captured_inside(other_thread):
    rows = {row["name"]: row for row in captured_and_replayed(other_thread=other_thread).ranges().to_pylist()}
    for name, calls in (("layer", 1), ("replay", 3)):
        row = rows[name]
        assert (row["calls"], row["projected"], row["activities"]) == (calls, 3, 9)
        assert (row["projected_ns"], row["min_ns"], row["max_ns"]) == (3 * 44, 44, 44)


def test_a_range_around_capture_and_launch_has_what_ran_once():
    inside = call(20, "cudaLaunchKernel", 10), call(100, "cudaGraphLaunch", 21), call(200, "cudaGraphLaunch", 22)
    main = [span("all", 0, 1000, *inside, paradigm="nvtx", role="range")]
    on_gpu = [kernel("gemm", 150, 20, 21, 10), kernel("gemm", 250, 20, 22, 10)]
    (row,) = make_trace({"main": main, "stream 7": on_gpu}).ranges().to_pylist()
    assert (row["projected"], row["activities"], row["projected_ns"]) == (1, 2, 120)


def test_a_captured_collective_is_executed_by_every_launch_of_its_graph():
    said = {"collective": "all_reduce", "communicator": "c", "group_size": 2, "sent_bytes": 64}
    inside = call(20, "cudaLaunchKernel", 10)
    nccl = span("ncclAllReduce", 10, 50, inside, paradigm="nvtx", role="collective", tables={"collective_spans": said})
    main = [nccl, call(100, "cudaGraphLaunch", 21), call(200, "cudaGraphLaunch", 22)]
    on_gpu = [kernel("ncclDevKernel_AllReduce", at, 20, number, 10) for at, number in ((150, 21), (250, 22))]
    trace = make_trace({"main": main, "stream 7": on_gpu})
    (device,) = devices(trace)
    found = list(executions(trace, device, ("collective", "communicator", "sent_bytes")))
    rows = [
        (start, end, *row.values())
        for each in found
        for start, end, row in zip(
            each.work.start_ns.tolist(),
            each.work.end_ns.tolist(),
            each.attributes.select(["collective", "sent_bytes"]).to_pylist(),
            strict=True,
        )
    ]
    assert rows == [(150, 170, "all_reduce", 64), (250, 270, "all_reduce", 64)]
