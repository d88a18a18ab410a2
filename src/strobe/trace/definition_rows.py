"""Processes, locations and regions of a trace, row by row, with types: the columns are those of model/schema.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from strobe.model.kinds import RANK_PARADIGMS
from strobe.tables.column_arrays import Bools, Ints
from strobe.tables.table import Table
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace


class Process(NamedTuple):
    """A row of `processes`."""

    process: int
    pid: int
    parent_pid: int
    main: bool
    started_ns: int
    ended_ns: int
    end_state: str
    exit_code: int | None
    argv: str | None
    host: str | None
    python: str | None
    rank: int | None
    name: str | None


class Location(NamedTuple):
    """A row of `locations`."""

    location: int
    process: int
    name: str
    thread_id: int
    kind: str
    device: int | None
    span_count: int
    first_ns: int
    last_ns: int


class Region(NamedTuple):
    """A row of `regions`."""

    region: int
    name: str
    paradigm: str
    role: str
    group: str
    file: str
    line: int
    module: str

    @property
    def of_ranks(self) -> bool:
        """Whether it is a call of what ranks communicate by: MPI, OpenSHMEM."""
        return self.paradigm in RANK_PARADIGMS


_Row = TypeVar("_Row", bound=NamedTuple)


def _rows(table: Table, kind: type[_Row]) -> list[_Row]:
    columns = [table.to_arrow().column(name).to_pylist() for name in kind._fields]
    return [kind._make(row) for row in zip(*columns, strict=True)]


@cached_on_trace
def process_rows(trace: Trace) -> list[Process]:
    """Return the processes of a trace, by number."""
    return _rows(trace.processes, Process)


def rank_processes(trace: Trace) -> list[int]:
    """Return the processes that have a rank, in order of rank; all of them where none has.

    What starts ranks (mpirun, torchrun) and what these start (workers of a loader) has none.
    """
    rows = process_rows(trace)
    of_ranks = [row for row in rows if row.rank is not None]
    return [row.process for row in sorted(of_ranks, key=lambda row: (row.rank, row.process))] or [*range(len(rows))]


@cached_on_trace
def location_rows(trace: Trace) -> list[Location]:
    """Return the locations of a trace, by number."""
    return _rows(trace.locations, Location)


@cached_on_trace
def region_rows(trace: Trace) -> list[Region]:
    """Return the regions of a trace, by number."""
    return _rows(trace.regions, Region)


def regions_where(trace: Trace, wanted: Callable[[Region], bool]) -> Bools:
    """Return by region whether it is wanted."""
    return np.array([wanted(region) for region in region_rows(trace)], dtype=bool)


def threads_of(trace: Trace, process: int) -> list[Location]:
    """Return the threads of a process that have spans."""
    return [
        each for each in location_rows(trace) if (each.process, each.kind) == (process, "thread") and each.span_count
    ]


def ranks_of(trace: Trace) -> list[int | None]:
    """Return the rank of each process, None if it has none."""
    return [process.rank for process in process_rows(trace)]


def processes_of_locations(trace: Trace) -> list[int]:
    """Return the process of each location."""
    return [location.process for location in location_rows(trace)]


@cached_on_trace
def path_tree(trace: Trace) -> tuple[Ints, Ints]:
    """Return parent (-1 at the root) and region of every call path."""
    paths = trace.call_paths.to_arrow()
    parent = np.nan_to_num(paths.column("parent").to_numpy(), nan=-1)  # a float, if one is null
    return parent.astype(np.int64), paths.column("region").to_numpy().astype(np.int64)
