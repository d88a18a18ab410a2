"""The collector, driven by the fake driver and the fake CUPTI: what the trace says against the driver's own log.

The fake stands in for NVIDIA's side only: programs, threads, files, kills and the whole of strobe are the real ones.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import strobe
from strobe.advice.rank import findings
from strobe.structure.device_work import devices
from strobe.structure.launched import launched
from strobe.structure.launches import launches
from tests.gpu import fake_cuda

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")

# The GPU's clock is converted between two readings of both: as exact as these are, on a busy machine.
CLOCK_NS = 200_000


class Recorded:
    """A program that ran under `strobe run` with the fake GPU."""

    def __init__(self, folder: Path, done: subprocess.CompletedProcess[str]) -> None:
        self.folder = folder
        self.done = done
        self.truth = fake_cuda.read_truth(folder / "truth.jsonl") if (folder / "truth.jsonl").exists() else []

    def did(self, *what: str) -> list[dict[str, Any]]:
        return [row for row in self.truth if row["what"] in what and row.get("start_ns")]

    @property
    def trace(self) -> strobe.Trace:
        return strobe.open(self.folder / "t.strobe")

    def said(self) -> dict[str, str]:
        """What the trace says of recording GPUs."""
        rows = self.trace.quality.to_pylist()
        return {str(row["what"]): str(row["text"]) for row in rows if str(row["what"]).startswith("gpu_")}


def record(
    folder: Path,
    program: str,
    release: str | None = "13.0",
    options: tuple[str, ...] = (),
    expected: int = 0,
    environment: dict[str, str] | None = None,
    **settings: object,
) -> Recorded:
    (folder / "program.py").write_text(
        "import os, signal, sys, threading, time\nimport fake_cuda\n" + textwrap.dedent(program)
    )
    done = subprocess.run(
        [sys.executable, "-m", "strobe", "run", "-o", "t.strobe", *options, "program.py"],
        cwd=folder,
        env=fake_cuda.environment(release, folder / "truth.jsonl", **settings) | (environment or {}),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == expected, done.stderr[-3000:]
    return Recorded(folder, done)


def attributed(trace: strobe.Trace) -> list[dict[str, Any]]:
    """All that GPUs did in the trace: name, times of CLOCK_MONOTONIC, the call that launched it and its callers."""
    regions = trace.regions.to_arrow().to_pylist()
    paths = {row["call_path"]: row for row in trace.call_paths.to_arrow().to_pylist()}
    name_of = {row["region"]: row["name"] for row in regions}
    zero = trace.zero_ns

    def callers(path: int) -> list[str]:
        names = []
        while path is not None and path >= 0:
            names.append(name_of[paths[path]["region"]])
            path = paths[path]["parent"]
        return names

    numbers = {
        (row["location"], row["row"]): (row["correlation"], row["graph_node"] or 0)
        for table in ("kernel_spans", "copy_spans")
        for row in trace.sql(f"select location, row, correlation, graph_node from {table}").to_pylist()
    }
    found = []
    for device in devices(trace):
        for work, who in launches(trace, device):
            for i in range(len(work)):
                found.append(
                    {
                        "name": name_of[int(work.region[i])],
                        "number": numbers[int(work.location[i]), int(work.row[i])],
                        "start_ns": int(work.start_ns[i]) + zero,
                        "end_ns": int(work.end_ns[i]) + zero,
                        "device": device.number,
                        "call": name_of.get(int(who.call_region[i])),
                        "callers": callers(int(who.call_path[i])),
                        "call_start_ns": int(who.call_start_ns[i]) + zero,
                    }
                )
    return sorted(found, key=lambda each: (each["start_ns"], each["name"]))


def match(trace: strobe.Trace, told: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Pairs of what happened and what the trace has of it; one for one, at the same times."""
    seen = attributed(trace)
    assert len(seen) == len(told)
    left = {(each["correlation"], each["node"]): each for each in told}
    assert len(left) == len(told)
    pairs = []
    for found in seen:
        truth = left.pop(found["number"])
        assert abs(truth["start_ns"] - found["start_ns"]) <= CLOCK_NS
        took = truth["end_ns"] - truth["start_ns"]
        assert abs(took - (found["end_ns"] - found["start_ns"])) <= 200 + took // 100
        pairs.append((truth, found))
    return pairs


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
    (properties,) = trace.device_properties
    assert properties["id"] == 0
    assert properties["numSms"]
    assert properties["name"]
    (row,) = trace.kernels().to_pylist()
    assert row["name"] == "gemm"
    assert row["calls"] == 1


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


