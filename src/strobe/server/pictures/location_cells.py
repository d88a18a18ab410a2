"""Tiles of single threads and streams: one row of cells each, or all that is nested."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.server.pictures.cell_tiles import PALETTE_BYTES, TILE_CELLS, encode_cells, tile_window
from strobe.server.routing.bodies import CELLS_TYPE, Body, arrow_body
from strobe.server.spans.span_tables import expected_spans, named_spans

if TYPE_CHECKING:
    from strobe.server.trace_context import TraceContext

# Up to here a tile's spans are sent one by one, with names and exact ends; a screen can label and hit no more.
MOST_SPANS = 5000
MOST_DEPTHS = 64


def cells_bytes(rows: int) -> int:
    """Return the bytes that so many rows of cells have at most: index, share and mark of each, and their palette."""
    return 3 * rows * TILE_CELLS + PALETTE_BYTES


def cells_body(context: TraceContext, locations: list[int], level: int, tile: int) -> Body:
    """Return one tile of the innermost region for each location: rows in the order asked for."""
    start_ns, end_ns = tile_window(level, tile)
    regions, shares, marks = context.trace.pyramid.cells(locations, start_ns, end_ns, TILE_CELLS)
    header = {"level": level, "tile": tile, "locations": locations}
    return Body(encode_cells(regions, shares, context.names, header, marks), CELLS_TYPE)


def stack_body(context: TraceContext, location: int, level: int, tile: int) -> Body:
    """Return one tile of a location with its nesting: the spans while they are few, else a row of cells per depth."""
    start_ns, end_ns = tile_window(level, tile)
    if expected_spans(context, location, start_ns, end_ns) <= 20 * MOST_SPANS:
        arrays = context.trace.span_arrays(location, start_ns, end_ns)
        if len(arrays["start_ns"]) <= MOST_SPANS:
            return arrow_body(named_spans(context, arrays))
    regions, filled = context.trace.pyramid.stack_cells(location, start_ns, end_ns, TILE_CELLS, MOST_DEPTHS)
    header = {"level": level, "tile": tile, "locations": [location]}
    return Body(encode_cells(regions, filled, context.names, header), CELLS_TYPE)
