"""From the call to the end on the GPU, and queues: by hand, against plain SQL of nsys files, HTA and brute force."""

import sqlite3
import statistics
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strobe.gpu import launch_queues
from strobe.sums.groups import Spread
from tests.deep.kineto import US, call, copy, kernel, operator, profile
from tests.public import FOLDER

PARTS = ("all", "call", "queue", "run")


def rows(table):
    return table.to_arrow().to_pylist()


def test_parts_flags_and_thresholds(tmp_path):
    trace = profile(
        tmp_path,
        call(0, 10, correlation=1), kernel("void a::gemm<1>(int)", 8, 20, correlation=1),
        call(20, 60, correlation=2), kernel("void a::gemm<1>(int)", 85, 30, correlation=2),
        call(90, 4, "cudaMemsetAsync", correlation=3), copy("Memset (Device)", 300, 2, correlation=3),
        kernel("orphan", 400, 5, correlation=9),
        rank=4,
    )  # fmt: skip
    gemm, fill = rows(trace.launches())
    assert (gemm["rank"], gemm["kernel"], gemm["call"], gemm["launches"], gemm["queued"]) == (
        4, "gemm", "cudaLaunchKernel", 2, 1
    )  # fmt: skip
    assert {part: gemm[f"{part}_avg_ns"] / US for part in PARTS} == {"all": 61.5, "call": 35, "queue": 5, "run": 25}
    assert (gemm["all_min_ns"], gemm["all_max_ns"], gemm["call_median_ns"]) == (28 * US, 95 * US, 35 * US)
    assert gemm["run_stddev_ns"] == pytest.approx(statistics.stdev([20 * US, 30 * US]))
    assert (gemm["short"], gemm["long_calls"], gemm["late"]) == (0, 1, 0)
    assert (fill["kernel"], fill["short"], fill["long_calls"], fill["late"]) == ("Memset (Device)", 1, 0, 1)
    gemm, fill = rows(trace.launches(long_call_us=70, late_us=206))
    assert (gemm["short"], gemm["long_calls"], fill["late"]) == (1, 0, 0)


def test_what_a_stream_runs_at_once_waits_in_one_queue(tmp_path):
    # b begins before a ends: they lie in two lanes of the stream.
    trace = profile(
        tmp_path,
        *(call(2 * n, 1, correlation=n + 1) for n in range(3)),
        kernel("a", 10, 10, correlation=1), kernel("b", 15, 10, correlation=2), kernel("c", 30, 10, correlation=3),
    )  # fmt: skip
    assert any("(lane 2)" in each["name"] for each in rows(trace.locations))
    (row,) = rows(trace.launches(by="stream"))
    assert (row["stream"], row["launches"], row["max"]) == ("GPU 0 stream 7", 3, 3)
    assert [each["stream"] for each in rows(trace.streams())] == ["GPU 0 stream 7"]


def test_kernels_of_one_short_name_are_told_apart(tmp_path):
    names = [f"void cutlass::device_kernel<my::{kind}::GemmKernel>(int)" for kind in ("fp8", "bf16")]
    trace = profile(
        tmp_path,
        *(call(2 * n, 1, correlation=n + 1) for n in range(3)),
        kernel(names[0], 10, 5, correlation=1), kernel(names[1], 20, 5, correlation=2),
        copy("Memcpy HtoD (Pageable -> Device)", 30, 5, correlation=3),
    )  # fmt: skip
    found = {row["name"]: row["kernel"] for row in rows(trace.launches())}
    unchanged = "Memcpy HtoD (Pageable -> Device)"
    assert found == {names[0]: "device_kernel<fp8>", names[1]: "device_kernel<bf16>", unchanged: unchanged}


def test_queues_by_hand(tmp_path):
    trace = profile(
        tmp_path,
        call(0, 1, correlation=1), call(2, 1, correlation=2), call(4, 1, correlation=3),
        kernel("a", 3, 10, correlation=1), kernel("b", 13, 10, correlation=2), kernel("c", 23, 10, correlation=3),
        call(40, 1, correlation=4), kernel("other", 41, 1, stream=9, correlation=4),
    )  # fmt: skip
    found = {row["stream"]: row for row in rows(trace.launches(by="stream"))}
    # On stream 7: 1, 2, 1 (a begins), 2, 1, 0.
    first = found["GPU 0 stream 7"]
    assert (first["launches"], first["count"], first["mean"], first["min"], first["max"]) == (3, 6, 7 / 6, 0, 2)
    assert (first["quarter"], first["median"], first["three_quarters"]) == (1, 1, 1.75)
    assert found["GPU 0 stream 9"]["mean"] == 0.5
    # Two wait from 2 to 3, when a begins, and from 4 to 13.
    assert {row["stream"]: row["full_ns"] for row in rows(trace.launches(by="stream", full_queue=2))} == {
        "GPU 0 stream 7": 10 * US, "GPU 0 stream 9": 0
    }  # fmt: skip


def test_what_is_missing_is_said(tmp_path):
    assert "no GPU did anything" in profile(tmp_path, operator("aten::mm", 0, 5)).launches().note
    trace = profile(tmp_path, kernel("gemm", 0, 5))
    assert all("no launching calls" in trace.launches(by=by).note for by in ("kernel", "stream"))


