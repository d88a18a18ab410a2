"""Split: how much of every step went into waiting for data, forward, backward, the optimizer, and the rest."""

from __future__ import annotations

import numpy as np

from strobe.steps.finding.cuts import Cuts
from strobe.steps.thread_spans import Ints
from strobe.steps.training_activities import BACKWARD, DATA_WAIT, FORWARD, MAX_PAUSE_NS, PARTS, REST, Activities


def split(acts: Activities, cuts: Cuts) -> Ints:
    """Return the parts of every step, in nanoseconds: an array (steps, PARTS) whose rows sum to the durations exactly.

    Operators are forward if they follow a data wait or lead up to a backward pass: so is a validation. Others, such as
    those that read a loss or copy a checkpoint, are rest.
    """
    duration = cuts.end_ns - cuts.start_ns
    parts = np.zeros((len(cuts), len(PARTS)), dtype=np.int64)
    step = np.searchsorted(cuts.start_ns, acts.start_ns, side="right") - 1
    inside = (step >= 0) & (acts.start_ns < cuts.end_ns[step]) & (acts.start_ns >= cuts.fed_ns[step])
    step, part = step[inside], acts.part[inside]
    if len(step):
        start, end = acts.start_ns[inside], np.minimum(acts.end_ns[inside], cuts.end_ns[step])
        if (part == BACKWARD).any():
            fed = (cuts.fed_ns > cuts.start_ns)[step]
            part = _without_strays(step, part, np.where(fed, DATA_WAIT, REST))
        np.add.at(parts, (step, part), end - start)
        pause = start[1:] - end[:-1]
        same = (step[1:] == step[:-1]) & (part[1:] == part[:-1]) & (pause <= MAX_PAUSE_NS)
        np.add.at(parts, (step[1:][same], part[1:][same]), pause[same])
    parts[:, DATA_WAIT] += cuts.fed_ns - cuts.start_ns
    parts[:, REST] = 0
    parts[:, REST] = duration - parts.sum(axis=1)
    return parts


def _without_strays(step: Ints, part: Ints, ahead: Ints) -> Ints:
    """Turn operators into REST that neither follow a data wait nor lead up to a backward pass.

    `ahead` is, for every activity, what its step began with before the first activity.
    """
    new = np.concatenate([[True], (step[1:] != step[:-1]) | (part[1:] != part[:-1])])
    run = np.cumsum(new) - 1
    run_part, goes_on = part[new], step[new][1:] == step[new][:-1]
    before = np.concatenate([ahead[:1], np.where(goes_on, run_part[:-1], ahead[new][1:])])
    after = np.concatenate([np.where(goes_on, run_part[1:], REST), [REST]])
    stray = (run_part == FORWARD) & (before != DATA_WAIT) & (after != BACKWARD)
    relabelled: Ints = np.where(stray, REST, run_part)[run]
    return relabelled
