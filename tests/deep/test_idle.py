"""Why a GPU had nothing to do: gaps by hand, exact sums, and what HTA says of the same traces."""

import pytest

from tests.deep.kineto import US, call, copy, kernel, operator, profile
from tests.public import KINETO, exact_sums


def idle(trace, **options):
    return {row["cause"]: row for row in trace.idle(**options).to_arrow().to_pylist()}


def test_gaps_are_divided_by_what_kept_the_next_kernel_from_starting(tmp_path):
    wait = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    trace = profile(
        tmp_path,
        kernel("a", 0, 10, correlation=1),
        call(-5, 2, correlation=1),
        # 10..60: launched at 55. Until then the thread waited 20..40 for data, and 42..47 for the GPU.
        operator(wait, 20, 20),
        call(42, 5, "cudaStreamSynchronize", correlation=90),
        call(55, 2, correlation=2),
        kernel("b", 60, 10, correlation=2),
        # 70..71: launched long before, near. 80..180: launched before, too, but far.
        call(57, 1, correlation=3),
        kernel("c", 71, 9, correlation=3),
        call(58, 1, correlation=4),
        kernel("d", 180, 10, correlation=4, stream=8),
        # 190..230: launched at 225 by a thread that was in a copy from 200 to 220.
        call(200, 20, "cudaMemcpy", correlation=5),
        copy("Memcpy HtoD (Pageable -> Device)", 185, 5, correlation=5, stream=8),
        call(225, 1, correlation=6),
        kernel("e", 230, 1, correlation=6),
    )
    found = idle(trace)
    times = {cause: row["idle_ns"] / US for cause, row in found.items()}
    assert times == {"data": 20, "sync": 5, "copy": 20, "host": 25 + 20, "kernel": 1, "other": 100}
    assert {cause: row["gaps"] for cause, row in found.items()} == {
        "data": 0, "sync": 0, "copy": 1, "host": 1, "kernel": 1, "other": 1,
    }  # fmt: skip
    assert sum(row["share"] for row in found.values()) == pytest.approx(1)
    assert (found["other"]["longest_ns"], found["other"]["start_ns"]) == (100 * US, 85 * US)
    (d,) = trace.sql(
        "select s.location, s.row from spans s join regions r using (region) where r.name = 'd'"
    ).to_pylist()
    assert (found["other"]["location"], found["other"]["row"]) == (d["location"], d["row"])
    assert idle(trace, kernel_gap_ns=200 * US)["kernel"]["idle_ns"] == 101 * US


def test_streams_have_gaps_of_their_own(tmp_path):
    trace = profile(
        tmp_path,
        *(call(k, 1, correlation=k + 1) for k in range(4)),
        kernel("a", 10, 10, correlation=1, stream=7),
        kernel("b", 20, 30, correlation=2, stream=8),
        kernel("c", 40, 10, correlation=3, stream=7),
        kernel("d", 70, 10, correlation=4, stream=8),
    )
    rows = trace.idle(by="stream").to_arrow().to_pylist()
    assert [(row["stream"][-1], row["cause"], row["idle_ns"]) for row in rows] == [
        ("7", "kernel", 20 * US),
        ("8", "kernel", 20 * US),
    ]
    assert [row["idle_ns"] for row in trace.idle().to_arrow().to_pylist()] == [20 * US]


def test_without_a_gpu_a_sentence_says_so(tmp_path):
    assert "no GPU did anything" in profile(tmp_path, operator("aten::mm", 0, 5)).idle().note
    assert "no GPU has a gap" in profile(tmp_path, kernel("a", 0, 5)).idle().note


@pytest.mark.parametrize("name", KINETO)
def test_causes_add_up_to_the_idle_time_of_public_traces(public, name):
    rows = public(name).idle().to_arrow().to_pylist()
    assert sum(row["idle_ns"] for row in rows) == int(exact_sums(name)["idle_ns"])


def ours_as_hta_sums(trace):
    sums = {}
    for row in trace.idle(by="stream").to_arrow().to_pylist():
        category = {"kernel": "kernel_wait", "other": "other"}.get(row["cause"], "host_wait")
        time, count = sums.get((row["stream"], category), (0, 0))
        sums[row["stream"], category] = (time + row["idle_ns"], count + row["gaps"])
    return sums


def test_holistic_trace_analysis_says_the_same(as_hta_sees_it):
    trace, hta = as_hta_sees_it("nccl_data")
    times, counts = hta["idle_time_breakdown_rank0"]["out"]
    theirs = {
        (f"GPU 0 stream {time['stream']}", time["idle_category"]): (time["idle_time"], count["count"])
        for time in times["data"]
        for count in counts["data"]
        if (time["stream"], time["idle_category"]) == (count["stream"], count["idle_category"]) and time["idle_time"]
    }
    ours = ours_as_hta_sums(trace)
    assert {key: (pytest.approx(ns / US, abs=0.02), count) for key, (ns, count) in ours.items()} == theirs


def test_launches_a_nanosecond_late_are_late(as_hta_sees_it):
    # HTA keeps microseconds in floats here: six launches 1 to 45 ns after the end of the kernel before seem to come
    # before it. So the sums by decimal arithmetic, and HTA's for both causes together.
    trace, hta = as_hta_sees_it("ns_resolution")
    ours = ours_as_hta_sums(trace)
    stream = "GPU 0 stream 7"
    assert ours == {(stream, "host_wait"): (1_347_125, 47), (stream, "kernel_wait"): (5_105_576, 4828)}
    times, counts = hta["idle_time_breakdown_rank0"]["out"]
    assert sum(ns for ns, _ in ours.values()) / US == pytest.approx(
        sum(r["idle_time"] for r in times["data"]), abs=0.25
    )
    assert sum(count for _, count in ours.values()) == sum(row["count"] for row in counts["data"])
