"""The efficiencies of small traces, computed on paper: ranks that wait for each other, GPUs, and what is missing."""

from __future__ import annotations

import json

import pytest

import strobe
from strobe.answers.ranks.efficiency import scaling
from strobe.api.imports import opened
from strobe.cli.main import main
from strobe.model import exit_codes
from tests.deep.kineto import call, copy, kernel, operator, step, write
from tests.deep.test_folded_gpus import folded_and_full
from tests.unit.hand_made import MS, HandMadeProcess, make_trace, span, train_steps

STEPS = 40


def computing(*ms, steps=STEPS, takes=10):
    """The main thread of a rank: a step computes for one of these times, in turn, and waits in an all-reduce."""
    found = []
    for at in range(steps):
        begin, useful = at * takes * MS, ms[at % len(ms)] * MS
        inner = span("MPI_Allreduce", begin + useful, begin + takes * MS, paradigm="mpi", role="collective")
        found.append(span("advance", begin, begin + takes * MS, inner))
    return {"main": found}


def job(*threads, ranks=None):
    numbers = ranks or range(len(threads))
    made = [
        HandMadeProcess(each, pid=100 + rank, rank=rank, main=rank == numbers[0])
        for rank, each in zip(numbers, threads, strict=True)
    ]
    return make_trace(*made)


def of_run(table):
    return {row["factor"]: row["value"] for row in table.to_pylist()}


def test_ranks_that_wait_by_hand():
    table = job(computing(8), computing(4)).efficiency()
    assert of_run(table) == pytest.approx(
        {
            "parallel_efficiency": 0.6,
            "load_balance": 0.75,
            "load_balance_in": 0.75,
            "load_balance_out": 1.0,
            "communication_efficiency": 0.8,
            "serialisation_efficiency": 1.0,
            "transfer_efficiency": 0.8,
        }
    )
    row = table.to_pylist()[1]
    assert (row["ranks"], row["parent"]) == (2, "parallel_efficiency")
    assert row["elapsed_ns"] == row["steps"] * 10 * MS
    assert table.note.startswith(
        "load balance costs most, 0.75: rank 0 computes for 8.00 ms a step, the mean of 2 ranks is 6.00 ms"
    )


def test_talp_sees_the_same_ranks_by_the_time_in_mpi():
    found = of_run(job(computing(8), computing(4)).efficiency(model="talp"))
    known = {name: value for name, value in found.items() if value is not None}
    assert known == pytest.approx(
        {
            "parallel_efficiency": 0.6,
            "mpi_parallel_efficiency": 0.6,
            "mpi_communication_efficiency": 0.8,
            "mpi_load_balance": 0.75,
            "mpi_load_balance_in": 0.75,
            "mpi_load_balance_out": 1.0,
        }
    )


def test_each_step_has_factors_of_its_own():
    table = job(computing(8, 6), computing(4, 6)).efficiency(by="step")
    rows = [row for row in table.to_pylist() if row["factor"] == "load_balance" and 2 < row["step"] < STEPS - 2]
    assert [row["value"] for row in rows] == pytest.approx([0.75 if row["step"] % 2 == 0 else 1.0 for row in rows])
    assert {row["ranks"] for row in rows} == {2}


def test_a_step_that_a_rank_lacks_and_a_rank_that_is_missing_are_null():
    rows = job(computing(8), computing(4, steps=STEPS - 8)).efficiency(by="step").to_pylist()
    known = {(row["ranks"], row["value"] is not None) for row in rows if row["factor"] == "parallel_efficiency"}
    assert known == {(2, True), (1, False)}
    table = job(computing(8), computing(4), ranks=(0, 2)).efficiency()
    assert set(of_run(table).values()) == {None}
    assert "rank 1 of 3: not in this trace" in table.note
    assert "costs most" not in table.note


def test_one_rank_has_no_costliest_factor():
    table = job(computing(8)).efficiency()
    assert of_run(table)["parallel_efficiency"] == pytest.approx(0.8)
    assert of_run(table)["load_balance"] == 1
    assert "cost" not in table.note


