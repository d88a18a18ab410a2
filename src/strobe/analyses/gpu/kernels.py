"""Which kernels take the time of each GPU: sums, launch delays, and how full they make it.

Sum the kernels of every GPU by name; `by` splits them further.

By launch shape, stream, operator (of XLA: `module/operation`, as the kernel names it), function of the program, or
collective.

share = total / total of all kernels of the GPU; stddev that of a sample (0 for one call). launch delay = from the
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

from strobe.model.columns import OF_GPU, Column, durations, when
from strobe.model.option import one_of
from strobe.model.plugins import Analysis

_DURATIONS = durations(shown=("avg_ns",))
_SPLITS = ("name", "shape", "stream", "operator", "function", "collective")

ANALYSIS = Analysis(
    __name__,
    "Which kernels take the time of each GPU, and which of them should be improved first?",
    options=(one_of("by", "One row per kernel name, or split further.", *_SPLITS),),
    columns=(
        *OF_GPU,
        Column("kernel", "string", "", "name without result, name spaces, templates and arguments"),
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
        *_DURATIONS[:3],
        Column("measured_*", "float64", "", "mean of a hardware metric, in its unit (strobe metrics)", extra=True),
        *_DURATIONS[3:],
        Column("launch_delay_avg_ns", "float64", "ns", "mean from call's start to its own; null: unknown", extra=True),
        Column("queue_avg_ns", "float64", "ns", "mean from call's end to its start, of the `queued`", extra=True),
        Column("queued", "int64", "", "kernels that start after the end of their call, null where unknown", extra=True),
        Column("kind", "string", "", "computation or communication", extra=True),
        Column("tensor_cores", "bool", "", "whether tensor cores compute it: as measured, else by name", extra=True),
        Column("occupancy", "float64", "", "estimated achieved occupancy, 0 to 1, null where unknown", extra=True),
        Column("theoretical_occupancy", "float64", "", "occupancy that its launch allows at most, 0 to 1", extra=True),
        Column("sm_efficiency", "float64", "", "estimated part of the multiprocessors at work, 0 to 1", extra=True),
        Column("name", "string", "", "full name", extra=True),
        Column("priority", "int64", "", "100 (improve this first) to 1"),
    ),
)
