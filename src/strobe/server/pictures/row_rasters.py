"""Pictures of many rows: group shares of a few or of all, one number per cell as heat, and what rows are sorted by.

A body is

    4 bytes "STR1", u32 length of the header, header (JSON, padded with spaces to 8 bytes),
    u8 values[rows][planes][TILE_CELLS], and, where the header has `"marks": true`, u8 marks[rows][TILE_CELLS].

Planes are the groups of `model.kinds.GROUPS` (shares in 255ths of the cell), or one. A mark i > 0 is the header's
`palette[i - 1] = [region, name, group]`: the longest exceptional span in the cell, GAP where it is a gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from strobe.errors import UsageError
from strobe.model.kinds import GROUPS
from strobe.model.schema import Column
from strobe.server.pictures.cell_tiles import PALETTE_BYTES, TILE_CELLS, Bytes, marked_palette, tile_window
from strobe.server.routing.bodies import CELLS_TYPE, Body, picture_body
from strobe.server.routing.endpoints import LOCATIONS, MB, MOST_LOCATIONS, TILE, TIME_RANGE, parameter, route
from strobe.server.run.series import Series
from strobe.server.trace_context import TraceContext
from strobe.tables.table import make_table
from strobe.trace.definition_rows import processes_of_locations

MAGIC = b"STR1"
MEASURES = "group.NAME, region.NAME or metric.NAME"
MOST_ROWS = 128
# 8 to this power are more locations than any machine has.
MOST_LEVEL = 12


VALUE_COLUMNS = (
    Column("location", "uint32", "", "thread or stream"),
    Column("value", "float64", "", "how much of the measure it has, NaN where that is unknown"),
)


class RowPlace(TypedDict):
    """What has the same part in every process, with its locations in order of rank."""

    title: str
    kind: str
    locations: list[int]


MEASURE = parameter("of", MEASURES, str, most=8192)


def raster_bytes(rows: int, planes: int) -> int:
    """Return the bytes that such a body has at most."""
    return rows * (planes + 1) * TILE_CELLS + PALETTE_BYTES


def encode_rasters(values: Bytes, marks: Bytes | None, header: Mapping[str, object]) -> Body:
    """Return rows of cells, with their marks, as a body."""
    rows, planes, _ = values.shape
    about = {**header, "rows": rows, "planes": planes, "marks": marks is not None}
    return picture_body(MAGIC, about, values, *([] if marks is None else [marks]))


@route("rows/places", most_bytes=64 * MB)
def places(context: TraceContext) -> list[RowPlace]:
    """What has the same part in every process (main threads, `stream 7`, ...), with its locations in order of rank."""
    return [
        {"title": place.title, "kind": place.kind, "locations": list(place.locations)} for place in context.trace.rows
    ]


@route(
    "rows/cells",
    parameter("place", "number of the place, of rows/places", of="place"),
    parameter("row_level", "a row stands for 8^row_level locations of the place", most=MOST_LEVEL),
    parameter("first", "number of the first row"),
    parameter("count", "rows", least=1, most=MOST_ROWS),
    *TILE,
    most_bytes=raster_bytes(MOST_ROWS, len(GROUPS)),
    media=(CELLS_TYPE,),
)
def row_cells(context: TraceContext, place: int, row_level: int, first: int, count: int, level: int, tile: int) -> Body:
    """One tile of rows that stand for many ranks each: shares of groups, and what is rare but important."""
    shares, marks = context.trace.pyramid.row_cells(
        place, row_level, first, count, *tile_window(level, tile), TILE_CELLS
    )
    index, palette = marked_palette(np.asarray(marks), context.names)
    return encode_rasters(np.asarray(shares).transpose(0, 2, 1), index if palette else None, {"palette": palette})


@route("rows/shares", LOCATIONS, *TILE, most_bytes=raster_bytes(1, len(GROUPS)), media=(CELLS_TYPE,))
def mean_shares(context: TraceContext, locations: Sequence[int], level: int, tile: int) -> Body:
    """One tile of the mean shares of groups over some threads and streams."""
    shares = np.asarray(context.trace.pyramid.group_shares(locations, *tile_window(level, tile), TILE_CELLS))
    mean = np.rint(shares.mean(axis=0)).astype(np.uint8)
    return encode_rasters(mean.T[None], None, {})


@route("rows/heat", LOCATIONS, MEASURE, *TILE, most_bytes=raster_bytes(MOST_LOCATIONS, 1), media=(CELLS_TYPE,))
def heat(context: TraceContext, locations: Sequence[int], of: str, level: int, tile: int) -> Body:
    """One tile of a number for each cell: a metric, or the share of a group or of a region where that runs most."""
    start_ns, end_ns = tile_window(level, tile)
    kind, name = _measure(of)
    if kind == "metric":
        values, low, high, unit = _metric_heat(context, locations, name, start_ns, end_ns)
        return encode_rasters(values[:, None], None, {"low": low, "high": high, "unit": unit})
    if kind == "group":
        shares = np.asarray(context.trace.pyramid.group_shares(locations, start_ns, end_ns, TILE_CELLS))
        return encode_rasters(shares[:, None, :, GROUPS.index(name)], None, {"low": 0, "high": 1, "unit": ""})
    regions, shares, _ = context.trace.pyramid.cells(locations, start_ns, end_ns, TILE_CELLS)
    here = np.isin(np.asarray(regions), _regions(context.names.names, name))
    return encode_rasters(np.where(here, np.asarray(shares), 0)[:, None], None, {"low": 0, "high": 1, "unit": ""})


@route("rows/values", MEASURE, *TIME_RANGE, columns=VALUE_COLUMNS, most_bytes=64 * MB, slow=True)
def values(context: TraceContext, of: str, start_ns: int, end_ns: int) -> pa.Table:
    """How much of something each thread and stream has in a time range: exclusive ns, or a metric's mean."""
    kind, name = _measure(of)
    count = len(context.span_counts)
    if kind == "metric":
        edges = np.array([start_ns, end_ns])
        series = _series_of(context, name, range(count))
        found = np.array([_means(one, edges)[0] if one else np.nan for one in series])
        return _by_location(found)
    wanted = _regions(context.names.names if kind == "region" else context.names.groups, name)
    profiles = context.profiles(range(count), start_ns, end_ns)
    sums = (own_ns[:, wanted].sum(axis=1) for _, _, own_ns in profiles)
    return _by_location(np.concatenate([np.zeros(0), *sums]))


