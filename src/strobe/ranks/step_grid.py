"""Steps of all ranks side by side: an array (ranks, steps) of what the time of each step went into, or of lateness."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strobe.model.kinds import HOST_KINDS
from strobe.ranks.collectives import collectives
from strobe.ranks.waits.wait_states import wait_states
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.step_times import step_of_process
from strobe.steps.steps import find_steps
from strobe.tables.column_arrays import Floats, Ints, rows_by
from strobe.trace.definition_rows import process_rows, processes_of_locations
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

DURATION, COMPUTATION, WAIT, LATENESS = "duration", "computation", "wait", "lateness"
# What a cell may be; see `step_values`.
VALUES = (DURATION, COMPUTATION, WAIT, LATENESS, *HOST_KINDS)
_USEFUL = [HOST_KINDS.index(kind) for kind in ("operators", "host")]


@dataclass(frozen=True)
class StepGrid:
    """The steps of all ranks that have some: a row per rank, in order of rank, a column per number of a step.

    start_ns, duration_ns: arrays (ranks, steps); start_ns is -1 where a rank lacks the step. class_name: of each step,
    on the first rank that has it.
    """

    process: Ints
    rank: tuple[int | None, ...]
    step: Ints
    start_ns: Ints
    duration_ns: Ints
    class_name: npt.NDArray[np.object_]


@cached_on_trace
def step_grid(trace: Trace) -> StepGrid:
    """Return the steps of all ranks; computed once per open trace."""
    rows = process_rows(trace)
    having = sorted(find_steps(trace).processes, key=lambda each: (rows[each.process].rank or 0, each.process))
    own = [each for each in having if rows[each.process].rank is not None] or having
    low = min((each.first_number for each in own), default=0)
    count = max((each.first_number + len(each) for each in own), default=0) - low
    start, duration = np.full((len(own), count), -1, dtype=np.int64), np.zeros((len(own), count), dtype=np.int64)
    names = np.full(count, "", dtype=object)
    for row, each in enumerate(own):
        columns = _columns(each, low)
        start[row, columns], duration[row, columns] = each.start_ns, each.duration_ns
        names[columns] = np.where(names[columns] == "", each.class_names, names[columns])
    ranks = tuple(rows[each.process].rank for each in own)
    process = np.array([each.process for each in own], dtype=np.int64)
    return StepGrid(process, ranks, np.arange(count) + low, start, duration, names)


def _columns(steps: ProcessSteps, low: int) -> slice:
    return slice(steps.first_number - low, steps.first_number - low + len(steps))


@cached_on_trace
def step_values(trace: Trace, value: str) -> Floats:
    """Return one of VALUES for the cells of `step_grid`, ns: an array (ranks, steps), NaN where it is not known.

    A kind of HOST_KINDS: what the ledger has of the step; `computation`: operators and host. `wait`: waits for other
    ranks in calls that began in the step, as `strobe waits` has them. `lateness`: by how much the rank came later to a
    collective of the step than the middle rank (of two the earlier one), the most of all of them; below 0 is earlier.
    """
    grid = step_grid(trace)
    missing = grid.start_ns < 0
    if value == DURATION:
        return np.where(missing, np.nan, grid.duration_ns)
    if value in (WAIT, LATENESS):
        return np.where(missing, np.nan, _of_events(trace, grid, value))
    kinds = _USEFUL if value == COMPUTATION else [HOST_KINDS.index(value)]
    out = np.full(missing.shape, np.nan)
    steps = {each.process: each for each in find_steps(trace).processes}
    for row, process in enumerate(grid.process.tolist()):
        own = steps[process]
        if own.cells.columns is not None and len(own):
            out[row, _columns(own, int(grid.step[0]))] = own.cells.kinds_ns()[:, kinds].sum(axis=1)
    return out


def _of_events(trace: Trace, grid: StepGrid, value: str) -> Floats:
    if value == WAIT:
        waits = wait_states(trace).waits
        waits = waits.chosen(waits.for_another & ~waits.uncertain)
        of_location = np.array(processes_of_locations(trace), dtype=np.int64)
        # Threads of a process that wait for each other wait for no other rank.
        waits = waits.chosen(of_location[waits.location] != of_location[waits.cause])
        process = of_location[waits.location]
        out = np.zeros(grid.start_ns.shape)
        row, column = places(trace, grid, process, waits.call_ns)
        np.add.at(out, (row[row >= 0], column[row >= 0]), waits.wait_ns[row >= 0])
        return out
    met = collectives(trace)
    (at,) = np.nonzero(met.collective >= 0)
    at = at[np.lexsort((met.start_ns[at], met.collective[at]))]
    begin = np.flatnonzero(np.diff(met.collective[at], prepend=-1))
    count = np.diff(begin, append=len(at))
    late = met.start_ns[at] - np.repeat(met.start_ns[at][begin + (count - 1) // 2], count)
    process = np.array([each.process for each in met.parties], dtype=np.int64)[met.party[at]]
    row, column = places(trace, grid, process, met.start_ns[at])
    out = np.full(grid.start_ns.shape, -np.inf)
    np.maximum.at(out, (row[row >= 0], column[row >= 0]), late[row >= 0])
    return np.where(np.isinf(out), np.nan, out)


def places(trace: Trace, grid: StepGrid, process: Ints, time_ns: Ints) -> tuple[Ints, Ints]:
    """Return row and column of the step that a process was in at some moments; -1 outside of every step."""
    row_of, step = np.full(len(process_rows(trace)) + 1, -1), np.full(len(process), -1)
    row_of[grid.process] = np.arange(len(grid.process))
    for each, own in rows_by(process):
        step[own] = step_of_process(trace, each, time_ns[own])
    inside = (step >= 0) & (row_of[process] >= 0)
    first = int(grid.step[0]) if len(grid.step) else 0
    return np.where(inside, row_of[process], -1), np.where(inside, step - first, -1)
