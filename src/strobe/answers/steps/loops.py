"""Loops: the main loops of every process, one after the other: the phases of a run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from strobe.analyses.steps.loops import ANALYSIS
from strobe.steps.steps import find_steps
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace


def run(trace: Trace) -> Table:
    """Return the answer; see `strobe.analyses.steps.loops`."""
    steps = find_steps(trace)
    rows: list[Mapping[str, object]] = []
    for each in steps.processes:
        ends_ns = each.start_ns + each.duration_ns
        until = np.cumsum([loop.step_count for loop in each.loops])
        for number, (loop, end) in enumerate(zip(each.loops, until.tolist(), strict=True)):
            first = end - loop.step_count
            rows.append(
                {
                    **vars(loop),
                    "process": each.process,
                    "loop": number,
                    "steps": loop.step_count,
                    "kept_steps": int(each.kept[first:end].sum()),
                    "start_ns": int(each.start_ns[first]),
                    "end_ns": int(ends_ns[end - 1]),
                    "accepted_step": None if loop.accepted_step is None else loop.accepted_step + each.first_number,
                }
            )
    note = f"no steps found: {steps.reason}" if not trace.missing(("spans",)) and not rows else ""
    return make_table(ANALYSIS.columns, rows, note=note)
