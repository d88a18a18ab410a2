"""What the time of steps went into: each nanosecond once, by priority, as PyTorch's TensorBoard plugin divides it."""

from __future__ import annotations

import pyarrow as pa

from strobe.analyses.steps.step_time import ANALYSIS
from strobe.breakdown.device_steps import device_steps
from strobe.breakdown.step_spans import step_rows
from strobe.breakdown.step_time import ROLES, split_by_priority
from strobe.model.schema import Column
from strobe.ranks.step_waits import waits_beside
from strobe.steps.step_times import known_steps
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace
from strobe.workers.map_combine import rows_of_processes

_NO_STEPS = "no steps were found in this trace, so there is nothing to divide; see `strobe steps`"


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.steps.step_time`."""
    rows = rows_of_processes(trace, _of_process, known=known_steps(trace), by=by)
    about = "; ".join(dict.fromkeys(rows.column("bounds").to_pylist()))
    note = waits_beside(trace, "no column counts") if len(rows) else _NO_STEPS
    return Table(rows.drop_columns("bounds"), about=about, note=note)


def _of_process(part: Trace, by: str) -> pa.Table:
    """Return the rows of one process, with a column of what bounds its steps."""
    rows = [
        {**row, "bounds": bounds}
        for each, bounds in device_steps(part)
        if len(each)
        for row in step_rows(each, dict(zip(ROLES, split_by_priority(part, each).T, strict=True)), by)
    ]
    bounds = Column("bounds", "string", "", "what bounds the steps")
    return make_table([*ANALYSIS.columns_with(by=by), bounds], rows).to_arrow()
