"""What GPUs did in a long run, of which a few iterations are in detail: against the driver's own log."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from strobe.present.gpus import gpus
from tests.gpu.test_collector import record

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
