"""Efficiencies of parallel programs as trees of factors: POP's, TALP's of host and GPUs, and ours.

Sources: POP's metrics (https://co-design.pop-coe.eu/metrics); TALP's in DLB (doc/user_guide/source/talp_metrics.rst,
src/talp/perf_metrics.c), here its model 2 with one CPU per process and one for each other thread of OpenMP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from strobe.tables.column_arrays import Floats


@dataclass(frozen=True)
class Factor:
    """A factor in windows of a run. `children`: factors whose product it is.

    values: an entry per window, from 0 (nothing useful) to 1 (nothing lost), above 1 in scaling; NaN where not known.
    """

    name: str
    values: Floats
    children: tuple[Factor, ...] = ()

    def rows(self, parent: str | None = None) -> Iterator[tuple[Factor, str | None]]:
        """Yield the factor and all below it, each with the name of its parent."""
        yield self, parent
        for child in self.children:
            yield from child.rows(self.name)


@dataclass(frozen=True)
class HostTimes:
    """What each rank did in windows of a run: arrays (ranks, windows) in ns, NaN where a rank lacks the window.

    useful_ns: computation. The rest of duration_ns: communication_ns, gpu_ns (calls of the GPU's interface, and waits
    for it) and data_ns (waits for data). nodes: the node of each rank, None where unknown.
    """

    duration_ns: Floats
    useful_ns: Floats
    communication_ns: Floats
    gpu_ns: Floats
    data_ns: Floats
    nodes: tuple[str | None, ...]

    @property
    def elapsed_ns(self) -> Floats:
        """How long each window lasts: that of the rank that takes longest, as TALP has it."""
        longest: Floats = self.duration_ns.max(axis=0)
        return longest


@dataclass(frozen=True)
class DeviceTimes:
    """What each GPU did in windows of a run: arrays (devices, windows) in ns, NaN where that is not known.

    computation_ns: a kernel computes. communication_ns: a kernel communicates, and none computes. copy_ns: memory is
    copied or set, and no kernel runs. wait_ns: the part of communication_ns in which kernels wait for other ranks.
    elapsed_ns: how long each window lasts.
    """

    computation_ns: Floats
    communication_ns: Floats
    copy_ns: Floats
    wait_ns: Floats
    elapsed_ns: Floats

    @staticmethod
    def unknown(windows: int) -> DeviceTimes:
        """Return the times of a run without a GPU."""
        nothing = np.full((1, windows), np.nan)
        return DeviceTimes(nothing, nothing, nothing, nothing, nothing[0])


@dataclass(frozen=True)
class TeamTimes:
    """What teams of OpenMP did in windows of a run: sums over all ranks, an entry per window, ns; NaN without any.

    workers_ns: in parallel regions, without the first thread. load_balance_ns, scheduling_ns: by region the sum over
    the threads of how much longer than the one that waits least, and of how long that one, each waits in barriers.
    serial_ns: of workers outside of regions, but for MPI.
    """

    workers_ns: Floats
    load_balance_ns: Floats
    scheduling_ns: Floats
    serial_ns: Floats

    @staticmethod
    def unknown(windows: int) -> TeamTimes:
        """Return the times of a run without OpenMP."""
        return TeamTimes(*[np.full(windows, np.nan)] * 4)


@dataclass(frozen=True)
class PerStep:
    """Means of a step in each window of a run: the useful time of all ranks together, and how long it takes, ns.

    instructions, cycles: of the computation of all ranks, NaN where not known.
    """

    useful_ns: Floats
    elapsed_ns: Floats
    instructions: Floats
    cycles: Floats
    ranks: int


def pop(host: HostTimes, ideal_ns: Floats) -> tuple[Factor, ...]:
    """Return POP's parallel efficiency. ideal_ns: how long each window lasts on an ideal network."""
    useful, elapsed = host.useful_ns, host.elapsed_ns
    most = useful.max(axis=0)
    ideal = (
        Factor("serialisation_efficiency", _ratio(most, ideal_ns)),
        Factor("transfer_efficiency", _ratio(ideal_ns, elapsed)),
    )
    communication = Factor("communication_efficiency", _ratio(most, elapsed), ideal)
    whole = _ratio(useful.mean(axis=0), elapsed)
    return (Factor("parallel_efficiency", whole, (_load_balance(useful, host.nodes), communication)),)


def talp(host: HostTimes, devices: DeviceTimes, teams: TeamTimes) -> tuple[Factor, ...]:
    """Return TALP's efficiencies of host, MPI, OpenMP and GPUs. To TALP, waiting for data is useful.

    Its parallel efficiency is not the product of the others (model 2); those of OpenMP are those of its model 1, too.
    """
    elapsed, mpi = host.elapsed_ns, host.communication_ns
    useful, gpu = (host.useful_ns + host.data_ns).sum(axis=0), host.gpu_ns.sum(axis=0)
    in_barriers = teams.load_balance_ns + teams.scheduling_ns
    useful = useful + np.nan_to_num(teams.workers_ns - in_barriers)
    idle = np.nan_to_num(in_barriers + teams.serial_ns)
    active = useful + gpu + mpi.sum(axis=0)
    of_teams = np.cumsum((active, teams.serial_ns, teams.load_balance_ns, teams.scheduling_ns), axis=0)
    outside, most = elapsed - mpi.mean(axis=0), elapsed - mpi.min(axis=0)
    most_of_node = elapsed - _of_nodes(mpi, host.nodes, np.mean).min(axis=0)
    inner = Factor("mpi_load_balance_in", _ratio(most_of_node, most))
    outer = Factor("mpi_load_balance_out", _ratio(outside, most_of_node))
    balance = Factor("mpi_load_balance", _ratio(outside, most), (inner, outer))
    communication = Factor("mpi_communication_efficiency", _ratio(most, elapsed))
    offload = np.where(np.isnan(devices.elapsed_ns), np.nan, _ratio(useful + idle, useful + idle + gpu))
    kernels = devices.computation_ns + devices.communication_ns
    busy = (kernels + devices.copy_ns).max(axis=0)
    return (
        Factor("parallel_efficiency", _ratio(useful, active + idle)),
        Factor("mpi_parallel_efficiency", _ratio(outside, elapsed), (communication, balance)),
        _chain(
            "omp_parallel_efficiency",
            ("omp_scheduling_efficiency", "omp_load_balance", "omp_serialization_efficiency"),
            list(of_teams[::-1]),
        ),
        Factor("device_offload_efficiency", offload),
        _chain(
            "gpu_parallel_efficiency",
            ("gpu_orchestration_efficiency", "gpu_communication_efficiency", "gpu_load_balance"),
            (devices.elapsed_ns, busy, kernels.max(axis=0), kernels.mean(axis=0)),
        ),
    )


