"""The critical path on the timeline: where it goes through each location in a window, no finer than its pixels."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, TypedDict

import numpy as np

from strobe.api.trace import Trace
from strobe.ranks.critical_path.graph import graph, processes_of, windows
from strobe.ranks.critical_path.longest_path import longest_path, parts
from strobe.server.routing.endpoints import MB, TIME_RANGE, WIDTH, parameter, route
from strobe.server.trace_context import TraceContext
from strobe.tables.column_arrays import Ints


class CriticalPathParts(TypedDict):
    """Where a critical path goes, column by column: see `critical_path`."""

    about: str
    step: str | None
    location: list[int]
    depth: list[int]
    start_ns: list[int]
    duration_ns: list[int]


class _Path(NamedTuple):
    """The path of a step: what it is in words, and its parts on locations; `depth` is that of their span."""

    about: str
    location: Ints
    depth: Ints
    start_ns: Ints
    end_ns: Ints


@route(
    "critical",
    parameter("at_ns", "a moment of the step, ns since the trace's zero"),
    *TIME_RANGE,
    WIDTH,
    most_bytes=16 * MB,
    slow=True,
)
def critical_path(context: TraceContext, at_ns: int, start_ns: int, end_ns: int, width: int) -> CriticalPathParts:
    """Where the critical path of the step at `at_ns` goes through the locations in a window.

    Outside of all steps, it is that of the whole run. `about`: which step, and how long; or why there is none. `step`:
    the step as the analysis critical-path takes it; null where there is no path. A row is one span, or several of the
    same depth with less than a pixel between them.
    """
    step, folded = _step_at(context.read, at_ns)
    if folded:
        about = f"step {step} was kept as statistics only: its critical path is not known"
        return {"about": about, "step": None, "location": [], "depth": [], "start_ns": [], "duration_ns": []}
    path = _path(context.read, step)
    inside = (path.start_ns < end_ns) & (path.end_ns > start_ns)
    location, depth, start, end = (column[inside] for column in path[1:])
    order = np.lexsort((start, depth, location))
    location, depth, start, end = (column[order] for column in (location, depth, start, end))
    pixel = (end_ns - start_ns) // width
    new = np.ones(len(start), dtype=bool)
    new[1:] = (np.diff(location) != 0) | (np.diff(depth) != 0) | (start[1:] - end[:-1] > pixel)
    first = np.flatnonzero(new)
    until = end[np.append(first[1:], len(end)) - 1] if len(end) else end
    return {
        "about": path.about,
        "step": step,
        "location": location[first].tolist(),
        "depth": depth[first].tolist(),
        "start_ns": start[first].tolist(),
        "duration_ns": (until - start[first]).tolist(),
    }


def _step_at(trace: Trace, at_ns: int) -> tuple[str, bool]:
    """Return the step that a moment is in, as `strobe critical-path --step` takes it, and whether it was folded."""
    for row in trace.ask("steps").to_pylist():
        begin, duration = row["start_ns"], row["duration_ns"]
        if isinstance(begin, int) and isinstance(duration, int) and begin <= at_ns < begin + duration:
            return str(row["step"]), row["detail"] != "all"
    return "all", False


@lru_cache(maxsize=8)
def _path(trace: Trace, step: str) -> _Path:
    (processes,) = processes_of(trace, "all")
    chosen, which = windows(trace, processes, step)
    whole = graph(trace, chosen)
    path = longest_path(whole)
    found = parts(whole, path)
    # Time between spans is nowhere to be drawn.
    known = found.row >= 0
    location, start, end = found.location[known], found.start_ns[known], (found.start_ns + found.weight_ns)[known]
    depth = np.zeros(len(location), dtype=np.int64)
    for at in np.unique(location).tolist():
        (own,) = np.nonzero(location == at)
        spans = trace.span_arrays(at, int(start[own].min()) - 1, int(end[own].max()) + 1)
        row = np.minimum(np.searchsorted(spans["row"], found.row[known][own]), max(0, len(spans["row"]) - 1))
        depth[own] = spans["depth"][row]
    return _Path(f"critical path of {which}: {path.length_ns / 1e6:.2f} ms", location, depth, start, end)
