"""Operators (of PyTorch, oneDNN, ...): how often, how long, how much of a step each takes, on the host and on GPUs."""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from typing import Any

import numpy as np

from strobe.analyses.operators.operators import ANALYSIS
from strobe.gpu.devices import devices
from strobe.gpu.folded_work import folded_note
from strobe.gpu.xla_operations import named_by_kernels
from strobe.operators.labels import Cells, operators_of, type_of
from strobe.operators.sums import operator_sums
from strobe.operators.xla_labels import type_of_operation
from strobe.steps.selection import select
from strobe.tables.column_arrays import cumulative
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace

# Columns of what a row stands for.
_LABELS = {
    "name": ("name",),
    "type": ("type",),
    "shape": ("name", "shapes"),
    "module": ("module",),
    "line": ("line", "function"),
}
_OF_GPUS = ("device_total_ns", "device_self_ns", "kernels")
_OF_HOST = ("calls", "total_ns", "self_ns", "share", "cumulative_share", "avg_ns", "self_per_step_ns")
_MISSING = {
    "shape": "the inputs of operators are not in this trace: profile with torch.profiler.profile(record_shapes=True)",
    "module": "the modules of operators are not in this trace: record with strobe run --trace +python, "
    "or profile with torch.profiler.profile(with_stack=True)",
    "line": "the Python code that calls operators is not in this trace: record with strobe run --trace +python, "
    "or profile with torch.profiler.profile(with_stack=True)",
}
_SPLIT = {"run": "", "rank": "process", "step": "step"}


def run(trace: Trace, *, by: str, per: str, search: str, step: str, step_class: str | None) -> Table:
    """Return the answer; see `strobe.analyses.operators.operators`."""
    # Steps are not looked for where there is nothing to sum over them.
    on_host = bool(operators_of(trace).any())
    any_there = on_host or named_by_kernels(trace)
    selection = select(trace, step, step_class) if any_there else select(trace, "all")
    split = _SPLIT[per]
    sums = operator_sums(trace, selection, by, split)
    everything = max(1, int(sums.own_ns.sum()))
    upto_ns = cumulative(sums.own_ns.astype(np.float64), [None] * len(sums.own_ns))
    # A row of one step is about that step alone.
    steps = 1 if per == "step" else selection.step_count
    with_gpu = {device.process for device in devices(trace)}
    ranks = trace.processes.column("rank")
    words = search.lower().split()
    rows: list[dict[str, Any]] = []
    for at, (cells, part) in enumerate(zip(sums.label, sums.split, strict=True)):
        if not _holds(cells, words):
            continue
        own, calls = int(sums.own_ns[at]), int(sums.calls[at])
        seen = part in with_gpu if split == "process" else bool(with_gpu)
        rows.append(
            {
                "rank": ranks[part] if split == "process" else None,
                "process": part,
                "step": part if part >= 0 else None,
                "type": (type_of if on_host else type_of_operation)(cells[0] or ""),
                **dict(zip(_LABELS[by], cells, strict=True)),
                "calls": calls if on_host else None,
                "total_ns": int(sums.total_ns[at]) if on_host else None,
                "self_ns": own if on_host else None,
                "share": own / everything if on_host else None,
                "cumulative_share": float(upto_ns[at]) / everything if on_host else None,
                "avg_ns": float(sums.time_ns[at] / calls) if calls else None,
                "median_ns": None if not calls or isnan(sums.median_ns[at]) else float(sums.median_ns[at]),
                **{name: vars(sums)[name][at].item() if calls else None for name in ("min_ns", "max_ns")},
                "calls_per_step": calls / steps if steps and on_host else None,
                "self_per_step_ns": own / steps if steps and on_host else None,
                "device_total_ns": int(sums.device_total_ns[at]) if seen else None,
                "device_self_ns": int(sums.device_own_ns[at]) if seen else None,
                "kernels": int(sums.activities[at]) if seen else None,
            }
        )
    empty = () if on_host and with_gpu else _OF_GPUS if on_host else _OF_HOST
    columns = [
        replace(column, extra=True) if column.name in empty else column
        for column in ANALYSIS.columns_with(by=by, per=per)
    ]
    notes = [selection.note] if selection.note else []
    if rows and per == "step" and trace.folded:
        notes.append("steps that are statistics only have no rows")
    if rows and with_gpu and (note := folded_note(trace, devices(trace))):
        notes.append(note)
    if rows and not on_host:
        notes.append("operations of XLA as kernels name them: what they take on the host is not in this trace")
    if rows and by in _MISSING and not sums.known:
        rows, notes = [], [_MISSING[by] if on_host else _MISSING[by].partition(":")[0]]
    rows.sort(key=lambda row: (-(row["self_ns"] or 0), -(row["device_self_ns"] or 0)))
    return make_table(columns, rows, about=selection.about, note="; ".join(notes), source=selection.source)


def _holds(cells: Cells, words: list[str]) -> bool:
    """Whether what a table shows of a label holds all words."""
    text = " ".join(cell or "" for cell in cells).lower()
    return all(word in text for word in words)
