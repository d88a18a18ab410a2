"""Steps: every iteration of the main loop with its class, its parts, and whether it was unusually slow and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from strobe.store.table import Table
    from strobe.store.trace import Trace


def run(trace: Trace, *, step_class: str | None = None, only: str = "all") -> Table:
    """List the steps, by process and in order of time; see schema `steps` for the columns.

    Steps are found without a marker: by what PyTorch says of itself (optimizer, data loader), otherwise by what repeats
    in the calls. `strobe.step` or profiler steps decide where the program has them. They are all here, whether they
    were kept in detail or folded into statistics. `step_class` and `only` leave rows out.
    """
    import numpy as np

    from strobe.errors import UsageError
    from strobe.model.kinds import PARTS
    from strobe.model.schema import TABLES
    from strobe.store.folded import DETAILS
    from strobe.store.table import make_table
    from strobe.structure.steps import find_steps

    steps = find_steps(trace)
    known = dict.fromkeys(name for each in steps.processes for name in each.classes)
    if step_class is not None and step_class not in known:
        raise UsageError(f"no class of steps '{step_class}'", do=f"Classes: {', '.join(known) or 'none'}")
    values: dict[str, list[object]] = {column.name: [] for column in TABLES["steps"]}
    for each in steps.processes:
        recorded, drift = each.recorded, each.drift
        wanted = each.outlier if only == "outliers" else np.ones(len(each), dtype=bool)
        if step_class is not None:
            wanted = wanted & np.array([name == step_class for name in each.classes], dtype=bool)
        rows = np.flatnonzero(wanted)
        values["process"] += [each.process] * len(rows)
        values["step"] += (rows + each.first_number).tolist()
        values["start_ns"] += each.start_ns[rows].tolist()
        values["duration_ns"] += each.duration_ns[rows].tolist()
        values["class"] += [each.classes[row] for row in rows]
        for name, part in zip(PARTS, np.transpose(each.parts_ns[rows]).tolist(), strict=True):
            values[f"{name}_ns"] += part
        values["steady"] += each.steady[rows].tolist()
        values["outlier"] += each.outlier[rows].tolist()
        values["cause"] += [each.cause[row] for row in rows]
        values["loop"] += each.loop[rows].tolist()
        values["drift"] += drift[rows].tolist()
        for row in rows.tolist():
            has = recorded is not None and recorded.events[row] >= 0
            values["detail"].append(DETAILS[recorded.detail[row]] if recorded else "all")
            values["events"].append(int(recorded.events[row]) if recorded and has else None)
            values["path_hash"].append(int(recorded.path_hash[row]) if recorded and has else None)
    about = steps.reason
    kept, total = sum(int(each.kept.sum()) for each in steps.processes), len(steps)
    if kept < total:
        about += f"; {kept} of {total} steps kept in detail"
    note = f"no steps found: {steps.reason}" if trace.span_count and not len(steps) else ""
    source = "spans" if kept == total else "spans and statistics"
    return make_table("steps", values, about=about, note=note, source=source)


ANALYSIS = Analysis(
    "steps",
    "Which steps does the run have, and which were slow?",
    run,
    needs=("spans",),
    options=(
        Option("step_class", "steps of this class", default=None, also=("--class",)),
        Option("only", "all steps, or only outliers", default="all", choices=("all", "outliers"), flags=True),
    ),
)
