"""CUDA graphs under the fake driver: their kernels belong to the launch and to the code that captured them."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from strobe.gpu.launched_by_path import launched
from tests.gpu.recorded import CLOCK_NS, attributed, match, record

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")

GRAPHS = """
gpu = fake_cuda.Gpu()
stream = gpu.stream(non_blocking=True)

def layer():
    gpu.launch("gemm", stream=stream, ns=10_000)
    gpu.launch("relu", stream=stream, ns=4_000, runtime=False)

def capture():
    with gpu.capture(stream) as graph:
        for _ in range(3):
            layer()
    return gpu.instantiate(graph)

def replay(executable, runtime):
    gpu.launch_graph(executable, stream, runtime=runtime)
    gpu.synchronize(stream)

executable = capture()
for number in range(20):
    replay(executable, number % 2 == 0)
"""


@pytest.mark.parametrize("release", ["12.1", "13.0", "13.4"])
def test_kernels_of_graphs_belong_to_the_launch_and_to_the_code_that_captured_them(
    tmp_path: Path, release: str
) -> None:
    ran = record(tmp_path, GRAPHS, release, DRIVER=13050)
    told = ran.did("kernel")
    assert len(told) == 20 * 6
    for _, found in match(ran.trace, told):
        assert found["call"] in ("cudaGraphLaunch", "cuGraphLaunch")
        assert "replay" in found["callers"]
    captured = ran.trace.sql(
        """
        select r.name as kernel, p.name as caller, k.graph_node is not null as node, count(*) as n
        from kernel_spans k
        join spans s on s.location = k.location and s.row = k.row
        join regions r on r.region = s.region
        join call_spans c on c.correlation = k.captured_by
        join spans cs on cs.location = c.location and cs.row = c.row
        join call_paths cp on cp.call_path = cs.call_path
        join call_paths above on above.call_path = cp.parent
        join call_paths layer on layer.call_path = above.parent
        join regions p on p.region = layer.region
        group by all order by 1
        """
    ).to_pylist()
    assert captured == [
        {"kernel": "gemm", "caller": "layer", "node": True, "n": 60},
        {"kernel": "relu", "caller": "layer", "node": True, "n": 60},
    ]


def test_time_on_the_gpu_is_that_of_the_code_that_captured_it(tmp_path: Path) -> None:
    ran = record(tmp_path, GRAPHS)
    trace = ran.trace
    told = ran.did("kernel")
    names = {row["region"]: row["name"] for row in trace.regions.to_arrow().to_pylist()}
    paths = {row["call_path"]: row for row in trace.call_paths.to_arrow().to_pylist()}
    by_caller: Counter[str] = Counter()
    every = np.arange(len(paths), dtype=np.int64)
    sums = launched(trace, lambda work, _: work.end_ns - work.start_ns, every, np.arange(len(names), dtype=np.int64))
    for path, ns in zip(sums.path.tolist(), sums.ns.tolist(), strict=True):
        above = paths[paths[path]["parent"]]["parent"]  # the call, Gpu.launch, whose code it is
        by_caller[names[paths[above]["region"]]] += ns
    assert by_caller == {"layer": pytest.approx(sum(row["end_ns"] - row["start_ns"] for row in told), rel=0.01)}


def test_operators_have_the_kernels_that_they_captured(tmp_path: Path) -> None:
    ran = record(
        tmp_path,
        """
        import ctypes
        from strobe.model.kinds import PARADIGMS, ROLES
        from strobe.native import core, library

        strobe_itself = ctypes.CDLL(library())

        def operator(name, *inside):
            region = core.region(name, PARADIGMS.index("torch"), ROLES.index("operator"))
            strobe_itself.strobe_enter(region)
            for each in inside:
                each()
            strobe_itself.strobe_leave(region)

        def kernel(name, ns, runtime=True):
            return lambda: gpu.launch(name, stream=stream, ns=ns, runtime=runtime)

        gpu = fake_cuda.Gpu()
        stream = gpu.stream(non_blocking=True)
        with gpu.capture(stream) as graph:
            operator("aten::linear", lambda: operator("aten::mm", kernel("gemm", 10_000)))
            operator("aten::relu", kernel("relu", 4_000, runtime=False))
        executable = gpu.instantiate(graph)
        for number in range(20):
            operator("replay", lambda: gpu.launch_graph(executable, stream))
            gpu.synchronize(stream)
        operator("aten::relu", kernel("relu", 4_000))
        gpu.synchronize(stream)
        """,
    )
    taken: Counter[str] = Counter()
    for row in ran.did("kernel"):
        taken[row["name"]] += row["end_ns"] - row["start_ns"]
    rows = {row["name"]: row for row in ran.trace.operators(step="all").to_pylist()}
    for name, kernel, count, own in (("linear", "gemm", 20, 0), ("mm", "gemm", 20, 1), ("relu", "relu", 21, 1)):
        row = rows[f"aten::{name}"]
        assert row["kernels"] == count
        assert row["device_total_ns"] == pytest.approx(taken[kernel], rel=0.01)
        assert row["device_self_ns"] == row["device_total_ns"] * own
    assert (rows["replay"]["kernels"], rows["replay"]["device_total_ns"]) == (0, 0)


def test_launches_of_whole_graphs_where_that_is_asked_for(tmp_path: Path) -> None:
    ran = record(tmp_path, GRAPHS, options=("--cuda-graph-trace", "graph"))
    found = attributed(ran.trace)
    assert [each["name"] for each in found] == ["CUDA graph"] * 20
    assert all(each["call"] in ("cudaGraphLaunch", "cuGraphLaunch") for each in found)
    graphs = sorted((row["start_ns"], row["end_ns"]) for row in ran.did("graph"))
    for (start, end), each in zip(graphs, found, strict=True):
        assert abs(start - each["start_ns"]) <= CLOCK_NS
        assert abs(end - each["end_ns"]) <= CLOCK_NS
    # What they fill is not known, and the trace says so.
    (row,) = ran.trace.utilisation().to_pylist()
    assert row["busy_share"] > 0
    assert (row["sms_filled_share"], row["warps_there_share"]) == (None, None)
    assert "as a whole" in ran.said()["gpu_whole_graphs"]
