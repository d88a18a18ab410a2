"""Efficiencies of constructed times: by hand, against TALP's formulas written again, and by what must always hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strobe.ranks.efficiencies import DeviceTimes, HostTimes, PerStep, TeamTimes, pop, scaling, strobe, talp

TIMES = st.integers(1, 10**12)


def column(values):
    return np.array(values, dtype=float)[:, None]


def host_of(rows, nodes):
    """Rows of useful, communication, gpu and data time, a rank each; a rank takes the sum of its own."""
    useful, communication, gpu, data = (column(values) for values in zip(*rows, strict=True))
    return HostTimes(useful + communication + gpu + data, useful, communication, gpu, data, tuple(nodes))


def devices_of(rows, elapsed):
    """Rows of computation, communication, copy and wait time, a GPU each."""
    return DeviceTimes(*(column(values) for values in zip(*rows, strict=True)), np.array([float(elapsed)]))


def values(factors):
    return {factor.name: float(factor.values[0]) for root in factors for factor, _ in root.rows()}


def products(factors):
    """Each factor that has children, with their product."""
    return [
        (factor.name, float(factor.values[0]), math.prod(float(child.values[0]) for child in factor.children))
        for root in factors
        for factor, _ in root.rows()
        if factor.children
    ]


@st.composite
def jobs(draw):
    """The times of some ranks on nodes, of GPUs, that all fit into the longest rank, and of teams of OpenMP."""
    ranks = draw(st.integers(1, 6))
    nodes = [str(draw(st.integers(0, 2))) for _ in range(ranks)]
    host = host_of([tuple(draw(TIMES) for _ in range(4)) for _ in range(ranks)], nodes)
    gpus = []
    for _ in range(draw(st.integers(1, 6))):
        computation, communication, copy = (draw(TIMES) for _ in range(3))
        gpus.append((computation, communication, copy, draw(st.integers(0, communication))))
    busiest = max(sum(each[:3]) for each in gpus)
    computed, *lost = (np.array([float(draw(TIMES))]) for _ in range(4))
    teams = TeamTimes(computed + lost[0] + lost[1], *lost)
    return host, devices_of(gpus, max(busiest, host.elapsed_ns[0])), teams


def twin_of_talp(useful, mpi, gpu, nodes, elapsed, omp_lb, omp_sched, omp_serial):
    """perf_metrics.c, model 2: sums over processes, in CPU time; workers wait while their process is in MPI."""
    cpus = len(mpi)
    active = sum(useful) + sum(mpi) + sum(gpu)
    lost = omp_lb + omp_sched + omp_serial
    by_node = {}
    for node, time in zip(nodes, mpi, strict=True):
        by_node.setdefault(node, []).append(time)
    mpi_normalized = sum(mpi) / cpus
    min_of_processes = min(time / 1 for time in mpi)
    min_of_nodes = min(sum(times) / len(times) for times in by_node.values())
    return {
        "parallel_efficiency": sum(useful) / (active + lost),
        "omp_parallel_efficiency": active / (active + lost),
        "omp_load_balance": (active + omp_serial) / (active + omp_serial + omp_lb),
        "omp_scheduling_efficiency": (active + omp_serial + omp_lb) / (active + omp_serial + omp_lb + omp_sched),
        "omp_serialization_efficiency": active / (active + omp_serial),
        "mpi_parallel_efficiency": (elapsed - mpi_normalized) / elapsed,
        "mpi_communication_efficiency": (elapsed - min_of_processes) / elapsed,
        "mpi_load_balance": (elapsed - mpi_normalized) / (elapsed - min_of_processes),
        "mpi_load_balance_in": (elapsed - min_of_nodes) / (elapsed - min_of_processes),
        "mpi_load_balance_out": (elapsed - mpi_normalized) / (elapsed - min_of_nodes),
        "device_offload_efficiency": (sum(useful) + lost) / (sum(useful) + lost + sum(gpu)),
    }


def twin_of_talp_gpu(kernels, copies, elapsed):
    """talp_gpu.c: useful is kernels, communication what is copied beside them."""
    return {
        "gpu_parallel_efficiency": sum(kernels) / (len(kernels) * elapsed),
        "gpu_load_balance": sum(kernels) / (len(kernels) * max(kernels)),
        "gpu_communication_efficiency": max(kernels) / max(k + m for k, m in zip(kernels, copies, strict=True)),
        "gpu_orchestration_efficiency": max(k + m for k, m in zip(kernels, copies, strict=True)) / elapsed,
    }


@given(jobs())
def test_the_factors_of_talp_are_those_of_its_source(job):
    host, devices, teams = job
    times = (host.useful_ns + host.data_ns, host.communication_ns, host.gpu_ns)
    useful, mpi, gpu = (each[:, 0].tolist() for each in times)
    balance, scheduling, serial = (
        float(each[0]) for each in (teams.load_balance_ns, teams.scheduling_ns, teams.serial_ns)
    )
    useful.append(float(teams.workers_ns[0]) - balance - scheduling)
    elapsed = max(host.duration_ns[:, 0].tolist())
    expected = twin_of_talp(useful, mpi, gpu, host.nodes, elapsed, balance, scheduling, serial)
    kernels = (devices.computation_ns + devices.communication_ns)[:, 0].tolist()
    expected |= twin_of_talp_gpu(kernels, devices.copy_ns[:, 0].tolist(), float(devices.elapsed_ns[0]))
    assert values(talp(host, devices, teams)) == pytest.approx(expected, abs=1e-9)


@given(jobs())
def test_a_factor_is_the_product_of_its_own_factors_and_none_is_above_one(job):
    host, devices, teams = job
    of_pop = products(pop(host, 0.5 * (host.useful_ns.max(axis=0) + host.elapsed_ns)))
    found = [*of_pop, *products(talp(host, devices, teams)), *products(strobe(host, devices))]
    assert len(found) == 3 + 4 + 4
    for name, value, product in found:
        assert value == pytest.approx(product, abs=1e-12), name
    for name, value in [*values(strobe(host, devices)).items(), *values(talp(host, devices, teams)).items()]:
        assert 0 <= value <= 1 + 1e-12 or "load_balance_" in name, name


@given(st.integers(1, 6), st.integers(1, 3), TIMES)
def test_a_balanced_run_that_never_waits_loses_nothing(ranks, nodes, time):
    host = host_of([(time, 0, 0, 0)] * ranks * nodes, [str(rank % nodes) for rank in range(ranks * nodes)])
    devices = devices_of([(time, 0, 0, 0)] * ranks, time)
    nothing = np.zeros(1)
    teams = TeamTimes(np.array([float(time)]), nothing, nothing, nothing)
    for factors in (pop(host, host.elapsed_ns), talp(host, devices, teams), strobe(host, devices)):
        for name, value in values(factors).items():
            assert value == 1, name


@given(st.integers(2, 8), st.integers(1, 10**9), st.floats(0.01, 0.99))
def test_load_balance_falls_by_what_a_rank_sleeps(ranks, time, part):
    slept = part * time
    awake = host_of([(time, 0, 0, 0)] * (ranks - 1) + [(time - slept, slept, 0, 0)], [None] * ranks)
    found = values(pop(awake, awake.elapsed_ns))
    assert found["load_balance"] == pytest.approx((ranks * time - slept) / (ranks * time), abs=1e-9)


def test_pop_by_hand():
    # T = 10; the nodes compute for 8 + 6 and 4 + 2.
    found = values(pop(host_of([(8, 2, 0, 0), (6, 4, 0, 0), (4, 6, 0, 0), (2, 8, 0, 0)], "aabb"), np.array([9.0])))
    assert found == pytest.approx(
        {
            "serialisation_efficiency": 8 / 9,
            "transfer_efficiency": 9 / 10,
            "parallel_efficiency": 20 / 40,
            "load_balance": 5 / 8,
            "load_balance_in": 2 * 14 / (4 * 8),
            "load_balance_out": 20 / (2 * 14),
            "communication_efficiency": 8 / 10,
        },
        abs=1e-9,
    )


def test_our_factors_of_ranks_by_hand():
    # Useful, communication, GPU, data; T = 100.
    found = values(strobe(host_of([(40, 10, 30, 20), (60, 20, 15, 5)], [None, None]), DeviceTimes.unknown(1)))
    known = {name: value for name, value in found.items() if not math.isnan(value)}
    assert known == pytest.approx(
        {
            "parallel_efficiency": 50 / 100,
            "communication_efficiency": 90 / 100,
            "offload_efficiency": 65 / 90,
            "data_efficiency": 60 / 65,
            "load_balance": 50 / 60,
        },
        abs=1e-9,
    )


def test_our_factors_of_gpus_by_hand():
    # Computation, communication, copies, waits: kernels that communicate are not useful.
    host = host_of([(100, 0, 0, 0)], "a")
    found = strobe(host, devices_of([(60, 30, 5, 10), (50, 30, 15, 5)], 100))[1:]
    assert values(found) == pytest.approx(
        {
            "gpu_parallel_efficiency": 55 / 100,
            "gpu_orchestration_efficiency": 95 / 100,
            "gpu_communication_efficiency": 65 / 95,
            "gpu_wait_efficiency": 90 / 95,
            "gpu_transfer_efficiency": 65 / 90,
            "gpu_copy_efficiency": 60 / 65,
            "gpu_load_balance": 55 / 60,
        },
        abs=1e-9,
    )


def test_what_is_not_known_or_nothing_is_not_a_number():
    nobody = host_of([(0, 10, 0, 0), (0, 10, 0, 0)], "aa")
    assert values(pop(nobody, nobody.elapsed_ns))["parallel_efficiency"] == 0
    assert math.isnan(values(pop(nobody, nobody.elapsed_ns))["load_balance"])
    lacking = host_of([(5, 5, 0, 0), (math.nan,) * 4], "aa")
    assert all(map(math.isnan, values(pop(lacking, lacking.elapsed_ns)).values()))
    without = values(talp(host_of([(5, 5, 0, 0)], "a"), DeviceTimes.unknown(1), TeamTimes.unknown(1)))
    assert {name for name, value in without.items() if math.isnan(value)} == {
        *("device_offload_efficiency", "gpu_parallel_efficiency", "gpu_orchestration_efficiency"),
        *("gpu_communication_efficiency", "gpu_load_balance", "omp_parallel_efficiency", "omp_load_balance"),
        *("omp_scheduling_efficiency", "omp_serialization_efficiency"),
    }


def per_step(host):
    """Times of a run as means of a step; those of communication and GPU stand for counts of instructions and cycles."""
    sums = (times.sum(axis=0) for times in (host.communication_ns, host.gpu_ns))
    return PerStep(host.useful_ns.sum(axis=0), host.elapsed_ns, *sums, ranks=len(host.nodes))


@given(jobs(), jobs(), st.booleans())
def test_scaling_is_that_of_time_and_work(first, other, weak):
    (first, *_), (run, *_) = first, other
    found = values(scaling(pop(run, run.elapsed_ns)[0], per_step(run), per_step(first), weak=weak))
    work = len(run.nodes) / len(first.nodes) if weak else 1
    assert found["speedup"] == pytest.approx(work * first.elapsed_ns[0] / run.elapsed_ns[0], rel=1e-9)
    useful = first.useful_ns.sum() / run.useful_ns.sum()
    assert found["computation_scaling"] == pytest.approx(work * useful, rel=1e-9)
    names = ("instruction_scaling", "ipc_scaling", "frequency_scaling")
    assert found["computation_scaling"] == pytest.approx(math.prod(found[name] for name in names), rel=1e-12)
    # The speed-up is what the run makes of its ranks, by what the first one does.
    of_first = values(pop(first, first.elapsed_ns))["parallel_efficiency"]
    assert found["speedup_efficiency"] == pytest.approx(found["global_efficiency"] / of_first, rel=1e-9)
