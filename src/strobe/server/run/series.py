"""Metrics for the page: what was measured, and the readings of a window with at most a few numbers per pixel.

A series has a pyramid: least, sum and greatest of 2^level readings each: a pixel costs the logarithm of its readings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from strobe.model.schema import Column
from strobe.tables.column_arrays import Bools, Floats, Ints
from strobe.tables.table import make_table
from strobe.trace.metrics.readings import Readings

_Join = Callable[[Floats, Floats], Floats]

# How two readings are joined, and the result for none: least, greatest, sum, number.
_JOINS: tuple[tuple[_Join, float], ...] = ((np.fmin, np.inf), (np.fmax, -np.inf), (np.add, 0.0), (np.add, 0.0))


@dataclass(frozen=True)
class Series(Readings):
    """All readings of one metric of one process or location. NaN counts as no reading."""

    @cached_property
    def lowest(self) -> float:
        """Least of all readings, 0 where there are none."""
        return float(np.nanmin(self.values)) if self._known.any() else 0.0

    @cached_property
    def highest(self) -> float:
        """Greatest of all readings, 0 where there are none."""
        return float(np.nanmax(self.values)) if self._known.any() else 0.0

    @property
    def _known(self) -> Bools:
        known: Bools = ~np.isnan(self.values)
        return known

    @cached_property
    def _pyramids(self) -> tuple[list[Floats], ...]:
        """Of 2^level readings each: least, greatest, sum, and number."""
        sums, counts = np.nan_to_num(self.values), self._known.astype(np.float64)
        columns = (self.values, self.values, sums, counts)
        return tuple(_levels(values, join) for values, (join, _) in zip(columns, _JOINS, strict=True))

    def bins(self, edges: Ints) -> tuple[Floats, Floats, Floats]:
        """Return least, mean and greatest of the readings [edges[i], edges[i + 1]) for each i: NaN if there is none."""
        pyramids = zip(self._pyramids, _JOINS, strict=True)
        low, high, total, count = (_joined(levels, edges[:-1], edges[1:], *join) for levels, join in pyramids)
        low[count == 0] = high[count == 0] = np.nan
        with np.errstate(invalid="ignore"):
            # Rounding must not lead a mean beyond what it is the mean of.
            return low, np.clip(total / count, low, high), high


def _levels(values: Floats, join: _Join) -> list[Floats]:
    """Join neighbours, and these again, until one is left; level 0 is the values."""
    levels = [values]
    while len(levels[-1]) > 1:
        below = levels[-1]
        pairs = len(below) // 2
        above = np.empty(len(below) - pairs)
        above[:pairs] = join(below[: 2 * pairs : 2], below[1 : 2 * pairs : 2])
        above[pairs:] = below[2 * pairs :]
        levels.append(above)
    return levels


def _joined(levels: list[Floats], begin: Ints, end: Ints, join: _Join, nothing: float) -> Floats:
    """Join the values [begin, end) of level 0, for each pair: at most two of each level."""
    found = np.full(len(begin), nothing)
    begin, end = begin.copy(), end.copy()
    for level in levels:
        # An index that is not a left half, or not a right one, has no partner inside of the range.
        left = (begin & 1 == 1) & (begin < end)
        found[left] = join(found[left], level[begin[left]])
        begin = begin + left
        right = (end & 1 == 1) & (begin < end)
        found[right] = join(found[right], level[end[right] - 1])
        begin, end = begin >> 1, (end - right) >> 1
    return found


SERIES_COLUMNS = (
    Column("series", "uint32", "", "number of the series"),
    Column("metric", "string", "", "what was measured"),
    Column("unit", "string", "", "unit of its values"),
    Column("process", "uint32", "", "process that it is of"),
    Column("location", "uint32", "", "thread or stream that it is of, null where it is of the process", nullable=True),
    Column("readings", "int64", "", "number of readings"),
    Column("lowest", "float64", "", "least of all readings, 0 where there are none"),
    Column("highest", "float64", "", "greatest of all readings, 0 where there are none"),
)
READING_COLUMNS = (
    Column("series", "uint32", "", "number of the series"),
    Column("time_ns", "int64", "ns", "when it was read"),
    Column("low", "float64", "", "least of the readings of a pixel"),
    Column("mean", "float64", "", "mean of the readings of a pixel"),
    Column("high", "float64", "", "greatest of the readings of a pixel"),
)


def series_table(series: list[Series]) -> pa.Table:
    """Return what was measured: one row for each series, with the extremes that fix its axis."""
    rows = (
        (number, s.metric, s.unit, s.process, s.location, len(s.values), s.lowest, s.highest)
        for number, s in enumerate(series)
    )
    return make_table(SERIES_COLUMNS, rows).to_arrow()


def readings_table(series: list[Series], wanted: Iterable[int], start_ns: int, end_ns: int, width: int) -> pa.Table:
    """Return the readings of some series in a window, as least (`low`), mean and greatest (`high`) of each.

    Where there are more than two a pixel: of the readings of each pixel, at the time of the first one.
    """
    # A reading is of the last pixel that begins no later. In whole numbers: products of times are beyond 64 bits.
    length = end_ns - start_ns
    begins = np.array([start_ns - (-pixel * length // width) for pixel in range(1, width)], dtype=np.int64)
    columns: dict[str, list[npt.NDArray[Any]]] = {"series": [], "time_ns": [], "low": [], "mean": [], "high": []}
    for number in wanted:
        one = series[number]
        # One reading beyond each end, so that the line reaches the borders.
        first = max(0, int(np.searchsorted(one.time_ns, start_ns)) - 1)
        last = min(len(one.time_ns), int(np.searchsorted(one.time_ns, end_ns)) + 1)
        time_ns = one.time_ns[first:last]
        low = mean = high = one.values[first:last]
        if len(time_ns) > 2 * width:
            edges = np.clip(np.searchsorted(one.time_ns, begins), first, last)
            edges = np.unique(np.concatenate([[first], edges, [last]]))
            low, mean, high = one.bins(edges)
            time_ns = one.time_ns[edges[:-1]]
        for name, part in (("time_ns", time_ns), ("low", low), ("mean", mean), ("high", high)):
            columns[name].append(part)
        columns["series"].append(np.full(len(time_ns), number, dtype=np.uint32))
    empty = np.zeros(0)
    joined = {name: np.concatenate(parts) if parts else empty for name, parts in columns.items()}
    return make_table(READING_COLUMNS, joined).to_arrow()