def test_a_run_without_steps_is_the_whole_run():
    def thread(useful):
        return {"main": [span("setup", 0, 100, span("MPI_Bcast", useful, 100, paradigm="mpi", role="collective"))]}

    trace = job(thread(50), thread(25))
    table = trace.efficiency()
    assert of_run(table)["load_balance"] == pytest.approx(0.75)
    assert of_run(table)["parallel_efficiency"] == pytest.approx(0.375)
    assert (table.column("steps")[0], table.column("elapsed_ns")[0]) == (None, 100)
    by_step = trace.efficiency(by="step")
    assert len(by_step) == 0
    assert by_step.note == "no steps were found in this trace; --by run has the efficiencies of all of it"


def test_runs_on_more_ranks_are_compared_with_the_first():
    # Twice the ranks, a step of 6 instead of 10 ms, and 4 * 4 instead of 2 * 8 ms of work in it.
    runs = [("two", job(computing(8), computing(8))), ("four", job(*[computing(4, takes=6)] * 4))]
    rows = scaling(runs, by="run", model="pop", weak=False).to_pylist()
    found = {(row["trace"], row["factor"]): row["value"] for row in rows}
    assert [found["two", name] for name in ("speedup", "computation_scaling", "global_efficiency")] == [
        1,
        1,
        pytest.approx(0.8),
    ]
    assert found["four", "speedup"] == pytest.approx(10 / 6)
    assert found["four", "speedup_efficiency"] == pytest.approx(10 / 12)
    assert found["four", "computation_scaling"] == pytest.approx(1)
    assert found["four", "global_efficiency"] == pytest.approx(4 / 6)
    assert [row["trace"] for row in rows[:2]] == ["two", "four"]


def counting(*, instructions, cycles, computes, takes):
    """A rank that executes so many instructions and cycles per ms of computation, and ten times as many as it waits."""
    thread = computing(computes, takes=takes)
    times = [at * takes * MS + offset for at in range(STEPS) for offset in (0, computes * MS)] + [STEPS * takes * MS]
    metrics = []
    for name, rate in (("PAPI_TOT_INS", instructions), ("PAPI_TOT_CYC", cycles)):
        rates = [rate * computes, 10 * rate * (takes - computes)] * STEPS
        values = [float(sum(rates[:at])) for at in range(len(times))]
        metrics.append({"name": name, "unit": "#", "location": 0, "time_ns": times, "value": values})
    return thread, metrics


