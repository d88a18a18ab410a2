"""Metrics of a trace: CPU time, memory, GPU load ... over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from strobe.tables.column_arrays import Floats, Ints
from strobe.tables.lazy_pyarrow import pa
from strobe.tables.table import Table, make_table
from strobe.trace.processes.process_reader import ProcessReader


@dataclass(frozen=True)
class Readings:
    """The readings of one metric of a process, or of a location of it: in order of time, ns since the trace's zero."""

    metric: str
    unit: str
    process: int
    location: int | None
    time_ns: Ints
    values: Floats


def readings_of(reader: ProcessReader, process: int, zero_ns: int, locations: Mapping[int, int]) -> Iterator[Readings]:
    """Yield the readings of a process; `zero_ns` is the trace's zero on its clock, `locations` maps its ids to ours."""
    for metric in reader.metrics():
        times = np.asarray(metric["time_ns"], dtype=np.int64) - zero_ns
        values = np.asarray(metric["value"], dtype=np.float64)
        yield Readings(metric["name"], metric["unit"], process, locations.get(metric["location"]), times, values)


def metrics_table(readings: Iterable[Readings], note: str) -> Table:
    """Return one row a reading, as schema `metrics`; `note` explains why there are none."""
    parts = []
    for each in readings:
        count = len(each.time_ns)
        values = {
            **{name: [vars(each)[name]] * count for name in ("metric", "process", "location", "unit")},
            "time_ns": each.time_ns,
            "value": each.values,
        }
        parts.append(make_table("metrics", values).to_arrow())
    return Table(pa.concat_tables(parts), name="metrics") if parts else make_table("metrics", [], note=note)
