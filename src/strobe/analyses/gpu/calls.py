"""Which calls of CUDA, HIP, OpenCL or OpenACC take the time of the host: launches, copies, allocations, waits.

Sum the calls of the runtime and the driver of CUDA or HIP, of every process; by name, or by name and thread.

share = total / total of all calls of the process (Nsight Systems, cuda_api_sum); a driver's call inside a runtime's
counts in both. stddev is that of a sample, 0 for one call. A call that waits lasts until the GPU, or a part of its
work, is done: kernels that ran meanwhile are in its time. Calls of folded steps count, with medians that are
estimates; of a profile (a summary of nvprof), medians and deviations are unknown.
"""

from strobe.model.columns import RANK, Column, durations, when
from strobe.model.option import one_of
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "Which calls of CUDA, HIP, OpenCL or OpenACC take the time of the host?",
    options=(one_of("by", "One row per function, or per function and thread.", "name", "thread"),),
    columns=(
        RANK,
        Column("process", "uint32", "", "process that called", extra=True),
        Column("name", "string", "", "function that was called"),
        *when(Column("thread", "string", "", "thread that called"), by="thread"),
        Column("waits", "bool", "", "whether it waits for the GPU, or asks whether it is done"),
        Column("share", "float64", "", "part of the time of all calls of the process, 0 to 1"),
        *durations(),
        Column("library", "string", "", "CUDA runtime or driver, where the file has it", extra=True),
    ),
)