def test_nsys_executions_are_those_of_plain_sql(public):
    name = "nsys/perlmutter-cloverleaf-cuda.sqlite"
    with sqlite3.connect(f"file:{FOLDER / name}?mode=ro", uri=True) as database:
        runs = database.execute(
            "select s.value, r.start, r.end, k.start, k.end from CUPTI_ACTIVITY_KIND_KERNEL k"
            " join StringIds s on s.id = k.demangledName join CUPTI_ACTIVITY_KIND_RUNTIME r"
            " on r.correlationId = k.correlationId and r.globalTid / 0x1000000 = k.globalPid / 0x1000000"
        ).fetchall()
    expected = defaultdict(lambda: defaultdict(list))
    for kernel_name, called, returned, start, end in runs:
        for part, value in zip(PARTS, (end - called, returned - called, start - returned, end - start), strict=True):
            expected[kernel_name][part] += [value] if part != "queue" or value >= 0 else []
    found = [row for row in rows(public(name).launches()) if row["name"] in expected]
    assert len(found) == len(expected)
    for row in found:
        for part, values in expected[row["name"]].items():
            if values:
                exact = statistics.median(values), min(values), max(values)
                assert tuple(row[f"{part}_{key}_ns"] for key in ("median", "min", "max")) == exact
                assert row[f"{part}_avg_ns"] == pytest.approx(statistics.fmean(values))
                assert row[f"{part}_stddev_ns"] == pytest.approx(statistics.stdev(values) if values[1:] else 0)
            else:
                assert row[f"{part}_avg_ns"] is None
        assert (row["launches"], row["queued"]) == tuple(len(expected[row["name"]][part]) for part in ("run", "queue"))


@pytest.mark.parametrize("name", ["nccl_data", "ns_resolution"])
def test_holistic_trace_analysis_says_the_same(as_hta_sees_it, name):
    # HTA keeps microseconds since 1970 in floats, which hold a quarter of one: two events may change their order.
    within = {"nccl_data": 1e-4, "ns_resolution": 5e-4}[name]
    trace, hta = as_hta_sees_it(name)
    theirs = {f"GPU 0 stream {row['stream']}": row for row in hta["queue_length_summary_rank0"]["out"]["data"]}
    keys = {"count": "count", "mean": "mean", "stddev": "std", "min": "min", "quarter": "25%", "median": "50%",
            "three_quarters": "75%", "max": "max"}  # fmt: skip
    ours = {row["stream"]: row for row in rows(trace.launches(by="stream"))}
    assert {stream: {key: row[key] for key in keys} for stream, row in ours.items()} == {
        stream: {key: pytest.approx(row[f"queue_length.{theirs}"], abs=within) for key, theirs in keys.items()}
        for stream, row in theirs.items()
    }
    stats, table = hta["cuda_launch_stats_rank0"]["out"], rows(trace.launches())
    assert sum(row["launches"] for row in table) == stats["rows"]
    for part, key in (("call", "cpu_duration"), ("run", "gpu_duration"), ("queue", "launch_delay")):
        count = "queued" if part == "queue" else "launches"
        total = sum(row[count] * (row[f"{part}_avg_ns"] or 0) for row in table)
        assert total / US == pytest.approx(stats[key]["sum"], abs=0.25 * stats["rows"] ** 0.5 + 0.01)


# Microseconds that get_time_spent_blocked_on_full_queue of HTA (0.6.1, HTA_DISABLE_NS_ROUNDING=1) says of stream 7.
BLOCKED = (("nccl_data", 4, 4958.22265625), ("nccl_data", 16, 0), ("ns_resolution", 4, 381351.25),
           ("ns_resolution", 16, 380201.0), ("ns_resolution", 64, 377636.25), ("ns_resolution", 1024, 0))  # fmt: skip


@pytest.mark.parametrize(("name", "full", "theirs_us"), BLOCKED)
def test_holistic_trace_analysis_is_blocked_as_long(as_hta_sees_it, name, full, theirs_us):
    trace, _ = as_hta_sees_it(name)
    ours = {row["stream"]: row["full_ns"] for row in rows(trace.launches(by="stream", full_queue=full))}
    # HTA keeps microseconds since 1970 in floats, which hold a quarter of one.
    assert ours["GPU 0 stream 7"] / US == pytest.approx(theirs_us, abs=0.25)


gaps = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30), st.integers(0, 6)), min_size=1, max_size=40)


@given(gaps, st.integers(1, 7))
def test_queues_do_not_depend_on_the_stretches(given_gaps, size):
    calls = np.cumsum([gap for gap, _, _ in given_gaps])
    starts = np.maximum.accumulate(calls + [wait for _, wait, _ in given_gaps])
    # Threads call at once: a call may come a little late in the order in which the stream runs.
    calls = np.minimum(calls + [late for _, _, late in given_gaps], starts)
    events = sorted([(time, -1) for time in calls] + [(time, 1) for time in starts])
    expected = -np.cumsum([change for _, change in events])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch_queues, "_SETTLED_NS", 10)
        lengths = Spread()
        queue = launch_queues.Queue(0, lengths, full=3)
        for begin in range(0, len(calls), size):
            queue.add(calls[begin : begin + size], starts[begin : begin + size])
        queue.finish()
    times = [time for time, _ in events]
    assert queue.full_ns == sum(
        after - time for time, after, length in zip(times, times[1:], expected, strict=False) if length >= 3
    )
    summary = lengths.summary(1)
    assert (summary.count[0], summary.total[0]) == (len(expected), expected.sum())
    assert (summary.least[0], summary.most[0]) == (expected.min(), expected.max())
    for part in (0.25, 0.5, 0.75):
        assert lengths.quantile(part, summary.count)[0] == pytest.approx(np.quantile(expected, part))
