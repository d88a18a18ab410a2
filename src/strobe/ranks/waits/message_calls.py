"""The calls that ask for messages and complete them: when each began and ended, and what it was."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from strobe.ranks.messages import MessageEnds, from_the_first, matched, message_ends
from strobe.tables.column_arrays import Bools, Columns, Ints, rows_by
from strobe.trace.definition_rows import region_rows, regions_where
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# Sends that may need their receiver: not those with a buffer or a receiver that is ready, nor both ways at once.
NEED_RECEIVER = re.compile(r"(p?mpi_(s?send|wait(all|any|some)?)_*|gloo:wait)$", re.IGNORECASE)
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
    """All sends and receives of a trace with their calls, and the places of those that belong together."""

    ends: MessageEnds
    calls: Calls
    send: Ints
    receive: Ints

    @property
    def unmatched(self) -> int:
        """How many ends have no partner."""
        return len(self.ends) - 2 * len(self.send)


@cached_on_trace
def messages(trace: Trace) -> Messages:
    """Return the messages of a trace, in order of sender, receiver, communicator, tag and time."""
    ends = message_ends(trace)
    return Messages(ends, calls_of(trace, ends), *matched(ends, complete=not from_the_first(trace)))


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
