"""Schema `steps`: one row a step."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from strobe.model.kinds import PARTS
from strobe.model.schema import TABLES
from strobe.steps.process_steps import Recorded, Steps
from strobe.trace.folded import DETAILS


def steps_columns(steps: Steps, step_class: str | None = None, only: str = "all") -> dict[str, object]:
    """Return the columns of schema `steps`, for the steps that are wanted."""
    columns: dict[str, list[pa.Array]] = {column.name: [] for column in TABLES["steps"]}
    for each in steps.processes:
        wanted = each.outlier if only == "outliers" else np.ones(len(each), dtype=bool)
        classes = each.class_names
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
