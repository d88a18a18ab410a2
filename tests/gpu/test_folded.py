"""What GPUs did in a long run, of which a few iterations are in detail: against the driver's own log."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from strobe.present.gpus import gpus
from tests.gpu.recorded import record

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")


def test_a_gpu_that_is_busy_is_busy_though_most_steps_are_folded(tmp_path: Path) -> None:
    ran = record(
        tmp_path,
        """
        import strobe
        gpu = fake_cuda.Gpu()
        def train():
            for number in range(400):
                strobe.step()
                for _ in range(4):
                    gpu.launch("gemm", grid=(33, 1, 1), ns=150_000)
                gpu.memcpy(2, 1024, ns=50_000)
                if number % 50 == 0:
                    time.sleep(0.02)  # a slow step is kept
                gpu.synchronize()
        train()
        """,
        options=("--keep", "8"),
    )
    trace = ran.trace
    kernels, all_work = ran.did("kernel"), ran.did("kernel", "memcpy")
    begin, end = min(row["start_ns"] for row in all_work), max(row["end_ns"] for row in all_work)
    busy = sum(row["end_ns"] - row["start_ns"] for row in kernels) / (end - begin)
    assert trace.sql("select count(*) as n from kernel_spans").to_pylist()[0]["n"] < len(kernels) / 2
    (row,) = trace.utilisation().to_pylist()
    assert row["kernels"] == len(kernels) == 1600
    assert row["busy_share"] == pytest.approx(busy, rel=0.05)
    # Each fills 33 of the 132 multiprocessors of the fake GPU.
    assert row["sms_filled_share"] == pytest.approx(busy / 4, rel=0.05)
    (overlap,) = trace.overlap().to_pylist()
    copied = sum(row["end_ns"] - row["start_ns"] for row in ran.did("memcpy"))
    assert overlap["copy_ns"] == pytest.approx(copied, rel=0.02)
    assert overlap["idle_ns"] / overlap["duration_ns"] == pytest.approx(1 - busy - copied / (end - begin), rel=0.1)
    (gpu,) = gpus(trace)
    assert gpu.computation == pytest.approx(busy, rel=0.1)


def test_a_gpu_behind_its_host_is_busy_beyond_the_steps_that_launched_it(tmp_path: Path) -> None:
    ran = record(
        tmp_path,
        """
        import strobe
        gpu = fake_cuda.Gpu()
        for _ in range(250):
            strobe.step()
            gpu.launch("few", grid=(66, 1, 1), block=(1024, 1, 1), ns=2_000_000)
            time.sleep(0.0005)
        gpu.synchronize()
        """,
        options=("--keep", "6"),
    )
    trace, kernels = ran.trace, ran.did("kernel")
    begin, end = min(row["start_ns"] for row in kernels), max(row["end_ns"] for row in kernels)
    assert sum(row["end_ns"] - row["start_ns"] for row in kernels) > 0.95 * (end - begin)
    assert trace.folded_count > 200
    (row,) = trace.utilisation().to_pylist()
    assert row["busy_share"] > 0.9
    assert row["sms_filled_share"] == pytest.approx(row["busy_share"] / 2, rel=0.1)
    (overlap,) = trace.overlap().to_pylist()
    assert overlap["busy_ns"] + overlap["idle_ns"] == overlap["duration_ns"]
    assert overlap["idle_ns"] < 0.1 * overlap["duration_ns"]
    assert sum(row["idle_ns"] for row in trace.idle().to_pylist()) < 0.05 * row["duration_ns"]
