"""Idle gaps: times in which nothing runs on a stream or thread, what ran before and after, and the cause."""

from __future__ import annotations

from operator import attrgetter
from typing import NamedTuple, TypedDict

import numpy as np

from strobe.gpu.idle import CAUSES, NO_CALL, HostWork
from strobe.gpu.work import kind_of_region
from strobe.model.kinds import Group
from strobe.ranks.links import launching_call
from strobe.server.routing.endpoints import END_NS, LOCATION, MB, START_NS, parameter, route
from strobe.server.spans.span_links import SpanEnd, described_span
from strobe.server.spans.span_tables import expected_spans, thread_title
from strobe.server.time_range.range_sums import clipped_self_ns
from strobe.server.trace_context import TraceContext
from strobe.sums.single_spans import one_span, span_of_row
from strobe.tables.column_arrays import Ints
from strobe.trace.definition_rows import location_rows
from strobe.trace.spans import SpanArrays
from strobe.trace.trace_cache import cached_on_trace

WAYS = ("at", "next", "previous", "longest")
# The default of the analysis `idle`: a shorter gap between launched kernels is the GPU's own.
_KERNEL_GAP_NS = 30_000
# Spans in a window of which all gaps are compared; in fuller ones those that the picture shows are.
_MOST_COMPARED = 1_500_000
_MOST_WALKED = 4_000_000
# Threads and streams that are shown beside a gap, and spans of one that are read for it.
_MOST_LISTED = 4
_MOST_MEANWHILE = 50_000
_WALKED_AT_ONCE = 65_536
_PIXELS = 4096
_host_work = cached_on_trace(HostWork)


class CausePart(TypedDict):
    """For how long one cause kept a stream waiting."""

    cause: str
    ns: int


class GapCause(TypedDict):
    """Why a stream was idle, and the call that launched what came then."""

    main: str
    parts: list[CausePart]
    call: SpanEnd | None


class Meanwhile(TypedDict):
    """What another thread or stream did during a gap: for how long anything ran, and what ran innermost for longest."""

    location: int
    thread: str
    busy_ns: int
    name: str
    group: Group
    ns: int


class IdleGap(TypedDict):
    """A stretch in which nothing runs on a row: see `gap`."""

    location: int
    start_ns: int
    end_ns: int
    before: SpanEnd | None
    after: SpanEnd | None
    cause: GapCause | None
    meanwhile: list[Meanwhile]


class _Gap(NamedTuple):
    start_ns: int
    end_ns: int


class _Row:
    """What runs on a row: all lanes of a stream (work of a GPU only), or the outermost spans of a thread."""

    def __init__(self, context: TraceContext, location: int) -> None:
        self.context, self.location = context, location
        rows, stream_of = location_rows(context.trace), attrgetter("process", "kind", "device", "thread_id")
        own = stream_of(rows[location])
        self.is_stream = rows[location].kind == "stream"
        # Work of one stream that overlaps has several locations.
        self.lanes = [row.location for row in rows if stream_of(row) == own] if self.is_stream else [location]
        with_spans = [rows[at] for at in self.lanes if rows[at].span_count]
        self.first_ns = min((row.first_ns for row in with_spans), default=0)
        self.last_ns = max((row.last_ns for row in with_spans), default=0)
        self.spans = sum(row.span_count for row in with_spans)
        self._kinds = kind_of_region(context.trace)

    def expected(self, start_ns: int, end_ns: int) -> float:
        return sum(expected_spans(self.context, lane, start_ns, end_ns) for lane in self.lanes)

    def read(self, start_ns: int, end_ns: int) -> list[tuple[int, SpanArrays, Ints]]:
        """Return spans that overlap or touch [start_ns, end_ns], by lane, and which of them count."""
        found = []
        for lane in self.lanes:
            spans = self.context.trace.span_arrays(lane, start_ns - 1, end_ns + 1)
            counts = self._kinds[spans["region"]] >= 0 if self.is_stream else spans["depth"] == 0
            found.append((lane, spans, np.flatnonzero(counts)))
        return found

    def busy(self, start_ns: int, end_ns: int) -> tuple[Ints, Ints]:
        """Return when that is: starts and ends, in order of start."""
        parts = [
            (spans["start_ns"][at], spans["start_ns"][at] + spans["duration_ns"][at])
            for _, spans, at in self.read(start_ns, end_ns)
        ]
        start, end = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(start, kind="stable")
        return start[order], end[order]

    def at(self, time_ns: int) -> _Gap | None:
        """Return the gap around a moment; None while something runs."""
        begin = self._nearest(time_ns, -1)
        end = self._nearest(time_ns, 1)
        if begin is None or end is None or end <= begin:
            return None
        return _Gap(begin, end)

    def _nearest(self, time_ns: int, way: int) -> int | None:
        """Return the last end before a moment (way -1), or the first start after it; the run's where there is none."""
        width = 1000
        run_start, run_end = self.context.bounds
        while True:
            low, high = (time_ns - width, time_ns) if way < 0 else (time_ns, time_ns + width)
            start, end = self.busy(low, high)
            if ((start <= time_ns) & (end > time_ns)).any():
                return None
            near = end[end <= time_ns] if way < 0 else start[start > time_ns]
            if len(near):
                return int(near.max() if way < 0 else near.min())
            if low <= self.first_ns and way < 0:
                return run_start
            if high >= self.last_ns and way > 0:
                return run_end
            width *= 8

    def between(self, start_ns: int, end_ns: int) -> tuple[Ints, Ints]:
        """Return all gaps between what runs in a stretch, in order."""
        start, end = self.busy(start_ns, end_ns)
        reach = np.maximum.accumulate(end)
        idle = start[1:] > reach[:-1]
        return reach[:-1][idle], start[1:][idle]


