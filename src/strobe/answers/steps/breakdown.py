"""Where the time of a step goes in the thread of the loop, by part of the step and kind of work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from strobe.analyses.steps.breakdown import ANALYSIS
from strobe.model.kinds import HOST_KINDS, PARTS
from strobe.ranks.step_waits import waits_beside
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.steps import find_steps
from strobe.tables.column_arrays import Ints
from strobe.tables.table import Table, make_table
from strobe.trace.definition_rows import ranks_of
from strobe.trace.trace import Trace

_NO_STEPS = "no steps were found in this trace, so there is nothing to divide; see `strobe steps`"


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.steps.breakdown`."""
    columns, ranks = ANALYSIS.columns_with(by=by), ranks_of(trace)
    tables = []
    for steps in find_steps(trace).processes:
        values = _rows(steps, by)
        who = {"rank": ranks[steps.process], "process": steps.process}
        values |= {name: [each] * len(values["part"]) for name, each in who.items()}
        tables.append(make_table(columns, values))
    if not any(map(len, tables)):
        return make_table(columns, [], note=_NO_STEPS)
    note = waits_beside(trace, "no kind counts")
    return Table(pa.concat_tables([table.to_arrow() for table in tables]), note=note)


def _rows(steps: ProcessSteps, by: str) -> dict[str, Any]:
    """Return the rows of a process by column."""
    known = steps.cells.columns is not None
    if by == "step":
        # Where kinds are not known, all time is of one.
        cells = steps.cells.table() if known else steps.parts_ns[:, :, None]
        names = {"step": np.arange(len(steps)) + steps.first_number, "class": steps.class_names}
    else:
        means = list(_means(steps, by))
        cells = np.array([cells for _, _, cells in means]).reshape(len(means), len(PARTS), -1)
        names = {
            "class": np.array([name for name, _, _ in means], dtype=object),
            "steps": np.array([count for _, count, _ in means], dtype=np.int64),
        }
    cells = np.concatenate((cells, cells.sum(axis=1, keepdims=True)), axis=1)
    duration = cells.sum(axis=2)
    row, part = np.nonzero(duration)
    kinds = {f"{kind}_ns": cells[row, part, at] if known else [None] * len(row) for at, kind in enumerate(HOST_KINDS)}
    return {
        **{name: values[row] for name, values in names.items()},
        "part": np.array((*PARTS, "step"), dtype=object)[part],
        "duration_ns": duration[row, part],
        "share": duration[row, part] / duration[row, -1],
        **kinds,
    }


def _means(steps: ProcessSteps, by: str) -> Iterator[tuple[str | None, int, Ints]]:
    """Yield class, number and mean cells of the steady steps, of all together or by class."""
    steady = np.flatnonzero(steps.steady)
    for name in dict.fromkeys(steps.class_names[steady].tolist()) if by == "class" else (None,):
        rows = steady if name is None else steady[steps.class_names[steady] == name]
        if len(rows):
            sums = steps.cells.sums(rows) if steps.cells.columns is not None else steps.parts_ns[rows].sum(axis=0)
            # Rounded cell by cell, so that all that is printed adds up.
            yield name, len(rows), np.rint(sums / len(rows)).astype(np.int64)
