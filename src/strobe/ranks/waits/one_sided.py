"""Wait states of one-sided communication of MPI, by Scalasca (MPI_RMA.pattern): epochs, and who holds a lock.

E and L are the enter and the leave of a call. What a fence waits for is that of a collective.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from strobe.ranks.clock_errors import errors_between
from strobe.ranks.collective_columns import NOBODY
from strobe.ranks.messages import (
    EPOCHS,
    LOCKS,
    ONE_SIDED,
    MessageEnds,
    from_the_first,
    matched,
    message_ends,
    message_texts,
    numbered,
)
from strobe.ranks.waits.message_calls import calls_of
from strobe.ranks.waits.wait_columns import STATES, Side, Waits, late_senders, longest_of_calls, waits_of_calls
from strobe.tables.column_arrays import Bools, Ints
from strobe.trace.definition_rows import processes_of_locations
from strobe.trace.trace import Trace

_ALL = 1 << 31  # who a lock for all targets is sent to: no rank


def waits_of_windows(trace: Trace, may_wait: Bools) -> tuple[Waits, int]:
    """Return the waits for posts, completions and locks, and how many epochs were matched.

    may_wait: whether calls do, by call path.
    """
    ends = message_ends(trace, (*EPOCHS, *ONE_SIDED))
    if not len(ends):
        return Waits.joined(()), 0
    # Files have the time until an access is complete at its target, but what can wait is the call that asks for it.
    ends = replace(ends, pending_ns=np.where(ends.in_call_ns < 0, -1, ends.pending_ns))
    sides = Side.of(ends, calls_of(trace, ends), np.arange(len(ends)))
    known = (sides.call_path >= 0) & ends.blocking
    ends, sides = ends.chosen(known), sides.chosen(known)
    log = _Log(trace, ends, sides)
    post, start = log.pairs("post", "start")
    complete, wait = log.pairs("complete", "wait")
    lock, unlock = log.pairs(*LOCKS, "unlock")
    late = late_senders(sides.chosen(complete), sides.chosen(wait), may_wait[sides.call_path[wait]], "early_wait")
    late_complete = _late_complete(log, late[0], complete[late[1]])
    waits = Waits.joined([_late_posts(log, post, start), late[0], late_complete, _lock_contention(log, lock, unlock)])
    process = np.array(processes_of_locations(trace), dtype=np.int64)
    error = errors_between(trace, process[waits.location], process[waits.cause])
    return replace(waits, error_ns=error), len(start) + len(lock)


class _Log:
    """What begins and ends epochs, and accesses, all with their calls. `pair`: number of origin, target and window."""

    def __init__(self, trace: Trace, ends: MessageEnds, sides: Side) -> None:
        self.ends, self.sides = ends, sides
        self._texts, self._complete = message_texts(trace), not from_the_first(trace)
        by_target = self.of("get", "post", "start")  # their sender is the target
        origin, target = np.where(by_target, (ends.receiver, ends.sender), (ends.sender, ends.receiver))
        # Recordings of earlier versions lack the windows of accesses: then those of a communicator count as one.
        known = (ends.tag[self.of(*ONE_SIDED)] >= 0).all()
        self.pair = numbered(origin, target, ends.communicator, ends.tag * known)

    def of(self, *kinds: str) -> Bools:
        """Return which ones are of some kinds."""
        return np.isin(self.ends.kind, [self._texts.number(kind) for kind in kinds])

    def pairs(self, *kinds: str) -> tuple[Ints, Ints]:
        """Return the places of what is sent and of its other end: the n-th of two ranks in a window are one epoch."""
        (own,) = np.nonzero(self.of(*kinds))
        ends = self.ends.chosen(own)
        if "unlock" in kinds:
            ends = replace(ends, receiver=np.where(ends.receiver < 0, _ALL, ends.receiver))
        sent, received = matched(ends, complete=self._complete)
        return own[sent], own[received]


def _late_posts(log: _Log, post: Ints, start: Ints) -> Waits:
    """Return the waits of the calls of origins in which the posts came, from the start of their epoch on."""
    sides, came = log.sides, log.sides.begin_ns[post]
    (calls,) = np.nonzero(log.of("start", "complete", *ONE_SIDED))
    at = _last_before(log.pair[calls], sides.begin_ns[calls], log.pair[post], came)
    call = np.append(calls, -1)[at]
    waits = (at >= 0) & (came <= sides.end_ns[call]) & (sides.begin_ns[call] >= sides.begin_ns[start])
    came = came[waits]
    found = waits_of_calls("late_post", sides.chosen(call[waits]), sides.chosen(post[waits]), came, came)
    return found.chosen(longest_of_calls(found))


def _late_complete(log: _Log, early: Waits, complete: Ints) -> Waits:
    """Return the parts of early waits after the last access of the origin that was awaited."""
    sides = log.sides
    (access,) = np.nonzero(log.of(*ONE_SIDED))
    at = _last_before(log.pair[access], sides.begin_ns[access], log.pair[complete], sides.begin_ns[complete])
    last_ns = np.append(sides.end_ns[access], NOBODY)[at]
    wait_ns = early.wait_ns - np.maximum(0, last_ns - early.call_ns)
    state = np.full(len(early), STATES.index("late_complete"))
    return replace(early, state=state, wait_ns=wait_ns).chosen(wait_ns > 0)


def _last_before(group: Ints, time: Ints, wanted: Ints, until: Ints) -> Ints:
    """Return the place of the last entry of each wanted group before a moment, -1 without one."""
    order = np.lexsort((np.arange(len(until) + len(time)), np.append(until, time), np.append(wanted, group)))
    entry = order - len(until)  # the others are questions, which come first at equal times
    last = np.maximum.accumulate(np.where(entry >= 0, np.arange(len(order)), -1))
    found = np.empty(len(until), dtype=np.int64)
    found[order[entry < 0]] = np.where(last >= 0, entry[last], -1)[entry < 0]
    return np.where(np.append(group, -1)[found] == wanted, found, -1)


def _lock_contention(log: _Log, lock: Ints, unlock: Ints) -> Waits:
    """Return the waits for locks that others hold; of one for all targets the longest."""
    target, exclusive = log.ends.receiver[lock], log.of("lock")[lock]
    window = numbered(log.ends.communicator[lock], log.ends.tag[lock])
    parts = [Waits.joined(())]
    for each in np.unique(window[exclusive]).tolist():
        of_window = window == each
        for one in np.unique(target[of_window & exclusive]).tolist():
            (at,) = np.nonzero(of_window & np.isin(target, (one, -1)))
            requests, until = log.sides.chosen(lock[at]), log.sides.end_ns[unlock[at]]
            for wants in (True, False):
                parts.append(_contention(requests, until, exclusive[at] == wants, wants | exclusive[at]))
    found = Waits.joined(parts)
    return found.chosen(longest_of_calls(found))


def _contention(requests: Side, until: Ints, waits: Bools, excludes: Bools) -> Waits:
    """Return how long some requests of a lock wait for those that have it: from the end of their request to `until`."""
    (holder,) = np.nonzero(excludes)
    holder = holder[np.argsort(requests.end_ns[holder], kind="stable")]
    begin, end = requests.end_ns[holder], until[holder]
    reach = np.maximum.accumulate(end)
    held = np.cumsum(np.maximum(0, end - np.maximum(begin, np.append(NOBODY, reach)[:-1])))
    last = np.maximum.accumulate(np.where(end == reach, np.arange(len(end)), 0))  # who has it longest

    def held_until(time: Ints) -> tuple[Ints, Ints]:
        at = np.searchsorted(begin, time) - 1
        return np.where(at < 0, 0, np.append(held, 0)[at] - np.maximum(0, np.append(reach, NOBODY)[at] - time)), at

    waiter = requests.chosen(waits)
    (before, _), (whole, at) = held_until(waiter.begin_ns), held_until(waiter.end_ns)
    (which,) = np.nonzero(whole > before)
    waiter, other = waiter.chosen(which), holder[last[at[which]]]
    wait_ns, released = (whole - before)[which], until[other]
    found = waits_of_calls("lock_contention", waiter, requests.chosen(other), waiter.begin_ns + wait_ns, released)
    return replace(found, clipped=np.zeros(len(found), dtype=bool))  # an unlock ends after others may have the lock