@route(
    "gap",
    LOCATION,
    parameter("way", "which gap of the row", str, "at", choices=WAYS),
    parameter("time_ns", "around when, or beside which gap; ns since the trace's zero", default=0),
    parameter("start_ns", START_NS.help + ", for the longest", default=0),
    parameter("end_ns", END_NS.help, default=1),
    parameter("shortest_ns", "gaps of at least this length", default=0),
    parameter("number", "0 is the longest, 1 the next longest", default=0, most=1000),
    most_bytes=MB,
)
def gap(
    context: TraceContext,
    location: int,
    way: str,
    time_ns: int,
    start_ns: int,
    end_ns: int,
    shortest_ns: int,
    number: int = 0,
) -> IdleGap | None:
    """A gap of a row: around a moment, the next or previous one, or the longest of a time range; or null.

    way: `at`, the one around `time_ns`; `next` and `previous`, the nearest one that begins after, or ends before, the
    gap or span at `time_ns`, of at least `shortest_ns`; `longest`, the one that is `number`-th in length in
    [start_ns, end_ns), from 0 on. Gaps lie between what runs; before the first and after the last span of the row the
    run's start and end limit them. cause: of a stream of a GPU, for how long each cause of the analysis `idle` kept it
    waiting, and the call that launched what came then. meanwhile: of a thread, whose gaps have no recorded cause, what
    others of its process did, those on which most ran first.
    """
    row = _Row(context, location)
    if not row.spans:
        return None
    if way == "at":
        found = row.at(time_ns)
    elif way == "longest":
        found = _longest(row, start_ns, end_ns, shortest_ns, number)
    else:
        found = _beside(row, time_ns, shortest_ns, forward=way == "next")
    return _described(row, found) if found else None


def _longest(row: _Row, start_ns: int, end_ns: int, shortest_ns: int, number: int) -> _Gap | None:
    low, high = max(start_ns, row.first_ns), min(end_ns, row.last_ns)
    if high <= low:
        return None
    if row.expected(low, high) <= _MOST_COMPARED:
        begin, end = row.between(low, high)
        # The ends of the window may lie in gaps that reach out of it.
        edges = [each for each in (row.at(low), row.at(high - 1)) if each]
        gaps = {_Gap(int(a), int(b)) for a, b in zip(begin.tolist(), end.tolist(), strict=True)} | set(edges)
    else:
        gaps = _pictured(row, low, high, number + 1)
    inside = [each for each in gaps if min(each.end_ns, end_ns) - max(each.start_ns, start_ns) >= shortest_ns]
    inside.sort(key=lambda each: (max(each.start_ns, start_ns) - min(each.end_ns, end_ns), each.start_ns))
    return inside[number] if number < len(inside) else None


def _pictured(row: _Row, start_ns: int, end_ns: int, count: int) -> set[_Gap]:
    """Return the longest gaps that are wider than a pixel of a wide picture: of those nothing else needs reading."""
    _, shares = row.context.trace.pyramid.cells(row.lanes, start_ns, end_ns, _PIXELS)[:2]
    empty = np.concatenate(([False], ~shares.any(axis=0), [False]))
    edges = np.flatnonzero(empty[1:] != empty[:-1])
    first, last = edges[::2], edges[1::2]
    longest = np.argsort(first - last, kind="stable")[: count + 2]
    pixel = (end_ns - start_ns) / _PIXELS
    middles = [int(start_ns + (first[at] + last[at]) / 2 * pixel) for at in longest.tolist()]
    return {found for found in map(row.at, middles) if found}


