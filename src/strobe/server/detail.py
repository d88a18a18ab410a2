"""The facts about one span: what the page shows when it is selected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from strobe.server.facts import Facts

_HISTOGRAM_BINS = 32
# Comparing reads the whole location: up to here in well under a tenth of a second.
_MOST_COMPARED = 3_000_000
_NO_REGION = 0xFFFFFFFF


def find_span(
    facts: Facts, location: int, start_ns: int, end_ns: int, *, depth: int | None = None, region: int | None = None
) -> dict[str, Any] | None:
    """Return the span that fills most of [start_ns, end_ns), the deepest of equals; of one depth or region if given."""
    arrays = facts.trace.span_arrays(location, start_ns, max(end_ns, start_ns + 1))
    start = arrays["start_ns"].astype(np.int64)
    stop = start + arrays["duration_ns"].astype(np.int64)
    wanted = np.ones(len(start), dtype=bool)
    if depth is not None:
        wanted &= arrays["depth"] == depth
    if region is not None and region != _NO_REGION:
        wanted &= arrays["region"] == region
    rows = np.flatnonzero(wanted)
    if not len(rows):
        return None
    overlap = np.minimum(stop[rows], end_ns) - np.maximum(start[rows], start_ns)
    best = rows[np.lexsort((arrays["depth"][rows], overlap))[-1]]
    return describe(facts, location, {name: column[best].item() for name, column in arrays.items()})


def describe(facts: Facts, location: int, span: dict[str, Any]) -> dict[str, Any]:
    """Return a span with its region, its call path, its step, and how it compares with others of its region in its location."""
    where = facts.locations.slice(location, 1).to_pylist()[0]
    region = facts.regions.slice(span["region"], 1).to_pylist()[0]
    return {
        "location": location,
        "location_name": where["name"],
        "process": where["process"],
        "row": span["row"],
        "start_ns": span["start_ns"],
        "duration_ns": span["duration_ns"],
        "self_ns": span["self_ns"],
        "depth": span["depth"],
        "complete": bool(span["complete"]),
        **{key: region[key] for key in ("region", "name", "paradigm", "role", "group", "file", "line", "module")},
        "path": call_path(facts, span["call_path"]),
        "step": facts.steps.at(where["process"], span["start_ns"]),
        "sisters": sisters(facts, location, span) if where["span_count"] <= _MOST_COMPARED else None,
    }


def call_path(facts: Facts, leaf: int) -> list[dict[str, Any]]:
    """Return the regions from the root to a call path's last one: name, group, file, line."""
    parents, regions = facts.call_path_arrays
    chain: list[dict[str, Any]] = []
    at = leaf
    while 0 <= at < len(regions) and len(chain) < 512:
        region = facts.regions.slice(int(regions[at]), 1).to_pylist()[0]
        chain.append({key: region[key] for key in ("name", "group", "file", "line")})
        at = int(parents[at])
    return chain[::-1]


def sisters(facts: Facts, location: int, span: dict[str, Any]) -> dict[str, Any]:
    """Return how long the spans of the same region in the same location last: count, mean, quantiles, a histogram over log time."""
    arrays = facts.whole_location(location)
    duration_ns = arrays["duration_ns"][arrays["region"] == span["region"]].astype(np.float64)
    low, high = max(1.0, float(duration_ns.min())), max(2.0, float(duration_ns.max()))
    edges = np.geomspace(low, high * 1.0001, _HISTOGRAM_BINS + 1) if high > low * 1.01 else np.array([low, high + 1])
    counts, _ = np.histogram(np.maximum(duration_ns, 1.0), edges)
    return {
        "count": len(duration_ns),
        "total_ns": float(duration_ns.sum()),
        "median_ns": float(np.median(duration_ns)),
        "shortest_ns": float(duration_ns.min()),
        "longest_ns": float(duration_ns.max()),
        "shorter": int((duration_ns < span["duration_ns"]).sum()),
        "histogram": counts.tolist(),
        "histogram_low_ns": low,
        "histogram_high_ns": high,
    }
