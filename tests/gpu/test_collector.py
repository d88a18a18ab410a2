"""What GPUs did and who launched it, recorded under the fake driver, against the driver's own log."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from strobe.advice.rank import findings
from tests.gpu.recorded import CLOCK_NS, match, record

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")

THREADS = """
gpu = fake_cuda.Gpu()

def forward():
    gpu.launch("gemm", grid=(640, 2, 1), block=(128, 1, 1), ns=20_000, shared=4096)
    gpu.launch("_Z4reluPfi", ns=5_000, runtime=False)

def prefetch():
    stream = gpu.stream(non_blocking=True, priority=-1)
    for _ in range(60):
        gpu.launch("decode", stream=stream, ns=3_000)
        gpu.memcpy(1, 1 << 20, stream=stream, ns=40_000)
    gpu.synchronize(stream)

def step():
    forward()
    gpu.memset(4096, 7)
    gpu.synchronize()

thread = threading.Thread(target=prefetch)
thread.start()
for _ in range(80):
    step()
thread.join()
"""


@pytest.mark.parametrize("release", ["11.8", "12.1", "12.8", "13.0", "13.5"])
def test_every_launch_belongs_to_its_call_and_its_python_functions(tmp_path: Path, release: str) -> None:
    ran = record(tmp_path, THREADS, release, DRIVER=13050)
    told = ran.did("kernel", "memcpy", "memset")
    assert Counter(row["what"] for row in told) == {"kernel": 2 * 80 + 60, "memcpy": 60, "memset": 80}
    expected = {
        "gemm": ("gemm", "cudaLaunchKernel", "forward", "step"),
        "_Z4reluPfi": ("relu(float*, int)", "cuLaunchKernel", "forward", "step"),
        "decode": ("decode", "cudaLaunchKernel", "prefetch", None),
        "memcpy": ("Memcpy HtoD (Pinned -> Device)", "cudaMemcpyAsync", "prefetch", None),
        "memset": ("Memset (Device)", "cudaMemsetAsync", "step", None),
    }
    for truth, found in match(ran.trace, told):
        name, call, *functions = expected[truth["name"] if truth["what"] == "kernel" else truth["what"]]
        assert (found["name"], found["call"]) == (name, call)
        for function in filter(None, functions):
            assert function in found["callers"]
        # Only one span for a call of the runtime, which calls the driver.
        assert found["callers"][1].startswith("Gpu.")
    assert ran.said().keys() == {"gpu_recorded_with"}
    assert release in ran.said()["gpu_recorded_with"] or release < "13"


@pytest.mark.parametrize("release", ["11.8", "12.8", "13.0"])
def test_calls_are_beside_their_threads_where_another_tool_has_the_callbacks(tmp_path: Path, release: str) -> None:
    """Joined by the thread and the moment of the call; every iteration's kernels are with it."""
    ran = record(tmp_path, THREADS, release, DRIVER=13050, OTHER_TOOL=1)
    expected = {
        "gemm": ("cudaLaunchKernel", "forward"),
        "relu(float*, int)": ("cuLaunchKernel", "forward"),
        "decode": ("cudaLaunchKernel", "prefetch"),
        "Memcpy HtoD (Pinned -> Device)": ("cudaMemcpyAsync", "prefetch"),
        "Memset (Device)": ("cudaMemsetAsync", "step"),
    }
    for _, found in match(ran.trace, ran.did("kernel", "memcpy", "memset")):
        call, function = expected[found["name"]]
        assert found["call"] == call
        assert function in found["callers"]
        assert ("step" in found["callers"]) == (function != "prefetch")
    said = ran.said()
    assert said.keys() == {"gpu_recorded_with", "gpu_calls"}
    assert "39" in said["gpu_calls"]
    beside = [row for row in ran.trace.locations.to_pylist() if str(row["name"]).startswith("CUDA calls of thread")]
    assert {row["kind"] for row in beside} == {"task"}
    threads = {row["thread"] for row in ran.did("kernel")}
    assert {row["thread_id"] for row in beside} == threads
    # A call of the driver that one of the runtime makes is the same call.
    told = [row for row in ran.truth if row["what"] == "call" and not row["nested"]]
    wanted = Counter(row["name"] for row in told if row["name"].startswith(("cudaLaunch", "cuLaunch", "cudaMem")))
    rows = ran.trace.sql(
        "select r.name as name, count(*) as n from spans s join regions r on r.region = s.region "
        "join locations l on l.location = s.location where l.kind = 'task' group by r.name"
    ).to_pylist()
    seen = {row["name"]: row["n"] for row in rows}
    assert seen == {str(row["name"]): row["calls"] for row in ran.trace.calls().to_pylist()}
    assert {name: n for name, n in seen.items() if name in wanted} == dict(wanted)


def test_waiting_for_a_gpu_is_no_python_code_where_another_tool_has_the_callbacks(tmp_path: Path) -> None:
    program = """
    import strobe
    gpu = fake_cuda.Gpu()
    def step():
        gpu.launch("gemm", ns=2_000_000)
        gpu.synchronize()
    for _ in range(60):
        strobe.step()
        step()
    """
    ran = record(tmp_path, program, OTHER_TOOL=1)
    (advice,) = (each for each in findings(ran.trace) if each.rule == "python")
    assert "calls of CUDA are beside the thread" in advice.do
    assert advice.gain_low_ns == 0