def test_a_fork_records_its_parent_whole_and_touches_no_gpu_in_the_child(tmp_path: Path) -> None:
    ran = record(
        tmp_path,
        """
        gpu = fake_cuda.Gpu()
        for _ in range(30):
            gpu.launch("before", ns=2_000)
        child = os.fork()
        if child == 0:
            sum(range(100_000))
            sys.exit(7)
        for _ in range(30):
            gpu.launch("after", ns=2_000)
        gpu.synchronize()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        """,
    )
    found = Counter(found["name"] for _, found in match(ran.trace, ran.did("kernel")))
    assert found == {"before": 30, "after": 30}
    assert len(ran.trace.processes) == 2


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("sys.exit(3)", 3),
        ("os._exit(4)", 4),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("os.abort()", -signal.SIGABRT),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    ],
)
def test_however_the_program_ends_what_was_over_is_there(tmp_path: Path, end: str, code: int) -> None:
    ran = record(
        tmp_path,
        f"""
        gpu = fake_cuda.Gpu()
        for _ in range(3):
            for _ in range(400):
                gpu.launch("work", ns=1_000)
                gpu.launch("more", ns=1_000)
            gpu.synchronize()
            time.sleep(0.6)
        gpu.launch("last", ns=1_000)
        gpu.synchronize()
        gpu.allocate(1)  # the fake writes its records when it is called
        {end}
        """,
        expected=code,
    )
    pairs = match(ran.trace, ran.did("kernel"))
    assert len(pairs) == 2401
    # A kill takes the names that nobody had looked at yet, and nothing else.
    names = Counter(found["name"] for _, found in pairs)
    assert (names["work"], names["more"]) == (1200, 1200)
    killed = code in (-signal.SIGKILL, -signal.SIGABRT, -signal.SIGTERM)
    assert names["last"] == 1 or (killed and [n for n in names if n.startswith("kernel@")])
    assert all(found["call"] == "cudaLaunchKernel" for _, found in pairs)
    assert not list((tmp_path / "t.strobe").glob("*.gpu"))


@pytest.mark.parametrize("other_tool", [0, 1])
def test_a_kill_keeps_what_cupti_had_written_while_nobody_asked_for_it(tmp_path: Path, other_tool: int) -> None:
    """Killed from outside at moments that the program does not choose; several times."""
    settings = {"OTHER_TOOL": 1} if other_tool else {}
    for number in range(3 - other_tool):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "program.py").write_text(
            textwrap.dedent(
                """
                import time
                import fake_cuda
                gpu = fake_cuda.Gpu()
                while True:
                    for _ in range(50):
                        gpu.launch("work", ns=1_000)
                    gpu.synchronize()
                    time.sleep(0.002)
                """
            )
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "strobe", "run", "-o", "t.strobe", "program.py"],
            cwd=folder,
            env=fake_cuda.environment("13.0", folder / "truth.jsonl", **settings),
            stderr=subprocess.DEVNULL,
        )
        time.sleep(2.5 + 0.4 * number)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL
        lines = (folder / "truth.jsonl").read_text().splitlines()
        (folder / "truth.jsonl").write_text("\n".join(line for line in lines if line.endswith("}")) + "\n")
        told = [row for row in fake_cuda.read_truth(folder / "truth.jsonl", "kernel") if row.get("end_ns")]
        trace = strobe.open(folder / "t.strobe")
        locations = {row["location"]: row for row in trace.locations.to_pylist()}
        streams = {number for number, row in locations.items() if row["kind"] == "stream"}
        rows = trace.sql("select location, sum(count) as n from statistics group by 1").to_pylist()
        folded = sum(row["n"] for row in rows if row["location"] in streams)
        found = [row["correlation"] for row in trace.sql("select correlation from kernel_spans").to_pylist()]
        assert len(found) == sum(locations[number]["span_count"] for number in streams)
        assert len(told) > 1000
        # Nothing twice; and what is missing was being launched and told at that very moment. A line of the log is cut.
        assert len(set(found)) == len(found)
        assert set(found) <= {row["correlation"] for row in told} | {max(found)}
        assert -1 <= len(told) - len(found) - folded <= 55
        if other_tool:  # the calls that launched them, told by records
            calls = trace.sql(
                "select c.correlation as n from call_spans c join spans s using (location, row) "
                "join regions r on r.region = s.region where r.name = 'cudaLaunchKernel'"
            ).to_pylist()
            assert len(set(found) - {row["n"] for row in calls}) <= 1


