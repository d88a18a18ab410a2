"""How long a program would take on a network that transfers everything at once: a replay, which is Dimemas' role."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from strobe.native import core
from strobe.ranks.collective_columns import Collectives
from strobe.ranks.collectives import collectives
from strobe.ranks.waits.message_calls import NEED_RECEIVER, functions_named, messages
from strobe.tables.column_arrays import Columns, Floats, Ints, rows_by
from strobe.trace.definition_rows import location_rows
from strobe.trace.trace import Trace

# Rows of a log that are replayed: it takes all of them at once, in about 300 bytes each.
MOST_ROWS = 20_000_000
_KNOWN = 0.9  # part of the communication that must be known from both sides
_RAISES, _NEEDS, _MARK = range(3)  # phases: of two moments at one time, the order in which they count


@dataclass(frozen=True)
class Stretches:
    """Stretches of a rank's main thread, in order of time, one array entry each.

    computed_ns: the part of each that is no communication. window: which window of the run it belongs to, -1 none.
    """

    location: int
    start_ns: Ints
    end_ns: Ints
    computed_ns: Ints
    window: Ints


@dataclass(frozen=True)
class _Moments(Columns):
    """Moments of locations, see native/kernels/replay/ideal_network.h. meeting: -1 for none."""

    location: Ints
    time_ns: Ints
    phase: Ints
    meeting: Ints

    @classmethod
    def of(cls, phase: int, location: Ints, time_ns: Ints, meeting: Ints) -> _Moments:
        return cls(location, time_ns, np.full(len(time_ns), phase), meeting)


@dataclass(frozen=True)
class _Waiting(Columns):
    """Calls in which a location can wait."""

    location: Ints
    begin_ns: Ints
    end_ns: Ints


def ideal_elapsed_ns(trace: Trace, ranks: Sequence[Stretches], windows: int, without: Ints | None = None) -> Floats:
    """Return how long each window of a run would last on an ideal network; NaN where that is not known.

    Between two calls that can wait, a rank computes as long as it did. A receive is over when the send has begun, a
    send that waited for its receiver when the receive has, a collective when all have come that the rank needs
    (Collectives.needs). A window is as long as that of its slowest rank. Not known: where kernels communicate, or
    much of the communication is of calls whose other side is not in the trace, or the log has more than MOST_ROWS
    rows, which are not read then. without: places in
    `collectives(trace)` in which nobody waits for anybody.
    """
    out, tables = np.full(windows, np.nan), [reader.tables() for reader in trace.readers]
    if sum(each.get(name, 0) for each in tables for name in ("messages", "folded_collectives")) > MOST_ROWS:
        return out
    met = collectives(trace)
    if any(party.on_gpu or party.hands_over for party in met.parties):
        return out
    messages, calls, count, unmatched = _of_messages(trace)
    unmatched += int((met.collective < 0).sum())
    kept = met.collective.copy()
    if without is not None:
        kept[without] = -1
    parts = [messages, *_of_collectives(replace(met, collective=kept), count)]
    calls = _Waiting.joined([calls, _Waiting(met.location, met.call_ns, met.end_ns).chosen(met.collective >= 0)])
    nothing = _Clock(calls.chosen(slice(0)))
    clocks = defaultdict(lambda: nothing, {at: _Clock(calls.chosen(own)) for at, own in rows_by(calls.location)})
    waits = sum(int(clocks[each.location].waited_ns(each).sum()) for each in ranks)
    communication = sum(int((each.end_ns - each.start_ns - each.computed_ns).sum()) for each in ranks)
    # A trace that has messages has all of them; calls that only begin one take time, too.
    if unmatched > (1 - _KNOWN) * (count + len(met)) or (not count and waits < _KNOWN * communication):
        return out
    for each in ranks:
        ends = np.stack((each.start_ns, each.end_ns), axis=1).ravel()
        nowhere = np.full(len(ends), -1)
        parts.append(_Moments.of(_MARK, np.full(len(ends), each.location), ends, nowhere))
    moments = _Moments.joined(parts)
    moments = moments.chosen(np.lexsort((moments.phase, moments.time_ns)))
    computed = np.zeros(len(moments), dtype=np.int64)
    of_location = {each.location: each for each in ranks}
    for location, own in rows_by(moments.location):
        computed[own] = clocks[location].computed_ns(moments.time_ns[own], of_location.get(location))
    came = core.on_ideal_network(
        moments.location,
        computed,
        moments.meeting,
        (moments.phase == _NEEDS).astype(np.uint8),
        len(location_rows(trace)),
        int(moments.meeting.max(initial=-1)) + 1,
    )
    longest = np.zeros((len(ranks), windows))
    (marks,) = np.nonzero(moments.phase == _MARK)
    marks_of = dict(rows_by(moments.location[marks]))
    for row, each in zip(longest, ranks, strict=True):
        own = came[marks[marks_of.get(each.location, marks[:0])]]
        inside = each.window >= 0
        np.add.at(row, each.window[inside], (own[1::2] - own[::2])[inside])
    slowest: Floats = longest.max(axis=0, initial=0)
    return slowest


def _of_messages(trace: Trace) -> tuple[_Moments, _Waiting, int, int]:
    """Return the moments of matched messages, the calls that complete them, and how many ends these and others have."""
    log = messages(trace)
    ends, calls, send, receive = log.ends, log.calls, log.send, log.receive
    known = (calls.call_path[send] >= 0) & (calls.call_path[receive] >= 0)
    send, receive = send[known], receive[known]
    count = len(send)
    number = np.arange(count)
    asked, begun, done = calls.asked_ns, calls.begin_ns, calls.end_ns
    needs = functions_named(trace, NEED_RECEIVER)[calls.call_path[send]]
    (waited,) = np.nonzero(needs & (done[send] > asked[receive]) & (asked[receive] > begun[send]))
    sender, receiver = ends.place[send], ends.place[receive]
    parts = (
        _Moments.of(_RAISES, sender, asked[send], number),
        _Moments.of(_NEEDS, receiver, done[receive], number),
        _Moments.of(_RAISES, receiver[waited], asked[receive[waited]], count + number[waited]),
        _Moments.of(_NEEDS, sender[waited], done[send[waited]], count + number[waited]),
    )
    both = np.append(send, receive)
    return _Moments.joined(parts), _Waiting(ends.place, begun, done).chosen(both), 2 * count, len(ends) - 2 * count


def _of_collectives(met: Collectives, first: int) -> Iterator[_Moments]:
    """Yield the moments of matched collectives (`Collectives.needs`); their meetings are numbered from `first` on."""
    needed, needs, in_order = met.needs
    meeting = first + met.collective
    yield _Moments.of(_RAISES, met.location[needed], met.start_ns[needed], meeting[needed])
    yield _Moments.of(_NEEDS, met.location[needs], met.end_ns[needs], meeting[needs])
    (at,) = np.nonzero(in_order)
    at = at[np.lexsort((met.rank[at], met.collective[at]))]
    pairs = [met.neighbours()]
    for members in np.split(at, np.flatnonzero(np.diff(met.collective[at])) + 1):
        later, earlier = np.tril_indices(len(members))
        pairs.append((members[later], members[earlier]))
    who, whom = (np.concatenate(side) for side in zip(*pairs, strict=True))
    meeting = first + int(met.collective.max(initial=-1)) + 1 + np.arange(len(met))  # one for each
    own = np.unique(who)
    yield _Moments.of(_NEEDS, met.location[own], met.end_ns[own], meeting[own])
    yield _Moments.of(_RAISES, met.location[whom], met.start_ns[whom], meeting[who])


class _Clock:
    """The time of a location outside of calls that can wait."""

    def __init__(self, calls: _Waiting) -> None:
        order = np.argsort(calls.begin_ns, kind="stable")
        begin, reach = calls.begin_ns[order], np.maximum.accumulate(calls.end_ns[order])
        begin = np.maximum(begin, np.append(begin[:1], reach[:-1]))
        self._edges = np.stack((begin, np.maximum(begin, reach)), axis=1).ravel()
        self._waited = np.cumsum(np.diff(self._edges, prepend=self._edges[:1]) * (np.arange(len(self._edges)) % 2))

    def waited_ns(self, stretches: Stretches) -> Ints:
        """Return how much of each stretch is in such calls."""
        return self._inside(stretches.end_ns) - self._inside(stretches.start_ns)

    def computed_ns(self, times: Ints, stretches: Stretches | None) -> Ints:
        """Return how long the location has computed until some moments.

        In stretches, of which that is known exactly, other calls of communication are left out, too.
        """
        own = times - self._inside(times)
        if stretches is None or not len(stretches.start_ns):
            return own
        ends = np.stack((stretches.start_ns, stretches.end_ns), axis=1)
        ends -= self._inside(ends.ravel()).reshape(-1, 2)
        between = np.append(ends[1:, 0] - ends[:-1, 1], 0)
        lengths = np.stack((stretches.computed_ns, between), axis=1).ravel()
        known = ends[0, 0] + np.append(0, np.cumsum(lengths)[:-1])
        inside = np.interp(own, ends.ravel(), known).astype(np.int64)
        before, after = np.minimum(own - ends[0, 0], 0), np.maximum(own - ends[-1, 1], 0)
        return np.asarray(inside + before + after)

    def _inside(self, times: Ints) -> Ints:
        if not len(self._edges):
            return np.zeros_like(times)
        return np.interp(times, self._edges, self._waited).astype(np.int64)
