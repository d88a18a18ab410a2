"""Where ranks synchronised with each other: the moments from which on two of them are compared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from strobe.gpu.devices import devices
from strobe.ranks.collective_columns import AMONG_NEIGHBOURS, FROM_ROOT, NOBODY, TO_ROOT, Collectives
from strobe.ranks.collectives import collectives
from strobe.ranks.delays.timelines import distinct
from strobe.ranks.waits.message_calls import Spans, span_around, spans_of
from strobe.ranks.waits.wait_columns import STATES, Side, Waits
from strobe.ranks.waits.wait_states import awaited_messages, wait_states
from strobe.tables.column_arrays import Bools, Columns, Ints, rows_by
from strobe.trace.definition_rows import location_rows, ranks_of, regions_where
from strobe.trace.trace import Trace

_ROOTED = (*FROM_ROOT, *TO_ROOT)
_ONE_SIDED = ("late_post", "early_wait", "lock_contention")  # fences are collectives
_INIT = re.compile(r"p?(mpi|shmem)_init", re.IGNORECASE)


@dataclass(frozen=True)
class _Points(Columns):
    """Calls of locations that synchronise them with others.

    partner: the other location, or the number of a group that both are in. begin_ns: of the call. from_ns: when its
    completion began: what the call still did when the other side was done. Only that belongs to the time after it.
    """

    location: Ints
    partner: Ints
    begin_ns: Ints
    from_ns: Ints


@dataclass(frozen=True)
class SyncPoints:
    """All points of a trace; and by location the calls that the log has, in order, not overlapping.

    Source: Scalasca, SynchpointHandler.cpp. A message that a call waited for is a point of both ranks: with a late
    sender at the call that sends and at the one that completes the receive; with a late receiver at the call that
    completes the send and at the one that asks for the receive. So is a collective; one with a root of the root and
    each other rank, none among neighbours. So is MPI_Init.
    """

    _pairs: _Points
    _groups: _Points
    _members: list[Ints]  # by number of the group
    calls: list[Spans]

    def last_before(self, location: Ints, other: Ints, time_ns: Ints) -> Ints:
        """Return from_ns of the last point of each location with another one before a time; NOBODY: there is none."""
        count = len(self.calls)
        begin, start = np.full((2, len(location)), NOBODY, dtype=np.int64)

        def later(of: Ints, points: _Points, partner: Ints, partners: int) -> None:
            key, wanted = points.location * partners + points.partner, location[of] * partners + partner
            at = _last(key, points.begin_ns, wanted, time_ns[of])
            of, at = of[at >= 0], at[at >= 0]
            newer = points.begin_ns[at] > begin[of]
            begin[of[newer]], start[of[newer]] = points.begin_ns[at[newer]], points.from_ns[at[newer]]

        later(np.arange(len(location)), self._pairs, other, count)
        for group, members in enumerate(self._members):
            inside = np.isin(np.arange(count), members)
            (of,) = np.nonzero(inside[location] & inside[other])
            points = self._groups.chosen(self._groups.partner == group)
            later(of, points, np.full(len(of), group), len(self._members))
        return np.asarray(start)


def synchronised_in_process(trace: Trace, waits: Waits) -> tuple[Ints, Ints]:
    """Return since when the awaited and the waiting side of waits for and of GPUs are compared.

    That is where one of both waited for the other last: any thread of a process stands for its host, any stream for its
    GPU, but where two streams wait for each other. Nothing counts before the first work of the GPU.
    """
    rows = location_rows(trace)
    first, stands_for, first_ns = dict[int, int](), np.arange(len(rows)), np.full(len(rows), NOBODY)
    for row in rows:
        if row.kind != "stream":
            stands_for[row.location] = first.setdefault(row.process, row.location)
    for device in devices(trace):
        streams = list(device.locations)
        stands_for[streams], first_ns[streams] = streams[0], device.first_ns
    begin = np.maximum(first_ns[waits.location], first_ns[waits.cause])
    between_streams = waits.state == STATES.index("late_stream")
    own, other = (np.where(between_streams, each, stands_for[each]) for each in (waits.location, waits.cause))
    # What a stream does next at the moment at which work ends comes after that.
    late_ns = waits.cause_ns - (waits.state != STATES.index("late_host"))
    sides = (other, own, late_ns), (own, other, waits.call_ns)
    points = [_Points(one, partner, at_ns, waits.cause_ns) for one, partner, at_ns in sides]
    found = SyncPoints(_Points.joined(points), _Points.joined(()), [], [Spans.joined(())] * len(rows))
    late, waiting = (np.maximum(found.last_before(*side), begin) for side in sides)
    return late, waiting


def _last(key: Ints, time: Ints, wanted: Ints, before: Ints) -> Ints:
    """Return for each wanted key the place of its last entry before a time, -1 if there is none."""
    if not len(key):
        return np.full(len(wanted), -1, dtype=np.int64)
    keys, moments = distinct(key), distinct(time)
    size = len(moments) + 1
    place = np.searchsorted(keys, key) * size + np.searchsorted(moments, time)
    order = np.argsort(place, kind="stable")
    until = np.searchsorted(keys, wanted) * size + np.searchsorted(moments, before)
    at = order[np.maximum(np.searchsorted(place[order], until) - 1, 0)]
    return np.where((key[at] == wanted) & (time[at] < before), at, -1)


def sync_points(trace: Trace) -> SyncPoints:
    """Return where the ranks of a trace synchronised."""
    met = collectives(trace)
    sent, received, awaited = awaited_messages(trace)
    spans = [Spans(side.begin_ns, side.end_ns, side.call_path) for side in (sent, received)]
    every = Spans.joined([*spans, Spans(met.call_ns, met.end_ns, met.call_path)])
    where = np.concatenate((sent.place, received.place, met.location))
    calls = [_in_order(every.chosen(where == row.location)) for row in location_rows(trace)]
    of_ranks = regions_where(trace, lambda region: region.of_ranks)
    pairs = _of_roots(met)
    for begun, done in awaited:  # the call that asks for it, and the one that waits
        asked, waited = _asked(trace, begun, of_ranks), (done.begin_ns, done.end_ns)
        pairs += _of_message(begun.place, done.place, asked, waited)
    pairs += _of_windows(trace)
    groups, members = _of_groups(trace, met)
    return SyncPoints(_Points.joined(pairs), groups, members, calls)


def _in_order(calls: Spans) -> Spans:
    """Return calls in order, without those that begin before another one ends: of several messages, or on a GPU."""
    calls = calls.chosen(np.lexsort((-calls.end_ns, calls.start_ns)))
    until = np.maximum.accumulate(np.append(NOBODY, calls.end_ns))[:-1]
    return calls.chosen((np.diff(calls.start_ns, prepend=NOBODY) > 0) & (calls.start_ns >= until))


def _asked(trace: Trace, side: Side, of_ranks: Bools) -> tuple[Ints, Ints]:
    """Return begin and end of the calls that asked for messages; where that did not wait, the log has no end of it."""
    end = np.where(side.asked_ns == side.begin_ns, side.end_ns, side.asked_ns)
    (before,) = np.nonzero(side.asked_ns != side.begin_ns)
    for place, rows in rows_by(side.place[before]):
        own = before[rows]
        end[own] = np.maximum(end[own], span_around(spans_of(trace, place, of_ranks), side.asked_ns[own]).end_ns)
    return side.asked_ns, end


def _of_message(one: Ints, other: Ints, call: tuple[Ints, Ints], other_call: tuple[Ints, Ints]) -> Iterator[_Points]:
    """Yield the points of both sides of messages, given their locations and begins and ends of their calls."""
    (begin, end), (other_begin, other_end) = call, other_call
    both_done = np.minimum(end, other_end)
    yield _Points(one, other, begin, np.maximum(begin, both_done))
    yield _Points(other, one, other_begin, np.maximum(other_begin, both_done))


def _of_windows(trace: Trace) -> Iterator[_Points]:
    """Yield the points of both sides of one-sided waits: what the call did after, and from when the other one came."""
    found = wait_states(trace)
    waits = found.waits.chosen(slice(len(found.waits) - found.threads))
    waits = waits.chosen(np.isin(waits.state, [STATES.index(name) for name in _ONE_SIDED]))
    waits = waits.chosen(waits.location != waits.cause)
    yield _Points(waits.location, waits.cause, waits.call_ns, waits.call_ns + waits.wait_ns)
    yield _Points(waits.cause, waits.location, waits.cause_ns, waits.cause_ns)


def _of_groups(trace: Trace, met: Collectives) -> tuple[_Points, list[Ints]]:
    """Return the points of collectives without a root, and MPI_Init; and the locations of each group, by number."""
    known = (met.collective >= 0) & ~np.array([party.hands_over for party in met.parties], dtype=bool)[met.party]
    of_all = known & ~met.of_kinds((*_ROOTED, *AMONG_NEIGHBOURS))
    lines = [np.unique(met.location[of_all & (met.line == line)]) for line in range(len(met.lines))]
    numbers = dict[tuple[int, ...], int]()
    group = [numbers.setdefault(tuple(each.tolist()), len(numbers)) for each in lines]
    of_line = np.array(group, dtype=np.int64)
    start = _completion_begins(met)[of_all]
    points = [_Points(met.location[of_all], of_line[met.line[of_all]], met.call_ns[of_all], start)]
    inits = regions_where(trace, lambda region: region.of_ranks and bool(_INIT.match(region.name)))
    ranks = ranks_of(trace)
    found = [
        (row.location, spans_of(trace, row.location, inits))
        for row in location_rows(trace)
        if inits.any() and row.kind == "thread" and ranks[row.process] is not None
    ]
    found = [(location, spans) for location, spans in found if len(spans)]
    if found:
        begin, end = (np.array([getattr(spans, name)[0] for _, spans in found]) for name in ("start_ns", "end_ns"))
        where = np.array([location for location, _ in found], dtype=np.int64)
        number = np.full(len(found), numbers.setdefault(tuple(where.tolist()), len(numbers)))
        start = np.maximum(np.minimum(begin.max(), end), end.min())
        points.append(_Points(where, number, begin, np.minimum(start, end)))
    return _Points.joined(points), [np.array(each, dtype=np.int64) for each in numbers]


def _of_roots(met: Collectives) -> list[_Points]:
    """Return the points of collectives with a root: of the root with each of the others."""
    (at,) = np.nonzero((met.collective >= 0) & met.of_kinds(_ROOTED))
    root_of = np.full(int(met.collective.max(initial=-1)) + 2, -1, dtype=np.int64)
    is_root = met.root[at] == 1
    root_of[met.collective[at[is_root]]] = at[is_root]
    root = root_of[met.collective[at]]
    other, root = at[(root >= 0) & ~is_root], root[(root >= 0) & ~is_root]
    start = _completion_begins(met)
    return [
        _Points(met.location[own], met.location[its], met.call_ns[own], start[own])
        for own, its in ((other, root), (root, other))
    ]


def _completion_begins(met: Collectives) -> Ints:
    """Return when all that are needed have come to each collective and the first has left: its completion begins.

    With a root that is one between those that wait and those that they wait for; for others it has no completion.
    """
    awaited, who = met.awaited()
    waits = awaited > met.call_ns
    takes_part = ~met.of_kinds(_ROOTED) | waits
    takes_part[who[waits]] = True
    size = int(met.collective.max(initial=-1)) + 2
    first, last = np.full(size, np.iinfo(np.int64).max), np.full(size, NOBODY)
    np.minimum.at(first, met.collective[takes_part], met.end_ns[takes_part])
    np.maximum.at(last, met.collective, awaited)
    begin = np.maximum(np.minimum(last[met.collective], met.end_ns), first[met.collective])
    return np.where(takes_part, np.clip(begin, met.call_ns, met.end_ns), met.end_ns).astype(np.int64)
