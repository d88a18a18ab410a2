"""How much memory of GPUs and of the host is in use over time, when it is most, in which step, and for what.

Show how much memory is in use: at most, in each step, or over time; by process, GPU and kind of memory, or category.

`memory`: GPU and host are what PyTorch's allocators give out; Device, Managed, Pinned, ... are allocations of CUDA
(`--trace +cuda+memory`, Nsight Systems), where reserved counts what pools hold; resident is the memory of the whole
process. allocated = in use; reserved = what the allocator holds for that. Where a trace has sizes only, allocated
counts from the first event on: it was at least that much (`exact` is false). by step: from the start of a step to
its end, with what was in use when it began. by time: a row is what was in use from then on; the highest of each of
`points` equal parts of the time, 0: every change. largest_free is the largest free piece of what is reserved: an
allocation that is larger needs more memory from the GPU, however much is free in all. by category: at the same
moments, a row for each category that PyTorch's memory profiler has, `workspace`, and `cache` (reserved, but not
active). Files of PyTorch have categories, or the stacks or operators that allocated: then it follows from these, and
from what outlives its pass. `unknown` is what nothing is known of.
"""

from strobe.model.columns import RANK, STEP, Column, when
from strobe.model.option import Option, one_of
from strobe.model.plugins import Analysis

_PEAK = Column("peak_bytes", "int64", "bytes", "most that was in use at once")
_PEAK_TIME = Column("peak_time_ns", "int64", "ns", "when it was, for the first time")
_RESERVED = Column("peak_reserved_bytes", "int64", "bytes", "most that the allocator held, null where unknown")
_STEP_THEN = "step of its process at that time, null outside of all"
_OF_DEVICE = (
    _PEAK,
    _PEAK_TIME,
    Column("peak_step", "int64", "", _STEP_THEN),
    Column("peak_share", "float64", "", "the same as part of the GPU's memory, 0 to 1, null where unknown"),
    _RESERVED,
    Column("first_bytes", "int64", "bytes", "in use before the first event", extra=True),
    Column("last_bytes", "int64", "bytes", "in use after the last one", extra=True),
)
_OF_STEP = (
    STEP,
    Column("start_bytes", "int64", "bytes", "in use when it began"),
    _PEAK,
    _PEAK_TIME,
    _RESERVED,
    Column("end_bytes", "int64", "bytes", "in use when it ended"),
)
_SUMS = (
    Column("allocations", "int64", "", "how often memory was allocated"),
    Column("allocated_bytes", "int64", "bytes", "sum of what was allocated", extra=True),
    Column("freed_bytes", "int64", "bytes", "sum of what was freed", extra=True),
)
_OF_PEAK = (
    Column("exact", "bool", "", "whether the allocator reported the amount in use; false: at least that", extra=True),
    Column("location", "uint32", "", "thread that allocated the peak, null where unknown", extra=True),
)
_OVER_TIME = (
    Column("step", "int64", "", _STEP_THEN),
    Column("time_ns", "int64", "ns", "when"),
    Column("allocated_bytes", "int64", "bytes", "in use from then on"),
    Column("reserved_bytes", "int64", "bytes", "held by the allocator, null where unknown"),
    Column(
        "active_bytes", "int64", "bytes", "allocated, or freed but awaited by a stream, null where unknown", extra=True
    ),
    Column("largest_free_bytes", "int64", "bytes", "largest free piece of what is reserved, null where unknown"),
    Column("change_bytes", "int64", "bytes", "allocated then, below 0 freed", extra=True),
    Column("location", "uint32", "", "thread that did it, null where unknown", extra=True),
)

_BY_CATEGORY = (
    Column("step", "int64", "", _STEP_THEN),
    Column("time_ns", "int64", "ns", "when"),
    Column("category", "string", "", "what the memory is for"),
    Column("allocated_bytes", "int64", "bytes", "in use from then on; of the cache, free but held by the allocator"),
)

ANALYSIS = Analysis(
    __name__,
    "How much memory of GPUs and of the host is in use, when is it most, and in which step?",
    options=(
        one_of(
            "by",
            "One row per kind of memory, per step, or its curve over time, in all or by category.",
            *("device", "step", "time", "category"),
        ),
        Option("points", "Most rows of a curve, each the maximum of an interval (0: all).", type=int, default=500),
    ),
    columns=(
        RANK,
        Column("process", "uint32", "", "process", extra=True),
        Column("device", "int64", "", "number of the GPU, null for the host"),
        Column("memory", "string", "", "kind of memory: GPU, host, Device, Managed, Pinned, ..., resident"),
        *when(*_OF_DEVICE, *_SUMS, *_OF_PEAK, by="device"),
        *when(*_OF_STEP, *_SUMS, by="step"),
        *when(*_OVER_TIME, by="time"),
        *when(*_BY_CATEGORY, by="category"),
    ),
)
