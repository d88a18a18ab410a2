"""Metrics of a trace: CPU time, memory, GPU load ... over time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from strobe.tables.table import Table, make_table


@dataclass(frozen=True)
class Readings:
    """The readings of one metric of a process, or of a location of it: in order of time, ns since the trace's zero."""

    metric: str
    unit: str
    process: int
    location: int | None
    time_ns: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


def metrics_table(readings: Iterable[Readings], note: str) -> Table:
    """Return one row a reading, as schema `metrics`; `note` explains why there are none."""
    parts = []
    for each in readings:
        count = len(each.time_ns)
        values = {
            "metric": [each.metric] * count,
            "process": [each.process] * count,
            "location": [each.location] * count,
            "time_ns": each.time_ns,
            "value": each.values,
            "unit": [each.unit] * count,
        }
        parts.append(make_table("metrics", values).to_arrow())
    return Table(pa.concat_tables(parts), name="metrics") if parts else make_table("metrics", [], note=note)
