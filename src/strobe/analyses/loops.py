"""Loops: the main loops of every process, one after the other: the phases of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis

if TYPE_CHECKING:
    from strobe.store.table import Table
    from strobe.store.trace import Trace


def run(trace: Trace) -> Table:
    """List the loops whose iterations are the steps, by process and in order of time; see schema `loops`."""
    import numpy as np

    from strobe.store.table import make_table
    from strobe.structure.steps import find_steps

    steps = find_steps(trace)
    rows: list[tuple[object, ...]] = []
    for each in steps.processes:
        ends_ns = each.start_ns + each.duration_ns
        until = np.cumsum([loop.step_count for loop in each.loops])
        for number, (loop, end) in enumerate(zip(each.loops, until.tolist(), strict=True)):
            first = end - loop.step_count
            counts = (loop.step_count, int(each.kept[first:end].sum()))
            times = (int(each.start_ns[first]), int(ends_ns[end - 1]))
            accepted = None if loop.accepted_step is None else loop.accepted_step + each.first_number
            facts = (accepted, loop.confidence, loop.reason)
            rows.append((each.process, number, loop.kind, loop.name, *counts, *times, *facts))
    note = f"no steps found: {steps.reason}" if not trace.missing(("spans",)) and not rows else ""
    return make_table("loops", rows, note=note)


ANALYSIS = Analysis("loops", "Which loops dominate the run, one after the other?", run, needs=("spans",))
