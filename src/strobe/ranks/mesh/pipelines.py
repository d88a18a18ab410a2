"""Pipelines: their stages in order, and where the time of each stage goes in each step, bubbles by cause.

A step of a pipeline is that of its first stage, for all its stages: from when the first stage begins a step until it
begins the next one (`stage_order`). So what a stage waits at the end of a step, and at the begin of the next one, are
two things.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from strobe.native import core
from strobe.ranks.mesh.dimensions import PIPELINE, Dimension, mesh
from strobe.ranks.mesh.groups import RECEIVE, SEND, GroupCalls
from strobe.ranks.mesh.intervals import Intervals
from strobe.ranks.mesh.rank_times import RankTime, rank_times
from strobe.ranks.mesh.stage_order import in_order, steps_of_pipeline
from strobe.steps.steps import find_steps
from strobe.tables.column_arrays import Bools, Floats, Ints
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# What the time of a stage goes into; a step is their sum.
STAGE_TIMES = ("computing", "communicating", "fill", "between", "drain", "sync")
COMPUTING, COMMUNICATING, FILL, BETWEEN, DRAIN, SYNC = range(len(STAGE_TIMES))
_BUBBLE = slice(FILL, SYNC)
BUBBLE_SHARE = 0.05  # of the time of the ranks: less is not worth a line
_ONE_PIECE = 0.1  # of the usual work between messages: with less between them, messages are of one microbatch


@dataclass(frozen=True)
class Pipeline:
    """A pipeline: its ranks and processes by stage, and its steps.

    step, begin_ns, end_ns, steady: of each step. times_ns: array (stages, steps, STAGE_TIMES), which adds up to the
    steps. schedule_ns, imbalance_ns: array (steps,), bubbles of all stages together that are due to the order of the
    work, and to stages that take different times; see `_replayed`. microbatches, chunks: by step, and stages of the
    model on each rank; None unknown.
    """

    ranks: tuple[int, ...]
    processes: tuple[int, ...]
    step: Ints
    begin_ns: Ints
    end_ns: Ints
    steady: Bools
    times_ns: Ints
    schedule_ns: Floats
    imbalance_ns: Floats
    microbatches: int | None
    chunks: int | None

    @property
    def bubble_ns(self) -> Ints:
        """Return the bubbles of all stages together, by step."""
        return np.asarray(self.times_ns[:, :, _BUBBLE].sum(axis=(0, 2)))

    @property
    def duration_ns(self) -> Ints:
        """Return how long the steps are."""
        return self.end_ns - self.begin_ns

    @property
    def slowest(self) -> int:
        """Return the stage that computes longest in the steady steps."""
        return int(self.times_ns[:, self.steady, COMPUTING].sum(axis=1).argmax())


@cached_on_trace
def pipelines(trace: Trace) -> tuple[Pipeline, ...]:
    """Return the pipelines of a job, those of all replicas; computed once per open trace."""
    found = mesh(trace)
    dimension = found.of_kind(PIPELINE)
    if dimension is None:
        return ()
    each = (_pipeline(trace, dimension, found.kinds, group) for group in dimension.groups)
    return tuple(one for one in each if one is not None)


def bubble_share(trace: Trace) -> float:
    """Return the share of the time of their ranks that bubbles of pipelines take in steady steps, 0 to 1."""
    found = [each for each in pipelines(trace) if each.steady.any()]
    whole = sum(len(each.ranks) * int(each.duration_ns[each.steady].sum()) for each in found)
    return sum(int(each.bubble_ns[each.steady].sum()) for each in found) / max(1, whole)


def _pipeline(trace: Trace, dimension: Dimension, kinds: tuple[str, ...], group: tuple[int, ...]) -> Pipeline | None:
    times = {each.rank: each for each in rank_times(trace).values()}
    if not all(rank in times for rank in group):
        return None
    wanted = [at for at, kind in enumerate(kinds) if kind in (SEND, RECEIVE)]
    calls = dimension.calls
    calls = calls.chosen(np.isin(calls.rank, group) & np.isin(calls.kind, wanted))
    calls = calls.chosen(np.lexsort((calls.asked_ns, calls.rank)))
    is_send = calls.kind == (kinds.index(SEND) if SEND in kinds else -1)
    steps = {each.process: each for each in find_steps(trace).processes}
    ranks = in_order(calls, is_send)
    if set(ranks) != set(group) or times[ranks[0]].process not in steps:
        return None
    of_head = steps[times[ranks[0]].process]
    number, begin, end = steps_of_pipeline(times[ranks[0]], ranks[1], calls, is_send, of_head)
    if not len(number):
        return None
    steady = (number >= 0) & of_head.steady[number]
    stages = [times[rank] for rank in ranks]
    own = [calls.rank == rank for rank in ranks]
    spent = np.stack([
        _first_and_last(calls.chosen(mine), is_send[mine], begin, end, first=number == 0)
        for number, mine in enumerate(own)
    ])  # fmt: skip
    waits = [Intervals.of(each.begin_ns, each.begin_ns + each.wait_ns) for each in map(calls.chosen, own)]
    times_ns = _divided(stages, waits, spent, begin, end)
    schedule, imbalance = _replayed(stages, calls, is_send, ranks, times_ns, begin, end)
    bubble = times_ns[:, :, _BUBBLE].sum(axis=(0, 2))
    schedule = np.minimum(schedule, bubble)
    microbatches, chunks = _microbatches(stages[0], ranks, calls, is_send, begin, end, steady)
    return Pipeline(
        ranks=ranks,
        processes=tuple(each.process for each in stages),
        step=number + of_head.first_number,
        begin_ns=begin,
        end_ns=end,
        steady=steady,
        times_ns=times_ns,
        schedule_ns=schedule,
        imbalance_ns=np.clip(imbalance, 0, bubble - schedule),
        microbatches=microbatches,
        chunks=chunks,
    )


def _first_in(times_ns: Ints, begin_ns: Ints, end_ns: Ints) -> Ints:
    """Return the first moment in each window, its end without one."""
    ordered = np.append(np.sort(times_ns), np.iinfo(np.int64).max)
    return np.asarray(np.minimum(ordered[np.searchsorted(ordered, begin_ns)], end_ns))


def _first_and_last(calls: GroupCalls, is_send: Bools, begin_ns: Ints, end_ns: Ints, *, first: bool) -> Ints:
    """Return when the first message of each step arrived, and when the last one was sent or had arrived: (steps, 2)."""
    arrived = np.where(is_send, -1, calls.end_ns)
    begun = begin_ns if first else _first_in(arrived[~is_send], begin_ns, end_ns)
    moments = np.sort(np.where(is_send, calls.asked_ns, calls.end_ns))
    at = np.searchsorted(moments, end_ns) - 1
    last = np.where(at >= 0, moments[np.maximum(at, 0)] if len(moments) else begun, begun)
    return np.column_stack((begun, np.clip(last, begun, end_ns)))


def _divided(stages: list[RankTime], waits: list[Intervals], spent: Ints, begin_ns: Ints, end_ns: Ints) -> Ints:
    """Return what the steps of each stage went into: (stages, steps, STAGE_TIMES).

    spent: by stage when its first message arrived and when its last one was sent or had arrived. waits: those for
    messages. Idle before: fill. After, until all stages are done: drain. In between, for messages: between. All other
    waits are for other dimensions, or for replicas: sync.
    """
    out = np.zeros((len(stages), len(begin_ns), len(STAGE_TIMES)), dtype=np.int64)
    done = np.empty((len(stages), len(begin_ns)), dtype=np.int64)
    for number, stage in enumerate(stages):
        outside = np.append(stage.outside.begin_ns, np.iinfo(np.int64).max)
        done[number] = np.minimum(outside[np.searchsorted(outside, spent[number, :, 1])], end_ns)
    all_done = done.max(axis=0)
    for number, (stage, own, (first, last)) in enumerate(zip(stages, waits, np.moveaxis(spent, 2, 1), strict=True)):
        for_messages = stage.idle & own
        times = out[number]
        times[:, COMMUNICATING] = stage.communicating.within(begin_ns, end_ns)
        times[:, FILL] = stage.idle.within(begin_ns, first)
        times[:, BETWEEN] = for_messages.within(first, last)
        until = np.maximum(last, all_done)
        times[:, DRAIN] = stage.idle.within(last, until)
        times[:, SYNC] = stage.idle.within(first, last) - times[:, BETWEEN] + stage.idle.within(until, end_ns)
        times[:, COMPUTING] = end_ns - begin_ns - times[:, 1:].sum(axis=1)
    return out


def _replayed(
    stages: list[RankTime], calls: GroupCalls, is_send: Bools, ranks: tuple[int, ...], times_ns: Ints,
    begin_ns: Ints, end_ns: Ints,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Return the bubbles of each step that its schedule has, and those of uneven stages, of all stages together, ns.

    Each step is replayed by itself, from the moment at which its first stage begins it, on a network that transfers
    everything at once: once with the computation of each stage scaled to the mean of all, once as it was. The bubble of
    a replay is what stages together do not compute until the last one is done. With equal stages it is that of the
    schedule; what it is longer as it was is due to uneven stages.
    """
    count = len(begin_ns)
    computing = times_ns[:, :, COMPUTING].astype(np.float64)
    mean = computing.mean(axis=0)
    _, pieces = np.unique(calls.event, return_inverse=True)
    parts = list[tuple[Ints, Ints, Ints, Ints, Ints]]()  # unit, time, computed, meeting, needs
    for number, (stage, rank) in enumerate(zip(stages, ranks, strict=True)):
        (own,) = np.nonzero((calls.rank == rank) & (calls.event >= 0))
        moment = np.where(is_send[own], calls.asked_ns[own], calls.end_ns[own])
        window = np.searchsorted(begin_ns, moment, side="right") - 1
        inside = (window >= 0) & (moment < end_ns[np.maximum(window, 0)])
        own, moment, window = own[inside], moment[inside], window[inside]
        meeting, needs = pieces.ravel()[own] * count + window, (~is_send[own]).astype(np.int64)
        moment = np.append(moment, end_ns)
        window = np.append(window, np.arange(count))
        meeting, needs = np.append(meeting, np.full(count, -1)), np.append(needs, np.zeros(count, dtype=np.int64))
        computed = moment - begin_ns[window] - stage.outside.within(begin_ns[window], moment)
        parts.append((number * count + window, moment, computed, meeting, needs))
    unit, moment, computed, meeting, needs = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.lexsort((needs, moment))
    unit, computed, meeting, needs = unit[order], computed[order], meeting[order], needs[order]
    # Meetings are numbered anew: most pairs of message and step do not exist.
    _, numbered = np.unique(meeting, return_inverse=True)
    meeting = np.where(meeting < 0, -1, numbered.ravel())
    factor = np.divide(mean, computing, out=np.ones_like(computing), where=computing > 0).ravel()
    bubbles = []
    for scaled in (computed * factor[unit], computed.astype(np.float64)):
        came = core.on_ideal_network(
            unit, scaled.astype(np.int64), meeting, needs.astype(np.uint8), len(stages) * count,
            int(meeting.max(initial=-1)) + 1,
        )  # fmt: skip
        last = np.zeros(len(stages) * count, dtype=np.int64)
        np.maximum.at(last, unit, came)
        longest = last.reshape(len(stages), count).max(axis=0)
        bubbles.append(np.maximum(0.0, len(stages) * (longest - mean)))
    schedule, uneven = bubbles
    return schedule, uneven - schedule


