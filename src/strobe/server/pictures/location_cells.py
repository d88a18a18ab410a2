"""Tiles of single threads and streams: one row of cells each, or all that is nested."""

from __future__ import annotations

import numpy as np

from strobe.server.pictures.cell_tiles import NOTHING, PALETTE_BYTES, TILE_CELLS, cells_body, fullest, tile_window
from strobe.server.routing.bodies import ARROW_TYPE, CELLS_TYPE, Body, arrow_body
from strobe.server.routing.endpoints import LOCATION, LOCATIONS, MB, MOST_LOCATIONS, TILE, route
from strobe.server.spans.sampled_boxes import boxes_in, drawn_names, named_boxes
from strobe.server.spans.span_tables import SPAN_COLUMNS, expected_spans, named_spans
from strobe.server.trace_context import TraceContext

# Up to here a tile's spans are sent one by one, with names and exact ends; a screen can label and hit no more.
MOST_SPANS = 5000
MOST_DEPTHS = 64


# Each location has an index, a share and a mark for every cell.
@route("cells", LOCATIONS, *TILE, most_bytes=3 * MOST_LOCATIONS * TILE_CELLS + PALETTE_BYTES, media=(CELLS_TYPE,))
def cells(context: TraceContext, locations: tuple[int, ...], level: int, tile: int) -> Body:
    """One tile of the innermost region, for `locations=0,3,4`."""
    start_ns, end_ns = tile_window(level, tile)
    regions, shares, marks = context.trace.pyramid.cells(locations, start_ns, end_ns, TILE_CELLS)
    for at, location in enumerate(locations):
        if location in context.sampled.locations:
            boxes = context.boxes(location)
            drawn = fullest(boxes.start_ns, boxes.end_ns, boxes.innermost, start_ns, end_ns)
            regions[at], shares[at] = drawn
    header = {"level": level, "tile": tile, "locations": locations}
    return cells_body(regions, shares, drawn_names(context), header, marks)


@route("stack", LOCATION, *TILE, columns=SPAN_COLUMNS, most_bytes=8 * MB, media=(ARROW_TYPE, CELLS_TYPE))
def stack(context: TraceContext, location: int, level: int, tile: int) -> Body:
    """One tile of one location with its nesting.

    That is its spans while they are few, else a row of cells per depth.
    """
    start_ns, end_ns = tile_window(level, tile)
    if location in context.sampled.locations:
        return _sampled(context, location, level, tile)
    if expected_spans(context, location, start_ns, end_ns) <= 20 * MOST_SPANS:
        arrays = context.trace.span_arrays(location, start_ns, end_ns)
        if len(arrays["start_ns"]) <= MOST_SPANS:
            return arrow_body(named_spans(context, arrays))
    regions, filled = context.trace.pyramid.stack_cells(location, start_ns, end_ns, TILE_CELLS, MOST_DEPTHS)
    header = {"level": level, "tile": tile, "locations": [location]}
    return cells_body(regions, filled, context.names, header)


def _sampled(context: TraceContext, location: int, level: int, tile: int) -> Body:
    """Return the same of a thread that was only sampled."""
    start_ns, end_ns = tile_window(level, tile)
    spans = boxes_in(context, location, start_ns, end_ns)
    if len(spans["row"]) <= MOST_SPANS:
        return arrow_body(named_boxes(context, spans))
    depths = min(MOST_DEPTHS, int(spans["depth"].max()) + 1)
    regions = np.full((depths, TILE_CELLS), NOTHING, dtype=np.uint32)
    filled = np.zeros((depths, TILE_CELLS), dtype=np.uint8)
    for depth in range(depths):
        here = spans["depth"] == depth
        begin, region = spans["start_ns"][here], spans["region"][here].astype(np.int64)
        regions[depth], filled[depth] = fullest(begin, begin + spans["duration_ns"][here], region, start_ns, end_ns)
    return cells_body(regions, filled, drawn_names(context), {"level": level, "tile": tile, "locations": [location]})
