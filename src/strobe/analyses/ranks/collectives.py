"""What collectives move between ranks, and how fast: by rank, process group and kind.

Sum the collectives of every rank by group, kind and type of elements: times, bytes, bandwidths.

A collective takes from the start to the end of its kernel (NCCL, RCCL), call (MPI) or execution on a thread of its
own (gloo), or from its request to its completion (MPI, not blocking). That includes waiting for ranks that come
later: bandwidths are what the program saw, and the peak, of the fastest single collective, is nearer to what the
network can do. In a recording, the call of NCCL that launched a kernel has the number of bytes; calls of a
group (ncclGroupStart) are one execution, whose bytes add up. Where NCCL's kernels are not recorded, its calls are
shown, with their bytes: their time is that of handing over to the GPU.

in, out = elements times the size of their type (PyTorch), or bytes sent to all and received from all (MPI, as
Score-P counts). size: as nccl-tests defines it (doc/PERFORMANCE.md): the buffer of an all-reduce, broadcast or
reduce, all ranks' parts of an all-gather, reduce-scatter or all-to-all. algbw = size / time, of those whose size is
known (1 GB/s is a byte per ns). busbw = algbw * 2(n-1)/n for an all-reduce, (n-1)/n for all-gather, reduce-scatter,
all-to-all, gather and scatter, 1 for broadcast, reduce, send and receive; n is the size of the group. Of MPI,
what is done in place comes out too low by (n-1)/n.
"""

from strobe.model.columns import RANK, Column, durations
from strobe.model.option import Option
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "What do collectives move in each process group, and how fast?",
    options=(Option("rank", "Only this rank.", type=int),),
    raises=("the trace has no such rank",),
    columns=(
        RANK,
        Column("process", "uint32", "", "process that took part", extra=True),
        Column("device", "int64", "", "number of its GPU, null on the host or where unknown", extra=True),
        Column("group", "string", "", "name of the process group or communicator, null where unknown"),
        Column("description", "string", "", "what the group is for", extra=True),
        Column("group_ranks", "string", "", "ranks of the group, as JSON", extra=True),
        Column("group_size", "int64", "", "ranks in the group (n), null where unknown"),
        Column("collective", "string", "", "its kind: allreduce, allgather, ...; null where unknown"),
        Column("dtype", "string", "", "type of an element, null where unknown"),
        *durations(what="time"),
        Column("in_bytes", "int64", "bytes", "bytes that the rank put in; null where not known of any"),
        Column("out_bytes", "int64", "bytes", "bytes that the rank got out; null where not known of any"),
        Column("size_bytes", "int64", "bytes", "sum of the sizes that bandwidths are made of", extra=True),
        Column("algbw_gb_s", "float64", "GB/s", "bandwidth of the algorithm: size by time"),
        Column("busbw_gb_s", "float64", "GB/s", "the same times the factor of nccl-tests: what each link carries"),
        Column("peak_busbw_gb_s", "float64", "GB/s", "the same of the fastest collective", extra=True),
    ),
)