def test_counters_of_computation_tell_why_it_scales():
    def counted(ranks, **rates):
        thread, metrics = counting(**rates)
        each = [HandMadeProcess(thread, pid=at, rank=at, main=not at, metrics=metrics) for at in range(ranks)]
        return make_trace(*each)

    # 8 ms each with 3 instructions and 2 cycles per ms; then 5 ms each with 3 and 1.5.
    two = counted(2, instructions=3, cycles=2, computes=8, takes=10)
    four = counted(4, instructions=3, cycles=1.5, computes=5, takes=6)
    table = scaling([("2", two), ("4", four)], by="run", model="pop", weak=False)
    found = {row["factor"]: row["value"] for row in table.to_pylist() if row["trace"] == "4"}
    expected = {
        "instruction_scaling": (2 * 8 * 3) / (4 * 5 * 3),
        "ipc_scaling": (3 / 1.5) / (3 / 2),
        "frequency_scaling": 1.5 / 2,
        "computation_scaling": (2 * 8) / (4 * 5),
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert "instructions" not in table.note
    table = scaling([("2", two), ("other", job(computing(8), computing(8)))], by="run", model="pop", weak=False)
    found = {row["factor"]: row["value"] for row in table.to_pylist() if row["trace"] == "other"}
    assert (found["ipc_scaling"], found["computation_scaling"]) == (None, pytest.approx(1))
    assert "instructions, IPC and frequency are not known" in table.note


# A step of 100 us on the GPUs of two ranks, of which each waits for the other once: gemm, all-reduce, gemm, all-reduce,
# and a copy until 95 us.
GEMMS = (((0, 30), (50, 30)), ((0, 40), (50, 20)))
REDUCTIONS = (((30, 20), (80, 10)), ((40, 10), (70, 20)))


def on_gpu(rank, steps):
    events = []
    for number in range(steps):
        begin = 100 * number
        events += [step(number, begin, 100), operator("aten::mm", begin + 1, 20)]
        events.append(call(begin + 50, (45, 25)[rank], "cudaStreamSynchronize"))
        events += [kernel("gemm", begin + at, takes) for at, takes in GEMMS[rank]]
        for at, takes in REDUCTIONS[rank]:
            each = kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", begin + at, takes, stream=20)
            each["args"] |= {"Collective name": "allreduce", "Process Group Name": "0", "Seq": len(events)}
            events.append(each)
        events.append(copy("Memcpy DtoH (Device -> Pageable)", begin + 90, 5))
    return events


@pytest.fixture
def trained(tmp_path):
    for rank in range(2):
        write(tmp_path / f"rank{rank}.json", *on_gpu(rank, 6), rank=rank, baseTimeNanoseconds=10**18)
    return strobe.open(opened(tmp_path, cache=tmp_path / "cache", talk=False))


def test_gpus_by_hand(trained):
    # Computation 60 and 60, communication 30 and 30 with 10 of waiting each, copies 5. TALP counts all kernels: 90.
    rows = {row["factor"]: row for row in trained.efficiency(model="strobe").to_pylist()}
    assert {name: row["value"] for name, row in rows.items() if name.startswith("gpu")} == pytest.approx(
        {
            "gpu_parallel_efficiency": 60 / 100,
            "gpu_orchestration_efficiency": 95 / 100,
            "gpu_communication_efficiency": 65 / 95,
            "gpu_wait_efficiency": 85 / 95,
            "gpu_transfer_efficiency": 65 / 85,
            "gpu_copy_efficiency": 60 / 65,
            "gpu_load_balance": 1.0,
        }
    )
    of_talp = {name: row["talp"] for name, row in rows.items() if name.startswith("gpu") and row["talp"] is not None}
    expected = {
        "gpu_parallel_efficiency": 90 / 100,
        "gpu_orchestration_efficiency": 95 / 100,
        "gpu_communication_efficiency": 90 / 95,
        "gpu_load_balance": 1.0,
    }
    assert of_talp == pytest.approx(expected)
    talp = of_run(trained.efficiency(model="talp"))
    assert {name: value for name, value in talp.items() if name.startswith("gpu")} == pytest.approx(expected)
    assert talp["device_offload_efficiency"] == pytest.approx((55 + 75) / 200)
    assert rows["offload_efficiency"]["value"] == pytest.approx(75 / 100)
    assert rows["load_balance"]["value"] == pytest.approx(65 / 75)


def test_a_gpu_that_ranks_share_counts_once():
    def rank_of(number, busy_ms):
        begins = [each.start_ns for each in train_steps(30) if each.name == "train_step"]
        work = [span("gemm", at, at + busy_ms * MS, paradigm="cuda", role="kernel") for at in begins]
        threads = {"main": train_steps(30), "stream 7": work}
        return HandMadeProcess(threads, pid=100 + number, rank=number, main=not number)

    def efficiency(*uuids):
        ranks = [rank_of(0, 6), rank_of(1, 3)]
        for rank, uuid in zip(ranks, uuids, strict=True):
            rank.process()["device_properties"] = [{"id": 0, "uuid": uuid}]
        return of_run(make_trace(*ranks).efficiency(model="talp"))["gpu_load_balance"]

    assert efficiency("GPU-a", "GPU-b") == pytest.approx(4.5 / 6)
    assert efficiency("GPU-a", "GPU-a") == 1


def test_pop_tells_what_else_counts_as_communication(trained):
    assert "--model strobe" in trained.efficiency().note
    assert "--model strobe" not in job(computing(8), computing(4)).efficiency().note


def test_folded_steps_count_as_those_in_detail():
    folded, full = (
        {row["factor"]: row["value"] for row in trace.efficiency(model="talp").to_pylist()}
        for trace in folded_and_full(lanes_known=48)
    )
    # A step of 12 ms: kernels run for 7 ms, and then a copy for 0.5.
    assert full["gpu_communication_efficiency"] == pytest.approx(7 / 7.5)
    assert full["gpu_orchestration_efficiency"] == pytest.approx(7.5 / 12, rel=0.01)
    assert {name: value for name, value in folded.items() if name.startswith("gpu")} == pytest.approx(
        {name: value for name, value in full.items() if name.startswith("gpu")}, rel=1e-9
    )


def test_the_verb_compares_the_traces_that_it_is_given(trained, capsys):
    path = str(trained.path)
    assert main(["efficiency", path, path, "--by", "class", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["trace"] for row in rows} == {path}
    assert [row["value"] for row in rows if row["factor"] == "speedup"] == [1.0, 1.0]
    assert main(["efficiency", path, "--weak"]) == exit_codes.USAGE
    assert "--weak compares several traces" in capsys.readouterr().err
