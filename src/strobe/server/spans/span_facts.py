"""The facts about one span: what the page shows when it is selected."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from strobe.errors import UsageError
from strobe.gpu.devices import stream_name
from strobe.model.kinds import Group
from strobe.server.routing.endpoints import LOCATION, LOOP, MB, TIME_RANGE, parameter, route
from strobe.server.run.step_list import StepList, StepPlace
from strobe.server.spans.sampled_boxes import boxes_in
from strobe.server.spans.span_links import SpanEnd, described_span
from strobe.server.time_range.folded_steps import folded_process
from strobe.server.time_range.range_sums import clipped_self_ns
from strobe.server.trace_context import TraceContext
from strobe.trace.definition_rows import location_rows, region_rows
from strobe.trace.spans import SpanArrays, chosen_spans

_HISTOGRAM_BINS = 32
# Comparing reads the whole location: up to here in well under a tenth of a second.
_MOST_COMPARED = 3_000_000
_NO_REGION = 0xFFFFFFFF


class Frame(TypedDict):
    """A region of a call path."""

    name: str
    group: Group
    file: str | None
    line: int | None


class FoldedInside(TypedDict):
    """What was folded directly inside of a span: see `folded_inside`."""

    steps: int
    time_ns: int
    exact: bool
    self_ns: int


class Sisters(TypedDict):
    """How long the spans of the same region in the same location last: see `sisters`."""

    folded_count: int
    folded_ns: int
    count: int
    total_ns: float
    median_ns: float
    shortest_ns: float
    longest_ns: float
    shorter: int
    histogram: list[int]
    histogram_low_ns: float
    histogram_high_ns: float


class SpanFacts(SpanEnd):
    """A span with its region, its call path, its step, and how it compares with its sisters.

    samples: how many samples it joins, of a thread whose calls were not recorded.
    """

    location_name: str
    process: int
    row: int
    self_ns: int
    folded: FoldedInside | None
    complete: bool
    region: int
    paradigm: str
    role: str
    file: str | None
    line: int | None
    module: str | None
    path: list[Frame]
    step: StepPlace | None
    sisters: Sisters | None
    samples: int | None


@route(
    "span",
    LOCATION,
    *TIME_RANGE,
    parameter("depth", "only at this depth, 0 being the outermost", default=None),
    parameter("region", "only of this region", default=None),
    LOOP,
    most_bytes=4 * MB,
    slow=True,
)
def find_span(
    context: TraceContext, location: int, start_ns: int, end_ns: int, depth: int | None, region: int | None, level: str
) -> SpanFacts | None:
    """The span that fills most of a window of a location, of one depth or region where given; or null.

    Of spans that fill as much, it is the deepest.
    """
    sampled = location in context.sampled.locations
    window = location, start_ns, end_ns
    arrays = boxes_in(context, *window) if sampled else context.trace.span_arrays(*window)
    start = arrays["start_ns"]
    stop = start + arrays["duration_ns"]
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
    return _facts(context, location, chosen_spans(arrays, np.array([best])), level)


WAYS = ("next", "previous", "parent", "child")


@route(
    "neighbour",
    LOCATION,
    parameter("start_ns", "when the span starts, ns since the trace's zero"),
    parameter("depth", "its depth, 0 being the outermost"),
    parameter("way", "which one", str, choices=WAYS),
    LOOP,
    most_bytes=4 * MB,
    slow=True,
)
def neighbour(
    context: TraceContext, location: int, start_ns: int, depth: int, way: str, level: str
) -> SpanFacts | None:
    """The span beside, around, or inside another one: for those who walk by keys."""
    if context.span_counts[location] > _MOST_COMPARED:
        raise UsageError("this thread has too many spans to walk along them", do="Zoom in and click")
    sampled = location in context.sampled.locations
    arrays = context.boxes(location).spans if sampled else context.whole_location(location)
    start = arrays["start_ns"]
    here = np.flatnonzero((start == start_ns) & (arrays["depth"] == depth))
    if not len(here):
        return None
    at = int(here[0])
    if way == "parent":
        rows = np.searchsorted(arrays["row"], arrays["parent"][[at]]) if arrays["parent"][at] >= 0 else here[:0]
    elif way == "child":
        rows = np.flatnonzero(arrays["parent"] == arrays["row"][at])[:1]
    else:
        # Spans are in order of start, so those of one depth are as well.
        row = np.flatnonzero(arrays["depth"] == depth)
        beside = int(np.searchsorted(row, at)) + (1 if way == "next" else -1)
        rows = row[beside : beside + 1] if beside >= 0 else row[:0]
    return _facts(context, location, chosen_spans(arrays, rows), level) if len(rows) else None


def _facts(context: TraceContext, location: int, one: SpanArrays, level: str) -> SpanFacts:
    if location in context.sampled.locations:
        return describe_box(context, location, one)
    return describe(context, location, one, context.chosen(level).steps)


def describe_box(context: TraceContext, location: int, one: SpanArrays) -> SpanFacts:
    """Return a box of a sampled thread with its functions. Of what only recorded calls have, nothing."""
    where, boxes = location_rows(context.trace)[location], context.boxes(location)
    row = int(one["row"][0])
    at, path = row, list[Frame]()
    while at >= 0:
        label = context.sampled.label(int(boxes.spans["region"][at]))
        path.append(Frame(name=label.name, group=label.group, file=label.file or None, line=label.line or None))
        at = int(boxes.spans["parent"][at])
    return {
        "location": location,
        "start_ns": int(one["start_ns"][0]),
        "duration_ns": int(one["duration_ns"][0]),
        "depth": int(one["depth"][0]),
        "name": path[0]["name"],
        "group": path[0]["group"],
        "location_name": stream_name(where.name),
        "process": where.process,
        "row": row,
        "self_ns": int(one["self_ns"][0]),
        "folded": None,
        "complete": True,
        "region": int(one["region"][0]),
        "paradigm": "sampled",
        "role": "function" if path[0]["file"] else "state",
        "file": path[0]["file"],
        "line": path[0]["line"],
        "module": None,
        "path": path[::-1],
        "step": None,
        "sisters": None,
        "samples": int(boxes.samples[row]),
    }


def describe(context: TraceContext, location: int, one: SpanArrays, steps: StepList) -> SpanFacts:
    """Return a span with its region, its call path, its step, and how it compares with its sisters."""
    where, region = location_rows(context.trace)[location], region_rows(context.trace)[int(one["region"][0])]
    start_ns, duration_ns = int(one["start_ns"][0]), int(one["duration_ns"][0])
    comparable = where.span_count <= _MOST_COMPARED
    self_ns = _self_ns(context, location, one, comparable)
    folded = folded_inside(context, location, where.process, one, self_ns) if comparable else None
    return {
        **described_span(context, location, one),
        "location_name": stream_name(where.name),
        "process": where.process,
        "row": int(one["row"][0]),
        "self_ns": folded["self_ns"] if folded else self_ns,
        "folded": folded,
        "complete": bool(one["complete"][0]),
        "region": region.region,
        "paradigm": region.paradigm,
        "role": region.role,
        "file": region.file,
        "line": region.line,
        "module": region.module,
        "path": call_path(context, int(one["call_path"][0])),
        "step": steps.at(where.process, start_ns),
        "sisters": sisters(context, location, region.region, duration_ns) if comparable else None,
        "samples": None,
    }


def _self_ns(context: TraceContext, location: int, one: SpanArrays, comparable: bool) -> int:
    """Return a span's time without what is directly inside, also where it was found in a window that cuts it."""
    start_ns = int(one["start_ns"][0])
    end_ns = start_ns + int(one["duration_ns"][0])
    around = context.whole_location(location) if comparable else context.trace.span_arrays(location, start_ns, end_ns)
    return int(around["self_ns"][np.searchsorted(around["row"], one["row"][0])])


