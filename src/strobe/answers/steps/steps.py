"""Steps: every iteration of the main loop with its class, its parts, and whether it was unusually slow and why."""

from __future__ import annotations

from strobe.analyses.steps.steps import ANALYSIS
from strobe.errors import UsageError
from strobe.steps.finding.requested_steps import Asked
from strobe.steps.steps import find_steps
from strobe.steps.steps_table import steps_columns
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace


def run(trace: Trace, *, step_class: str | None, only: str, step_level: str | None, step_at: str | None) -> Table:
    """Return the answer; see `strobe.analyses.steps.steps`."""
    steps = find_steps(trace, Asked(step_level, step_at))
    known = dict.fromkeys(name for each in steps.processes for name in each.classes)
    if step_class is not None and step_class not in known:
        raise UsageError(f"no class of steps '{step_class}'", do=f"Classes: {', '.join(known) or 'none'}")
    about = steps.reason
    kept, total = sum(int(each.kept.sum()) for each in steps.processes), len(steps)
    if kept < total:
        about += f"; {kept} of {total} steps kept in detail"
    note = steps.why_none if not trace.missing(("spans",)) and not total else ""
    source = "spans" if kept == total else "spans and statistics"
    values = steps_columns(steps, step_class, only)
    return make_table(ANALYSIS.columns, values, about=about, note=note, source=source)
