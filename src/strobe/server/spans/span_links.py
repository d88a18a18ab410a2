"""The links of the selected span: what it started, what started it, which spans it sent to, and where these run."""

from __future__ import annotations

from typing import Annotated, TypedDict

import numpy as np

from strobe.model.kinds import Group
from strobe.ranks.links import Chosen, left_out, links_of
from strobe.ranks.links import Link as FoundLink
from strobe.server.routing.endpoints import LOCATION, MB, parameter, route
from strobe.server.spans.span_tables import expected_spans
from strobe.server.trace_context import TraceContext
from strobe.sums.single_spans import span_at, span_of_row
from strobe.trace.spans import SpanArrays

# Ends that are sent; a person follows no more of them at once.
MOST_LINKS = 64
_MOST_COUNTED = 10_000
# Spans inside of the selected one that are looked through for calls that started something.
_MOST_INSIDE = 300_000


class Execution(TypedDict):
    """Where a span is, and how long it lasts."""

    location: int
    start_ns: int
    duration_ns: int
    depth: int


class SpanEnd(Execution):
    """Where a span is, how long it lasts, its name and its group."""

    name: str
    group: Group


class Link(SpanEnd):
    """The other end of a link. `way`: the span led to it, comes from it, or met it. `inside`: of a span inside."""

    kind: str
    way: Annotated[str, ("to", "from", "with")]
    inside: bool


class Links(TypedDict):
    """The links of a span: see `links`."""

    links: list[Link]
    count: int
    inside: bool
    left_out: list[str]


@route(
    "links",
    LOCATION,
    parameter("start_ns", "when the span starts, ns since the trace's zero"),
    parameter("depth", "spans around it"),
    most_bytes=4 * MB,
)
def links(context: TraceContext, location: int, start_ns: int, depth: int) -> Links:
    """What a span started, what started it, and which spans it sent to or met.

    links: at most `MOST_LINKS`, its own first; each with the span at its other end. count: of all, at most
    10 000. inside: whether those of spans inside of it were looked for, too, which they are not where these are many.
    left_out: kinds of links that were not looked for, as the run holds too many of them.
    """
    spans = context.trace.span_arrays(location, start_ns, start_ns + 1)
    here = np.flatnonzero((spans["start_ns"] == start_ns) & (spans["depth"] == depth))
    if not len(here):
        return {"links": [], "count": 0, "inside": True, "left_out": []}
    at = int(here[0])
    row, end_ns = int(spans["row"][at]), start_ns + int(spans["duration_ns"][at])
    inside = expected_spans(context, location, start_ns, end_ns) <= _MOST_INSIDE
    last = _last_row(context, location, row, start_ns, end_ns) if inside else row + 1
    found: list[FoundLink] = []
    communicates = context.names.groups[int(spans["region"][at])] == "communication"
    chosen = Chosen(location, row, last, start_ns, end_ns, communicates)
    for link in links_of(context.trace, chosen):
        found.append(link)
        if len(found) == _MOST_COUNTED:
            break
    found.sort(key=lambda link: link.inside)
    described, seen = list[Link](), {(location, row)}
    count = len(found)
    for link in found[: 2 * MOST_LINKS]:
        trace, where = context.trace, link.location
        span = span_of_row(trace, where, link.row) if link.row >= 0 else span_at(trace, where, link.time_ns)
        end = (link.location, int(span["row"][0])) if span else None
        if span and end and end not in seen:
            seen.add(end)
            far = described_span(context, link.location, span)
            described.append({**far, "kind": link.kind, "way": link.way, "inside": link.inside})
        else:
            count -= 1  # in the trace twice, as a flow and by a number
    without = left_out(context.trace, chosen)
    return {"links": described[:MOST_LINKS], "count": count, "inside": inside, "left_out": without}


def _last_row(context: TraceContext, location: int, row: int, start_ns: int, end_ns: int) -> int:
    """Return the row after the last span inside of a span."""
    spans = context.trace.span_arrays(location, start_ns - 1, end_ns + 1)
    depth = spans["depth"][np.searchsorted(spans["row"], row)]
    later = (spans["row"] > row) & (spans["depth"] <= depth)
    return int(spans["row"][later][0]) if later.any() else int(spans["row"][-1]) + 1


def described_span(context: TraceContext, location: int, span: SpanArrays) -> SpanEnd:
    """Return where a span is, how long it lasts, its name and its group."""
    region = int(span["region"][0])
    return {
        "location": location,
        "start_ns": int(span["start_ns"][0]),
        "duration_ns": int(span["duration_ns"][0]),
        "depth": int(span["depth"][0]),
        "name": context.names.names[region],
        "group": context.names.groups[region],
    }