def _by_location(values: npt.NDArray[np.float64]) -> pa.Table:
    return make_table(VALUE_COLUMNS, {"location": np.arange(len(values)), "value": values}).to_arrow()


def _measure(of: str) -> tuple[str, str]:
    kind, _, name = of.partition(".")
    if kind not in ("group", "region", "metric") or not name or (kind == "group" and name not in GROUPS):
        raise UsageError(f"'of={of[:60]}' is not {MEASURES}", do=f"Groups: {', '.join(GROUPS)}")
    return kind, name


def _regions(texts: Sequence[str], wanted: str) -> npt.NDArray[np.intp]:
    """Return the regions whose name, or group, is the wanted text."""
    return np.flatnonzero([text == wanted for text in texts])


def _series_of(context: TraceContext, metric: str, locations: Sequence[int]) -> list[Series | None]:
    """Return the series of a metric that each location has: its own, else that of its process."""
    process = processes_of_locations(context.trace)
    known = {(one.process, one.location): one for one in context.series if one.metric == metric}
    return [known.get((process[at], at), known.get((process[at], None))) for at in locations]


def _means(series: Series, edges: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the mean of the readings between edges; NaN where nothing is known.

    A reading covers the time since the one before it: a bin without a reading takes the next one.
    """
    at = np.searchsorted(series.time_ns, edges)
    _, means, _ = series.bins(at)
    following = np.flatnonzero(np.isnan(means) & (at[:-1] > 0) & (at[:-1] < len(series.values)))
    means[following] = series.values[at[following]]
    return means


def _metric_heat(
    context: TraceContext, locations: Sequence[int], metric: str, start_ns: int, end_ns: int
) -> tuple[Bytes, float, float, str]:
    """Return 0 where nothing is known, else 1 to 255 from the lowest reading of all (at most 0) to the highest."""
    known = [one for one in context.series if one.metric == metric and len(one.values)]
    out = np.zeros((len(locations), TILE_CELLS), dtype=np.uint8)
    if not known:
        return out, 0.0, 0.0, ""
    low = min(0.0, *(one.lowest for one in known))
    high = max(one.highest for one in known)
    edges = start_ns + np.arange(TILE_CELLS + 1, dtype=np.int64) * ((end_ns - start_ns) // TILE_CELLS)
    for row, series in enumerate(_series_of(context, metric, locations)):
        if series is not None and len(series.values):
            mean = _means(series, edges)
            scaled = 1 + np.rint(254 * (mean - low) / max(high - low, 1e-300))
            out[row] = np.where(np.isnan(mean), 0, np.clip(scaled, 1, 255))
    return out, low, high, known[0].unit
