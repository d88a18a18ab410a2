"""The calls that ask for messages and complete them: when each began and ended, and what it was."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import numpy as np

from strobe.native import core
from strobe.ranks.messages import MessageEnds, from_the_first, matched, messages_in
from strobe.sums.side_columns import WHOLE, NeedsWholeLogError, Part, parts_of
from strobe.tables.column_arrays import Bools, Columns, Ints, rows_by
from strobe.trace.definition_rows import location_rows, ranks_of, region_rows, regions_where
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# Sends that may need their receiver: not those with a buffer or a receiver that is ready, nor both ways at once.
NEED_RECEIVER = re.compile(r"(p?mpi_(s?send|wait(all|any|some)?)_*|gloo:wait)$", re.IGNORECASE)
PROBES = re.compile(r"p?mpi_m?probe", re.IGNORECASE)
# Rows of a location that wait for the next part at least: what comes later may have been asked for before them.
_HELD_BACK = 100
_FIRST, _LAST = -(2**62), 2**62  # before and after every moment
_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")


@dataclass(frozen=True)
class Calls(Columns):
    """By end of a message: the call that asked for it began at asked_ns; the one that completes it runs from begin_ns.

    end_ns: when that one ends. call_path: of it, -1 unknown, and then nothing of the call is known.
    """

    asked_ns: Ints
    begin_ns: Ints
    end_ns: Ints
    call_path: Ints


@dataclass(frozen=True)
class Spans(Columns):
    """Spans of calls of one location, in order of start."""

    start_ns: Ints
    end_ns: Ints
    call_path: Ints


def functions_named(trace: Trace, wanted: re.Pattern[str]) -> Bools:
    """Return by call path, and False at the end for an unknown one, whether its function has such a name."""
    by_region = np.array([bool(wanted.match(region.name)) for region in region_rows(trace)] + [False])
    return np.asarray(np.append(by_region[np.array(trace.definitions.path_region, dtype=np.int64)], False))


@dataclass(frozen=True)
class Messages:
    """Sends and receives of a trace, or a part of it, with their calls, and the places of those that belong together.

    judged: by end, whether its call is to be judged: all its ends are there, and it has been in no part before. new: by
    pair, whether no part before has it. alone: the places of ends that have no partner in any part.
    """

    ends: MessageEnds
    calls: Calls
    send: Ints
    receive: Ints
    judged: Bools
    new: Bools
    alone: Ints


@cached_on_trace
def messages(trace: Trace) -> Messages:
    """Return the messages of a trace, in order of sender, receiver, communicator, tag and time."""
    return next(_messages_of(trace, [WHOLE]))


def message_parts(trace: Trace, *, whole: bool) -> Iterator[Messages]:
    """Yield the messages of a trace in parts that fit into memory; as one where rows were lost or calls probe.

    Calls of a location are judged in their order, when all messages of these and of those before have both ends. What
    is not judged goes to the next part, with its other end. Raises NeedsWholeLogError if messages overtake each
    other by more rows than are held back.
    """
    probes = regions_where(trace, lambda region: region.paradigm == "mpi" and bool(PROBES.match(region.name)))
    count = 1 if whole or probes.any() or not from_the_first(trace) else parts_of(trace, "messages")
    return _messages_of(trace, [(number, count) for number in range(count)]) if count > 1 else iter([messages(trace)])


def _messages_of(trace: Trace, parts: list[Part]) -> Iterator[Messages]:
    complete, locations = not from_the_first(trace), len(location_rows(trace))
    in_trace = np.array([rank for rank in ranks_of(trace) if rank is not None], dtype=np.int64)
    held, kept, calls_of_kept = MessageEnds.joined(()), MessageEnds.joined(()), Calls.joined(())
    partner_of_kept = np.zeros(0, dtype=np.int64)
    judged_ns = np.full(locations, _FIRST)  # by location: calls that began before have been judged
    for part in parts:
        is_last = part == parts[-1]
        read = MessageEnds.joined([held, messages_in(trace, part)])
        if (np.diff(read.place) < 0).any():
            read = read.chosen(core.in_order_of(read.place, locations))
        calls, until_ns = calls_of(trace, read), np.full(locations, _LAST if is_last else _FIRST)
        later = _held_back(read, calls, locations) if not is_last else np.zeros(len(read), dtype=bool)
        held, held_ns, (now_read,) = read.chosen(later), calls.begin_ns[later], np.nonzero(~later)
        until_ns[held.place] = _LAST
        core.least_at(until_ns, held.place, held_ns)
        ends, calls = kept.followed_by(read, now_read), calls_of_kept.followed_by(calls, now_read)
        new_calls = slice(len(kept), None)
        is_early = calls.begin_ns[new_calls] < judged_ns[ends.place[new_calls]]
        if part != parts[0] and (is_early & (calls.call_path[new_calls] >= 0)).any():
            raise NeedsWholeLogError
        was_partner = np.append(partner_of_kept, np.full(len(now_read), -1))
        send, receive = matched(ends, complete=complete)
        partner = np.full(len(ends), -1, dtype=np.int64)
        partner[send], partner[receive] = receive, send
        if ((partner != was_partner) & (was_partner >= 0)).any():
            raise NeedsWholeLogError
        (alone,) = np.nonzero(partner < 0)
        if not is_last:
            may_match = np.isin(ends.sender[alone], in_trace) & np.isin(ends.receiver[alone], in_trace)
            early, alone = alone[may_match], alone[~may_match]
            of_calls = early[calls.call_path[early] >= 0]
            core.least_at(until_ns, ends.place[of_calls], calls.begin_ns[of_calls])
        now = calls.begin_ns < until_ns[ends.place]
        judged, new = now & (calls.begin_ns >= judged_ns[ends.place]), was_partner[send] < 0
        if not is_last:
            is_kept = ~now
            is_kept[alone] = False
            is_kept |= (partner >= 0) & is_kept[partner]
            is_kept[early] = True
            # Of each sender, receiver, communicator and tag, the last message stays: it shows if one overtakes it.
            keys = (ends.sender[send], ends.receiver[send], ends.communicator[send], ends.tag[send])
            last = reduce(np.logical_or, (np.diff(each, append=_FIRST) != 0 for each in keys))
            is_kept[send[last]] = is_kept[receive[last]] = True
            place = np.append(np.cumsum(is_kept) - 1, -1)
            kept, calls_of_kept, partner_of_kept = ends.chosen(is_kept), calls.chosen(is_kept), place[partner[is_kept]]
            judged_ns = np.maximum(judged_ns, until_ns)
            del is_kept, keys, last, place
        found = Messages(ends, calls, send, receive, judged, new, alone)
        # Before more is read.
        del read, later, now_read, is_early, was_partner, partner
        del ends, calls, send, receive, alone, now, judged, new
        yield found
        del found


def _held_back(ends: MessageEnds, calls: Calls, locations: int) -> Bools:
    """Return which ends are to be read with the next part: the last ones of each location, all of their calls.

    And all that were asked for after one of these, because it comes before them.
    """
    bounds, asked = np.searchsorted(ends.place, np.arange(locations + 1)), ends.asked_ns
    at = np.maximum(bounds[:-1], bounds[1:] - _HELD_BACK)
    if not len(ends):
        return np.zeros(0, dtype=bool)
    done_ns = ends.done_ns
    held = calls.end_ns >= done_ns[np.minimum(at, len(done_ns) - 1)][ends.place]
    first = np.full(locations, _LAST)
    core.least_at(first, ends.place[held], asked[held])
    return np.asarray(held | (asked >= first[ends.place]))


def calls_of(trace: Trace, ends: MessageEnds) -> Calls:
    """Return the calls of messages, which are in order of location and row.

    Recordings have them beside each message. Of the files of other tools they are the spans of MPI around its times.
    """
    done, asked_ns, early = ends.done_ns, ends.asked_ns, ends.sent & ends.blocking
    known = (ends.in_call_ns >= 0) & (ends.call_path >= 0)
    begin, end = _whole_calls(ends.place, done - np.maximum(ends.in_call_ns, 0), done)
    path = np.where(known, ends.call_path, -1)
    asked = np.where(ends.blocking, np.where(known, begin, ends.time_ns), asked_ns)
    of_ranks = regions_where(trace, lambda region: region.of_ranks)
    (unknown,) = np.nonzero(~known)
    for place, rows in rows_by(ends.place[unknown]):
        spans, own = spans_of(trace, place, of_ranks), unknown[rows]
        # What is sent is written down as its call begins, what has been received or is over as it ends.
        at = np.where(early[own], _around(spans, done[own], late=False), _around(spans, done[own], late=True))
        first = np.where(ends.sent[own], _around(spans, asked_ns[own], late=False),
                         _around(spans, asked_ns[own], late=True))  # fmt: skip
        found = spans.or_missing(at)
        path[own], begin[own], end[own] = found.call_path, found.start_ns, found.end_ns
        asked[own] = np.where(first >= 0, spans.or_missing(first).start_ns, asked_ns[own])
    return Calls(asked, begin, end, path)


def _whole_calls(place: Ints, begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Return begins and ends of the calls in which messages are complete, the same for all of one call.

    Each was measured by itself, some ns apart. Calls of a thread do not overlap: two that do by more than half are one.
    """
    if not len(place):
        return begin, end
    own = np.diff(place) == 0
    if ((np.diff(end) < 0) & own).any():
        order = np.lexsort((end, place))
        sorted_ = _whole_calls(place[order], begin[order], end[order])
        begins, ends = np.empty_like(begin), np.empty_like(end)
        begins[order], ends[order] = sorted_
        return begins, ends
    middle = begin + (end - begin) // 2
    starts = np.append(0, 1 + np.flatnonzero(~own | (begin[1:] >= middle[:-1])))
    count = np.diff(starts, append=len(place))
    return np.repeat(np.minimum.reduceat(begin, starts), count), np.repeat(end[np.cumsum(count) - 1], count)


def spans_of(trace: Trace, location: int, of_regions: Bools) -> Spans:
    """Return the spans of some regions in a location."""
    parts = []
    for spans in trace.span_batches(location):
        (at,) = np.nonzero(of_regions[spans["region"]])
        start = spans["start_ns"][at]
        parts.append(Spans(start, start + spans["duration_ns"][at], spans["call_path"][at].astype(np.int64)))
    return Spans.joined(parts)


def _around(spans: Spans, times: Ints, *, late: bool) -> Ints:
    """Return the place of the span that a moment lies in, its edges included; -1 if there is none.

    `late`: of two that meet there, the one that ends.
    """
    before, after = (np.searchsorted(spans.start_ns, times, side=side) - 1 for side in _SIDES)
    out = np.full(len(times), -1, dtype=np.int64)
    for at in (before, after) if late else (after, before):
        inside = (out < 0) & (at >= 0) & (times <= np.append(spans.end_ns, 0)[at])
        out = np.where(inside, at, out)
    return out


def span_around(spans: Spans, times: Ints) -> Spans:
    """Return the span that each moment lies in, of two that meet there the later one; -1 where there is none."""
    return spans.or_missing(_around(spans, times, late=False))
