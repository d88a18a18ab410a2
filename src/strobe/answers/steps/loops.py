"""Loops: the main loops of every process, one after the other: the phases of a run."""

from __future__ import annotations

from strobe.analyses.steps.loops import ANALYSIS
from strobe.steps.steps import find_steps
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace


def run(trace: Trace) -> Table:
    """Return the answer; see `strobe.analyses.steps.loops`."""
    steps = find_steps(trace)
    rows = [
        {
            **vars(loop),
            "process": each.process,
            "loop": number,
            "steps": loop.step_count,
            "kept_steps": int(each.kept[own].sum()),
            "start_ns": int(each.start_ns[own.start]),
            "end_ns": int(each.end_ns[own.stop - 1]),
            "accepted_step": None if loop.accepted_step is None else loop.accepted_step + each.first_number,
        }
        for each in steps.processes
        for number, (loop, own) in enumerate(zip(each.loops, each.rows_of_loops, strict=True))
    ]
    note = steps.why_none if not trace.missing(("spans",)) and not rows else ""
    return make_table(ANALYSIS.columns, rows, note=note)
