"""Pictures of ranks in a part of the run: who waited for whom, and the steps of all ranks side by side."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa

from strobe.answers.ranks.waits import note_of
from strobe.errors import UsageError
from strobe.model.schema import Column
from strobe.ranks.step_grid import VALUES, StepGrid, places, step_grid, step_values
from strobe.ranks.waits.wait_columns import STATES
from strobe.ranks.waits.wait_states import wait_states
from strobe.server.routing.endpoints import END_NS, LOOP, MB, START_NS, parameter, route
from strobe.server.run.step_list import even_edges
from strobe.server.trace_context import TraceContext
from strobe.tables.column_arrays import Bools, Floats, Ints, alike
from strobe.tables.table import make_table
from strobe.trace.definition_rows import process_rows, processes_of_locations, ranks_of
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

MOST_TILES = 256
MOST_CELLS = 512
WAIT_COLUMNS = (
    Column("state", "string", "", "what was waited for"),
    Column("rank", "int64", "", "rank that had the longest wait of the tile", nullable=True),
    Column("awaited_rank", "int64", "", "rank that it waited for, null where that is not known", nullable=True),
    Column("wait_ns", "int64", "ns", "waits of all ranks in the tile, longer than twice the error of the clocks"),
    Column("max_ns", "int64", "ns", "the longest one"),
    Column("location", "uint32", "", "where it waited"),
    Column("time_ns", "int64", "ns", "when its call began"),
)
CELL_COLUMNS = (Column("value_ns", "float64", "ns", "the most in the cell, null where it is not known", nullable=True),)
PART = (
    parameter("start_ns", START_NS.help + "; with end_ns", default=None),
    parameter("end_ns", END_NS.help, default=None),
    parameter("classes", "only steps of these classes, with ~ between them", str, "", most=4096),
    LOOP,
)
_VALUE = parameter("value", "what the cells are", str, VALUES[0], choices=VALUES)


class GridAbout(TypedDict):
    """A picture of steps: first and last rank of each row, first and last step of each column, all steps."""

    first_rank: list[int]
    last_rank: list[int]
    first_step: list[int]
    last_step: list[int]
    steps: int


class GridPlace(TypedDict):
    """The step of a rank that a cell shows: the one that has the most."""

    rank: int | None
    process: int
    step: int
    start_ns: int
    duration_ns: int
    value_ns: float


@dataclass(frozen=True)
class _Part:
    """A part of a run: the window, and the classes of steps, as far as they were asked for."""

    trace: Trace
    window: tuple[int, int] | None
    classes: tuple[str, ...]

    @cached_property
    def wanted(self) -> Bools:
        """Which columns of the grid of steps are wanted; these take a while to be found."""
        grid = step_grid(self.trace)
        wanted = np.ones(len(grid.step), dtype=bool)
        if self.window:
            begin, end = _bounds(self.trace)
            wanted &= (begin < self.window[1]) & (end > self.window[0])
        return wanted & np.isin(grid.class_name.astype(str), self.classes) if self.classes else wanted


def _part(context: TraceContext, start_ns: int | None, end_ns: int | None, classes: str, level: str) -> _Part:
    if (start_ns is None) != (end_ns is None):
        raise UsageError("a time range needs both start_ns and end_ns")
    window = None if start_ns is None or end_ns is None else (start_ns, end_ns)
    return _Part(context.chosen(level).trace, window, tuple(filter(None, classes.split("~"))))


@cached_on_trace
def _bounds(trace: Trace) -> tuple[Ints, Ints]:
    """Return when each step begins on its first rank, and ends on its last."""
    grid = step_grid(trace)
    there = grid.start_ns >= 0
    begin = np.where(there, grid.start_ns, np.iinfo(np.int64).max).min(axis=0, initial=np.iinfo(np.int64).max)
    return begin, (grid.start_ns + grid.duration_ns).max(axis=0, initial=-1)


@route(
    "ranks/waits",
    parameter("by", "waits of ranks, or of pairs of ranks", str, "rank", choices=("rank", "pair")),
    *PART,
    columns=WAIT_COLUMNS,
    most_bytes=64 * MB,
    slow=True,
)
def rank_waits(context: TraceContext, by: str, **of_run: Any) -> pa.Table:
    """How long ranks waited for each other in a part of the run, by state and tile of ranks.

    Waits count whose call began in [start_ns, end_ns), in a step of the classes. Ranks share a tile with their
    neighbours where there are more than 256. Metadata: `note`, in sentences.
    """
    part = _part(context, **of_run)
    found, placed = wait_states(part.trace), _placed_waits(part.trace)
    chosen = np.ones(len(found.waits), dtype=bool)
    if part.window:
        chosen &= (found.waits.call_ns >= part.window[0]) & (found.waits.call_ns < part.window[1])
    if part.classes:
        chosen &= np.append(part.wanted, False)[_steps_of_waits(part.trace)]
    ranks = [row for row in process_rows(part.trace) if row.rank is not None]
    lasted = sum(row.ended_ns - row.started_ns for row in ranks) * (not part.classes)
    if part.window:
        lasted = len(ranks) * (part.window[1] - part.window[0]) * (not part.classes)
    waits = found.waits if chosen.all() else found.waits.chosen(chosen)
    note = "; ".join(filter(None, (note_of(part.trace, replace(found, waits=waits), lasted), context.read_part)))
    (at,) = np.nonzero(chosen & placed.certain)
    keys = [found.waits.state[at], placed.tile[at], *([placed.awaited_tile[at]] if by == "pair" else [])]
    first, which = alike(keys)
    sums = np.zeros(len(first), dtype=np.int64)
    np.add.at(sums, which, found.waits.wait_ns[at])
    order = np.lexsort((found.waits.wait_ns[at], which))
    longest = at[order[np.searchsorted(which[order], np.arange(len(first)), side="right") - 1]]
    columns: dict[str, object] = {
        "state": [STATES[each] for each in found.waits.state[longest].tolist()],
        "rank": _nullable(placed.rank[longest]),
        "awaited_rank": _nullable(placed.awaited_rank[longest]),
        "wait_ns": sums,
        "max_ns": found.waits.wait_ns[longest],
        "location": found.waits.location[longest],
        "time_ns": found.waits.call_ns[longest],
    }
    table = make_table(WAIT_COLUMNS, columns, name="rank_waits").to_arrow()
    return table.replace_schema_metadata({**(table.schema.metadata or {}), "note": note})


def _nullable(numbers: Ints) -> list[int | None]:
    return [None if each < 0 else each for each in numbers.tolist()]


@dataclass(frozen=True)
class _PlacedWaits:
    """Of each wait, the ranks and their tiles, -1 for nobody; and whether it is longer than the error of the clocks."""

    rank: Ints
    awaited_rank: Ints
    tile: Ints
    awaited_tile: Ints
    certain: Bools


@cached_on_trace
def _placed_waits(trace: Trace) -> _PlacedWaits:
    waits, process = wait_states(trace).waits, np.array(processes_of_locations(trace), dtype=np.int64)
    by_process = np.array([-1 if rank is None else rank for rank in ranks_of(trace)], dtype=np.int64)
    own = by_process[process[waits.location]] if len(waits) else waits.location
    other = np.where(waits.for_another, by_process[process[waits.cause]], -1) if len(waits) else waits.cause
    known = np.unique(by_process[by_process >= 0])
    per_tile = max(1, -(-len(known) // MOST_TILES))
    tile, awaited = (np.where(each >= 0, np.searchsorted(known, each) // per_tile, -1) for each in (own, other))
    return _PlacedWaits(own, other, tile, awaited, (waits.wait_ns > 0) & ~waits.uncertain)


@cached_on_trace
def _steps_of_waits(trace: Trace) -> Ints:
    """Return the column of the grid of steps in which each wait began; -1 outside of every step."""
    waits, process = wait_states(trace).waits, np.array(processes_of_locations(trace), dtype=np.int64)
    return places(trace, step_grid(trace), process[waits.location], waits.call_ns)[1] if len(waits) else waits.location


@route("ranks/steps", _VALUE, *PART, columns=CELL_COLUMNS, about=GridAbout, most_bytes=4 * MB, slow=True)
def rank_steps(context: TraceContext, value: str, **of_run: Any) -> pa.Table:
    """The steps of all ranks as a picture of at most 512 x 512 cells, row by row: the most of the steps in each.

    Steps are shown that any rank was in during [start_ns, end_ns), of the classes. Values: see
    `strobe.ranks.step_grid`. Metadata `about`: GridAbout as JSON.
    """
    part = _part(context, **of_run)
    grid, (columns,) = step_grid(part.trace), np.nonzero(part.wanted)
    rows, edges = even_edges(len(grid.process), MOST_CELLS), even_edges(len(columns), MOST_CELLS)
    cells = np.zeros((0, 0))
    if len(columns):
        cells = np.fmax.reduceat(_rows_of(part.trace, value)[:, columns], edges[:-1], axis=1)
    ranks = [process if rank is None else rank for rank, process in zip(grid.rank, grid.process.tolist(), strict=True)]
    about: GridAbout = {
        "first_rank": [ranks[at] for at in rows[:-1].tolist()],
        "last_rank": [ranks[at - 1] for at in rows[1:].tolist()],
        "first_step": grid.step[columns[edges[:-1]]].tolist() if len(columns) else [],
        "last_step": grid.step[columns[edges[1:] - 1]].tolist() if len(columns) else [],
        "steps": len(columns),
    }
    flat = pa.array(cells.ravel(), from_pandas=True)
    table = make_table(CELL_COLUMNS, {"value_ns": flat}, name="rank_steps").to_arrow()
    return table.replace_schema_metadata({**(table.schema.metadata or {}), "about": json.dumps(about)})


@cached_on_trace
def _rows_of(trace: Trace, value: str) -> Floats:
    """Return the values of all steps with ranks that share a row as one."""
    values = step_values(trace, value)
    rows: Floats = np.fmax.reduceat(values, even_edges(len(values), MOST_CELLS)[:-1], axis=0) if len(values) else values
    return rows


@route(
    "ranks/steps/cell",
    _VALUE,
    parameter("row", "of the picture", most=MOST_CELLS - 1),
    parameter("column", "of the picture", most=MOST_CELLS - 1),
    *PART,
    most_bytes=MB,
    slow=True,
)
def rank_steps_cell(context: TraceContext, value: str, row: int, column: int, **of_run: Any) -> GridPlace | None:
    """The step of a rank that a cell of `ranks/steps` shows: the one that has the most; null where nothing is known."""
    part = _part(context, **of_run)
    grid, (columns,) = step_grid(part.trace), np.nonzero(part.wanted)
    ranks, steps = even_edges(len(grid.process), MOST_CELLS), even_edges(len(columns), MOST_CELLS)
    if row + 1 >= len(ranks) or column + 1 >= len(steps):
        return None
    rows, inside = slice(ranks[row], ranks[row + 1]), columns[steps[column] : steps[column + 1]]
    values = step_values(part.trace, value)[rows, inside]
    if np.isnan(values).all():
        return None
    return _place(grid, values, int(ranks[row]), inside)


def _place(grid: StepGrid, values: Floats, first_row: int, columns: Ints) -> GridPlace:
    row, column = divmod(int(np.nanargmax(values)), values.shape[1])
    at = first_row + row, columns[column]
    return {
        "rank": grid.rank[at[0]],
        "process": int(grid.process[at[0]]),
        "step": int(grid.step[at[1]]),
        "start_ns": int(grid.start_ns[at]),
        "duration_ns": int(grid.duration_ns[at]),
        "value_ns": float(values[row, column]),
    }
