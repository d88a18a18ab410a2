"""Waits as columns, and those of calls that need what another rank sends: the longest of each call."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.ranks.collective_columns import NOBODY
from strobe.ranks.messages import MessageEnds
from strobe.ranks.waits.message_calls import Calls
from strobe.tables.column_arrays import Bools, Columns, Ints

STATES = (
    *("late_sender", "wrong_order", "late_receiver", "wait_at_barrier", "barrier_completion", "wait_at_nxn"),
    *("nxn_completion", "late_broadcast", "early_reduce", "early_scan", "late_collective"),
    *("wait_at_fence", "late_post", "early_wait", "late_complete", "late_gpu", "late_stream"),
    *("late_host", "lock_contention", "thread_barrier", "condition_wait", "semaphore_wait", "thread_join"),
    *("idle_worker", "no_task"),
)
THREAD_STATES = STATES[STATES.index("lock_contention") :]
# Of late_sender and early_wait; and what a collective takes when all have come.
_NOT_FOR_ANOTHER = ("wrong_order", "late_complete", "barrier_completion", "nxn_completion")


@dataclass(frozen=True)
class Waits(Columns):
    """Waits, in no order. state: number in STATES. location, call_ns, call_path: of the call that waited, from call_ns.

    call_path: -1 unknown. cause: location that was waited for, its own in completions; cause_ns: when it came.
    clipped: whether it came after the call was over, so that clocks or the order are wrong. partial: whether somebody
    who took part is not in the trace. error_ns: by how much the two clocks may be off against each other. kernel:
    region of the work of a GPU that was waited for, -1 if it was none.
    """

    state: Ints
    location: Ints
    call_ns: Ints
    call_path: Ints
    wait_ns: Ints
    cause: Ints
    cause_ns: Ints
    clipped: Bools
    partial: Bools
    error_ns: Ints
    kernel: Ints

    @property
    def for_another(self) -> Bools:
        """Which ones are waits for somebody who came late, each counted once."""
        return ~np.isin(self.state, [STATES.index(name) for name in _NOT_FOR_ANOTHER])

    @property
    def for_gpu(self) -> Bools:
        """Which ones are waits in a process for the work of a GPU, or of a GPU for the host."""
        return np.isin(self.state, [STATES.index(name) for name in ("late_gpu", "late_stream", "late_host")])

    @property
    def uncertain(self) -> Bools:
        """Which ones are shorter than twice the error of the clocks."""
        return np.asarray(self.wait_ns < 2 * self.error_ns)


@dataclass(frozen=True)
class Side(Columns):
    """One end of matched messages: where, and its calls (see Calls)."""

    place: Ints
    asked_ns: Ints
    begin_ns: Ints
    end_ns: Ints
    call_path: Ints

    @classmethod
    def of(cls, ends: MessageEnds, calls: Calls, which: Ints) -> Side:
        """Return some of the ends with their calls."""
        own = calls.chosen(which)
        return cls(ends.place[which], own.asked_ns, own.begin_ns, own.end_ns, own.call_path)


def waits_of_calls(state: str, waiter: Side, other: Side, until: Ints, came: Ints) -> Waits:
    """Return waits of calls from their begin until `until`, without errors; the awaited came at `came`."""
    return Waits(
        state=np.full(len(waiter), STATES.index(state)),
        location=waiter.place,
        call_ns=waiter.begin_ns,
        call_path=waiter.call_path,
        wait_ns=until - waiter.begin_ns,
        cause=other.place,
        cause_ns=came,
        clipped=came > waiter.end_ns,
        partial=np.zeros(len(waiter), dtype=bool),
        error_ns=np.zeros(len(waiter), dtype=np.int64),
        kernel=np.full(len(waiter), -1),
    )


def longest_of_calls(waits: Waits) -> Ints:
    """Return the places of the waits that are the longest of their calls, in order of location and begin."""
    order = np.lexsort((waits.call_ns, waits.location))
    location, call, wait_ns = (each[order] for each in (waits.location, waits.call_ns, waits.wait_ns))
    first = (np.diff(location, prepend=-1) != 0) | (np.diff(call, prepend=NOBODY) != 0)
    of_call = np.cumsum(first) - 1
    longest_ns = np.maximum.reduceat(wait_ns, np.flatnonzero(first)) if len(order) else wait_ns
    (longest,) = np.nonzero(wait_ns == longest_ns[of_call])
    return np.asarray(order[longest[np.diff(of_call[longest], prepend=-1) != 0]])


def late_senders(sent: Side, received: Side, waits: Bools, state: str = "late_sender") -> tuple[Waits, Ints]:
    """Return the waits of calls that complete receives, in order of location and begin, and the message of each."""
    until = np.minimum(sent.asked_ns, received.end_ns)
    (at,) = np.nonzero(waits & (until > received.begin_ns))
    found = waits_of_calls(state, received.chosen(at), sent.chosen(at), until[at], sent.asked_ns[at])
    longest = longest_of_calls(found)
    return found.chosen(longest), at[longest]
