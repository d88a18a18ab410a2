"""Time of GPUs by source line: what each line launched, against the driver's own log."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.gpu.recorded import Recorded, record

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")


def taken(ran: Recorded) -> dict[str, tuple[int, int]]:
    """Time of what ran, and how many kernels these were, by name."""
    ns: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for row in ran.did("kernel", "memcpy", "memset"):
        name = row["name"] or row["what"]
        ns[name] += row["end_ns"] - row["start_ns"]
        count[name] += row["what"] == "kernel"
    return {name: (ns[name], count[name]) for name in ns}


def lines(ran: Recorded) -> dict[str, dict[str, object]]:
    return {str(row["source"]).strip(): row for row in ran.trace.lines().to_pylist()}


def assert_took(row: dict[str, object], *of: tuple[int, int]) -> None:
    assert row["kernels"] == sum(count for _, count in of)
    assert row["gpu_ns"] == pytest.approx(sum(ns for ns, _ in of), rel=0.01)


STEPS = """
import strobe
gpu = fake_cuda.Gpu()

def step(number):
    gpu.memset(4096)
    for _ in range(2):
        layer(number)
    again(2)
    loss = number * 2
    return loss

def layer(number):
    gpu.launch("gemm", ns=2_000)
    not_chosen()

def not_chosen():
    gpu.launch("relu", ns=1_000, runtime=False)

def again(depth):
    if depth: again(depth - 1)
    else: gpu.launch("deep", ns=1_000)

for number in range(300):
    strobe.step()
    step(number)
    time.sleep(0.0005)
gpu.launch("after", ns=5_000)
gpu.synchronize()
"""


def test_a_line_has_the_time_of_all_that_it_launched_in_all_iterations(tmp_path: Path) -> None:
    ran = record(tmp_path, STEPS, options=("--lines", "step,layer,again", "--keep", "5"))
    told = taken(ran)
    assert told["gemm"][1] == 600
    found = lines(ran)
    assert_took(found["gpu.memset(4096)"], told["memset"])
    assert_took(found['gpu.launch("gemm", ns=2_000)'], told["gemm"])
    assert_took(found["not_chosen()"], told["relu"])
    assert_took(found["layer(number)"], told["gemm"], told["relu"])
    for each in ("again(2)", "if depth: again(depth - 1)", 'else: gpu.launch("deep", ns=1_000)'):
        assert_took(found[each], told["deep"])
    assert_took(found["loss = number * 2"])
    # Most iterations were not kept in detail.
    assert ran.trace.sql("select count(*) as n from kernel_spans").to_pylist()[0]["n"] < 1000


def test_threads_count_for_their_own_lines(tmp_path: Path) -> None:
    ran = record(
        tmp_path,
        """
        gpu = fake_cuda.Gpu()

        def work(name):
            for _ in range(50):
                gpu.launch(name, ns=2_000)

        def waits(threads):
            for each in threads: each.start()
            gpu.launch("own", ns=2_000)
            for each in threads: each.join()

        waits([threading.Thread(target=work, args=(name,)) for name in ("a", "b")])
        gpu.synchronize()
        """,
        options=("--lines", "work,waits"),
    )
    told, found = taken(ran), lines(ran)
    assert_took(found["gpu.launch(name, ns=2_000)"], told["a"], told["b"])
    assert_took(found['gpu.launch("own", ns=2_000)'], told["own"])
    assert_took(found["for each in threads: each.join()"])


@pytest.mark.parametrize("release", ["12.1", "13.4"])
def test_kernels_of_a_graph_are_of_the_line_that_captured_them(tmp_path: Path, release: str) -> None:
    ran = record(
        tmp_path,
        """
        gpu = fake_cuda.Gpu()
        stream = gpu.stream(non_blocking=True)

        def capture():
            with gpu.capture(stream) as graph:
                gpu.launch("gemm", stream=stream, ns=3_000)
                gpu.launch("relu", stream=stream, ns=2_000, runtime=False)
            return gpu.instantiate(graph)

        def replay(executable):
            gpu.launch_graph(executable, stream)
            gpu.launch("relu", stream=stream, ns=2_000)
            gpu.synchronize(stream)

        executable = capture()
        for number in range(20):
            replay(executable)
        """,
        release,
        options=("--lines", "capture,replay"),
        DRIVER=13050,
    )
    told, found = taken(ran), lines(ran)
    assert_took(found['gpu.launch("gemm", stream=stream, ns=3_000)'], told["gemm"])
    relu = [row for row in ran.did("kernel") if row["name"] == "relu"]
    captured = [row["end_ns"] - row["start_ns"] for row in relu if row["graph"]]
    assert len(captured) == 20
    assert_took(found['gpu.launch("relu", stream=stream, ns=2_000, runtime=False)'], (sum(captured), 20))
    assert_took(found['gpu.launch("relu", stream=stream, ns=2_000)'], (told["relu"][0] - sum(captured), 20))
    assert_took(found["gpu.launch_graph(executable, stream)"])


def test_without_a_gpu_nothing_is_said_of_it(tmp_path: Path) -> None:
    ran = record(tmp_path, "def f():\n    return 1\n\nf()\n", options=("--lines", "f"))
    (row,) = ran.trace.lines().to_pylist()
    assert (row["gpu_ns"], row["kernels"]) == (None, None)


def test_where_calls_are_not_recorded_nobody_knows_what_a_line_launched(tmp_path: Path) -> None:
    program = "gpu = fake_cuda.Gpu()\n\ndef f():\n    gpu.launch('gemm')\n\nf()\ngpu.synchronize()\n"
    ran = record(tmp_path, program, options=("--lines", "f"), OTHER_TOOL=1)
    assert len(ran.trace.kernels()) == 1
    (row,) = ran.trace.lines().to_pylist()
    assert (row["gpu_ns"], row["kernels"]) == (None, None)
