"""The links of the selected span: what it started, what started it, who it sent to, and where these run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from strobe.server.tables import expected_spans
from strobe.structure.links import Chosen, Link, left_out, links_of
from strobe.structure.rows import span_at, span_of_row

if TYPE_CHECKING:
    from strobe.server.facts import Facts
    from strobe.store.trace import SpanArrays

# Ends that are sent; a person follows no more of them at once.
MOST_LINKS = 64
_MOST_COUNTED = 10_000
# Spans inside of the selected one that are looked through for calls that started something.
_MOST_INSIDE = 300_000


def links(facts: Facts, location: int, start_ns: int, depth: int) -> dict[str, Any]:
    """Return the links of the span that starts then at this depth, and of what is inside of it.

    links: at most `MOST_LINKS`, its own first; each with the span at its other end. count: of all, at most
    10 000. inside: whether those of spans inside of it were looked for, too, which they are not where these are many.
    left_out: kinds of links that were not looked for, as the run holds too many of them.
    """
    spans = facts.trace.span_arrays(location, start_ns, start_ns + 1)
    here = np.flatnonzero((spans["start_ns"] == start_ns) & (spans["depth"] == depth))
    if not len(here):
        return {"links": [], "count": 0, "inside": True, "left_out": []}
    at = int(here[0])
    row, end_ns = int(spans["row"][at]), start_ns + int(spans["duration_ns"][at])
    inside = expected_spans(facts, location, start_ns, end_ns) <= _MOST_INSIDE
    last = _last_row(facts, location, row, start_ns, end_ns) if inside else row + 1
    found: list[Link] = []
    communicates = facts.names.groups[int(spans["region"][at])] == "communication"
    chosen = Chosen(location, row, last, start_ns, end_ns, communicates)
    for link in links_of(facts.trace, chosen):
        found.append(link)
        if len(found) == _MOST_COUNTED:
            break
    found.sort(key=lambda link: link.inside)
    described, seen = list[dict[str, Any]](), {(location, row)}
    count = len(found)
    for link in found[: 2 * MOST_LINKS]:
        span = _other_end(facts, link)
        end = (link.location, int(span["row"][0])) if span else None
        if span and end and end not in seen:
            seen.add(end)
            what = {"kind": link.kind, "way": link.way, "inside": link.inside}
            described.append({**what, **described_span(facts, link.location, span)})
        else:
            count -= 1  # what the trace tells twice, by a flow and by a number
    without = left_out(facts.trace, chosen)
    return {"links": described[:MOST_LINKS], "count": count, "inside": inside, "left_out": without}


def _last_row(facts: Facts, location: int, row: int, start_ns: int, end_ns: int) -> int:
    """Return the row after the last span inside of a span."""
    spans = facts.trace.span_arrays(location, start_ns - 1, end_ns + 1)
    depth = spans["depth"][np.searchsorted(spans["row"], row)]
    later = (spans["row"] > row) & (spans["depth"] <= depth)
    return int(spans["row"][later][0]) if later.any() else int(spans["row"][-1]) + 1


def _other_end(facts: Facts, link: Link) -> SpanArrays | None:
    if link.row >= 0:
        return span_of_row(facts.trace, link.location, link.row)
    return span_at(facts.trace, link.location, link.time_ns)


def described_span(facts: Facts, location: int, span: SpanArrays) -> dict[str, Any]:
    """Return where a span is, how long it lasts, its name and its group."""
    region = int(span["region"][0])
    return {
        "location": location,
        "start_ns": int(span["start_ns"][0]),
        "duration_ns": int(span["duration_ns"][0]),
        "depth": int(span["depth"][0]),
        "name": facts.names.names[region],
        "group": facts.names.groups[region],
    }
