"""Steps: every iteration of the main loop with its class, its parts, and whether it was unusually slow and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis

if TYPE_CHECKING:
    from strobe.store.table import Table
    from strobe.store.trace import Trace


def run(trace: Trace) -> Table:
    """List the steps, by process and in order of time; see schema `steps` for the columns.

    Steps are found without a marker: by what PyTorch says of itself (optimizer, data loader), otherwise by what repeats
    in the calls. `strobe.step` or profiler steps decide where the program has them.
    """
    import numpy as np

    from strobe.model.schema import TABLES
    from strobe.store.table import make_table
    from strobe.structure.activities import PARTS
    from strobe.structure.steps import find_steps

    steps = find_steps(trace)
    values: dict[str, list[object]] = {column.name: [] for column in TABLES["steps"]}
    for each in steps.processes:
        values["process"] += [each.process] * len(each)
        values["step"] += range(len(each))
        values["start_ns"] += each.start_ns.tolist()
        values["duration_ns"] += each.duration_ns.tolist()
        values["class"] += each.classes
        for name, part in zip(PARTS, np.transpose(each.parts_ns).tolist(), strict=True):
            values[f"{name}_ns"] += part
        values["steady"] += each.steady.tolist()
        values["outlier"] += each.outlier.tolist()
        values["cause"] += each.cause
    note = f"no steps found: {steps.reason}" if trace.span_count and not len(steps) else ""
    return make_table("steps", values, about=steps.reason, note=note)


ANALYSIS = Analysis("steps", "Which steps does the run have, and which were slow?", run, needs=("spans",))