def strobe(host: HostTimes, devices: DeviceTimes) -> tuple[Factor, ...]:
    """Return our efficiencies of ranks and GPUs: chains of times, each of which leaves out one more kind of loss.

    Ranks: communication, the GPU, waits for data, imbalance. GPUs: idle time, kernels that communicate (waits for other
    ranks, then transfers), copies, imbalance.
    """
    useful = host.useful_ns
    fed = useful + host.data_ns
    ranks = _chain(
        "parallel_efficiency",
        ("communication_efficiency", "offload_efficiency", "data_efficiency", "load_balance"),
        (host.elapsed_ns, (fed + host.gpu_ns).max(axis=0), fed.max(axis=0), useful.max(axis=0), useful.mean(axis=0)),
    )
    ranks = Factor(ranks.name, ranks.values, (*ranks.children[:-1], _load_balance(useful, host.nodes)))
    work, copied = devices.computation_ns, devices.computation_ns + devices.copy_ns
    busy, done = (copied + devices.communication_ns).max(axis=0), copied.max(axis=0)
    waited = (copied + devices.communication_ns - devices.wait_ns).max(axis=0)
    communication = _chain(
        "gpu_communication_efficiency", ("gpu_wait_efficiency", "gpu_transfer_efficiency"), (busy, waited, done)
    )
    gpus = _chain(
        "gpu_parallel_efficiency",
        ("gpu_orchestration_efficiency", "gpu_communication_efficiency", "gpu_copy_efficiency", "gpu_load_balance"),
        (devices.elapsed_ns, busy, done, work.max(axis=0), work.mean(axis=0)),
    )
    orchestration, _, *others = gpus.children
    return ranks, Factor(gpus.name, gpus.values, (orchestration, communication, *others))


def scaling(parallel: Factor, run: PerStep, first: PerStep, *, weak: bool) -> tuple[Factor, ...]:
    """Return POP's global efficiency of a run, and its speed-up, against the first of several runs.

    parallel: the parallel efficiency of the run. weak: the work of a step grows with the number of ranks, else it is
    the same.
    """
    work = run.ranks / first.ranks if weak else 1.0
    per_cycle, per_cycle_of_first = _ratio(run.instructions, run.cycles), _ratio(first.instructions, first.cycles)
    clock, clock_of_first = _ratio(run.cycles, run.useful_ns), _ratio(first.cycles, first.useful_ns)
    counted = (
        Factor("instruction_scaling", work * _ratio(first.instructions, run.instructions)),
        Factor("ipc_scaling", _ratio(per_cycle, per_cycle_of_first)),
        Factor("frequency_scaling", _ratio(clock, clock_of_first)),
    )
    computation = Factor("computation_scaling", work * _ratio(first.useful_ns, run.useful_ns), counted)
    speedup = work * _ratio(first.elapsed_ns, run.elapsed_ns)
    return (
        Factor("global_efficiency", parallel.values * computation.values, (parallel, computation)),
        Factor("speedup", speedup),
        Factor("speedup_efficiency", speedup * first.ranks / run.ranks),
    )


def _load_balance(useful_ns: Floats, nodes: Sequence[str | None]) -> Factor:
    """Return the load balance, and that within nodes and between them."""
    most, whole, of_nodes = useful_ns.max(axis=0), useful_ns.sum(axis=0), _of_nodes(useful_ns, nodes, np.sum)
    most_of_nodes = len(of_nodes) * of_nodes.max(axis=0)
    inner = Factor("load_balance_in", _ratio(most_of_nodes, len(nodes) * most))
    return Factor(
        "load_balance",
        _ratio(whole, len(nodes) * most),
        (inner, Factor("load_balance_out", _ratio(whole, most_of_nodes))),
    )


def _of_nodes(times_ns: Floats, nodes: Sequence[str | None], combine: Callable[..., Floats]) -> Floats:
    """Return the sum or mean over the ranks of each node: an array (nodes, windows), NaN where nodes are unknown."""
    if None in nodes:
        return np.full((1, times_ns.shape[1]), np.nan)
    which = np.array(nodes)
    return np.array([combine(times_ns[which == node], axis=0) for node in dict.fromkeys(nodes)])


def _chain(name: str, names: Sequence[str], times_ns: Sequence[Floats]) -> Factor:
    """Return a factor whose children are the ratios of each time to the one before it."""
    pairs = zip(names, times_ns, times_ns[1:], strict=False)
    children = tuple(Factor(each, _ratio(after, before)) for each, before, after in pairs)
    return Factor(name, _ratio(times_ns[-1], times_ns[0]), children)


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Return part / whole; NaN where the whole is nothing or not known."""
    ratio: Floats = np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0)
    return ratio
