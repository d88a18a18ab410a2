"""Barriers that make ranks wait and that no result needs: what a step would gain without one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.ranks.collectives import collectives
from strobe.ranks.ideal_network import ideal_elapsed_ns
from strobe.ranks.messages import EPOCHS, ONE_SIDED, message_ends
from strobe.ranks.rank_times import rank_times
from strobe.ranks.waits.wait_columns import STATES, Waits
from strobe.tables.column_arrays import Ints
from strobe.trace.trace import Trace

LEAST_SHARE = 0.05  # of the steps: less is not worth a line
_LEAST_PART = 0.5  # of the waits at the barrier: less would mostly move to the next call
_LEAST_OTHERS = 2  # other synchronisations of its ranks: with fewer, the barrier may be what keeps them together


@dataclass(frozen=True)
class NeedlessBarrier:
    """A barrier, and the call of the same communicator that most often comes after it, or else before it.

    call_path, neighbour: call paths. after: whether the neighbour comes after it. waits: at the barrier. gain_ns: by
    how much the steps of the run together would be shorter without it, on a network that transfers everything at once.
    """

    call_path: int
    neighbour: int
    after: bool
    waits: Waits
    gain_ns: float


def needless_barrier(trace: Trace, waits: Waits, duration_ns: float, ranks: int) -> NeedlessBarrier | None:
    """Return the barrier that costs most and that ranks need not wait at, or None.

    waits: those in steps. duration_ns: of all steps of all ranks together. None, too, with one-sided communication,
    which barriers may order, and where the barrier is all that synchronises its communicator.
    """
    at_barrier = waits.chosen(waits.state == STATES.index("wait_at_barrier"))
    if at_barrier.wait_ns.sum() < LEAST_SHARE * duration_ns or len(message_ends(trace, _ORDERED)):
        return None
    paths, which = np.unique(at_barrier.call_path, return_inverse=True)
    path = int(paths[np.bincount(which, at_barrier.wait_ns).argmax()])
    at_barrier = at_barrier.chosen(at_barrier.call_path == path)
    met = collectives(trace)
    (barriers,) = np.nonzero(met.of_kinds(("barrier",)) & (met.call_path == path))
    # The same collective may have another path on another rank.
    (barriers,) = np.nonzero(np.isin(met.collective, met.collective[barriers]) & (met.collective >= 0))
    found = _neighbour(trace, barriers)
    if found is None:
        return None
    times = rank_times(trace, "run")
    with_it, without = (
        float(ideal_elapsed_ns(trace, times.stretches, 1, without=each)[0]) for each in (None, barriers)
    )
    gain = with_it - without
    if not gain >= max(LEAST_SHARE * with_it, _LEAST_PART * at_barrier.wait_ns.sum() / ranks):
        return None  # also where it is not known
    return NeedlessBarrier(path, *found, at_barrier, gain)


_ORDERED = (*ONE_SIDED, *EPOCHS)


def _neighbour(trace: Trace, barriers: Ints) -> tuple[int, bool] | None:
    """Return the call path of the collective that mostly follows barriers, or comes before them; and whether after."""
    met = collectives(trace)
    names = list(dict.fromkeys(group for _, group in met.lines))
    groups = np.array([names.index(group) for _, group in met.lines], dtype=np.int64)[met.line]
    order = np.lexsort((met.start_ns, groups, met.party))
    is_barrier = np.zeros(len(met), dtype=bool)
    is_barrier[barriers] = True
    same = np.diff(met.party[order], append=-1) | np.diff(groups[order], append=-1)
    (at,) = np.nonzero((same == 0) & (is_barrier[order] ^ np.append(is_barrier[order][1:], False)))
    for after in (True, False):
        first = at[is_barrier[order][at] == after]
        paths, count = np.unique(met.call_path[order[first + after]], return_counts=True)
        if len(paths) and count.max() >= _LEAST_OTHERS * len(met.parties):
            return int(paths[count.argmax()]), after
    return None
