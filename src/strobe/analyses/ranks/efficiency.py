"""How much of the time of ranks and GPUs is useful, and which factor costs most: the efficiencies of POP and TALP.

Explain an efficiency by its factors. A factor is the product of those that have it as `parent`, if there are any.

Useful is the computation in the main thread of a rank. Communication, calls of the GPU's interface, and waits for
the GPU or for data are not. The times are those of `strobe breakdown`: exact for all steps, also for folded ones. U
= useful time of a rank, n = ranks, T = time of the rank that takes longest.

pop (https://co-design.pop-coe.eu/metrics): parallel_efficiency = sum U / (n T) = load_balance *
communication_efficiency. load_balance = mean U / max U = load_balance_in * load_balance_out: within nodes and
between them. With N nodes and V = the most useful time of a node, these are N V / (n max U) and sum U / (N V).
communication_efficiency = max U / T, where all that is not useful counts as communication, = serialisation_efficiency
* transfer_efficiency. With I = how long the rank that takes longest would take on a network that transfers everything
at once, these are max U / I and I / T. For I all messages and collectives of MPI and gloo are replayed: a rank
computes as long as it did, and waits only for those that it needs. It is null where GPUs communicate, or where calls
have no other side in the trace, or there are more than 20 million of them. POP calls 0.8 acceptable.

talp (DLB, src/talp/perf_metrics.c, model 2; one CPU per rank and per further thread of OpenMP; TALP leaves ranks
without any communication out of the minima): with m = mean time in communication, mpi_parallel_efficiency = (T - m) /
T, mpi_communication_efficiency = (T - min m) / T, mpi_load_balance = (T - m) / (T - min m), and with v = the least
mean of a node, (T - v) / (T - min m) within nodes and (T - m) / (T - v) between them. For TALP, waiting for data is
useful: W = U + waits for data. With G = calls of the GPU's interface and waits for the GPU, device_offload_efficiency
= W / (W + G), and parallel_efficiency = W / (W + G + communication), which is not the product of the others. With
teams of OpenMP (null without), W also has the other threads in parallel regions, less their time in barriers. By
region and over its threads, D is the sum of how much longer than the one that waits least each is in barriers, H of
how long that one is; S is how long workers are outside of regions, but for MPI. With a = W + G + communication,
omp_parallel_efficiency = a / (a + S + D + H) = omp_serialization_efficiency * omp_load_balance *
omp_scheduling_efficiency, which are a / (a + S), (a + S) / (a + S + D), (a + S + D) / (a + S + D + H), as in TALP's
model 1. parallel_efficiency = W / (a + S + D + H), and device_offload_efficiency has W + S + D + H for W. For g GPUs
with K = time in kernels, M = in copies while no kernel runs: gpu_parallel_efficiency = sum K / (g T), gpu_load_balance
= sum K / (g max K), gpu_communication_efficiency = max K / max (K + M), gpu_orchestration_efficiency = max (K + M) /
T. A GPU that several ranks use counts once.

strobe: more losses are told apart, and kernels that communicate are not useful. Each factor is a time divided by the
one before it. Ranks: T, max (U + waits for data + G), max (U + waits for data), max U, mean U; the factors are
communication, offload, data, load balance. GPUs: T, max (K + C + M), max (K + C - w + M), max (K + M), max K, mean
K, where K = time in kernels that compute, C = in kernels that communicate while none computes, M = in copies while
no kernel runs, w = the part of C from the start of a kernel until the last rank has arrived; the factors are
orchestration, wait, transfer, copy, load balance. Column `talp`: TALP's factor of the same name.

The run consists of the steps that are complete and past the warm-up on all ranks; if a rank has no steps, it is the
whole run. The T of GPUs is that of their lanes (strobe overlap --by lane), if these are longer. A value is null if a
rank is not in the trace, or lacks the step; those of GPUs also if there is no GPU.

Several traces of one program are compared with the first, per step: computation_scaling = sum U of the first / sum
U, global_efficiency = parallel_efficiency * computation_scaling, speedup = T of the first / T, speedup_efficiency =
speedup * n of the first / n. With --weak the work of a step grows with the ranks: computation_scaling and speedup
are multiplied by n / n of the first. If counters of instructions and cycles were read at each call (Score-P with
PAPI), computation_scaling = instruction_scaling * ipc_scaling * frequency_scaling: with I instructions and C cycles
of the computation on all ranks, I of the first / I, I / C and C / sum U, each divided by that of the first.
"""

from strobe.model.columns import STEP, Column, when
from strobe.model.option import one_of
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "How efficiently do ranks and GPUs use their time, and which factor costs most?",
    options=(
        one_of("by", "Factors of the run, of each class of steps, or of each step.", "run", "class", "step"),
        one_of("model", "Whose factors.", "pop", "talp", "strobe"),
    ),
    columns=(
        *when(STEP, by="step"),
        *when(Column("class", "string", "", "class of the steps, on all ranks"), by=("class", "step")),
        Column("ranks", "int64", "", "ranks that have all of it"),
        *when(Column("steps", "int64", "", "steps of the run that it is of, null without steps"), by=("run", "class")),
        Column("elapsed_ns", "int64", "ns", "how long they take, T", extra=True),
        Column("parent", "string", "", "the factor that this one is a factor of, null at the root", extra=True),
        Column("factor", "string", "", "name of the factor, see above"),
        Column("value", "float64", "", "1: nothing is lost; null where it is not known"),
        *when(Column("talp", "float64", "", "TALP's value of the factor of the same name"), model="strobe"),
    ),
)