def test_kernels_follow_the_iteration_that_launched_them(tmp_path: Path) -> None:
    """Of a long loop a few iterations stay in detail: each with all of its kernels, whenever they ran."""
    ran = record(
        tmp_path,
        """
        import strobe
        gpu = fake_cuda.Gpu()
        def train():
            for _ in range(400):
                strobe.step()
                for _ in range(5):
                    gpu.launch("work", ns=20_000)
                time.sleep(0.0005)
        train()
        gpu.synchronize()
        """,
        options=("--keep", "8"),
    )
    trace = ran.trace
    launched = len(ran.did("kernel"))
    assert launched == 2000
    locations = {row["location"]: row for row in trace.locations.to_arrow().to_pylist() if row["kind"] == "stream"}
    detail = sum(row["span_count"] for row in locations.values())
    rows = trace.sql("select location, sum(count) as n from statistics group by 1").to_pylist()
    folded = sum(row["n"] for row in rows if row["location"] in locations)
    assert detail + folded == launched
    assert detail < launched / 2
    steps = [row for row in trace.steps().to_pylist() if row["detail"] == "all"]
    found = attributed(trace)
    zero = trace.zero_ns
    for step in steps[2:-1]:
        begin, end = step["start_ns"] + zero, step["start_ns"] + step["duration_ns"] + zero
        assert sum(begin <= each["call_start_ns"] < end for each in found) == 5


def test_names_stay_right_when_modules_are_unloaded(tmp_path: Path) -> None:
    ran = record(
        tmp_path,
        """
        gpu = fake_cuda.Gpu()
        for number in range(4):
            for _ in range(50):
                gpu.launch(f"kernel_{number}", ns=1_000)
            gpu.synchronize()
            time.sleep(1.3)  # told meanwhile
            gpu.unload()
        """,
    )
    for truth, found in match(ran.trace, ran.did("kernel")):
        assert truth["name"] == found["name"]


WINDOWS = """
import ctypes
import strobe
gpu = fake_cuda.Gpu()
enabled = ctypes.CDLL(os.environ["STROBE_CUPTI"]).fake_cupti_enabled
def some(name, ns=1_000):
    for _ in range(20):
        gpu.launch(name, ns=ns)
def window(name):
    strobe.resume()
    some(name, 1_000_000)  # for 20 ms: most of them have not begun when the window ends
    strobe.pause()
    print(enabled(), end=" ")
    some("between")
    gpu.synchronize()
print("on" if enabled() else "off", end=" ")
strobe.pause()
print(enabled(), end=" ")
for name in ("first", "second", "third"):
    window(name)
strobe.resume()
print("on" if enabled() else "off")
"""


@pytest.mark.parametrize(
    ("options", "settings"), [((), {}), ((), {"OTHER_TOOL": 1}), (("--start", "paused"), {})], ids=str
)
def test_nothing_of_a_gpu_is_enabled_between_two_windows(
    tmp_path: Path, options: tuple[str, ...], settings: dict[str, object]
) -> None:
    """A window has all that was launched in it; outside of windows the program is as fast as without strobe."""
    ran = record(tmp_path, WINDOWS, options=options, **settings)
    assert ran.done.stdout == ("off" if options else "on") + " 0 0 0 0 on\n"
    seen = attributed(ran.trace)
    assert Counter(each["name"] for each in seen) == {"first": 20, "second": 20, "third": 20}
    assert {each["call"] for each in seen} == {"cudaLaunchKernel"}
    assert all("some" in each["callers"] for each in seen)


def test_a_second_recording_of_the_process_knows_its_gpus_too(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        textwrap.dedent(
            """
            import ctypes, os
            import fake_cuda
            import strobe
            for name in ("one", "two"):
                with strobe.record(f"{name}.strobe"):
                    gpu = fake_cuda.Gpu()
                    for _ in range(30):
                        gpu.launch(name, ns=500_000)
                print(ctypes.CDLL(os.environ["STROBE_CUPTI"]).fake_cupti_enabled())
            """
        )
    )
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=fake_cuda.environment("13.0"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "0\n0\n"), done.stderr
    for name in ("one", "two"):
        trace = strobe.open(tmp_path / f"{name}.strobe")
        assert Counter(each["name"] for each in attributed(trace)) == {name: 30}
        assert len(trace.device_properties) == 1
        assert any(row["what"] == "gpu_recorded_with" for row in trace.quality.to_pylist())


