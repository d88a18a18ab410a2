"""Rows of the timeline by what they are: main and backward threads, a profiler's own rows; what a GPU is used for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from strobe.gpu.work import kind_of_region
from strobe.model.kinds import GROUPS
from strobe.server.pictures.cell_tiles import TILE_CELLS, tile_window
from strobe.server.pictures.row_rasters import encode_rasters, raster_bytes
from strobe.server.routing.bodies import CELLS_TYPE, Body
from strobe.server.routing.endpoints import LOCATIONS, MB, TILE, route
from strobe.server.spans.span_tables import expected_spans
from strobe.server.trace_context import TraceContext
from strobe.steps.thread_spans import are_backward, main_location
from strobe.tables.column_arrays import Bools, Floats, Ints
from strobe.trace.definition_rows import location_rows

# Activities that are read for a tile; of more, streams are taken to run one after the other.
_MOST_READ = 1_000_000
# The groups of gpu.work.KINDS, in the order in which they count.
_PLANES = ("compute", "communication", "copy")
# As imports name them: rows of a profiler, and of the scheduler of the operating system.
_SYSTEM = re.compile(r"\b(profiler|scheduling)\b", re.IGNORECASE)


class RowOrder(TypedDict):
    """Threads and streams by what they are; the others are ordinary ones."""

    main: list[int]
    backward: list[int]
    system: list[int]


@route("rows/order", most_bytes=64 * MB, slow=True)
def row_order(context: TraceContext) -> RowOrder:
    """Which rows are main threads, which run backward passes, and which are of a profiler or of scheduling."""
    trace = context.trace
    rows = location_rows(trace)
    mains = {main_location(trace, process) for process in range(len(trace.processes))} - {None}
    backward = are_backward(context.names.names)
    others = [row.location for row in rows if row.kind == "thread" and row.location not in mains]
    found = list[int]()
    for some, executions, _ in context.profiles(others if backward.any() else [], *context.bounds):
        found += np.array(some)[executions[:, backward].any(axis=1)].tolist()
    system = [row.location for row in rows if row.kind == "task" and row.device is None and _SYSTEM.search(row.name)]
    return {"main": sorted(at for at in mains if at is not None), "backward": found, "system": system}


@route("rows/gpu", LOCATIONS, *TILE, most_bytes=raster_bytes(1, len(GROUPS)), media=(CELLS_TYPE,))
def gpu_shares(context: TraceContext, locations: Sequence[int], level: int, tile: int) -> Body:
    """One tile of what a GPU is used for, of which these are the streams: shares of groups that never overlap.

    compute: kernels; communication: without a kernel beside it; copy: beside neither. Where more than a million
    activities lie in the tile, streams count as if they ran one after the other: at most all of the time.
    """
    start_ns, end_ns = tile_window(level, tile)
    if sum(expected_spans(context, at, start_ns, end_ns) for at in locations) > _MOST_READ:
        shares = np.asarray(context.trace.pyramid.group_shares(locations, start_ns, end_ns, TILE_CELLS)) / 255
        busy = np.cumsum([shares[..., GROUPS.index(group)].sum(axis=0) for group in _PLANES], axis=0)
    else:
        busy = _busy(context, locations, start_ns, end_ns)
    planes = np.zeros((len(GROUPS), TILE_CELLS), dtype=np.uint8)
    alone = np.diff(np.clip(busy, 0, 1), axis=0, prepend=0)
    planes[[GROUPS.index(group) for group in _PLANES]] = np.rint(255 * alone)
    return encode_rasters(planes[None], None, {})


def _busy(context: TraceContext, locations: Sequence[int], start_ns: int, end_ns: int) -> Floats:
    """Return for which part of each cell work of the first, the first two, and all kinds runs on any stream."""
    kinds = kind_of_region(context.trace)
    parts = [context.trace.span_arrays(at, start_ns, end_ns) for at in locations]
    kind = np.concatenate([kinds[spans["region"]] for spans in parts])
    begin = np.concatenate([spans["start_ns"] for spans in parts])
    end = begin + np.concatenate([spans["duration_ns"] for spans in parts])
    edges = start_ns + np.arange(TILE_CELLS + 1, dtype=np.int64) * ((end_ns - start_ns) // TILE_CELLS)
    chosen = [(kind >= 0) & (kind <= last) for last in range(len(_PLANES))]
    return np.array([_covered(begin[some], end[some], edges) for some in chosen])


def _covered(begin: Ints, end: Ints, edges: Ints) -> Floats:
    """Return the part of the time between each two edges that intervals [begin, end) cover together."""
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], np.maximum.accumulate(end[order])
    if not len(begin):
        return np.zeros(len(edges) - 1)
    first: Bools = np.append(True, begin[1:] > end[:-1])
    begins, ends = begin[first], end[np.append(np.flatnonzero(first)[1:] - 1, len(end) - 1)]
    before = np.concatenate(([0], np.cumsum(ends - begins)))
    at = np.searchsorted(begins, edges, side="right")
    # What was covered before an edge: all intervals before, and the last one up to the edge.
    last = np.maximum(at - 1, 0)
    covered = np.where(at > 0, before[last] + np.minimum(edges, ends[last]) - begins[last], 0)
    return np.diff(covered) / np.diff(edges)
