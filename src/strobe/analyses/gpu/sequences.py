"""Which kernels operators run again and again, as sequences: what could be fused, or replaced by one call.

Count which sequences of kernels, copies and memory sets operators run on each GPU; the most frequent come first.

A sequence is what one execution of an operator launches, and operators inside of it, on one GPU, in order of the
starts there; equal ones have the same operator and the same full names (HTA: frequent CUDA kernel sequences). What
it captured into a CUDA graph is a sequence each time that the graph is launched. With
`operator`, all ranges and operators whose names contain that text are looked at, else operators of PyTorch, nodes
of its backward graph and steps of its optimizers; of those inside each other only the outermost (HTA: only
those as deep as the one that is the least deep in the whole file). `least`: activities of a sequence at least.
share = part of the time of all activities of the GPU, summed.
"""

from strobe.model.columns import OF_GPU, Column
from strobe.model.option import Option
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "Which sequences of kernels do operators run again and again?",
    options=(
        Option("operator", "Only operators and ranges whose names contain this.", default=""),
        Option("least", "Smallest number of kernels, copies and memory sets in a sequence.", type=int, default=3),
    ),
    columns=(
        *OF_GPU,
        Column("operator", "string", "", "operator or range that launched it"),
        Column("count", "int64", "", "how often executions of the operator ran this sequence"),
        Column("length", "int64", "", "kernels, copies and memory sets of the sequence"),
        Column("device_ns", "int64", "ns", "their durations, summed over all executions"),
        Column("share", "float64", "", "part of the time of everything that the GPU ran, 0 to 1"),
        Column("host_ns", "int64", "ns", "durations of the operators, of each execution once"),
        Column("sequence", "string", "", "short names in order of start; 3x name: three after each other"),
        Column("names", "string", "", "full names, | between them; of the first 200", extra=True),
        Column("location", "uint32", "", "thread of the first execution of the operator", extra=True),
        Column("row", "int64", "", "its span there", extra=True),
    ),
)