def test_processes_may_mean_different_gpus_by_one_number(tmp_path: Path) -> None:
    """As with CUDA_VISIBLE_DEVICES, or on nodes that differ: each is measured by its own."""
    ran = record(
        tmp_path,
        """
        import subprocess
        gpu = fake_cuda.Gpu()
        for _ in range(20):
            gpu.launch("half", grid=(66, 1, 1), block=(1024, 1, 1), ns=1_000_000)
        gpu.synchronize()
        if len(sys.argv) < 2:
            subprocess.run([sys.executable, __file__, "child"], env={**os.environ, "FAKE_CUDA_SMS": "66"}, check=True)
        """,
    )
    rows = ran.trace.utilisation().to_pylist()
    shares = sorted(row["sms_filled_share"] / row["busy_share"] for row in rows)
    assert shares == [pytest.approx(0.5, rel=0.01), pytest.approx(1.0, rel=0.01)]


def test_several_gpus_and_copies_between_them(tmp_path: Path) -> None:
    ran = record(
        tmp_path,
        """
        first = fake_cuda.Gpu(0)
        def on(gpu, name):
            gpu.launch(name, ns=1_000)
            gpu.synchronize()
        def second_thread():
            second = fake_cuda.Gpu(1)
            on(second, "of the second")
            second.peer_copy(1 << 16, first)
            second.synchronize()
        thread = threading.Thread(target=second_thread)
        on(first, "of the first")
        thread.start(); thread.join()
        """,
        DEVICES=2,
    )
    pairs = match(ran.trace, ran.did("kernel", "memcpy"))
    devices_of = {found["name"]: found["device"] for _, found in pairs}
    assert devices_of["of the first"] == 0
    assert devices_of["of the second"] == 1
    assert len(ran.trace.device_properties) == 2
    copies = ran.trace.sql("select copy_kind, size_bytes from copy_spans").to_pylist()
    assert copies == [{"copy_kind": "PtoP", "size_bytes": 1 << 16}]


WORK = """
gpu = fake_cuda.Gpu()
def step():
    gpu.launch("work", ns=1_000)
    gpu.synchronize()
for _ in range(10):
    step()
print("done")
"""


@pytest.mark.parametrize(
    ("settings", "what", "words"),
    [
        ({"FAIL": "Subscribe:39"}, "gpu_calls", "39"),
        ({"FAIL": "Subscribe:39,ActivityEnableRuntimeApi:27"}, "gpu_calls", "calls of CUDA are not recorded"),
        ({"FAIL": "ActivityEnable/10:35"}, "gpu_no_kernels", "35"),
        ({"FAIL": "ActivityEnable/1:27"}, "gpu_no_copies", "27"),
        ({"FAIL": "ActivityRegisterTimestampCallback:14"}, "gpu_failed", "clock"),
        ({"DRIVER": 12080}, "gpu_failed", "driver is of CUDA 12.8"),
        ({"FAIL": "GetVersion:999"}, "gpu_failed", "cuptiGetVersion fails (999)"),
    ],
)
def test_what_fails_is_one_sentence_and_everything_else_is_recorded(
    tmp_path: Path, settings: dict[str, object], what: str, words: str
) -> None:
    ran = record(tmp_path, WORK, "13.0", **settings)
    assert ran.done.stdout == "done\n"
    said = ran.said()
    assert words in said[what]
    assert " ".join(said[what].split()) in " ".join(ran.done.stderr.split())
    trace = ran.trace
    calls = trace.sql(
        "select count(*) as n from spans s join regions r on r.region = s.region where r.name = 'step'"
    ).to_pylist()
    assert calls == [{"n": 10}]
    kernels = [each for each in attributed(trace) if each["name"] == "work"]
    assert len(kernels) == (10 if what in ("gpu_calls", "gpu_no_copies") else 0)