def _beside(row: _Row, time_ns: int, shortest_ns: int, *, forward: bool) -> _Gap | None:
    here = row.at(time_ns)
    place = time_ns if here is None else here.end_ns if forward else here.start_ns
    width = max(1000, (row.last_ns - row.first_ns) * _WALKED_AT_ONCE // max(1, row.spans))
    read = 0.0
    while read <= _MOST_WALKED and (place < row.last_ns if forward else place > row.first_ns):
        low, high = (place, place + width) if forward else (place - width, place)
        read += row.expected(low, high) + 1
        begin, end = row.between(low, high)
        fits = (end - begin >= shortest_ns) & ((begin >= place) if forward else (end <= place))
        if fits.any():
            at = np.flatnonzero(fits)[0 if forward else -1]
            return _Gap(int(begin[at]), int(end[at]))
        # A gap that this piece cuts is looked at as a whole.
        cut = row.at(high if forward else low)
        inner = cut is not None and row.first_ns <= cut.start_ns and cut.end_ns <= row.last_ns
        if cut and inner and cut.end_ns - cut.start_ns >= shortest_ns:
            return cut
        place = high if forward else low
    return None


def _described(row: _Row, found: _Gap) -> IdleGap:
    before = _neighbour(row, found.start_ns, ended=True)
    after = _neighbour(row, found.end_ns, ended=False)
    context = row.context
    return {
        "location": row.location,
        "start_ns": found.start_ns,
        "end_ns": found.end_ns,
        "before": described_span(context, *before) if before else None,
        "after": described_span(context, *after) if after else None,
        "cause": _cause(row, found, after) if row.is_stream and before and after else None,
        "meanwhile": [] if row.is_stream else _meanwhile(row, found),
    }


def _meanwhile(row: _Row, found: _Gap) -> list[Meanwhile]:
    context, (start_ns, end_ns) = row.context, found
    rows = location_rows(context.trace)
    process = rows[row.location].process
    others = [each.location for each in rows if each.process == process and each.kind != "task" and each.span_count]
    done: list[Meanwhile] = []
    for location in others:
        if location == row.location or expected_spans(context, location, start_ns, end_ns) > _MOST_MEANWHILE:
            continue
        spans = context.trace.span_arrays(location, start_ns, end_ns)
        if not len(spans["row"]):
            continue
        own_ns = np.bincount(spans["region"], weights=clipped_self_ns(spans, start_ns, end_ns))
        most = int(own_ns.argmax())
        done.append(
            {
                "location": location,
                "thread": thread_title(context, location),
                "busy_ns": int(own_ns.sum()),
                "name": context.names.names[most],
                "group": context.names.groups[most],
                "ns": int(own_ns[most]),
            }
        )
    return sorted(done, key=lambda each: -each["busy_ns"])[:_MOST_LISTED]


def _neighbour(row: _Row, time_ns: int, *, ended: bool) -> tuple[int, SpanArrays] | None:
    for lane, spans, at in row.read(time_ns, time_ns):
        start = spans["start_ns"][at]
        when = start + spans["duration_ns"][at] if ended else start
        here = at[when == time_ns]
        if len(here):
            return lane, one_span(spans, int(here[-1 if ended else 0]))
    return None


def _cause(row: _Row, found: _Gap, after: tuple[int, SpanArrays]) -> GapCause:
    trace = row.context.trace
    lane, span = after
    call = launching_call(trace, lane, int(span["row"][0]))
    call_span = span_of_row(trace, *call) if call else None
    called = int(call_span["start_ns"][0]) if call_span else NO_CALL
    begin, end, thread, when = (
        np.array([value], dtype=np.int64) for value in (*found, call[0] if call else -1, called)
    )
    host = _host_work(trace)
    time = host.causes(begin, end, thread, when, _KERNEL_GAP_NS)[:, 0]
    return {
        "main": CAUSES[int(time.argmax())],
        "parts": [{"cause": cause, "ns": ns} for cause, ns in zip(CAUSES, time.tolist(), strict=True) if ns],
        "call": described_span(row.context, call[0], call_span) if call and call_span else None,
    }