def _microbatches(
    head: RankTime, ranks: tuple[int, ...], calls: GroupCalls, is_send: Bools, begin_ns: Ints, end_ns: Ints,
    steady: Bools,
) -> tuple[int | None, int | None]:  # fmt: skip
    """Return how many microbatches a step has, and how many stages of the model each rank has; None where unknown.

    The first rank sends each microbatch to the second once for each of its stages of the model; where it has several,
    the last rank sends it back to the first one once less. Of a ring of two ranks neither is known.
    """
    window = np.searchsorted(begin_ns, calls.asked_ns, side="right") - 1
    inside = (window >= 0) & (calls.asked_ns < end_ns[np.maximum(window, 0)])
    inside[inside] = steady[window[inside]]
    if not steady.any():
        return None, None

    def sent(sender: int, receiver: int) -> int:
        (at,) = np.nonzero(inside & is_send & (calls.rank == sender) & (calls.peer == receiver))
        if not len(at):
            return 0
        member = head if sender == head.rank else None
        counts = defaultdict[int, int](int)
        for step in np.unique(window[at]).tolist():
            own = at[window[at] == step]
            if member is None or len(own) < 2:
                counts[len(own)] += 1
                continue
            begins, ends = calls.asked_ns[own][:-1], calls.asked_ns[own][1:]
            worked = ends - begins - member.outside.within(begins, ends)
            counts[1 + int((worked > _ONE_PIECE * np.max(worked)).sum())] += 1
        return max(counts, key=lambda number: counts[number])

    there, back = sent(ranks[0], ranks[1]), sent(ranks[-1], ranks[0]) if len(ranks) > 2 else 0
    if len(ranks) == 2 or not there:
        return there or None, 1 if there else None
    once = there - back
    if once <= 0 or there % once:
        return None, None
    return once, there // once
