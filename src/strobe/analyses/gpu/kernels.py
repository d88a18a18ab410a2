"""Which kernels take the time of each GPU: sums, launch delays, and how full they make it.

Sum the kernels of every GPU by name, or by type; other values of `by` split names further.

By launch shape, stream, operator (of XLA: `module/operation`, as the kernel names it), function of the program, or
collective. The type is what the kernel computes as far as its name shows: matrix product, convolution, reduction, ...
A kernel belongs to the step in which it was launched.

share = total / total of all kernels of the GPU; cumulative share = the share of the row and of all rows of the GPU
with a greater one; stddev that of a sample (0 for one call). launch delay = from the
start of the launching call to the start of the kernel; queue time = from the end of that call to the start of the
kernel, of those that start after it (Nsight Systems, cuda_kern_exec_sum). occupancy = mean of the estimates of
PyTorch's profiler, theoretical occupancy = what registers, shared memory and block size allow (NVIDIA's
calculator), SM efficiency = part of the multiprocessors that have a block: min(blocks / multiprocessors, 1); all
weighted with durations. priority = total * (1 - occupancy), the highest in the table being 100 and none below 1:
the longest kernels that fill the GPU least come first. Where no occupancy is estimated the theoretical one counts,
and where none is known, time alone. measured_... = means of the hardware metrics that `strobe metrics --trace` kept
beside the trace, of the kernel with the same full name in that other run. Kernels of folded steps count by name and
stream, where their medians are estimates and all means but that of the duration are of the others; split further
they do not.
"""

from dataclasses import replace

from strobe.model.columns import OF_GPU, Column, durations, when
from strobe.model.option import one_of
from strobe.model.plugins import Analysis

_DURATIONS = durations(shown=("avg_ns",))
_NAMES = ("name", "shape", "stream", "operator", "function", "collective")
_TYPE = Column("type", "string", "", "what it computes, or communication; null where its name does not show it")
_STEP = Column("step", "int64", "", "step in which they were launched, null outside of every step")

ANALYSIS = Analysis(
    __name__,
    "Which kernels take the time of each GPU, and which of them should be improved first?",
    options=(
        one_of("by", "One row per kernel name, split further, or per type.", *_NAMES, "type"),
        one_of("per", "One row for the whole run, or per step.", "run", "step"),
    ),
    columns=(
        *OF_GPU,
        *when(_STEP, per="step"),
        *when(Column("kernel", "string", "", "name without result, name spaces, templates and arguments"), by=_NAMES),
        *when(_TYPE, by="type"),
        *when(
            Column("grid", "string", "", "blocks of the launch"),
            Column("block", "string", "", "threads of a block"),
            by="shape",
        ),
        *when(Column("stream", "string", "", "stream that it ran on"), by="stream"),
        *when(Column("operator", "string", "", "innermost operator at its launch or graph capture"), by="operator"),
        *when(Column("function", "string", "", "innermost function at its launch or graph capture"), by="function"),
        *when(
            Column("collective", "string", "", "which collective it is"),
            Column("dtype", "string", "", "type of its elements"),
            by="collective",
        ),
        Column("share", "float64", "", "part of the time of all kernels of the GPU, 0 to 1"),
        Column("cumulative_share", "float64", "", "share of it and of all with a greater one, 0 to 1", extra=True),
        *_DURATIONS[:3],
        *when(
            Column("measured_*", "float64", "", "mean of a hardware metric, in its unit (strobe metrics)", extra=True),
            by=_NAMES,
        ),
        *_DURATIONS[3:],
        Column("launch_delay_avg_ns", "float64", "ns", "mean from call's start to its own; null: unknown", extra=True),
        Column("queue_avg_ns", "float64", "ns", "mean from call's end to its start, of the `queued`", extra=True),
        Column("queued", "int64", "", "kernels that start after the end of their call, null where unknown", extra=True),
        Column("kind", "string", "", "computation or communication", extra=True),
        *when(
            Column("tensor_cores", "bool", "", "whether on tensor cores: as measured, else by name", extra=True),
            by=_NAMES,
        ),
        Column("occupancy", "float64", "", "estimated achieved occupancy, 0 to 1, null where unknown", extra=True),
        Column("theoretical_occupancy", "float64", "", "occupancy that its launch allows at most, 0 to 1", extra=True),
        Column("sm_efficiency", "float64", "", "estimated part of the multiprocessors at work, 0 to 1", extra=True),
        *when(Column("name", "string", "", "full name", extra=True), replace(_TYPE, extra=True), by=_NAMES),
        Column("priority", "int64", "", "100 (improve this first) to 1"),
    ),
)
