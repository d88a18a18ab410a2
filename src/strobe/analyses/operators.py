"""Operators (of PyTorch, oneDNN, ...): how often, how long, how much of a step each takes, on the host and on GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from strobe.store.table import Table
    from strobe.store.trace import Trace
    from strobe.structure.operator_labels import Cells

# What a row stands for, and why all rows may be one.
_BY = {
    "name": (("name", "name of the operator"),),
    "type": (("type", "type of the operator: its name without name space, in-place mark and variant"),),
    "shape": (("name", "name of the operator"), ("shapes", "shapes of its inputs, as JSON; null where not recorded")),
    "module": (("module", "innermost module around the operators, null where there is none"),),
    "line": (
        ("line", "file:line of the innermost function around the operators that is the user's own, null where unknown"),
        ("function", "name of that function"),
    ),
}
_MISSING = {
    "shape": "no operator says what its inputs are: profile with torch.profiler.profile(record_shapes=True)",
    "module": "nothing says which module an operator is in: record with strobe run --trace +python, "
    "or profile with torch.profiler.profile(with_stack=True)",
    "line": "nothing says which Python an operator is called from: record with strobe run --trace +python, "
    "or profile with torch.profiler.profile(with_stack=True)",
}
_PER = {
    "rank": (
        "process",
        (("rank", "int64", "rank of the process, null where it has none"), ("process", "uint32", "process")),
    ),
    "step": ("step", (("step", "int64", "step that the operators begin in, null outside of every step"),)),
}


def run(
    trace: Trace,
    *,
    by: str = "name",
    per: str = "run",
    search: str = "",
    step: str = "auto",
    step_class: str | None = None,
) -> Table:
    """Sum operators, and the ranges that PyTorch reports like them (optimizer steps, nodes of the backward graph).

    total = sum of durations, an operator inside an operator of the same name (type, module, ...) counted once; self =
    total minus the time in spans directly inside; share = self / self of all operators, so shares add up to 1; avg,
    median, min, max over single calls; per step = self / number of selected steps. device total = sum of the durations
    of the kernels, copies and sets that were launched inside, by the correlation of the launching call; device self =
    of those, what no operator inside launched. What a CUDA graph runs counts, each time, for the operators around the
    calls that captured it, not for those around the graph's launch. All ranks and all GPUs are summed unless `per`
    splits them; what a GPU did belongs to the step in which it was launched: an operator may have work of GPUs in steps
    in which it was not executed. All are exact whether steps were folded or not, but for medians:
    where calls were folded, these come from histograms whose buckets are half an octave (41 %) wide.

    By module: the innermost `nn.Module` around the operator as PyTorch's profiler recorded it, else the class of the
    innermost function `forward` that strobe recorded; the backward pass belongs to the modules of the forward operators
    with its sequence numbers, where the trace has these. By line: the innermost Python function around the operator
    that is neither Python's own nor of an installed package, with the line where it begins; from the call stacks of
    older profiles, the line of the call. search keeps rows whose names hold all its words, in any case.
    Waits for data and communication are no operators; what a collective launches belongs to the operator around it.
    """
    from strobe.model.schema import Column
    from strobe.store.table import make_table
    from strobe.structure.device_time import folded_note
    from strobe.structure.device_work import devices
    from strobe.structure.operator_labels import operators_of, type_of
    from strobe.structure.operator_sums import operator_sums
    from strobe.structure.selection import select

    # Steps are not looked for where there is nothing to sum over them.
    selection = select(trace, step, step_class) if operators_of(trace).any() else select(trace, "all")
    split, split_columns = _PER.get(per, ("", ()))
    sums = operator_sums(trace, selection, by, split)
    everything = max(1, int(sums.own_ns.sum()))
    # A row of one step is about that step alone.
    steps = 1 if per == "step" else selection.step_count
    with_gpu = {device.process for device in devices(trace)}
    ranks = trace.processes.column("rank")
    words = search.lower().split()
    named = _BY[by][0][0] == "name"
    rows: list[tuple[object, ...]] = []
    for at, (cells, part) in enumerate(zip(sums.label, sums.split, strict=True)):
        if not _holds(cells, words):
            continue
        own, calls = int(sums.own_ns[at]), int(sums.calls[at])
        on_gpu = (int(sums.device_total_ns[at]), int(sums.device_own_ns[at]), int(sums.activities[at]))
        seen = part in with_gpu if split == "process" else bool(with_gpu)
        rows.append(
            (
                *((ranks[part], part) if split == "process" else (part if part >= 0 else None,) if split else ()),
                *cells, calls, int(sums.total_ns[at]), own, own / everything,
                *((float(sums.time_ns[at] / calls), float(sums.median_ns[at]), int(sums.min_ns[at]),
                   int(sums.max_ns[at])) if calls else (None,) * 4),
                calls / steps if steps else None, own / steps if steps else None,
                *(on_gpu if seen else (None, None, None)),
                *((type_of(cells[0] or ""),) if named else ()),
            )
        )  # fmt: skip
    columns = (
        *(Column(name, type, "", meaning) for name, type, meaning in split_columns),
        *(Column(name, "string", "", meaning) for name, meaning in _BY[by]),
        Column("calls", "int64", "", "executions"),
        Column("total_ns", "int64", "ns", "time in it and in what it calls"),
        Column("self_ns", "int64", "ns", "time in it alone"),
        Column("share", "float64", "", "self time as a part of the self time of all operators, 0 to 1"),
        Column("avg_ns", "float64", "ns", "mean duration of a call, null without one"),
        Column("median_ns", "float64", "ns", "median duration of a call", extra=True),
        Column("min_ns", "int64", "ns", "shortest call", extra=True),
        Column("max_ns", "int64", "ns", "longest call", extra=True),
        Column("calls_per_step", "float64", "", "executions per step", extra=True),
        Column("self_per_step_ns", "float64", "ns", "self time per step"),
        *(
            Column(name, "int64", unit, meaning, extra=not with_gpu)
            for name, unit, meaning in (
                ("device_total_ns", "ns", "time of GPUs in what was launched or captured inside, null without a GPU"),
                ("device_self_ns", "ns", "the same without what operators inside launched"),
                ("kernels", "", "kernels, copies and sets that were launched or captured inside"),
            )
        ),
        *((Column("type", "string", "", _BY["type"][0][1], extra=True),) if named else ()),
    )
    notes = [selection.note] if selection.note else []
    if rows and per == "step" and trace.folded:
        notes.append("steps that are statistics only have no rows")
    if rows and with_gpu and (note := folded_note(trace, devices(trace))):
        notes.append(note)
    if rows and by in _MISSING and not sums.known:
        rows, notes = [], [_MISSING[by]]
    table = make_table(
        columns, rows, name="operators", about=selection.about, note="; ".join(notes), source=selection.source
    )
    return table.sort("self_ns")


def _holds(cells: Cells, words: list[str]) -> bool:
    """Whether what a table shows of a label holds all words."""
    text = " ".join(cell or "" for cell in cells).lower()
    return all(word in text for word in words)


ANALYSIS = Analysis(
    "operators",
    "Which operators take the time?",
    run,
    needs=("torch",),
    options=(
        Option("by", "one row per name, type, shape of the inputs, module or line", default="name", choices=tuple(_BY)),
        Option("per", "one row for the whole run, or one for each rank or step", default="run", choices=("run", *_PER)),
        Option("search", "rows whose names hold all these words, in any case", default=""),
        Option("step", "steps to look at: steady, all, 14, 10..20", default="auto"),
        Option("step_class", "class of steps to look at", default=None, also=("--class",)),
    ),
)
