"""Matrix products that could be one: equal ones, one after the other, and what merging them would gain.

Find products of equal operator, shape and type that one thread calls one after the other in the same step.

No other operator launches a kernel between them, so n of them may be one product of n-fold work: operands put
after each other ([A1; A2; A3] h), or stacked (bmm). A trace does not hold which data an operator reads: that they
share an operand is to be checked in the program, and so is that none needs the result of another. `independent`
is `by size` where a result has as many elements as neither operand, so that it cannot be the next one's as a whole
(a part of it still can), else `unknown`.

predicted_ns = n-fold FLOPs / speed; speed = that of the products of the same type in this trace, on the same GPU,
which take half to twice as many FLOPs a call (`basis`: trace); where there are none, or that is more than the
roofline allows, min(peak, intensity of the merged product x bandwidth), which is the best case (`basis`: roofline).
gain_ns = device_ns - predicted_ns; products for which that is not above 0 have no row.
"""

from strobe.model.columns import RANK, Column
from strobe.model.option import Option
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "Which matrix products could be merged into one, and what would that gain?",
    options=(
        Option("peak_gflops", "Peak performance of the GPU in GFLOP/s, for all types.", type=float),
        Option("bandwidth_gb_s", "Memory bandwidth of the GPU in GB/s.", type=float),
    ),
    raises=("a peak or a bandwidth is not above 0",),
    columns=(
        RANK,
        Column("process", "uint32", "", "process that called them", extra=True),
        Column("device", "int64", "", "number of the GPU"),
        Column("operator", "string", "", "operator"),
        Column("dtype", "string", "", "type of the operands that are multiplied"),
        Column("batch", "int64", "", "matrix products of a call"),
        Column("m", "int64", "", "rows of each"),
        Column("n", "int64", "", "columns of each"),
        Column("k", "int64", "", "length of the sums of each"),
        Column("together", "int64", "", "calls one after the other, which could be one"),
        Column("times", "int64", "", "how often so many follow each other"),
        Column("device_ns", "int64", "ns", "durations of their kernels, all times"),
        Column("predicted_ns", "int64", "ns", "the same after merging, null where nothing to predict it from is known"),
        Column("gain_ns", "int64", "ns", "what merging would save, all times"),
        Column("speedup", "float64", "", "device_ns / predicted_ns"),
        Column("basis", "string", "", "what the prediction rests on: trace, or roofline (the best case)"),
        Column("independent", "string", "", "by size: none as a whole can be an operand of the next; else unknown"),
        Column("inside", "string", "", "what directly surrounds the first, empty where nothing does", extra=True),
        Column("shapes", "string", "", "shapes of the inputs of each, as JSON", extra=True),
        Column("location", "uint32", "", "thread of the first of them", extra=True),
        Column("start_ns", "int64", "ns", "when the first of them was called", extra=True),
    ),
)
