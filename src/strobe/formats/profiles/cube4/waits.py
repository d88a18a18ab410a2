"""Waits and delay costs as metrics of a Cube4 profile, with the names that Scalasca's reports have.

Source: Scalasca 2.6, src/scout/generator: MPI.pattern, MPI_RMA.pattern, OMP.pattern, Delay.MPI.pattern,
Delay.OMP.pattern. What Scalasca does not know has the name of the wait state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from strobe.ranks.delays.delay_costs import Delays, delays
from strobe.ranks.waits.wait_columns import STATES, Waits
from strobe.ranks.waits.wait_states import wait_states
from strobe.tables.column_arrays import Ints, alike
from strobe.trace.definition_rows import Region, path_tree, region_rows
from strobe.trace.trace import Trace

# By wait state: metric of the wait, its title, the metric of its delay costs (short-term; there is a long-term one).
_METRICS = {
    "late_sender": ("mpi_latesender", "MPI Late Sender", "delay_latesender"),
    "wrong_order": ("mpi_latesender_wo", "MPI Late Sender, wrong order", ""),
    "late_receiver": ("mpi_latereceiver", "MPI Late Receiver", "delay_latereceiver"),
    "wait_at_barrier": ("mpi_barrier_wait", "MPI Wait at Barrier", "delay_barrier"),
    "barrier_completion": ("mpi_barrier_completion", "MPI Barrier Completion", ""),
    "wait_at_nxn": ("mpi_wait_nxn", "MPI Wait at N x N", "delay_n2n"),
    "nxn_completion": ("mpi_nxn_completion", "MPI N x N Completion", ""),
    "late_broadcast": ("mpi_latebroadcast", "MPI Late Broadcast", "delay_12n"),
    "early_reduce": ("mpi_earlyreduce", "MPI Early Reduce", "delay_n21"),
    "early_scan": ("mpi_earlyscan", "MPI Early Scan", "delay_earlyscan"),
    "wait_at_fence": ("mpi_rma_wait_at_fence", "MPI Wait at Fence", "delay_fence"),
    "late_post": ("mpi_rma_sync_late_post", "MPI Late Post (Synchronization)", "delay_late_post"),
    "early_wait": ("mpi_rma_early_wait", "MPI Early Wait", "delay_early_wait"),
    "late_complete": ("mpi_rma_late_complete", "MPI Late Complete", ""),
    "lock_contention": ("mpi_rma_sync_lock_competition", "MPI Lock Contention (Synchronization)", "delay_lock"),
    "thread_barrier": ("omp_ebarrier_wait", "OMP Wait at Explicit Barrier", "delay_ompbarrier"),
}
# The same states in other regions: access to a window, and OpenMP.
_OTHERS = {
    "late_post": ("mpi_rma_comm_late_post", "MPI Late Post (Communication)"),
    "implicit barrier": ("omp_ibarrier_wait", "OMP Wait at Implicit Barrier"),
    "wait for critical": ("omp_lock_contention_critical", "OMP Critical Contention"),
    "lock_contention": ("omp_lock_contention_api", "OMP Lock API Contention"),
}
_PARENTS = {"mpi_latesender_wo": "mpi_latesender", "mpi_rma_late_complete": "mpi_rma_early_wait"}


@dataclass(frozen=True)
class WaitMetric:
    """A metric in seconds, and its values by location and call path (-1: not known). parent: what it is a part of."""

    name: str
    title: str
    meaning: str
    values: list[tuple[int, int, float]]
    parent: str


def wait_metrics(trace: Trace) -> Iterator[WaitMetric]:
    """Yield the metrics of waits, each after its parent, and delay costs: those that are not zero.

    Values are the sums of `wait_ns` of `strobe waits`, and of `direct_ns` and `long_term_ns` of `strobe delays`. Costs
    of what ran before a call, as known of folded steps, are those of its caller; where the cause is unknown there are
    none.
    """
    parents, regions = path_tree(trace)
    waits = wait_states(trace).waits
    waits = waits.chosen(~waits.uncertain)
    region = np.append(regions, -1)[waits.call_path]
    found: dict[tuple[str, str], list[Waits]] = {}
    for state, of in sorted(set(zip(waits.state.tolist(), region.tolist(), strict=True))):
        own = waits.chosen((waits.state == state) & (region == of))
        found.setdefault(_name(STATES[state], region_rows(trace)[of] if of >= 0 else None), []).append(own)
    names = {name for name, _ in found}
    for (name, title), parts in found.items():
        own = Waits.joined(parts)
        parent = _PARENTS.get(name, "time")
        values = _summed(own.location, own.call_path, own.wait_ns)
        yield WaitMetric(name, title, "Sum of strobe waits", values, parent if parent in names else "time")
    yield from _delay_metrics(delays(trace), parents)


def _metric(state: str) -> tuple[str, str, str]:
    """Return the entry of a state; a state of ours has its own name."""
    return _METRICS.get(state, (state, state.replace("_", " ").capitalize(), f"delay_{state}"))


def _name(state: str, region: Region | None) -> tuple[str, str]:
    """Return name and title of the metric of a wait in a region."""
    name, title, _ = _metric(state)
    if region and region.paradigm == "openmp":
        return _OTHERS.get(region.name, _OTHERS.get(state, (name, title)))
    if region and state == "late_post" and not region.name.startswith("MPI_Win_"):
        return _OTHERS["late_post"]
    return name, title


def _delay_metrics(found: Delays, parents: Ints) -> Iterator[WaitMetric]:
    costs = found.costs.chosen(found.costs.cause != found.causes.unknown)
    before = found.causes.is_before(costs.cause)
    path = np.where(before, np.append(parents, -1)[costs.cause % max(1, len(parents))], costs.cause)
    location, state = found.waits.cause[costs.wait], found.waits.state[costs.wait]
    for each in np.unique(state).tolist():
        _, title, name = _metric(STATES[each])
        for suffix, term, cost_ns in ("", "short", costs.direct_ns), ("_longterm", "long", costs.long_term_ns):
            which = (state == each) & (cost_ns > 0)
            if which.any():
                values = _summed(location[which], path[which], cost_ns[which])
                yield WaitMetric(name + suffix, f"{title} delay costs, {term}-term", "Sum of strobe delays", values, "")


def _summed(location: Ints, path: Ints, ns: Ints) -> list[tuple[int, int, float]]:
    """Return location, call path and sum in seconds of each pair of the two."""
    first, group = alike([location, path])
    total = np.bincount(group, ns, len(first)) / 1e9
    return list(zip(location[first].tolist(), path[first].tolist(), total.tolist(), strict=True))
