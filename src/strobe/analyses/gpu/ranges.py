"""Ranges that the program marked (NVTX, ITT, record_function) projected onto the GPU: what they launched, and when.

Sum ranges by name, with the GPU work that was launched inside them; all ranks and GPUs together.

An execution of a range is projected from the first start to the last end of the kernels, copies and sets whose
launching call began inside it, on the same thread (Nsight Systems: nvtx_gpu_proj_sum); work of ranges inside is
not subtracted. What was captured into a CUDA graph inside a range is projected, too: once for each launch of the
graph, unless it was launched inside the same execution. Executions that launched nothing count in `calls` and
`total_ns` only, and so do those of ranges that are of no thread (NVTX's start/end ranges): what is launched while
one is open may be anybody's.
"""

from strobe.model.plugins import Analysis
from strobe.model.schema import Column

ANALYSIS = Analysis(
    __name__,
    "What did the ranges that the program marked do on the GPU?",
    columns=(
        Column("name", "string", "", "name of the range"),
        Column("paradigm", "string", "", "who marked it: nvtx, itt, user, torch, ...", extra=True),
        Column("calls", "int64", "", "executions"),
        Column("total_ns", "int64", "ns", "time in it on the host, one inside another of the same name counted twice"),
        Column("projected", "int64", "", "executions that launched GPU work, and launches of graphs captured in one"),
        Column("projected_ns", "int64", "ns", "sum of the times from the first start to the last end of that work"),
        Column("avg_ns", "float64", "ns", "mean projected time"),
        Column("median_ns", "float64", "ns", "median projected time"),
        Column("min_ns", "int64", "ns", "shortest projected time"),
        Column("max_ns", "int64", "ns", "longest projected time"),
        Column("std_ns", "float64", "ns", "standard deviation of the projected times", extra=True),
        Column("activities", "int64", "", "kernels, copies and memory sets launched or captured inside"),
    ),
)
