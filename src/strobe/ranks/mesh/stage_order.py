"""The stages of a pipeline in order, and when its steps begin: both by its messages alone."""

from __future__ import annotations

import numpy as np

from strobe.ranks.mesh.groups import GroupCalls
from strobe.ranks.mesh.rank_times import RankTime
from strobe.steps.process_steps import ProcessSteps
from strobe.tables.column_arrays import Bools, Ints

_BEFORE_ALL = -(2**62)  # ns
_NEAR = 0.01  # of a step: a boundary this near to the last gradient is where that arrived, not where a step begins


def in_order(calls: GroupCalls, is_send: Bools) -> tuple[int, ...]:
    """Return the ranks of a pipeline by stage: of two neighbours, the one that sends first is the earlier stage.

    With several stages of the model on each rank, the last rank sends to the first one, too: that is the pair whose
    first message comes last.
    """
    after, first_sent = dict[int, int](), dict[int, int]()
    for one, other in np.unique(np.column_stack((calls.rank, calls.peer)), axis=0).tolist():
        own = (calls.rank == one) & (calls.peer == other)
        sent, received = calls.asked_ns[own & is_send], calls.end_ns[own & ~is_send]
        sends_first = len(sent) and (not len(received) or sent.min() < received.min())
        if sends_first and (one not in after or sent.min() < first_sent[one]):
            after[one], first_sent[one] = other, int(sent.min())
    heads = sorted(set(after) - set(after.values()), key=lambda rank: first_sent[rank])
    if not heads and after:  # a ring: the pair that begins last closes it
        last = max(after, key=lambda rank: first_sent[rank])
        heads = [after.pop(last)]
    order = heads[:1]
    while order and order[-1] in after and after[order[-1]] not in order:
        order.append(after[order[-1]])
    return tuple(order)


def steps_of_pipeline(
    head: RankTime, following: int, calls: GroupCalls, is_send: Bools, steps: ProcessSteps
) -> tuple[Ints, Ints, Ints]:
    """Return number, begin and end of the steps of a pipeline, on its first rank.

    A step is over there when as many gradients have come back as activations were sent. Until the first activation of
    the next one is sent, the rank ends its last backward pass, and more. The next step begins with the last other
    communication in that time; without one, where a step of the program begins; without one, as long before the
    activation is sent as the rank computes until it sends the second one.
    """
    own = (calls.rank == head.rank) & (calls.peer == following)
    moment = np.where(is_send[own], calls.asked_ns[own], calls.end_ns[own])
    order = np.argsort(moment, kind="stable")
    moment, sends = moment[order], is_send[own][order]
    under_way = np.cumsum(np.where(sends, 1, -1))
    (over,) = np.nonzero((under_way == 0) & ~sends)
    starts = np.append(0, over + 1)
    starts = starts[starts < len(moment)]
    if not len(over):
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, nothing
    first_sent = moment[starts]
    last_back = np.append(_BEFORE_ALL, moment[over])[: len(starts)]
    begin = np.array(
        [_begin(head, moment[at:], int(back), steps) for at, back in zip(starts.tolist(), last_back, strict=True)]
    )
    last = int(moment[over[-1]])
    end_of_program_step = steps.end_ns[np.searchsorted(steps.end_ns, last) :][:1]
    ends = np.append(begin[1:], end_of_program_step if len(begin) == len(over) else [])[: len(begin)].astype(np.int64)
    begin = begin[: len(ends)]
    number = np.searchsorted(steps.start_ns, first_sent[: len(ends)], side="right") - 1
    return number, begin, ends


def _begin(head: RankTime, moments: Ints, last_back: int, steps: ProcessSteps) -> int:
    """Return when the step begins whose first activation is sent at the first of some moments."""
    sent = int(moments[0])
    outside = head.outside
    others = outside.end_ns[(outside.begin_ns > last_back) & (outside.end_ns < sent)]
    if len(others):
        return int(others[-1])
    inside = steps.start_ns[
        (steps.start_ns > last_back + _NEAR * np.median(steps.duration_ns)) & (steps.start_ns < sent)
    ]
    if len(inside):
        return int(inside[-1])
    if len(moments) < 2:
        return last_back
    between = np.array([sent]), moments[1:2]
    return max(last_back, sent - int((between[1] - between[0] - outside.within(*between))[0]))