def test_launches_that_the_driver_counts_apart_are_joined_all_the_same(tmp_path: Path) -> None:
    """Where a driver call inside a runtime call had a correlation of its own."""
    ran = record(tmp_path, THREADS, NESTED="own")
    calls = {found["call"] for _, found in match(ran.trace, ran.did("kernel", "memcpy", "memset"))}
    assert None not in calls


def test_kernels_by_function_are_those_of_the_code_that_captured_them(tmp_path: Path) -> None:
    ran = record(
        tmp_path,
        """
        gpu = fake_cuda.Gpu()
        stream = gpu.stream(non_blocking=True)
        def encoder():
            gpu.cuda.cuLaunchKernel(gpu.function("gemm"), 1, 1, 1, 32, 1, 1, 0, stream, None, None)
        def decoder():
            gpu.cuda.cuLaunchKernel(gpu.function("gemm"), 1, 1, 1, 32, 1, 1, 0, stream, None, None)
        encoder()
        with gpu.capture(stream) as graph:
            decoder()
        executable = gpu.instantiate(graph)
        for _ in range(5):
            gpu.launch_graph(executable, stream)
        gpu.synchronize(stream)
        """,
    )
    rows = {row["function"]: row["calls"] for row in ran.trace.kernels(by="function").to_pylist()}
    assert rows == {"encoder": 1, "decoder": 5}


def test_what_each_stream_did(tmp_path: Path) -> None:
    ran = record(tmp_path, THREADS)
    told = ran.did("kernel", "memcpy", "memset")
    rows = {row["stream"]: row for row in ran.trace.streams().to_pylist()}
    assert len(rows) == 2
    for number in {row["stream"] for row in told}:
        row = rows[f"GPU 0 stream {number}"]
        mine = [each for each in told if each["stream"] == number]
        kernels = [each["end_ns"] - each["start_ns"] for each in mine if each["what"] == "kernel"]
        copies = [each["end_ns"] - each["start_ns"] for each in mine if each["what"] != "kernel"]
        assert (row["kernels"], row["copies"]) == (len(kernels), len(copies))
        assert row["kernel_ns"] == pytest.approx(sum(kernels), rel=0.01)
        assert row["copy_ns"] == pytest.approx(sum(copies), rel=0.01)
        assert row["busy_ns"] == pytest.approx(sum(kernels) + sum(copies), rel=0.01)  # one after the other
        assert row["priority"] == (-1 if any(each["name"] == "decode" for each in mine) else 0)
    assert "allocations of CUDA were not recorded" in ran.trace.memory().note


def test_what_a_kernel_was_launched_with(tmp_path: Path) -> None:
    ran = record(
        tmp_path,
        """
        gpu = fake_cuda.Gpu()
        stream = gpu.stream(priority=-2)
        gpu.function("gemm", registers=77, static_shared=1024)
        gpu.launch("gemm", grid=(640, 2, 1), block=(64, 2, 1), stream=stream, ns=9_000, shared=2048)
        gpu.memcpy(2, 12345, stream=stream)
        gpu.memset(777, 5, stream=stream)
        gpu.synchronize()
        """,
    )
    trace = ran.trace
    (kernel,) = trace.sql("select * from kernel_spans").to_pylist()
    (truth,) = ran.did("kernel")
    assert (kernel["grid_x"], kernel["grid_y"], kernel["grid_z"]) == (640, 2, 1)
    assert (kernel["block_x"], kernel["block_y"], kernel["block_z"]) == (64, 2, 1)
    assert kernel["registers_per_thread"] == 77
    assert (kernel["static_shared_bytes"], kernel["dynamic_shared_bytes"]) == (1024, 2048)
    assert kernel["shared_memory_bytes"] == 3072
    assert kernel["correlation"] == truth["correlation"]
    assert (kernel["device"], kernel["context"], kernel["stream"]) == (0, truth["context"], truth["stream"])
    assert kernel["priority"] == -2
    assert kernel["launch_type"] == "regular"
    copy, memset = trace.sql("select * from copy_spans order by row").to_pylist()
    assert (copy["size_bytes"], copy["copy_kind"], copy["source_kind"]) == (12345, "DtoH", "Device")
    assert (memset["size_bytes"], memset["set_value"], memset["copy_kind"]) == (777, 5, None)
    calls = trace.sql("select * from call_spans where return_value <> 0").to_pylist()
    assert calls == []
    # The device, as the tables about GPUs need it.
    (properties,) = trace.device_properties()
    assert properties["id"] == 0
    assert properties["numSms"]
    assert properties["name"]
    (row,) = trace.kernels().to_pylist()
    assert row["name"] == "gemm"
    assert row["calls"] == 1


def test_clocks_that_drift_are_followed(tmp_path: Path) -> None:
    ran = record(tmp_path, THREADS, DRIFT_PPM=200)
    pairs = match(ran.trace, ran.did("kernel", "memcpy", "memset"))
    late = np.array([found["start_ns"] - truth["start_ns"] for truth, found in pairs])
    assert abs(np.median(late)) < CLOCK_NS
    # No kernel runs before it was launched.
    assert all(found["start_ns"] >= found["call_start_ns"] - CLOCK_NS for _, found in pairs)
