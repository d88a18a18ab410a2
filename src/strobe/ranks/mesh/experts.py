"""Exchanges of experts: pairs of all-to-alls that bring tokens to their experts and results back, and who is hot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strobe.ranks.mesh.dimensions import Dimension, mesh
from strobe.ranks.mesh.groups import GroupCalls
from strobe.ranks.mesh.rank_times import rank_times
from strobe.steps.step_times import step_of_process
from strobe.steps.steps import find_steps
from strobe.tables.column_arrays import Bools, Floats, Ints
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

_PERSISTENT = 0.5  # of the steps in which the same rank has most work


@dataclass(frozen=True)
class Exchange:
    """The exchanges of one group of ranks, by rank and step: arrays (ranks, steps), 0 where a rank lacks a step.

    received_bytes: what dispatches brought. expert_ns: computation between a dispatch and its combine. wait_ns: waits
    for other ranks of the group in all-to-alls. start_ns: on the first rank; duration_ns: mean of the ranks. steady:
    steps that count: complete, and not of the warm-up, on all ranks. pairs: dispatches with a combine.
    """

    dimension: Dimension
    ranks: tuple[int, ...]
    step: Ints
    steady: Bools
    start_ns: Ints
    duration_ns: Ints
    received_bytes: Ints
    expert_ns: Ints
    wait_ns: Ints
    pairs: int

    @property
    def busiest(self) -> Ints:
        """Return the place of the rank whose experts compute longest, by steady step."""
        return np.asarray(self.expert_ns[:, self.steady].argmax(axis=0))

    @property
    def hot(self) -> int | None:
        """Return the rank that is the busiest one in more than half of the steps; None if that changes."""
        counts = np.bincount(self.busiest, minlength=len(self.ranks))
        return self.ranks[int(counts.argmax())] if counts.max(initial=0) > _PERSISTENT * counts.sum() else None

    @property
    def imbalance_by_step(self) -> Floats:
        """Return 1 - mean / max of the time of experts, by steady step."""
        return imbalance(self.expert_ns[:, self.steady])

    @property
    def imbalance_in_total(self) -> float:
        """Return the same of the sums over the steady steps: it is smaller where the busiest rank changes."""
        return float(imbalance(self.expert_ns[:, self.steady].sum(axis=1, keepdims=True))[0])


def imbalance(values: npt.NDArray[np.int64] | Floats) -> Floats:
    """Return 1 - mean / max over the rows of an array, by column: the part that most wait in the mean; 0 of nothing."""
    most = values.max(axis=0)
    return np.asarray(1 - np.divide(values.mean(axis=0), most, out=np.ones(values.shape[1]), where=most > 0))


@cached_on_trace
def exchanges(trace: Trace) -> tuple[Exchange, ...]:
    """Return the exchanges of every group whose ranks bring parts to each other and back; computed once per trace."""
    found = mesh(trace)
    if "alltoall" not in found.kinds:
        return ()
    kind, each = found.kinds.index("alltoall"), []
    for dimension in found.dimensions:
        calls = dimension.calls.chosen(dimension.calls.kind == kind)
        for group in dimension.groups:
            own = calls.chosen(np.isin(calls.rank, group) & (calls.event >= 0))
            if len(own) and (one := _exchange(trace, dimension, group, own)) is not None:
                each.append(one)
    return tuple(each)


def _exchange(trace: Trace, dimension: Dimension, group: tuple[int, ...], calls: GroupCalls) -> Exchange | None:
    times = {each.rank: each for each in rank_times(trace).values()}
    ranks = tuple(rank for rank in group if rank in times)
    by_rank = []
    for rank in ranks:
        own = calls.chosen(calls.rank == rank)
        by_rank.append(own.chosen(np.argsort(own.asked_ns, kind="stable")))
    if len(ranks) < 2 or len({len(each) for each in by_rank}) > 1:
        return None
    first = _dispatches(by_rank)
    if not len(first):
        return None
    having = {each.process: each for each in find_steps(trace).processes}
    known = [having[times[rank].process] for rank in ranks if times[rank].process in having]
    if len(known) < len(ranks):
        return None
    low, high = max(each.first_number for each in known), min(each.first_number + len(each) for each in known)
    if high <= low:
        return None
    columns = [slice(low - each.first_number, high - each.first_number) for each in known]
    steady = np.all([each.steady[own] for each, own in zip(known, columns, strict=True)], axis=0)
    duration = np.mean([each.duration_ns[own] for each, own in zip(known, columns, strict=True)], axis=0)
    received, expert, waits = (np.zeros((len(ranks), high - low), dtype=np.int64) for _ in range(3))
    for row, (rank, own) in enumerate(zip(ranks, by_rank, strict=True)):
        time = times[rank]
        step = step_of_process(trace, time.process, own.asked_ns) - low
        inside = (step >= 0) & (step < high - low)
        np.add.at(waits[row], step[inside], own.wait_ns[inside])
        dispatch = first[inside[first]]
        begin, end = own.end_ns[dispatch], own.asked_ns[dispatch + 1]
        np.add.at(expert[row], step[dispatch], end - begin - time.outside.within(begin, end))
        np.add.at(received[row], step[dispatch], np.maximum(0, own.received_bytes[dispatch]))
    return Exchange(
        dimension,
        ranks,
        np.arange(low, high),
        steady,
        known[0].start_ns[columns[0]],
        duration.astype(np.int64),
        received,
        expert,
        waits,
        len(first),
    )


def _dispatches(by_rank: list[GroupCalls]) -> Ints:
    """Return the places of the all-to-alls that a combine follows: one that sends back, on every rank, what it got."""
    sent = np.stack([each.sent_bytes for each in by_rank])
    received = np.stack([each.received_bytes for each in by_rank])
    back = ((received[:, :-1] == sent[:, 1:]) & (sent[:, :-1] == received[:, 1:]) & (sent[:, :-1] >= 0)).all(axis=0)
    out, at = list[int](), 0
    while at < len(back):
        if back[at]:
            out.append(at)
            at += 1
        at += 1
    return np.array(out, dtype=np.int64)
