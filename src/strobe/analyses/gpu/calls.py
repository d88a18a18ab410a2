"""Which calls of CUDA or HIP the host spends its time in: launches, copies, allocations, and waits for the GPU.

Sum the calls of the runtime and the driver of CUDA or HIP, of every process; by name, or by name and thread.

share = total / total of all calls of the process (Nsight Systems, cuda_api_sum); a driver's call inside a runtime's
counts in both. stddev is that of a sample, 0 for one call. A call that waits lasts until the GPU, or a part of its
work, is done: kernels that ran meanwhile are in its time.
"""

from __future__ import annotations

from strobe.model.columns import RANK, when
from strobe.model.option import Option
from strobe.model.plugins import Analysis
from strobe.model.schema import Column

ANALYSIS = Analysis(
    "calls",
    "Which calls of CUDA or HIP take the time of the host?",
    run="strobe.answers.gpu.calls:run",
    details=__doc__,
    options=(
        Option("by", "One row per function, or per function and thread.", default="name", choices=("name", "thread")),
    ),
    columns=(
        RANK,
        Column("process", "uint32", "", "process that called", extra=True),
        Column("name", "string", "", "function that was called"),
        *when(Column("thread", "string", "", "thread that called"), by="thread"),
        Column("waits", "bool", "", "whether it waits for the GPU, or asks whether it is done"),
        Column("share", "float64", "", "part of the time of all calls of the process, 0 to 1"),
        Column("total_ns", "int64", "ns", "sum of the durations"),
        Column("calls", "int64", "", "executions"),
        Column("avg_ns", "float64", "ns", "mean duration"),
        Column("median_ns", "float64", "ns", "median duration", extra=True),
        Column("min_ns", "int64", "ns", "shortest", extra=True),
        Column("max_ns", "int64", "ns", "longest"),
        Column("stddev_ns", "float64", "ns", "standard deviation of the durations", extra=True),
        Column("library", "string", "", "CUDA runtime or driver, where the file says so", extra=True),
    ),
)
