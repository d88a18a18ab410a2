"""How long what GPUs ran took from its call to its end: the call, the queue, the execution; and how long queues are.

Sum the executions of kernels, copies and sets of every GPU by name and call (Nsight Systems: kern_exec_sum).

all = from the start of the launching call to the end on the GPU, which is less than the sum of its parts where
the GPU begins before the call returns; queue = from the end of the call to the start on the GPU, of the `queued`
ones that start after it. short = shorter than its call, where that is not a long one; long calls = those of more
than `long_call_us`; late = queue time above `late_us` (HTA: launch statistics). Only what has a call in the trace.

by stream: how many launches wait, looked at after each event: one more at the start of a call, one less at the
start of what it launched (HTA: queue length). An empty queue means that the GPU waits for the host; while
`full_queue` launches wait, the host does: the next call does not return (HTA: time blocked on a full queue).
"""

from strobe.model.columns import OF_GPU, Column, when
from strobe.model.option import Option, one_of
from strobe.model.plugins import Analysis

# Parts of an execution; `all` is from the start of the call to the end on the GPU.
_PARTS = {
    "all": "from the start of the call to the end on the GPU",
    "call": "the call that launched it",
    "queue": "from the end of the call to the start on the GPU, of those that start after it",
    "run": "execution on the GPU",
}
_STATISTICS = {"avg": "float64", "median": "float64", "min": "int64", "max": "int64", "stddev": "float64"}
_OF_KERNELS = (
    Column("kernel", "string", "", "name without result, name spaces, templates and arguments"),
    Column("launches", "int64", "", "executions whose call is known"),
    Column("queued", "int64", "", "those that start on the GPU after the end of their call", extra=True),
    Column("short", "int64", "", "those that are shorter than their call, where that is not a long one", extra=True),
    Column("long_calls", "int64", "", "those whose call is longer than --long-call-us", extra=True),
    Column("late", "int64", "", "those that wait longer than --late-us", extra=True),
    *(
        Column(f"{part}_{what}_ns", type, "ns", f"{meaning}: {what}", extra=what != "avg" or part == "all")
        for what, type in _STATISTICS.items()
        for part, meaning in _PARTS.items()
    ),
    Column("call", "string", "", "function that launched it", extra=True),
    Column("name", "string", "", "full name", extra=True),
)
_OF_STREAMS = (
    Column("stream", "string", "", "stream"),
    Column("launches", "int64", "", "executions whose call is known"),
    Column("count", "int64", "", "how often the queue was looked at: twice a launch", extra=True),
    Column("mean", "float64", "", "mean length of the queue"),
    Column("stddev", "float64", "", "its standard deviation", extra=True),
    Column("min", "int64", "", "shortest"),
    Column("quarter", "float64", "", "a quarter are not longer"),
    Column("median", "float64", "", "half are not longer"),
    Column("three_quarters", "float64", "", "three quarters are not longer"),
    Column("max", "int64", "", "longest; 1024 is where CUDA blocks the next call"),
    Column("full_ns", "int64", "ns", "time in which --full-queue launches or more waited"),
)

ANALYSIS = Analysis(
    __name__,
    "How long do kernels wait from their call to their end, and are enough of them queued?",
    options=(
        one_of("by", "One row per kernel and call, or the queue of each stream.", "kernel", "stream"),
        Option("long_call_us", "Shortest duration of a long call.", type=int, default=50, unit="us"),
        Option("full_queue", "Number of waiting launches on a stream at which calls block.", type=int, default=1024),
        Option("late_us", "Shortest time in the queue of a late launch.", type=int, default=100, unit="us"),
    ),
    columns=(
        *OF_GPU,
        *when(*_OF_KERNELS, by="kernel"),
        *when(*_OF_STREAMS, by="stream"),
    ),
)
