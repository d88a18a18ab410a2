"""Bandwidth of copies over time: by hand, against a sum over microseconds, and against Holistic Trace Analysis."""

import numpy as np
import pytest

from strobe.gpu import copies as of_copies
from strobe.gpu import work
from tests.deep.kineto import US, copy, kernel, operator, profile

UP, DOWN = "Memcpy HtoD (Pinned -> Device)", "Memcpy DtoH (Device -> Pinned)"


def rows(table):
    return table.to_arrow().to_pylist()


def cells(row, *names):
    return tuple(row[name] for name in names)


def test_what_runs_at_once_is_added_up(tmp_path):
    trace = profile(
        tmp_path,
        copy(UP, 0, 10, bytes=40_000), copy(UP, 5, 10, bytes=20_000, stream=9), copy(DOWN, 8, 4, bytes=4000),
        copy(UP, 30, 10, bytes=10_000), copy("Memset (Device)", 31, 1, bytes=7000), copy(UP, 50, 0, bytes=5),
        kernel("gemm", 0, 100), rank=1,
    )  # fmt: skip
    found = {kind: [] for kind in ("HtoD", "DtoH", "set")}
    for row in rows(trace.copies(by="time", points=0)):
        assert cells(row, "rank", "device") == (1, 0)
        assert row["bandwidth_gb_s"] == row["peak_gb_s"]
        found[row["kind"]].append((row["start_ns"] / US, row["duration_ns"] / US, row["peak_gb_s"], row["copies"]))
    assert found == {
        "HtoD": [(0, 5, 4, 1), (5, 5, 6, 2), (10, 5, 2, 1), (30, 10, 1, 1)],
        "DtoH": [(8, 4, 1, 1)], "set": [(31, 1, 7, 1)],
    }  # fmt: skip
    # The GPU works for 100 us: four parts of 25.
    parts = [row for row in rows(trace.copies(by="time", points=4)) if row["kind"] == "HtoD"]
    assert [row["start_ns"] / US for row in parts] == [0, 25]
    assert [row["busy_ns"] for row in parts] == [15 * US, 10 * US]
    assert [row["peak_gb_s"] for row in parts] == [6, 1]
    assert [row["bandwidth_gb_s"] * row["duration_ns"] for row in parts] == [
        pytest.approx(60_000),
        pytest.approx(10_000),
    ]


@pytest.mark.parametrize("most", [2, 1 << 19])
def test_parts_do_not_depend_on_the_stretches(tmp_path, monkeypatch, most):
    random, events, per_us = np.random.default_rng(3), [], np.zeros((2, 400))
    for stream in range(3):
        free = 0
        while free < 330:
            start, duration = free + int(random.integers(0, 9)), int(random.integers(1, 60))
            free, kind, size = start + duration, int(random.integers(2)), int(random.integers(1, 10**6))
            events.append(copy((UP, DOWN)[kind], start, duration, bytes=size, stream=stream))
            per_us[kind, start:free] += size / (duration * US)
    trace = profile(tmp_path, *events, kernel("gemm", 0, 400))
    monkeypatch.setattr(of_copies, "stretches", lambda device: work.stretches(device, most))
    table = rows(trace.copies(by="time", points=8))
    for kind, name in enumerate(("HtoD", "DtoH")):
        parts = per_us[kind].reshape(8, -1)
        assert [row["bandwidth_gb_s"] for row in table if row["kind"] == name] == [
            pytest.approx(part.mean()) for part in parts if part.any()
        ]
        assert [row["peak_gb_s"] for row in table if row["kind"] == name] == [
            pytest.approx(part.max()) for part in parts if part.any()
        ]


# What get_memory_bw_summary of HTA (traceinsight 0.6.1, HTA_DISABLE_NS_ROUNDING=1) says: count, mean, standard
# deviation, least, quartiles and most of the values above 0 of its time series.
HTA = {
    ("nccl_data", "DtoD"): (640, 39.210621, 108.102082, 0.005102, 0.181818, 0.711111, 2.098361, 605.200946),
    ("nccl_data", "set"): (76, 678.891094, 615.747571, 0.121212, 0.350880, 679.033420, 1215.968551, 1925.218225),
    ("ns_resolution", "DtoD"): (1280, 33.208812, 83.608507, 0.005, 0.2, 0.8, 3.2, 405.705230),
    ("ns_resolution", "set"): (116, 257.814248, 324.447648, 0.075472, 0.361941, 32.253968, 528.53278, 904.638037),
}


@pytest.mark.parametrize("name", ["nccl_data", "ns_resolution"])
def test_holistic_trace_analysis_says_the_same(as_hta_sees_it, name):
    trace, _ = as_hta_sees_it(name)
    table = rows(trace.copies(by="time", points=0))
    for kind in ("DtoD", "set"):
        speed = np.array([row["bandwidth_gb_s"] for row in table if row["kind"] == kind])
        ours = (len(speed), speed.mean(), speed.std(ddof=1), *np.quantile(speed, (0, 0.25, 0.5, 0.75, 1)))
        assert ours == pytest.approx(HTA[name, kind], abs=6e-7)


def test_what_is_missing_is_said(tmp_path):
    assert "no GPU did anything" in profile(tmp_path, operator("aten::mm", 0, 5)).copies(by="time").note
    assert "no GPU copied" in profile(tmp_path, kernel("gemm", 0, 5)).copies(by="time").note