def test_a_tool_that_is_there_already_keeps_its_place(tmp_path: Path) -> None:
    ran = record(tmp_path, WORK, environment={"CUDA_INJECTION64_PATH": "none"})
    assert not attributed(ran.trace)
    assert ran.done.stdout == "done\n"
    reason = "CUDA_INJECTION64_PATH names another tool, or none: none"
    assert reason in ran.said()["gpu_failed"]
    assert reason in ran.trace.kernels().note


def test_a_program_without_cuda_loads_nothing_of_nvidia(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("print(open('/proc/self/maps').read())")
    done = subprocess.run(
        [sys.executable, "-m", "strobe", "run", "-o", "t.strobe", "program.py"],
        cwd=tmp_path,
        env=fake_cuda.environment("13.0"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert "strobe" in done.stdout
    assert not any(word in done.stdout for word in ("cupti", "libcuda", "nvml", "nvidia"))
    assert not list((tmp_path / "t.strobe").glob("*.gpu"))


def test_a_program_in_c_is_recorded_too(tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(
        """
        #include <dlfcn.h>
        #include <stdio.h>
        typedef struct { unsigned x, y, z; } dim3;
        int main(void) {
          void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
          int (*init)(unsigned) = dlsym(cuda, "cuInit");
          int (*retain)(void**, int) = dlsym(cuda, "cuDevicePrimaryCtxRetain");
          int (*set)(void*) = dlsym(cuda, "cuCtxSetCurrent");
          int (*load)(void**, const void*) = dlsym(cuda, "cuModuleLoadData");
          int (*get)(void**, void*, const char*) = dlsym(cuda, "cuModuleGetFunction");
          typedef unsigned u;
          int (*launch)(void*, u, u, u, u, u, u, u, void*, void**, void**) = dlsym(cuda, "cuLaunchKernel");
          int (*wait)(void) = dlsym(cuda, "cuCtxSynchronize");
          void *context, *module, *function;
          init(0); retain(&context, 0); set(context); load(&module, "fake"); get(&function, module, "saxpy");
          for (int i = 0; i < 25; i++) launch(function, 4, 1, 1, 64, 1, 1, 0, 0, 0, 0);
          return wait();
        }
        """
    )
    subprocess.run(["gcc", "program.c", "-o", "program", "-ldl"], cwd=tmp_path, check=True)
    done = subprocess.run(
        [sys.executable, "-m", "strobe", "run", "-o", "t.strobe", "--", "./program"],
        cwd=tmp_path,
        env=fake_cuda.environment("13.0", tmp_path / "truth.jsonl"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    ran = Recorded(tmp_path, done)
    calls = Counter((found["name"], found["call"]) for _, found in match(ran.trace, ran.did("kernel")))
    assert calls == {("saxpy", "cuLaunchKernel"): 25}


def test_clocks_that_drift_are_followed(tmp_path: Path) -> None:
    ran = record(tmp_path, THREADS, DRIFT_PPM=200)
    pairs = match(ran.trace, ran.did("kernel", "memcpy", "memset"))
    late = np.array([found["start_ns"] - truth["start_ns"] for truth, found in pairs])
    assert abs(np.median(late)) < CLOCK_NS
    # No kernel runs before it was launched.
    assert all(found["start_ns"] >= found["call_start_ns"] - CLOCK_NS for _, found in pairs)


PROBED = """
import sys
import strobe.record.launch as launch
launch.driver_is_there = lambda: True  # the fake has no kernel module
launch._read_gpus = lambda *_: []
from strobe.cli.main import main
sys.exit(main(["run", "-o", "t.strobe", "program.py"]))
"""


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"CRASH": 1}, "SIGSEGV"), ({}, ""), ({"DRIVER": 12080}, "driver is of CUDA 12.8")],
    ids=["crashes", "works", "too new"],
)
def test_cupti_is_tried_out_in_a_child_first(tmp_path: Path, settings: dict[str, object], words: str) -> None:
    """One that ends the process that opens it must not end the program."""
    (tmp_path / "program.py").write_text("import fake_cuda\n" + WORK)
    done = subprocess.run(
        [sys.executable, "-c", PROBED],
        cwd=tmp_path,
        env=fake_cuda.environment("13.0", **settings),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert words in " ".join(done.stderr.split())
    ran = Recorded(tmp_path, done)
    assert len([each for each in attributed(ran.trace) if each["name"] == "work"]) == (0 if words else 10)
    assert sorted(path.suffix for path in (tmp_path / "t.strobe").iterdir() if "cupti" in path.name) == []
