"""What the time of steps went into: each nanosecond once, by priority, as PyTorch's TensorBoard plugin divides it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from strobe.analyses.steps.step_time import ANALYSIS
from strobe.breakdown.step_spans import StepSpans, step_spans
from strobe.breakdown.step_time import ROLES, split_by_priority
from strobe.model.schema import Column
from strobe.steps.step_times import known_steps
from strobe.steps.thread_spans import Ints
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace
from strobe.workers.map_combine import rows_of_processes


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.steps.step_time`."""
    rows = rows_of_processes(trace, _of_process, known=known_steps(trace), by=by)
    about = "; ".join(dict.fromkeys(rows.column("said").to_pylist()))
    note = "" if len(rows) else "no steps were found in this trace, so there is nothing to divide; see `strobe steps`"
    return Table(rows.drop_columns("said"), name="step_time", about=about, note=note)


def _of_process(part: Trace, by: str) -> pa.Table:
    """Return the rows of one process; `said` is what bounds its steps."""
    rows = [
        {**row, "said": each.said}
        for each in step_spans(part)
        if len(each)
        for row in _rows(each, split_by_priority(part, each), by)
    ]
    said = Column("said", "string", "", "what bounds the steps")
    return make_table([*ANALYSIS.columns_with(by=by), said], rows).to_arrow()


def _rows(steps: StepSpans, split: Ints, by: str) -> Iterator[Mapping[str, object]]:
    """Yield the rows of one process."""
    who = {"rank": steps.rank, "process": steps.process}
    duration = steps.end_ns - steps.start_ns
    if by == "step":
        for k in range(len(steps)):
            yield {
                **who,
                "step": int(steps.number[k]),
                "class": steps.classes[k],
                "start_ns": int(steps.start_ns[k]),
                **_cells(int(duration[k]), split[k].tolist()),
                "counted": bool(steps.counted[k]),
            }
        return
    classes = np.array(steps.classes, dtype=object)
    for name in dict.fromkeys(steps.classes) if by == "class" else (None,):
        chosen = steps.counted if name is None else steps.counted & (classes == name)
        count = int(chosen.sum())
        if count:
            means = [round(int(total) / count) for total in split[chosen].sum(axis=0)]
            mean = round(int(duration[chosen].sum()) / count)
            yield {**who, "class": name, "steps": count, **_cells(mean, means)}


def _cells(duration: int, parts: list[int]) -> dict[str, object]:
    """Return duration, parts, and their shares."""
    return {
        "duration_ns": duration,
        **{f"{role}_ns": part for role, part in zip(ROLES, parts, strict=True)},
        **{f"{role}_share": part / duration if duration else None for role, part in zip(ROLES, parts, strict=True)},
    }
