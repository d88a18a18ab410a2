"""What the time of a GPU went into: by hand, against exact sums of public traces, and against brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strobe.gpu.work import MASKS, Work, busy, divide
from tests.deep.kineto import US, copy, kernel, operator, profile, step
from tests.public import KINETO, exact_sums


def test_the_time_of_a_gpu_is_divided_among_kinds(tmp_path):
    # gemm 0..10 and 14..20, nccl 8..16 on another stream, copy 18..30: nothing from 30 to 35, then a set 35..36
    trace = profile(
        tmp_path,
        kernel("gemm", 0, 10),
        kernel("gemm", 14, 6),
        kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 8, 8, stream=20),
        copy("Memcpy HtoD (Pinned -> Device)", 18, 12, stream=21),
        copy("Memset (Device)", 35, 1, stream=21),
        rank=3,
    )
    (row,) = trace.overlap().to_arrow().to_pylist()
    expected = {
        "duration": 36, "busy": 31, "idle": 5, "computation": 16, "communication": 8, "copy": 13,
        "exposed_communication": 4, "only_computation": 10, "only_communication": 4, "only_copy": 11,
        "only_computation_and_communication": 4, "only_computation_and_copy": 2, "only_communication_and_copy": 0,
        "only_computation_and_communication_and_copy": 0,
    }  # fmt: skip
    assert {name: row[f"{name}_ns"] for name in expected} == {name: us * US for name, us in expected.items()}
    assert (row["rank"], row["device"], row["overlap"]) == (3, 0, 0.5)
    assert sum(value for name, value in row.items() if name.startswith("only_")) == row["busy_ns"]


def test_every_gpu_has_a_row_and_steps_have_rows_of_their_own(tmp_path):
    events = [step(n, 100 * n, 100) for n in range(5)]
    events += [operator("aten::mm", 100 * n + k, 5) for n in range(5) for k in (10, 40, 70)]
    # The kernel of step n reaches 10 us into step n + 1.
    events += [kernel("gemm", 100 * n + 60, 50) for n in range(5)] + [kernel("gemm", 0, 7, device=1)]
    trace = profile(tmp_path, *events)
    assert [(r["device"], r["busy_ns"]) for r in trace.overlap().to_arrow().to_pylist()] == [(0, 250 * US), (1, 7 * US)]
    rows = [r for r in trace.overlap(by="step").to_arrow().to_pylist() if r["device"] == 0]
    assert [r["step"] for r in rows] == list(range(len(rows)))
    steps = trace.steps().to_arrow().to_pylist()
    assert len(rows) == len(steps) >= 3
    for row, found in zip(rows, steps, strict=True):
        begin, end = found["start_ns"], found["start_ns"] + found["duration_ns"]
        ran = sum(max(0, min(end, (100 * n + 110) * US) - max(begin, (100 * n + 60) * US)) for n in range(5))
        assert (row["duration_ns"], row["computation_ns"]) == (found["duration_ns"], ran)


def test_without_a_gpu_a_sentence_says_so(tmp_path):
    table = profile(tmp_path, operator("aten::mm", 0, 5)).overlap()
    assert len(table) == 0
    assert "no GPU did anything" in table.note


@pytest.mark.parametrize("name", KINETO)
def test_public_traces_have_their_exact_sums(public, name):
    expected = exact_sums(name)
    (row,) = public(name).overlap().to_arrow().to_pylist()
    assert {
        "busy_union_ns": row["busy_ns"],
        "gpu_span_ns": row["duration_ns"],
        "idle_ns": row["idle_ns"],
        "compute_union_ns": row["computation_ns"],
        "comm_union_ns": row["communication_ns"],
        "comm_comp_overlap_ns": row["communication_ns"] - row["exposed_communication_ns"],
    }.items() <= {name: int(value) for name, value in expected.items() if value.isdigit()}.items()


# Those of which HTA's results are there without its rounding to whole microseconds.
@pytest.mark.parametrize("name", ["nccl_data", "ns_resolution"])
def test_holistic_trace_analysis_says_the_same(as_hta_sees_it, name):
    # HTA keeps the times of one of them, microseconds since 1970, in floats: these hold a quarter of a microsecond.
    within_us = {"nccl_data": 0.01, "ns_resolution": 0.25}[name]
    trace, hta = as_hta_sees_it(name)
    (row,) = trace.overlap().to_arrow().to_pylist()
    (temporal,) = hta["temporal_breakdown"]["out"]["data"]
    assert row["duration_ns"] / US == pytest.approx(temporal["kernel_time(us)"], abs=within_us)
    assert row["idle_ns"] / US == pytest.approx(temporal["idle_time(us)"], abs=within_us)
    assert row["computation_ns"] / US == pytest.approx(temporal["compute_time(us)"], abs=within_us)
    rest = row["busy_ns"] - row["computation_ns"]
    assert rest / US == pytest.approx(temporal["non_compute_time(us)"], abs=within_us)
    share = hta["comm_comp_overlap"]["out"]["data"][0]["comp_comm_overlap_pctg"]
    assert row["overlap"] == (None if share is None else pytest.approx(share / 100, abs=5e-5))


activities = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12), st.integers(0, 2)), max_size=25)


@given(activities, st.integers(0, 45), st.integers(1, 30))
def test_dividing_equals_counting_nanosecond_by_nanosecond(ran, begin, length):
    ran.sort()
    start, duration, kind = (np.array([each[k] for each in ran], dtype=np.int64) for k in range(3))
    none = np.zeros(len(ran), dtype=np.uint32)
    found = Work(none, np.arange(len(ran)), start, start + duration, none, kind.astype(np.int8))
    counted = np.zeros(MASKS, dtype=np.int64)
    for at in range(begin, begin + length):
        running = {int(k) for s, d, k in ran if s <= at < s + d}
        counted[sum(1 << k for k in running)] += 1
    assert divide(found, begin, begin + length).tolist() == counted.tolist()
    held = {at for s, d, _ in ran for at in range(s, s + d)}
    first, last = busy(found)
    assert {at for s, e in zip(first, last, strict=True) for at in range(s, e)} == held
    assert all(a < b for a, b in itertools.pairwise(first))
