"""Single spans of a location, by their row or by a moment, without reading the whole location."""

from __future__ import annotations

import numpy as np

from strobe.trace.definition_rows import location_rows
from strobe.trace.spans import SpanArrays, chosen_spans
from strobe.trace.trace import Trace

# Spans that are read at once where a search has come so near.
_NEAR = 4096


def span_of_row(trace: Trace, location: int, row: int) -> SpanArrays | None:
    """Return the span with a row, as arrays of length one; None where the location has no such row.

    Rows are in order of start, so this is a search by interpolation, a few blocks each time; every other guess halves
    the time that is left, so that it ends however unevenly spans lie.
    """
    about = location_rows(trace)[location]
    low, high = 0, int(about.span_count or 0)
    if not low <= row < high:
        return None
    begin, end = int(about.first_ns), int(about.last_ns) + 1
    turn = 0
    while True:
        turn += 1
        near = high - low <= _NEAR or end - begin <= 1
        part = (row - low) / (high - low) if turn % 2 else 0.5
        at = begin if near else begin + int(part * (end - begin))
        until = end if near else min(end, at + max(1, (end - begin) * _NEAR // (2 * (high - low))))
        spans = trace.span_arrays(location, at - 1, until)
        here = np.flatnonzero(spans["row"] == row)
        if len(here):
            return one_span(spans, int(here[0]))
        started = spans["row"][(spans["start_ns"] >= at) & (spans["start_ns"] < until)]
        if near:
            return None
        if len(started) and row < started[0]:
            end, high = at, int(started[0])
        elif len(started):
            begin, low = until, int(started[-1]) + 1
        elif turn % 2:
            continue  # Nothing begins there: halve.
        else:
            first = _first_after(trace, location, until, end)
            if first is None or row < first:
                end, high = at, high if first is None else first
            else:
                begin, low = until, first


def _first_after(trace: Trace, location: int, start_ns: int, end_ns: int) -> int | None:
    """Return the row of the first span that begins in [start_ns, end_ns)."""
    width = 1
    while start_ns < end_ns:
        until = min(end_ns, start_ns + width)
        spans = trace.span_arrays(location, start_ns - 1, until)
        started = spans["row"][(spans["start_ns"] >= start_ns) & (spans["start_ns"] < until)]
        if len(started):
            return int(started[0])
        start_ns, width = until, width * 4
    return None


def span_at(trace: Trace, location: int, time_ns: int) -> SpanArrays | None:
    """Return the innermost span of a location at a moment, its ends included; None where nothing runs then."""
    spans = trace.span_arrays(location, time_ns - 1, time_ns + 1)
    around = np.flatnonzero((spans["start_ns"] <= time_ns) & (spans["start_ns"] + spans["duration_ns"] >= time_ns))
    if not len(around):
        return None
    # Of those that only touch the moment, the one that begins then.
    order = np.lexsort((spans["start_ns"][around], spans["depth"][around]))
    return one_span(spans, int(around[order[-1]]))


def one_span(spans: SpanArrays, at: int) -> SpanArrays:
    """Return one of some spans, as arrays of length one."""
    return chosen_spans(spans, slice(at, at + 1))
