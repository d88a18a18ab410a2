"""What the time of steps went into: each nanosecond once, by priority, as PyTorch's TensorBoard plugin divides it.

Divide the time of every step among kinds of work by priority; all ranks, all threads and GPUs of each.

Where several run at once, the first of these takes the time: kernels that compute, copies, memory sets, communication
(kernels of NCCL and its like, collectives and messages on the host), calls of CUDA or HIP, waits for the data loader,
operators and ranges on the host. `other` is what is left: Python, mostly. So the eight columns add up to
`duration_ns`. Source: torch-tb-profiler 0.4.3 (overall_parser.py); unlike it, kernels that communicate are recognised
by their own names. As there, a step lasts until the work that it launched is done on the GPU, so that where a GPU
runs behind, steps are not those of `steps`; where the profiler marked steps, its marks are the steps. The rows of
ranks and classes are means over all steps that are complete. Where most are statistics only, those that are kept
stand for the time of their class, and slow ones for themselves.
"""

from strobe.model.columns import RANK, STEP, Column, when
from strobe.model.option import one_of
from strobe.model.plugins import Analysis

# In the order of their priority: see `strobe.breakdown.step_time`.
_ROLES = {
    "kernel": "a kernel computes",
    "memcpy": "memory is copied on a GPU, and no kernel runs",
    "memset": "memory is set on a GPU, and nothing of the above",
    "communication": "collectives or messages, and nothing of the above: exposed communication",
    "runtime": "a call of CUDA or HIP, and nothing of the above",
    "data_loader": "the loop waits for its next batch, and nothing of the above",
    "cpu_exec": "an operator or a range on the host, and nothing of the above",
    "other": "nothing of all that",
}

ANALYSIS = Analysis(
    __name__,
    "What does the time of a step go into: kernels, copies, communication, launching, waiting for data, the host?",
    options=(
        one_of(
            "by", "One row per rank, per rank and class (means of their steps), or per step.", "rank", "class", "step"
        ),
    ),
    columns=(
        RANK,
        Column("process", "uint32", "", "process that runs the steps", extra=True),
        *when(STEP, by="step"),
        *when(Column("class", "string", "", "class of the steps"), by=("class", "step")),
        *when(Column("start_ns", "int64", "ns", "when the step begins", extra=True), by="step"),
        *when(Column("steps", "int64", "", "steps of the run that the row is a mean over"), by=("rank", "class")),
        Column("duration_ns", "int64", "ns", "how long the step takes"),
        *(Column(f"{role}_ns", "int64", "ns", meaning) for role, meaning in _ROLES.items()),
        *(
            Column(f"{role}_share", "float64", "", f"{role} as a part of the step, 0 to 1", extra=True)
            for role in _ROLES
        ),
        *when(Column("counted", "bool", "", "whether it enters the means", extra=True), by="step"),
    ),
)
