"""Metrics for the page: what was measured, and the readings of a window with at most a few numbers per pixel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass(frozen=True)
class Series:
    """One metric of one process or location: readings in order of time."""

    metric: str
    unit: str
    process: int
    location: int | None
    time_ns: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


def series_table(series: list[Series]) -> pa.Table:
    """Return what was measured: one row for each series, with the extremes that fix its axis."""
    return pa.table(
        {
            "series": pa.array(range(len(series)), pa.uint32()),
            "metric": pa.array([s.metric for s in series], pa.string()),
            "unit": pa.array([s.unit for s in series], pa.string()),
            "process": pa.array([s.process for s in series], pa.uint32()),
            "location": pa.array([s.location for s in series], pa.uint32()),
            "readings": pa.array([len(s.values) for s in series], pa.int64()),
            "lowest": pa.array([float(np.nanmin(s.values)) if len(s.values) else 0.0 for s in series], pa.float64()),
            "highest": pa.array([float(np.nanmax(s.values)) if len(s.values) else 0.0 for s in series], pa.float64()),
        }
    )


def readings_table(series: list[Series], wanted: Iterable[int], start_ns: int, end_ns: int, width: int) -> pa.Table:
    """Return the readings of some series in a window; where there are more than `width`, of each pixel the extremes.

    `mean` is that of the readings of the pixel.
    """
    columns: dict[str, list[npt.NDArray[np.generic]]] = {"series": [], "time_ns": [], "low": [], "high": [], "mean": []}
    for number in wanted:
        one = series[number]
        # One reading beyond each end, so that the line reaches the borders.
        first = max(0, int(np.searchsorted(one.time_ns, start_ns)) - 1)
        last = min(len(one.time_ns), int(np.searchsorted(one.time_ns, end_ns)) + 1)
        time_ns, values = one.time_ns[first:last], one.values[first:last]
        low = high = mean = values
        if len(values) > 2 * width:
            pixel = np.clip((time_ns - start_ns) * width // max(1, end_ns - start_ns), 0, width - 1)
            heads = np.flatnonzero(np.diff(pixel, prepend=-1))
            low, high = np.minimum.reduceat(values, heads), np.maximum.reduceat(values, heads)
            mean = np.add.reduceat(values, heads) / np.diff(heads, append=len(values))
            time_ns = time_ns[heads]
        for name, part in (("time_ns", time_ns), ("low", low), ("high", high), ("mean", mean)):
            columns[name].append(part)
        columns["series"].append(np.full(len(time_ns), number, dtype=np.uint32))
    empty = np.zeros(0)
    return pa.table({name: np.concatenate(parts) if parts else empty for name, parts in columns.items()})
