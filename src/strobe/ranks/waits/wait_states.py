"""Wait states of messages and collectives: Scalasca's (MPI.pattern), and those of calls and kernels beyond MPI's.

E and L are the enter and the leave of a call, or start and end of a kernel that spins. No wait is longer than its call.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from strobe.ranks.clock_errors import errors_between, on_one_host
from strobe.ranks.collectives import ALL_NEED_ALL, FROM_ROOT, NOBODY, PREFIXES, TO_ROOT, Collectives, collectives
from strobe.ranks.messages import MessageEnds, from_the_first, matched, message_ends
from strobe.ranks.waits.message_calls import NEED_RECEIVER, Calls, Spans, calls_of, functions_named, spans_of
from strobe.sums.groups import Texts
from strobe.tables.column_arrays import Bools, Columns, Ints
from strobe.trace.definition_rows import location_rows, processes_of_locations, ranks_of, regions_where
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

STATES = (
    *("late_sender", "wrong_order", "late_receiver", "wait_at_barrier", "barrier_completion", "wait_at_nxn"),
    *("nxn_completion", "late_broadcast", "early_reduce", "early_scan", "late_collective"),
)
# Of late_sender; and what a collective takes when all have come.
_NOT_FOR_ANOTHER = ("wrong_order", "barrier_completion", "nxn_completion")
# Calls that look and do not wait.
_TESTS = re.compile(r"p?mpi_(test|request_get_status|i?m?probe)", re.IGNORECASE)
_PROBES = re.compile(r"p?mpi_m?probe", re.IGNORECASE)
_REMEMBERED = 100  # late senders of a location that a later message can show to be in wrong order, as Scalasca has it


@dataclass(frozen=True)
class Waits(Columns):
    """Waits, in no order. state: number in STATES. location, call_ns, call_path: of the call that waited, from call_ns.

    call_path: -1 unknown. cause: location that was waited for, its own in completions; cause_ns: when it came.
    clipped: whether it came after the call was over, so that clocks or the order are wrong. partial: whether somebody
    who took part is not in the trace. error_ns: by how much the two clocks may be off against each other.
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

    @property
    def for_another(self) -> Bools:
        """Which ones are waits for somebody who came late, each counted once."""
        return ~np.isin(self.state, [STATES.index(name) for name in _NOT_FOR_ANOTHER])

    @property
    def uncertain(self) -> Bools:
        """Which ones are shorter than twice the error of the clocks."""
        return np.asarray(self.wait_ns < 2 * self.error_ns)


@dataclass(frozen=True)
class Found:
    """All waits of a trace, and what they are of: messages and collectives that were matched, and that were not."""

    waits: Waits
    messages: int
    unmatched_messages: int
    collectives: int
    unmatched_collectives: int


@cached_on_trace
def wait_states(trace: Trace) -> Found:
    """Return the waits of a trace; computed once per open trace."""
    found = collectives(trace)
    of_messages, messages, unmatched = _of_messages(trace)
    of_collectives = _of_collectives(trace, found)
    known = np.unique(found.collective[found.collective >= 0])
    return Found(
        Waits.joined([of_messages, of_collectives]), messages, unmatched, len(known), int((found.collective < 0).sum())
    )


def _of_messages(trace: Trace) -> tuple[Waits, int, int]:
    """Return the waits of messages, how many were matched, and how many ends have no partner."""
    ranks = ranks_of(trace)
    rows = location_rows(trace)
    ends = message_ends(trace, [(row.location, ranks[row.process]) for row in rows], Texts())
    send, receive = matched(ends, complete=not from_the_first(trace))
    calls = calls_of(trace, ends, [row.location for row in rows])
    sent, received = _Side.of(ends, calls, send), _Side.of(ends, calls, receive)
    known = (sent.call_path >= 0) & (received.call_path >= 0)
    sent, received = sent.chosen(known), received.chosen(known)
    late = _late_senders(sent, received, ~functions_named(trace, _TESTS)[received.call_path])
    parts = [
        late[0],
        _wrong_order(*late, sent, received),
        _late_receivers(sent, received, functions_named(trace, NEED_RECEIVER)[sent.call_path], late[0]),
        *_probes(trace, sent, received),
    ]
    waits = Waits.joined(parts)
    process = np.array(processes_of_locations(trace), dtype=np.int64)
    error = errors_between(trace, process[waits.location], process[waits.cause])
    return replace(waits, error_ns=error), len(send), len(ends) - 2 * len(send)


