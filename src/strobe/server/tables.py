"""Tables for the page, as Arrow IPC streams: spans of a window, metrics, locations. Each is bounded by the screen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from strobe.server.tiles import PALETTE_BYTES, TILE_CELLS, encode_cells, tile_window

if TYPE_CHECKING:
    from strobe.server.facts import Facts
    from strobe.store.trace import SpanArrays

ARROW_TYPE = "application/vnd.apache.arrow.stream"
CELLS_TYPE = "application/octet-stream"
# Up to here a tile's spans are sent one by one, with names and exact ends; a screen can label and hit no more.
MOST_SPANS = 5000
MOST_DEPTHS = 64


@dataclass(frozen=True)
class Body:
    """An answer: its bytes and their media type."""

    data: bytes
    media_type: str


def cells_bytes(rows: int) -> int:
    """Return the bytes that so many rows of cells have at most: index, share and mark of each, and their palette."""
    return 3 * rows * TILE_CELLS + PALETTE_BYTES


def arrow_body(table: pa.Table) -> Body:
    """Write a table as an Arrow IPC stream, uncompressed: the browser's reader has no codec, HTTP may compress."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return Body(sink.getvalue().to_pybytes(), ARROW_TYPE)


def named_spans(facts: Facts, arrays: SpanArrays) -> pa.Table:
    """Return spans with the names and groups of their regions as dictionary columns."""
    names, groups = facts.name_dictionaries
    used, index = np.unique(arrays["region"], return_inverse=True)
    index = pa.array(index.astype(np.int32))
    # The dictionaries hold only the names in view: an answer is bounded by its rows, not by the trace's regions.
    return pa.table(
        {
            "row": pa.array(arrays["row"]),
            "start_ns": pa.array(arrays["start_ns"]),
            "duration_ns": pa.array(arrays["duration_ns"]),
            "self_ns": pa.array(arrays["self_ns"]),
            "region": pa.array(arrays["region"]),
            "depth": pa.array(arrays["depth"]),
            "complete": pa.array(arrays["complete"].astype(np.uint8)),
            "name": pa.DictionaryArray.from_arrays(index, names.take(pa.array(used))),
            "group": pa.DictionaryArray.from_arrays(index, groups.take(pa.array(used))),
        }
    )


def some_of(arrays: SpanArrays, rows: npt.NDArray[np.intp]) -> SpanArrays:
    """Return some rows of spans."""
    return {
        "row": arrays["row"][rows],
        "start_ns": arrays["start_ns"][rows],
        "duration_ns": arrays["duration_ns"][rows],
        "self_ns": arrays["self_ns"][rows],
        "region": arrays["region"][rows],
        "call_path": arrays["call_path"][rows],
        "depth": arrays["depth"][rows],
        "parent": arrays["parent"][rows],
        "complete": arrays["complete"][rows],
    }


def cells_body(facts: Facts, locations: list[int], level: int, tile: int) -> Body:
    """Return one tile of the innermost region for each location: rows in the order asked for."""
    start_ns, end_ns = tile_window(level, tile)
    regions, shares, marks = facts.trace.cells(locations, start_ns, end_ns, TILE_CELLS)
    header = {"level": level, "tile": tile, "locations": locations}
    return Body(encode_cells(regions, shares, facts.names, header, marks), CELLS_TYPE)


def stack_body(facts: Facts, location: int, level: int, tile: int) -> Body:
    """Return one tile of a location with its nesting: the spans while they are few, else a row of cells per depth."""
    start_ns, end_ns = tile_window(level, tile)
    if expected_spans(facts, location, start_ns, end_ns) <= 20 * MOST_SPANS:
        arrays = facts.trace.span_arrays(location, start_ns, end_ns)
        if len(arrays["start_ns"]) <= MOST_SPANS:
            return arrow_body(named_spans(facts, arrays))
    regions, filled = facts.trace.stack_cells(location, start_ns, end_ns, TILE_CELLS, MOST_DEPTHS)
    header = {"level": level, "tile": tile, "locations": [location]}
    return Body(encode_cells(regions, filled, facts.names, header), CELLS_TYPE)


def expected_spans(facts: Facts, location: int, start_ns: int, end_ns: int) -> float:
    """Return the spans in a window if they were spread evenly: tells far too full windows without reading them."""
    row = facts.locations.slice(location, 1).to_pylist()[0]
    first_ns, last_ns, count = row["first_ns"] or 0, row["last_ns"] or 0, row["span_count"] or 0
    inside = min(end_ns, last_ns) - max(start_ns, first_ns)
    return float(count) * max(0, inside) / max(1, last_ns - first_ns)
