"""How long the executions of one region last in a time range: their histogram, and those of a chosen length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypedDict

import numpy as np

from strobe.model.option import LARGEST
from strobe.server.routing.endpoints import MB, TIME_RANGE, parameter, route
from strobe.server.spans.span_links import Execution
from strobe.server.spans.span_tables import expected_spans
from strobe.server.trace_context import TraceContext
from strobe.tables.column_arrays import Bools, Floats, Ints
from strobe.trace.spans import SpanArrays, chosen_spans

_BINS = 60
# Spans that are read for an answer: about a third of a second. Of more, even parts of the time are.
_MOST_READ = 1_500_000
_MOST_PIECES = 64
# Spans that reading a piece costs at the least: two blocks.
_PIECE = 8192
_GOLDEN = 0.6180339887498949
MOST_SPANS = 200


class _Piece(NamedTuple):
    location: int
    begin_ns: int
    end_ns: int


class Durations(TypedDict):
    """The durations of the executions of a region: see `durations`."""

    name: str
    executions: int
    count: int
    read_share: float
    total_ns: int
    median_ns: float | None
    edges_ns: list[float]
    counts: list[int]
    chosen: int
    spans: list[Execution]


@route(
    "window/durations",
    *TIME_RANGE,
    parameter("name", "name of the region", str, most=8192),
    parameter("low_ns", "list those that last at least so long", default=None),
    parameter("high_ns", "list those that last at most so long", default=None),
    most_bytes=MB,
    slow=True,
)
def durations(
    context: TraceContext, name: str, start_ns: int, end_ns: int, low_ns: int | None = None, high_ns: int | None = None
) -> Durations:
    """How long the executions of a region last that begin in a time range, and which of them last how long.

    executions: how many there are, exact. edges_ns, counts: a histogram with bins of equal width in log time, from the
    shortest to the longest; durations are whole ones, also of executions that end after the stretch. Where more spans
    than can be read while one waits lie in it, only those that begin in `read_share` of the time are counted, in even
    pieces of every location: the counts are of these, and the longest of all may be missing. spans: the longest of
    those that last [low_ns, high_ns].
    """
    wanted = np.array([each == name for each in context.names.names], dtype=bool)
    executions = _executions(context, wanted, start_ns, end_ns)
    where = np.flatnonzero(executions).tolist()
    pieces, share = _pieces(context, where, start_ns, end_ns)
    lengths, longest = [np.zeros(0, dtype=np.int64)], list[Execution]()
    chosen = 0
    for location, spans in _beginning(context, pieces):
        own = chosen_spans(spans, np.flatnonzero(wanted[spans["region"]]))
        lengths.append(own["duration_ns"])
        longest_ns = LARGEST if high_ns is None else high_ns
        (at,) = np.nonzero((own["duration_ns"] >= (low_ns or 0)) & (own["duration_ns"] <= longest_ns))
        chosen += len(at)
        at = at[np.argsort(-own["duration_ns"][at], kind="stable")[:MOST_SPANS]]
        columns = (own[key][at].tolist() for key in ("start_ns", "duration_ns", "depth"))
        longest += [
            {"location": location, "start_ns": start, "duration_ns": duration, "depth": depth}
            for start, duration, depth in zip(*columns, strict=True)
        ]
    every = np.concatenate(lengths)
    longest.sort(key=lambda each: (-each["duration_ns"], each["start_ns"]))
    edges, counts = histogram(every)
    return {
        "name": name,
        "executions": int(executions.sum()),
        "count": len(every),
        "read_share": share,
        "total_ns": int(every.sum()),
        "median_ns": float(np.median(every)) if len(every) else None,
        "edges_ns": edges.tolist(),
        "counts": counts.tolist(),
        "chosen": chosen,
        "spans": longest[:MOST_SPANS],
    }


def histogram(lengths: Ints) -> tuple[Floats, Ints]:
    """Return edges of bins of equal width in log time, ns, and how many lengths lie in each; one if all are equal."""
    if not len(lengths):
        return np.zeros(0), np.zeros(0, dtype=np.int64)
    low, high = max(1.0, float(lengths.min())), max(1.0, float(lengths.max()))
    # The last edge lies above the longest, so that no rounding puts it outside.
    edges = np.geomspace(low, high * (1 + 1e-9), _BINS + 1) if high > low * 1.001 else np.array([low, high + 1])
    edges[0], edges[-1] = low, max(edges[-1], high)
    counts, _ = np.histogram(np.maximum(lengths, 1), edges)
    return edges, counts.astype(np.int64)


def _executions(context: TraceContext, wanted: Bools, start_ns: int, end_ns: int) -> Ints:
    """Return how many executions of the wanted regions begin in [start_ns, end_ns), by location."""
    locations = range(len(context.span_counts) if wanted.any() else 0)
    found = [count[:, wanted].sum(axis=1) for _, count, _ in context.profiles(locations, start_ns, end_ns)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *found])


def _pieces(context: TraceContext, locations: list[int], start_ns: int, end_ns: int) -> tuple[list[_Piece], float]:
    """Return what is read: all of [start_ns, end_ns) of the locations, or even pieces; and the part of it that is.

    Where it is too much, pieces hold some blocks each, since nothing less can be read; where that is still too much,
    every so manieth location is read. Pieces of different locations lie at different times.
    """
    expected = sum(expected_spans(context, at, start_ns, end_ns) for at in locations)
    if expected <= _MOST_READ:
        return [_Piece(at, start_ns, end_ns) for at in locations], 1.0
    chosen = locations[:: max(1, -(-len(locations) * _PIECE // _MOST_READ))]
    share = min(1.0, _MOST_READ / max(1.0, expected) * len(locations) / len(chosen))
    count = min(_MOST_PIECES, max(1, _MOST_READ // (_PIECE * len(chosen))))
    width = (end_ns - start_ns) / count
    pieces = []
    for number, location in enumerate(chosen):
        # Fractions of the golden ratio are spread evenly, however many there are.
        offset = number * _GOLDEN % 1.0 * (1 - share) * width
        begins = [int(start_ns + piece * width + offset) for piece in range(count)]
        pieces += [_Piece(location, begin, int(begin + width * share)) for begin in begins]
    return pieces, share * len(chosen) / len(locations)


def _beginning(context: TraceContext, pieces: list[_Piece]) -> Iterator[tuple[int, SpanArrays]]:
    """Yield the spans that begin in some pieces of time of locations."""
    for location, begin, end in pieces:
        # From the moment before, so that a span without any length is in it.
        spans = context.trace.span_arrays(location, begin - 1, end)
        inside = np.flatnonzero((spans["start_ns"] >= begin) & (spans["start_ns"] < end))
        if len(inside):
            yield location, chosen_spans(spans, inside)