@dataclass(frozen=True)
class _Side(Columns):
    """One end of matched messages: where, and its calls (see Calls)."""

    place: Ints
    asked_ns: Ints
    begin_ns: Ints
    end_ns: Ints
    call_path: Ints

    @classmethod
    def of(cls, ends: MessageEnds, calls: Calls, which: Ints) -> _Side:
        own = calls.chosen(which)
        return cls(ends.place[which], own.asked_ns, own.begin_ns, own.end_ns, own.call_path)


def _waits(state: str, waiter: _Side, other: _Side, until: Ints, came: Ints) -> Waits:
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
    )


def _longest_of_calls(waits: Waits) -> Ints:
    """Return the places of the waits that are the longest of their calls, in order of location and begin."""
    order = np.lexsort((-waits.wait_ns, waits.call_ns, waits.location))
    location, call = waits.location[order], waits.call_ns[order]
    first = (np.diff(location, prepend=-1) != 0) | (np.diff(call, prepend=NOBODY) != 0)
    return np.asarray(order[first])


def _late_senders(sent: _Side, received: _Side, waits: Bools) -> tuple[Waits, Ints]:
    """Return the waits of calls that complete receives, in order of location and begin, and the message of each."""
    until = np.minimum(sent.asked_ns, received.end_ns)
    (at,) = np.nonzero(waits & (until > received.begin_ns))
    found = _waits("late_sender", received.chosen(at), sent.chosen(at), until[at], sent.asked_ns[at])
    longest = _longest_of_calls(found)
    return found.chosen(longest), at[longest]


def _wrong_order(late: Waits, message: Ints, sent: _Side, received: _Side) -> Waits:
    """Return which of the late senders sent after a message that was received later, in another call."""
    wrong = np.zeros(len(late), dtype=bool)
    for place in np.unique(late.location).tolist():
        (own,) = np.nonzero(late.location == place)
        (all_of,) = np.nonzero(received.place == place)
        all_of = all_of[np.argsort(received.begin_ns[all_of], kind="stable")]
        begins, was_sent = received.begin_ns[all_of], sent.asked_ns[all_of]
        first = np.searchsorted(begins, late.call_ns[own], side="right")
        forgotten = np.append(late.call_ns[own], np.full(_REMEMBERED, np.iinfo(np.int64).max))[_REMEMBERED:]
        last = np.searchsorted(begins, forgotten[: len(own)], side="right")
        wrong[own] = _least(was_sent, first, last) < sent.asked_ns[message[own]]
    return Waits(**{**vars(late.chosen(wrong)), "state": np.full(int(wrong.sum()), STATES.index("wrong_order"))})


def _least(values: Ints, first: Ints, last: Ints) -> Ints:
    """Return the least value of each range [first, last); the largest number where it is empty."""
    nothing = np.iinfo(np.int64).max
    # By powers of two: a range is covered by two that overlap.
    levels = [np.append(values, nothing)]
    while 2 ** len(levels) <= len(values):
        half = 2 ** (len(levels) - 1)
        before = levels[-1]
        levels.append(np.minimum(before, np.append(before[half:], np.full(half, nothing))))
    out = np.full(len(first), nothing, dtype=np.int64)
    length = last - first
    for level, least in enumerate(levels):
        (at,) = np.nonzero((length >= 2**level) & (length < 2 ** (level + 1)))
        out[at] = np.minimum(least[first[at]], least[last[at] - 2**level])
    return out


def _late_receivers(sent: _Side, received: _Side, needs: Bools, late: Waits) -> Waits:
    """Return the waits of calls that complete sends, but for those that wait for a sender, too."""
    came = received.asked_ns
    (at,) = np.nonzero(needs & (sent.end_ns > came) & (came > sent.begin_ns))
    found = _waits("late_receiver", sent.chosen(at), received.chosen(at), came[at], came[at])
    found = found.chosen(_longest_of_calls(found))
    taken = set(zip(late.location.tolist(), late.call_ns.tolist(), strict=True))
    calls = zip(found.location.tolist(), found.call_ns.tolist(), strict=True)
    return found.chosen(np.array([call not in taken for call in calls], dtype=bool))


