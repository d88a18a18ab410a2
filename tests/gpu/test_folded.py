"""Runs of which most iterations are statistics only: GPUs were as busy as the driver's log says."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import strobe
from strobe.present.gpus import gpus
from tests.gpu.fake_cuda import read_truth
from tests.gpu.measured import record

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")

# Each step waits for its GPU, and then for a while.
WAITS = """
import time
import fake_cuda, strobe
gpu = fake_cuda.Gpu()
for _ in range(250):
    strobe.step()
    gpu.launch("few", grid=(66, 1, 1), block=(1024, 1, 1), ns=2_000_000)
    gpu.memcpy(1, 1 << 20, ns=1_000_000)
    gpu.synchronize()
    time.sleep(0.003)
"""
# The host is through long before the GPU is.
AHEAD = """
import time
import fake_cuda, strobe
gpu = fake_cuda.Gpu()
for _ in range(250):
    strobe.step()
    gpu.launch("few", grid=(66, 1, 1), block=(1024, 1, 1), ns=2_000_000)
    time.sleep(0.0005)
gpu.synchronize()
"""


def run(folder: Path, program: str) -> tuple[strobe.Trace, dict[str, float]]:
    """A folded trace, and how much of the time from first to last work the driver did what."""
    trace = strobe.open(record(folder, program=program, keep="6"))
    assert trace.folded_count > 200
    work: list[dict[str, Any]] = [
        row for row in read_truth(folder / "truth.jsonl") if row["what"] in ("kernel", "memcpy")
    ]
    whole = max(row["end_ns"] for row in work) - min(row["start_ns"] for row in work)
    took = dict.fromkeys(("kernel", "memcpy"), 0.0)
    for row in work:
        took[row["what"]] += (row["end_ns"] - row["start_ns"]) / whole
    return trace, took


def test_folded_iterations_are_no_idle_time(tmp_path: Path) -> None:
    trace, took = run(tmp_path, WAITS)
    (ladder,) = trace.utilisation().to_pylist()
    assert ladder["kernels"] == 250
    assert ladder["busy_share"] == pytest.approx(took["kernel"], abs=0.02)
    # Half of the multiprocessors, with half of the warps that fit.
    assert ladder["sms_filled_share"] == pytest.approx(took["kernel"] / 2, abs=0.02)
    assert ladder["warps_there_share"] == pytest.approx(took["kernel"] / 4, abs=0.02)
    (row,) = trace.overlap().to_pylist()
    assert row["copy_ns"] / row["duration_ns"] == pytest.approx(took["memcpy"], abs=0.02)
    assert row["busy_ns"] + row["idle_ns"] == row["duration_ns"]
    (shown,) = gpus(trace)
    assert shown.computation == pytest.approx(took["kernel"], abs=0.05)


def test_gaps_are_those_between_iterations_that_were_kept(tmp_path: Path) -> None:
    trace, _ = run(tmp_path, WAITS)
    causes = {str(row["cause"]): row for row in trace.idle().to_pylist()}
    assert causes["host"]["share"] == pytest.approx(1, abs=0.1)
    # The program sleeps for 3 ms; folded iterations took 6 ms each, many at a time.
    assert 3_000_000 < int(str(causes["host"]["longest_ns"])) < 40_000_000


def test_where_the_host_is_ahead_folded_iterations_leave_no_gap(tmp_path: Path) -> None:
    trace, took = run(tmp_path, AHEAD)
    assert took["kernel"] > 0.95
    (ladder,) = trace.utilisation().to_pylist()
    assert ladder["busy_share"] > 0.9
    assert sum(int(str(row["idle_ns"])) for row in trace.idle().to_pylist()) < 0.05 * int(str(ladder["duration_ns"]))
