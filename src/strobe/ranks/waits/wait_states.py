"""Wait states of messages, collectives (Scalasca's, MPI.pattern), and of calls, kernels and threads beyond MPI's.

E and L are the enter and the leave of a call, or start and end of a kernel that spins. No wait is longer than its call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import pairwise

import numpy as np

from strobe.native import core
from strobe.ranks.clock_errors import errors_between, on_one_host
from strobe.ranks.collective_columns import (
    ALL_NEED_ALL,
    AMONG_NEIGHBOURS,
    FROM_ROOT,
    NOBODY,
    PREFIXES,
    TO_ROOT,
    Collectives,
)
from strobe.ranks.collectives import collective_parts
from strobe.ranks.messages import message_ends
from strobe.ranks.waits.gpu_waits import gpu_waits
from strobe.ranks.waits.message_calls import (
    NEED_RECEIVER,
    PROBES,
    Messages,
    Spans,
    functions_named,
    message_parts,
    messages,
    spans_of,
)
from strobe.ranks.waits.one_sided import waits_of_windows
from strobe.ranks.waits.thread_waits import thread_waits
from strobe.ranks.waits.wait_columns import (
    STATES,
    THREAD_STATES,
    Side,
    Waits,
    late_senders,
    longest_of_calls,
    waits_of_calls,
)
from strobe.tables.column_arrays import Bools, Ints, place_of, rows_by
from strobe.trace.definition_rows import processes_of_locations, regions_where
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# Calls that look and do not wait.
_TESTS = re.compile(r"p?mpi_(test|win_test|request_get_status|i?m?probe)", re.IGNORECASE)
_FENCES = re.compile(r"p?mpi_win_fence", re.IGNORECASE)
_REMEMBERED = 100  # late senders of a location that a later message can show to be in wrong order, as Scalasca has it


@dataclass(frozen=True)
class Found:
    """Waits of a trace or a part of it, and of what: messages and collectives that were matched, and that were not.

    epochs: of one-sided communication, each from its lock, or its post and start. threads: so many of the waits, the
    last ones, are the rows of `thread_waits`, each of which stands for several.
    """

    waits: Waits
    epochs: int
    messages: int
    unmatched_messages: int
    collectives: int
    unmatched_collectives: int
    threads: int = 0


@dataclass(frozen=True)
class _LateSenders(Waits):
    """Waits for late senders. sent_ns: when the message was asked for; wrong: known to be in wrong order."""

    sent_ns: Ints
    wrong: Bools


@cached_on_trace
def wait_states(trace: Trace) -> Found:
    """Return the waits of a trace; computed once per open trace."""
    parts = [*wait_parts(trace, whole=True)]
    counts = ([getattr(part, each.name) for part in parts] for each in fields(Found)[1:])
    return Found(Waits.joined(part.waits for part in parts), *map(sum, counts))


def wait_parts(trace: Trace, *, whole: bool = False) -> Iterator[Found]:
    """Yield the waits of a trace in parts that fit into memory, each wait in one. Raises NeedsWholeLogError.

    Only a trace whose logs are large has several parts of messages or collectives, and only unless it is read `whole`.
    """
    for found in collective_parts(trace, whole=whole):
        matched = found.collective[found.collective >= 0]
        count = int(np.count_nonzero(np.bincount(matched)))
        of_part = Found(_of_collectives(trace, found), 0, 0, 0, count, len(found) - len(matched))
        del found, matched
        yield of_part
        del of_part
    for _, of_messages in waits_of_messages(trace, whole=whole):
        yield of_messages
        del _, of_messages
    of_windows, epochs = waits_of_windows(trace, ~functions_named(trace, _TESTS))
    threads = _of_threads(trace)
    yield Found(Waits.joined([of_windows, gpu_waits(trace), threads]), epochs, 0, 0, 0, 0, len(threads))


def _of_threads(trace: Trace) -> Waits:
    """Return the waits of threads of one process for one another; they have one clock."""
    waits = thread_waits(trace).waits
    unknown, nothing = np.zeros(len(waits), dtype=bool), np.zeros(len(waits), dtype=np.int64)
    return Waits(
        state=waits.state + STATES.index(THREAD_STATES[0]),
        location=waits.location,
        call_ns=waits.begin_ns,
        call_path=nothing - 1,
        wait_ns=waits.wait_ns,
        cause=np.where(waits.cause < 0, waits.location, waits.cause),
        cause_ns=waits.begin_ns + waits.wait_ns,
        clipped=unknown,
        partial=unknown,
        error_ns=nothing,
        kernel=nothing - 1,
    )


def waits_of_messages(trace: Trace, *, whole: bool) -> Iterator[tuple[Messages, Found]]:
    """Yield the messages of a trace in parts (see message_parts), and their waits."""
    before = _LateSenders.joined(())
    for found in message_parts(trace, whole=whole):
        waits, before = _waits_of_part(trace, found, before)
        yield found, Found(waits, 0, int(found.new.sum()), len(found.alone), 0, 0)
        del found, waits


def _waits_of_part(trace: Trace, found: Messages, before: _LateSenders) -> tuple[Waits, _LateSenders]:
    """Return the waits of some messages, and which late senders may be in wrong order by later ones; see there."""
    sent, received, of_send, of_receive = _sides(found)
    (late, message), (late_receivers, _) = _late(trace, sent, received, of_send, of_receive)
    senders = _LateSenders(**vars(late), sent_ns=sent.asked_ns[message], wrong=np.zeros(len(late), dtype=bool))
    wrong, before = _wrong_order(_LateSenders.joined([before, senders]), sent, received, of_receive)
    of_probes = [waits for waits, *_ in _probes(trace, sent, received)]
    waits = Waits.joined([late, wrong, late_receivers, *of_probes])
    process = np.array(processes_of_locations(trace), dtype=np.int64)
    error = errors_between(trace, process[waits.location], process[waits.cause])
    return replace(waits, error_ns=error), before


def awaited_messages(trace: Trace) -> tuple[Side, Side, list[tuple[Side, Side]]]:
    """Return sends and receives of all messages; and of those that a call waited for, who was late and who waited.

    Who waited is the call that did: a receive, a send, or a probe.
    """
    sent, received, *judged = _sides(messages(trace))
    (_, late_sender), (_, late_receiver) = _late(trace, sent, received, *judged)
    awaited = [(sent.chosen(late_sender), received.chosen(late_sender))]
    awaited += [(received.chosen(late_receiver), sent.chosen(late_receiver))]
    awaited += [(sent.chosen(message), probe) for _, message, probe in _probes(trace, sent, received)]
    return sent, received, awaited


def _late(
    trace: Trace, sent: Side, received: Side, of_send: Bools, of_receive: Bools
) -> tuple[tuple[Waits, Ints], tuple[Waits, Ints]]:
    """Return the waits for senders and for receivers, each with the message; of_...: whose calls are judged."""
    late = late_senders(sent, received, of_receive & ~functions_named(trace, _TESTS)[received.call_path])
    needs = of_send & functions_named(trace, NEED_RECEIVER)[sent.call_path]
    return late, _late_receivers(sent, received, needs, late[0])


def _sides(found: Messages) -> tuple[Side, Side, Bools, Bools]:
    """Return sends and receives of the messages whose calls are known, and which of these are judged."""
    path = found.calls.call_path
    known = (path[found.send] >= 0) & (path[found.receive] >= 0)
    send, receive = (which if known.all() else which[known] for which in (found.send, found.receive))
    sent, received = (Side.of(found.ends, found.calls, which) for which in (send, receive))
    return sent, received, found.judged[send], found.judged[receive]


def _wrong_order(late: _LateSenders, sent: Side, received: Side, of_receive: Bools) -> tuple[Waits, _LateSenders]:
    """Return which of the late senders sent after a message that was received later, in another call.

    And the last ones of each location, to which this may still happen: in `late` they come before those of a new part.
    """
    size = int(max(late.location.max(initial=0), received.place.max(initial=0))) + 1
    late = late.chosen(core.in_order_of(late.location, size))
    wrong = late.wrong.astype(bool)
    (judged,) = np.nonzero(of_receive)
    order = judged[core.in_order_of(received.place[judged], size)]
    bounds = (np.searchsorted(each, np.arange(size + 1)).tolist() for each in (late.location, received.place[order]))
    remembered = np.zeros(len(late), dtype=bool)
    for (first, end), (begin, until) in zip(*map(pairwise, bounds), strict=True):
        if first == end:
            continue
        remembered[max(first, end - _REMEMBERED) : end] = True
        own, all_of = slice(first, end), order[begin:until]
        all_of = all_of[np.argsort(received.begin_ns[all_of], kind="stable")]
        begins, was_sent = received.begin_ns[all_of], sent.asked_ns[all_of]
        later = np.searchsorted(begins, late.call_ns[own], side="right")
        forgotten = np.append(late.call_ns[own], np.full(_REMEMBERED, np.iinfo(np.int64).max))[_REMEMBERED:]
        last = np.searchsorted(begins, forgotten[: end - first], side="right")
        wrong[own] |= core.least_in_ranges(was_sent, later, last) < late.sent_ns[own]
    found = late.chosen(wrong & ~late.wrong.astype(bool))
    waits = Waits(**{each.name: getattr(found, each.name) for each in fields(Waits)})
    state = np.full(len(waits), STATES.index("wrong_order"))
    return replace(waits, state=state), replace(late, wrong=wrong).chosen(remembered)


def _late_receivers(sent: Side, received: Side, needs: Bools, late: Waits) -> tuple[Waits, Ints]:
    """Return the waits of calls that complete sends, but for those that wait for a sender, too; and their messages."""
    came = received.asked_ns
    (at,) = np.nonzero(needs & (sent.end_ns > came) & (came > sent.begin_ns))
    found = waits_of_calls("late_receiver", sent.chosen(at), received.chosen(at), came[at], came[at])
    longest = longest_of_calls(found)
    found = found.chosen(longest)
    own = ~_same_calls(found, late)
    return found.chosen(own), at[longest[own]]


def _same_calls(waits: Waits, others: Waits) -> Bools:
    """Return which waits are in a call of others; both are in order of location and begin."""
    found = np.zeros(len(waits), dtype=bool)
    locations = np.arange(int(waits.location.max(initial=-1)) + 2)
    bounds = (np.searchsorted(each.location, locations).tolist() for each in (waits, others))
    for own, of_others in zip(*map(pairwise, bounds), strict=True):
        calls = others.call_ns[slice(*of_others)]
        found[slice(*own)] = place_of(waits.call_ns[slice(*own)], calls) >= 0
    return found


def _probes(trace: Trace, sent: Side, received: Side) -> Iterator[tuple[Waits, Ints, Side]]:
    """Yield the waits of blocking probes for the message of the next receive, that message, and the probe itself.

    Recordings have them beside the messages. Of others they are spans, and unknown where these were folded.
    """
    logged = message_ends(trace, ("probe",))
    logged = logged.chosen((logged.in_call_ns >= 0) & (logged.call_path >= 0))
    probes = regions_where(trace, lambda region: region.paradigm == "mpi" and bool(PROBES.match(region.name)))
    of_places = dict(rows_by(logged.place))
    for place, own in rows_by(received.place) if probes.any() else ():
        if place in of_places:
            of_place = logged.chosen(of_places[place])
            spans = Spans(of_place.time_ns - of_place.in_call_ns, of_place.time_ns, of_place.call_path)
        elif trace.home(place).process in trace.folded:
            continue
        else:
            spans = spans_of(trace, place, probes)
        own = own[np.argsort(received.asked_ns[own], kind="stable")]
        at = np.searchsorted(received.asked_ns[own], spans.end_ns)
        spans, message = spans.chosen(at < len(own)), own[at[at < len(own)]]
        waiter = Side(np.full(len(spans), place), spans.start_ns, spans.start_ns, spans.end_ns, spans.call_path)
        came = sent.asked_ns[message]
        found = waits_of_calls("late_sender", waiter, sent.chosen(message), np.minimum(came, spans.end_ns), came)
        waits = found.wait_ns > 0
        yield found.chosen(waits), message[waits], waiter.chosen(waits)


def _of_collectives(trace: Trace, found: Collectives) -> Waits:
    """Return the waits in collectives; calls that hand over to a GPU do not wait."""
    waits = ~np.array([party.hands_over for party in found.parties], dtype=bool)[found.party]
    (at,) = np.nonzero(waits & (found.collective >= 0) & ~functions_named(trace, _TESTS)[found.call_path])
    if not len(at):
        return Waits.joined(())
    collective = found.collective[at]
    awaited_ns, who = found.awaited()
    awaited, cause, blocking = awaited_ns[at], found.location[who[at]], found.blocking[at]
    start, end = found.call_ns[at], found.end_ns[at]
    process = np.array([party.process for party in found.parties], dtype=np.int64)
    party, other = found.party[at], found.party[who[at]]
    apart = ~on_one_host(trace, process[party], process[other])
    error = np.where(apart, found.clock_error_ns[party] + found.clock_error_ns[other], 0)
    partial = (found.size[at] > 0) & (np.bincount(collective)[collective] < found.size[at])
    first_left = np.full(int(collective.max()) + 1, -NOBODY)
    core.least_at(first_left, collective, end)

    def waits_of(state: str, of: Bools, until: Ints, since: Ints, cause: Ints, came: Ints) -> Waits:
        length = until - since
        (chosen,) = np.nonzero(of & (length > 0))
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
            kernel=np.full(len(which), -1),
        )

    # In OTF2 a fence is a barrier of the window's ranks.
    fence = found.of_kinds(("fence",))[at] | functions_named(trace, _FENCES)[found.call_path[at]]
    barrier = found.of_kinds(("barrier",))[at] & ~fence
    parts = []
    kinds = (
        ("wait_at_barrier", barrier, "barrier_completion"),
        ("wait_at_fence", fence, ""),
        ("wait_at_nxn", found.of_kinds((*ALL_NEED_ALL, *AMONG_NEIGHBOURS))[at] & ~barrier & ~fence, "nxn_completion"),
        ("late_broadcast", found.of_kinds(FROM_ROOT)[at], ""),
        ("early_reduce", found.of_kinds(TO_ROOT)[at], ""),
        ("early_scan", found.of_kinds(PREFIXES)[at], ""),
    )
    of_neighbours, left = found.of_kinds(AMONG_NEIGHBOURS)[at], found.first_left()[at]
    needs = awaited != NOBODY
    for state, of_kind, completion in kinds:
        if not of_kind.any():
            continue
        parts.append(waits_of(state, of_kind & blocking & needs, np.minimum(awaited, end), start, cause, awaited))
        if completion:
            first = np.where(of_neighbours, left, first_left[collective])
            since = np.maximum(first, np.minimum(awaited, end))
            own = found.location[at]
            parts.append(waits_of(completion, of_kind & blocking & needs, end, since, own, awaited))
    late = waits_of("late_collective", needs & ~blocking, np.minimum(awaited, end), start, cause, awaited)
    return Waits.joined([*parts, late.chosen(longest_of_calls(late))])