def _probes(trace: Trace, sent: _Side, received: _Side) -> list[Waits]:
    """Return the waits of blocking probes for the message of the next receive; unknown where calls were folded."""
    probes = regions_where(trace, lambda region: region.paradigm == "mpi" and bool(_PROBES.match(region.name)))
    parts = []
    for place in np.unique(received.place).tolist() if probes.any() else ():
        if trace.home(place).process in trace.folded:
            continue
        spans: Spans = spans_of(trace, place, probes)
        (own,) = np.nonzero(received.place == place)
        own = own[np.argsort(received.asked_ns[own], kind="stable")]
        at = np.searchsorted(received.asked_ns[own], spans.end_ns)
        spans, message = spans.chosen(at < len(own)), own[at[at < len(own)]]
        waiter = _Side(np.full(len(spans), place), spans.start_ns, spans.start_ns, spans.end_ns, spans.call_path)
        came = sent.asked_ns[message]
        found = _waits("late_sender", waiter, sent.chosen(message), np.minimum(came, spans.end_ns), came)
        parts.append(found.chosen(found.wait_ns > 0))
    return parts


def _of_collectives(trace: Trace, found: Collectives) -> Waits:
    """Return the waits in collectives; calls that hand over to a GPU do not wait."""
    waits = ~np.array([party.hands_over for party in found.parties], dtype=bool)[found.party]
    at = np.flatnonzero((found.collective >= 0) & waits & ~functions_named(trace, _TESTS)[found.call_path])
    at = at[np.argsort(found.collective[at], kind="stable")]
    begin = np.flatnonzero(np.diff(found.collective[at], prepend=-1))
    if not len(begin):
        return Waits.joined(())
    count = np.diff(begin, append=len(at))
    awaited_ns, who = found.awaited()
    awaited, cause, blocking = awaited_ns[at], found.location[who[at]], found.blocking[at]
    start, end = found.call_ns[at], found.end_ns[at]
    process = np.array([party.process for party in found.parties], dtype=np.int64)
    party, other = found.party[at], found.party[who[at]]
    apart = ~on_one_host(trace, process[party], process[other])
    error = np.where(apart, found.clock_error_ns[party] + found.clock_error_ns[other], 0)
    partial = (found.size[at] > 0) & (np.repeat(count, count) < found.size[at])

    def waits_of(state: str, of: Bools, until: Ints, since: Ints, cause: Ints, came: Ints) -> Waits:
        length = until - since
        chosen = of & (length > 0)
        which = at[chosen]
        return Waits(
            state=np.full(len(which), STATES.index(state)),
            location=found.location[which],
            call_ns=found.call_ns[which],
            call_path=found.call_path[which],
            wait_ns=length[chosen],
            cause=cause[chosen],
            cause_ns=came[chosen],
            clipped=(came > end)[chosen],
            partial=partial[chosen],
            error_ns=error[chosen],
        )

    barrier = np.array([kind == "barrier" for kind, _ in found.lines], dtype=bool)[found.line[at]]
    parts = []
    kinds = (
        ("wait_at_barrier", barrier, "barrier_completion"),
        ("wait_at_nxn", found.of_kinds(ALL_NEED_ALL)[at] & ~barrier, "nxn_completion"),
        ("late_broadcast", found.of_kinds(FROM_ROOT)[at], ""),
        ("early_reduce", found.of_kinds(TO_ROOT)[at], ""),
        ("early_scan", found.of_kinds(PREFIXES)[at], ""),
    )
    needs = awaited != NOBODY
    for state, of_kind, completion in kinds:
        parts.append(waits_of(state, of_kind & blocking & needs, np.minimum(awaited, end), start, cause, awaited))
        if completion:
            first = np.repeat(np.minimum.reduceat(end, begin), count)
            since = np.maximum(first, np.minimum(awaited, end))
            own = found.location[at]
            parts.append(waits_of(completion, of_kind & blocking & needs, end, since, own, awaited))
    late = waits_of("late_collective", needs & ~blocking, np.minimum(awaited, end), start, cause, awaited)
    return Waits.joined([*parts, late.chosen(_longest_of_calls(late))])
