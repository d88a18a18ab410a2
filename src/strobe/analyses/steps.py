"""Steps: every iteration of the main loop with its class, its parts, and whether it was unusually slow and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from strobe.store.table import Table
    from strobe.store.trace import Trace
    from strobe.structure.steps import Steps


def run(
    trace: Trace,
    *,
    step_class: str | None = None,
    only: str = "all",
    step_level: str | None = None,
    step_at: str | None = None,
) -> Table:
    """List the steps, by process and in order of time; see schema `steps` for the columns.

    Steps are found without a marker: by what PyTorch says of itself (optimizer, data loader), otherwise by what repeats
    in the calls. `strobe.step` or profiler steps decide where the program has them. They are all here, whether they
    were kept in detail or folded into statistics. `step_class` and `only` leave rows out.
    """
    from strobe.errors import UsageError
    from strobe.store.table import make_table
    from strobe.structure.asked import Asked
    from strobe.structure.steps import find_steps

    steps = find_steps(trace, Asked(step_level, step_at))
    known = dict.fromkeys(name for each in steps.processes for name in each.class_names)
    if step_class is not None and step_class not in known:
        raise UsageError(f"no class of steps '{step_class}'", do=f"Classes: {', '.join(known) or 'none'}")
    about = steps.reason
    kept, total = sum(int(each.kept.sum()) for each in steps.processes), len(steps)
    if kept < total:
        about += f"; {kept} of {total} steps kept in detail"
    note = f"no steps found: {steps.reason}" if not trace.missing(("spans",)) and not total else ""
    source = "spans" if kept == total else "spans and statistics"
    values = _columns(steps, step_class, only)
    return make_table("steps", values, about=about, note=note, source=source)


def _columns(steps: Steps, step_class: str | None, only: str) -> dict[str, object]:
    """Return the columns of schema `steps`, for the steps that are wanted."""
    import numpy as np
    import pyarrow as pa

    from strobe.model.kinds import PARTS
    from strobe.model.schema import TABLES
    from strobe.store.folded import DETAILS
    from strobe.structure.steps import Recorded

    columns: dict[str, list[pa.Array]] = {column.name: [] for column in TABLES["steps"]}
    for each in steps.processes:
        wanted = each.outlier if only == "outliers" else np.ones(len(each), dtype=bool)
        classes = np.array(each.classes, dtype=object)
        rows = np.flatnonzero(wanted if step_class is None else wanted & (classes == step_class))
        recorded = each.recorded or Recorded.of_none(len(each))
        values = {
            "process": np.full(len(each), each.process),
            "step": np.arange(len(each)) + each.first_number,
            "start_ns": each.start_ns,
            "duration_ns": each.duration_ns,
            "class": classes,
            **{f"{name}_ns": each.parts_ns[:, part] for part, name in enumerate(PARTS)},
            "steady": each.steady,
            "outlier": each.outlier,
            "cause": np.array(each.cause, dtype=object),
            "loop": each.loop,
            "detail": np.array(DETAILS, dtype=object)[recorded.detail],
            "drift": each.drift,
            "events": recorded.events,
            "path_hash": recorded.path_hash,
        }
        unknown = recorded.events[rows] < 0
        for name, of_all in values.items():
            mask = unknown if name in ("events", "path_hash") else None
            columns[name].append(pa.array(of_all[rows], mask=mask))
    return {name: pa.chunked_array(parts) if parts else [] for name, parts in columns.items()}


ANALYSIS = Analysis(
    "steps",
    "Which steps does the run have, and which were slow?",
    run,
    needs=("spans",),
    options=(
        Option("step_class", "steps of this class", default=None, also=("--class",)),
        Option("step_level", "a step is an iteration of this loop: +1 (around it), -1 (inside), or its name"),
        Option("step_at", "a step begins at each event of this name"),
        Option("only", "all steps, or only outliers", default="all", choices=("all", "outliers"), flags=True),
    ),
)