def folded_inside(
    context: TraceContext, location: int, process: int, one: SpanArrays, self_ns: int
) -> FoldedInside | None:
    """Return what was folded directly inside of a span: steps, their time in ns, and the span's own time without it.

    None where nothing was. The own time is exact where the span is the only one of its call path: then the
    statistics of the path are those of this span. Else it is that outside of the folded steps (`exact` false).
    """
    if process not in context.trace.folded:
        return None
    folded = folded_process(context, process)
    stretches = folded.of_location(context, location)
    arrays = context.whole_location(location)
    start_ns, end_ns = int(one["start_ns"][0]), int(one["start_ns"][0] + one["duration_ns"][0])
    around = (arrays["start_ns"] < end_ns) & (arrays["start_ns"] + arrays["duration_ns"] > start_ns)
    near = chosen_spans(arrays, np.flatnonzero(around))
    at = int(np.searchsorted(near["row"], one["row"][0]))
    outside_ns = int(clipped_self_ns(near, start_ns, end_ns, stretches)[at])
    inside_ns = self_ns - outside_ns
    if inside_ns <= 0:
        return None
    path, sums = one["call_path"][0], folded.statistics
    of_path = (sums.location == location) & (sums.call_path == path)
    exact = int((arrays["call_path"] == path).sum()) == 1 and not sums.count[of_path].any()
    return {
        "steps": len(stretches.overlapping(start_ns, end_ns)),
        "time_ns": inside_ns,
        "exact": exact,
        "self_ns": self_ns + int(sums.own_ns[of_path].sum()) if exact else outside_ns,
    }


def call_path(context: TraceContext, leaf: int) -> list[Frame]:
    """Return the regions from the root to a call path's last one: name, group, file, line."""
    parents, regions = context.call_path_arrays
    chain: list[Frame] = []
    at = leaf
    while 0 <= at < len(regions) and len(chain) < 512:
        region = region_rows(context.trace)[regions[at]]
        chain.append(Frame(name=region.name, group=region.group, file=region.file, line=region.line))
        at = int(parents[at])
    return chain[::-1]


def sisters(context: TraceContext, location: int, region: int, duration_ns: int) -> Sisters:
    """Return how long the spans of the same region in the same location last, in ns; the histogram is over log time.

    `folded_count` and `folded_ns`: executions that are in the statistics only, and in none of the other numbers.
    """
    arrays = context.whole_location(location)
    all_ns = arrays["duration_ns"][arrays["region"] == region].astype(np.float64)
    low, high = max(1.0, float(all_ns.min())), max(2.0, float(all_ns.max()))
    edges = np.geomspace(low, high * 1.0001, _HISTOGRAM_BINS + 1) if high > low * 1.01 else np.array([low, high + 1])
    counts, _ = np.histogram(np.maximum(all_ns, 1.0), edges)
    _, region_of_path = context.call_path_arrays
    folded = [
        each.chosen((each.location == location) & (region_of_path[each.call_path] == region))
        for each in context.trace.folded.values()
    ]
    return {
        "folded_count": int(sum(each.count.sum() for each in folded)),
        "folded_ns": int(sum(each.total_ns.sum() for each in folded)),
        "count": len(all_ns),
        "total_ns": float(all_ns.sum()),
        "median_ns": float(np.median(all_ns)),
        "shortest_ns": float(all_ns.min()),
        "longest_ns": float(all_ns.max()),
        "shorter": int((all_ns < duration_ns).sum()),
        "histogram": counts.tolist(),
        "histogram_low_ns": low,
        "histogram_high_ns": high,
    }
