"""Operators (of PyTorch, oneDNN, ...): how often, how long, and how much of a step each takes on the host."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from strobe.store.table import Table
    from strobe.store.trace import Trace

_BACKWARD = re.compile(r"^(?:autograd::engine::evaluate_function: )?(?:torch::autograd::)?(\w+?)Backward\d*$")


def type_of(name: str) -> str:
    """Return the type of an operator: its name without name space, in-place mark and variant.

    `aten::add_` and `aten::add` are `add`; `ConvolutionBackward0` and `aten::convolution_backward` are `convolution
    backward`.
    """
    backward = _BACKWARD.match(name)
    if backward:
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", backward[1]).lower()
        return f"{words.strip('_')} backward"
    if name.startswith("Optimizer."):
        return name.partition("#")[0]
    base = name.rpartition("::")[2].partition("#")[0].strip("_")
    return f"{base.removesuffix('_backward')} backward" if base.endswith("_backward") else base


def run(trace: Trace, *, by: str = "name", step: str = "auto", step_class: str | None = None) -> Table:
    """Sum operators, and the ranges that PyTorch reports like them (optimizer steps, nodes of the backward graph).

    total = sum of durations, an operator inside an operator of the same name (or type) counted once; self = total minus
    the time in spans directly inside; share = self / self of all operators, so shares add up to 1; avg, median, min,
    max over single calls; per step = self / number of selected steps. All are exact whether steps were folded or not,
    but for medians: where calls were folded, these come from histograms whose buckets are half an octave (41 %) wide.
    """
    import numpy as np

    from strobe.model.schema import Column
    from strobe.store.table import make_table
    from strobe.structure.selection import select
    from strobe.structure.statistics import key_statistics

    regions = trace.regions.to_arrow().to_pylist()
    found = [r for r in regions if r["role"] == "operator" or (r["paradigm"] == "torch" and r["role"] == "range")]
    labels = [type_of(r["name"]) if by == "type" else r["name"] for r in found]
    # Steps are not looked for where there is nothing to sum over them.
    selection = select(trace, step, step_class) if found else select(trace, "all")
    names = sorted(set(labels))
    number = {name: i for i, name in enumerate(names)}
    # Key of every region: the number of its name or type, -1 for what is no operator.
    key_of = np.full(len(regions) + 1, -1, dtype=np.int64)
    key_of[[r["region"] for r in found]] = [number[label] for label in labels]
    sums = key_statistics(trace, selection, key_of)
    everything = max(1, int(sums.own_ns.sum()))
    steps = selection.step_count
    rows = [
        (
            names[key],
            int(sums.calls[key]),
            int(sums.total_ns[key]),
            int(sums.own_ns[key]),
            float(sums.own_ns[key] / everything),
            float(sums.time_ns[key] / sums.calls[key]),
            float(sums.median_ns[key]),
            int(sums.min_ns[key]),
            int(sums.max_ns[key]),
            float(sums.calls[key] / steps) if steps else None,
            float(sums.own_ns[key] / steps) if steps else None,
        )
        for key in np.flatnonzero(sums.calls).tolist()
    ]
    columns = (
        Column(by, "string", "", "name or type of the operator"),
        Column("calls", "int64", "", "executions"),
        Column("total_ns", "int64", "ns", "time in it and in what it calls"),
        Column("self_ns", "int64", "ns", "time in it alone"),
        Column("share", "float64", "", "self time as a part of the self time of all operators, 0 to 1"),
        Column("avg_ns", "float64", "ns", "mean duration of a call"),
        Column("median_ns", "float64", "ns", "median duration of a call"),
        Column("min_ns", "int64", "ns", "shortest call"),
        Column("max_ns", "int64", "ns", "longest call"),
        Column("calls_per_step", "float64", "", "executions per step"),
        Column("self_per_step_ns", "float64", "ns", "self time per step"),
    )
    table = make_table(
        columns, rows, name="operators", about=selection.about, note=selection.note, source=selection.source
    )
    return table.sort("self_ns")


ANALYSIS = Analysis(
    "operators",
    "Which operators take the time?",
    run,
    needs=("torch",),
    options=(
        Option("by", "one row per name or per type of operator", default="name", choices=("name", "type")),
        Option("step", "steps to look at: steady, all, 14, 10..20", default="auto"),
        Option("step_class", "class of steps to look at", default=None, also=("--class",)),
    ),
)
