"""Lanes of the typical step: they add up, each GPU by what it was idle for, and by what is in the trace."""

from __future__ import annotations

import pytest

from strobe.present.summary import summarise
from tests.deep.kineto import call, kernel, operator, profile, step
from tests.unit.hand_made import MS, HandMadeProcess, make_trace, span, train_steps

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def lanes_of(trace):
    return {lane.name: lane for lane in summarise(trace).lanes}


def shares(lane):
    return {segment.name: round(segment.share, 2) for segment in lane.segments}


def metric(name, unit, times_ns, values):
    return {"name": name, "unit": unit, "location": None, "time_ns": times_ns, "value": values}


def test_a_training_has_its_phases_and_they_add_up_to_the_step():
    summary = summarise(make_trace({"main": train_steps(60, wait_ns=4 * MS)}))
    (host,) = summary.lanes
    assert [segment.name for segment in host.segments] == ["data_wait", "forward", "backward", "optimizer", "rest"]
    assert host.duration_ns == summary.step.mean_ns
    assert sum(segment.duration_ns for segment in host.segments) == pytest.approx(host.duration_ns, abs=5)
    assert sum(segment.share for segment in host.segments) == pytest.approx(1)
    assert host.segments[0].duration_ns == pytest.approx(4 * MS, rel=0.01)
    assert host.segments[0].page == "data"


def test_idle_time_of_a_gpu_is_divided_by_cause(tmp_path):
    # Of 1000 us a kernel runs 200. In the 800 that the GPU is idle, the thread waits 600 for data.
    events = []
    for n in range(8):
        at = 1000 * n
        events += [step(n, at, 1000), operator(LOADER, at + 200, 600)]
        events += [call(at, 1, correlation=n + 1), kernel("gemm", at, 200, correlation=n + 1)]
    gpu = lanes_of(profile(tmp_path, *events))["GPU 0"]
    assert gpu.duration_ns == pytest.approx(1_000_000, rel=0.01)
    assert shares(gpu) == {"computes": 0.2, "idle: data": 0.6, "idle: host": 0.2}
    assert gpu.segments[gpu.idle_from].name == "idle: data"
    longest = gpu.segments[gpu.idle_from].evidence
    assert longest is not None
    assert longest["duration_ns"] == 800_000


def test_a_program_without_phases_has_none_of_them():
    spans = []
    for n in range(40):
        at = 20 * n * MS
        spans.append(span("sweep", at, at + 12 * MS))
        spans.append(span("MPI_Allreduce", at + 12 * MS, at + 20 * MS, paradigm="mpi", role="collective"))
    (host,) = summarise(make_trace({"main": spans})).lanes
    assert shares(host) == {"MPI_Allreduce": 0.4, "sweep": 0.6}
    assert {segment.name: segment.page for segment in host.segments} == {"MPI_Allreduce": "ranks", "sweep": "profile"}


def test_a_run_without_steps_has_a_lane_of_what_it_did():
    (host,) = summarise(make_trace({"main": [span("main", 0, 100, span("work", 10, 90))]})).lanes
    assert shares(host) == {"work": 0.8, "main": 0.2}


def test_tables_of_what_takes_the_time_add_up(tmp_path):
    events = [step(n, 1000 * n, 1000) for n in range(6)]
    events += [operator("aten::mm", 1000 * n, 100) for n in range(6)]
    events += [kernel("gemm", 1000 * n, 300) for n in range(6)]
    events += [kernel("add", 1000 * n + 400, 100) for n in range(6)]
    tables = {each.name: each for each in summarise(profile(tmp_path, *events)).top}
    assert next(iter(tables)) == "kernels"
    kernels = tables["kernels"].rows
    assert [(row.name, row.calls, row.share, row.cumulative) for row in kernels] == [
        ("gemm", 6, pytest.approx(0.75), pytest.approx(0.75)),
        ("add", 6, pytest.approx(0.25), pytest.approx(1.0)),
    ]
    assert "gemm" not in [row.name for row in tables["profile"].rows]  # a kernel is no time of the host


def test_what_a_run_used_of_its_host_is_made_of_its_readings():
    seconds = [0, 1_000 * MS, 3_000 * MS]
    process = HandMadeProcess(
        {"main": train_steps(30)},
        metrics=[
            metric("cpu main thread", "cores", seconds[1:], [1.0, 0.5]),  # 1 s, then 2 s at a half: 2 s of CPU time
            metric("peak resident memory", "bytes", seconds, [1e6, 3e6, 3e6]),
            metric("read", "bytes/s", seconds[1:], [2e6, 1e6]),
        ],
    )
    trace = make_trace(process)
    facts = {fact.name: fact.value for fact in summarise(trace).facts}
    assert facts["peak memory"] == "3.00 MB"
    assert facts["I/O"] == "4.00 MB read, 0 B written"
    assert facts["cores used"] == f"{2e9 / trace.info.duration_ns:.2f} on average"
