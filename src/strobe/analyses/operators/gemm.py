"""Matrix products, convolutions and attention: FLOPs, bytes, speed, and how close to what the GPU can do.

Sum matrix products, convolutions and attention by operator, shape and type; all ranks and all their GPUs.

Of operators inside each other (linear, addmm) the outermost counts. FLOPs follow from the shapes: a product of
(m, k) and (k, n) takes 2 m n k (formulas: `strobe.operators.flops`); bytes are those of the operands and the
result, each once. device_ns = sum of the durations of the kernels launched inside. gflops = FLOPs / device_ns, or
/ host_ns where the process used no GPU. efficiency = gflops / peak of the type; it may exceed 1 where a
convolution multiplies less than its definition (Winograd, FFT). bound: `compute` where FLOPs a
byte (intensity) reach peak / bandwidth, else `memory`; of_roofline = gflops / min(peak, intensity x bandwidth).
Peaks are as stated in the options, else those of the GPU's data sheet, where it is a known one; float32 is measured
against TF32 where tensor cores computed it, by the names of the kernels.
"""

from strobe.model.columns import RANK, Column
from strobe.model.option import Option
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "How fast are matrix products, convolutions and attention, and how close to what the GPU can do?",
    options=(
        Option("peak_gflops", "Peak performance of the GPU in GFLOP/s, for all types.", type=float),
        Option("bandwidth_gb_s", "Memory bandwidth of the GPU in GB/s.", type=float),
    ),
    raises=("a peak or a bandwidth is not above 0",),
    columns=(
        RANK,
        Column("process", "uint32", "", "process that called it", extra=True),
        Column("device", "int64", "", "number of the GPU that computed it, null where no kernel is known"),
        Column("operator", "string", "", "outermost operator"),
        Column("dtype", "string", "", "type of the operands that were multiplied"),
        Column("batch", "int64", "", "matrix products of a call; groups of a convolution, heads in all of attention"),
        Column("m", "int64", "", "rows; positions of a convolution's output in all images; queries"),
        Column("n", "int64", "", "columns; output channels of a group; keys"),
        Column("k", "int64", "", "length of the sums; elements of a filter; size of a head"),
        Column("calls", "int64", "", "executions; of what a CUDA graph holds, how often the graph ran it"),
        Column("flop", "int64", "FLOP", "floating-point operations of a call"),
        Column("moved_bytes", "int64", "bytes", "operands and result of a call, each once", extra=True),
        Column("intensity", "float64", "FLOP/byte", "floating-point operations a byte"),
        Column("device_ns", "int64", "ns", "durations of the kernels launched inside, of all calls"),
        Column("host_ns", "int64", "ns", "durations of the operators on the host, of all calls", extra=True),
        Column("avg_ns", "float64", "ns", "kernels of a call (operator, without a GPU), mean"),
        Column("gflops", "float64", "GFLOP/s", "speed that was reached"),
        Column("peak_gflops", "float64", "GFLOP/s", "what the GPU does at most with this type", extra=True),
        Column("efficiency", "float64", "", "speed as a part of the peak, 0 to 1"),
        Column("bound", "string", "", "what limits it at best: compute or memory"),
        Column("of_roofline", "float64", "", "speed as a part of what peak and bandwidth allow, 0 to 1", extra=True),
        Column("tf32", "bool", "", "whether float32 was multiplied on tensor cores, by names of kernels", extra=True),
        Column("shapes", "string", "", "shapes of the inputs, as JSON", extra=True),
    ),
)
