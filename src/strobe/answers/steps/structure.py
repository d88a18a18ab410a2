"""Structure: the loops of a process as a tree; which of them is the step, how often each runs, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping

from strobe.analyses.steps.structure import ANALYSIS
from strobe.steps.finding.requested_steps import Asked
from strobe.steps.loops.structure import find_structure
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace


def run(trace: Trace, *, process: int | None, stream: str, step_level: str | None, step_at: str | None) -> Table:
    """Return the answer; see `strobe.analyses.steps.structure`."""
    structure = find_structure(trace, process, stream, Asked(step_level, step_at))
    depths: list[int] = []
    rows: list[Mapping[str, object]] = []
    for number, level in enumerate(structure.levels):
        depths.append(0 if level.parent < 0 else depths[level.parent] + 1)
        trips = level.trips or (None, None, None)
        rows.append(
            {
                **vars(level),
                "loop": level.name,
                "depth": depths[-1],
                **dict(zip(("min_trips", "median_trips", "max_trips"), trips, strict=True)),
                "total_ns": level.time_ns,
                "step": level.is_step,
                "id": number,
            }
        )
    about = f"{structure.confidence}: {structure.reason}"
    note = "" if structure.levels or not trace.span_count else f"no loops: {structure.reason}"
    return make_table(ANALYSIS.columns, rows, about=about, note=note)
