"""Operators (of PyTorch, oneDNN, ...): how often, how long, how much of a step each takes, on the host and on GPUs.

Sum operators, and the ranges that PyTorch reports like them (optimizer steps, nodes of the backward graph).

total = sum of durations, an operator inside an operator of the same name (type, module, ...) counted once; self =
total minus the time in spans directly inside; share = self / self of all operators, so shares add up to 1; cumulative
share = the share of the row and of all rows with a greater one; avg, median, min, max over single calls; per step =
self / number of selected steps. device total = sum of the durations of the kernels, copies and sets that were
launched inside, by the correlation of the launching call; device self = of those, what no operator inside launched.
What a CUDA graph runs counts, each time, for the operators around the calls that captured it, not for those around
the graph's launch. All ranks and all GPUs are summed unless `per` splits them; what a GPU did belongs to the step in
which it was launched: an operator may have work of GPUs in steps in which it was not executed. All are exact whether
steps were folded or not, but for medians: where calls were folded, these come from histograms whose buckets are half
an octave (41 %) wide.

By module: the innermost `nn.Module` around the operator as PyTorch's profiler recorded it, else the class of the
innermost function `forward` that strobe recorded; the backward pass belongs to the modules of the forward operators
with its sequence numbers, where the trace has these. By line: the innermost Python function around the operator
that is neither Python's own nor of an installed package, with the line where it begins; from the call stacks of
older profiles, the line of the call. search keeps rows whose names hold all its words, in any case.
Waits for data and communication are not operators; what a collective launches belongs to the operator around it.

JAX and TensorFlow launch whole modules. Where no operator is on the host, and kernels name the operations of XLA that
they belong to, these are the rows: what GPUs did of each, by `module/operation`, by module, or by the line of the
program that the compiler kept. Columns of the host are null then.
"""

from dataclasses import replace

from strobe.model.columns import RANK, Column, when
from strobe.model.option import Option, one_of
from strobe.model.plugins import Analysis

_TYPE = Column("type", "string", "", "type of the operator: its name without name space, in-place mark and variant")

ANALYSIS = Analysis(
    __name__,
    "Which operators take the time?",
    needs=("torch",),
    options=(
        one_of("by", "One row per name, type, input shape, module or line.", "name", "type", "shape", "module", "line"),
        one_of("per", "One row for the whole run, or per rank or step.", "run", "rank", "step"),
        Option("search", "Only rows whose names contain all these words, in any case.", default=""),
        Option("step", "Steps to include: steady, all, 14, 10..20.", default="auto"),
        Option("step_class", "Only steps of this class.", default=None, also=("--class",)),
    ),
    raises=("`step` or `step_class` are not of steps of this trace",),
    columns=(
        *when(RANK, Column("process", "uint32", "", "process"), per="rank"),
        *when(Column("step", "int64", "", "step that the operators begin in, null outside of every step"), per="step"),
        *when(Column("name", "string", "", "name of the operator"), by=("name", "shape")),
        *when(Column("shapes", "string", "", "shapes of its inputs, as JSON; null where not recorded"), by="shape"),
        *when(_TYPE, by="type"),
        *when(Column("module", "string", "", "innermost module around them, null: none"), by="module"),
        *when(
            Column("line", "string", "", "file:line of the user's innermost function around them, null where unknown"),
            Column("function", "string", "", "name of that function"),
            by="line",
        ),
        Column("calls", "int64", "", "executions, null where only kernels name it"),
        Column("total_ns", "int64", "ns", "time in it and in what it calls"),
        Column("self_ns", "int64", "ns", "time in it alone"),
        Column("share", "float64", "", "self time as a part of the self time of all operators, 0 to 1"),
        Column("cumulative_share", "float64", "", "share of it and of all with a greater one, 0 to 1", extra=True),
        Column("avg_ns", "float64", "ns", "mean duration of a call, null without one"),
        Column("median_ns", "float64", "ns", "median duration of a call, null where unknown", extra=True),
        Column("min_ns", "int64", "ns", "shortest call", extra=True),
        Column("max_ns", "int64", "ns", "longest call", extra=True),
        Column("calls_per_step", "float64", "", "executions per step", extra=True),
        Column("self_per_step_ns", "float64", "ns", "self time per step"),
        Column("device_total_ns", "int64", "ns", "time of GPUs in what was launched or captured inside, null: no GPU"),
        Column("device_self_ns", "int64", "ns", "the same without what operators inside launched"),
        Column("kernels", "int64", "", "kernels, copies and sets that were launched or captured inside"),
        *when(replace(_TYPE, extra=True), by=("name", "shape")),
    ),
)
