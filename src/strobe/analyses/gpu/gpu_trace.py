"""Every kernel, copy and memory set of the GPUs, one by one, in the order in which they began.

List what ran on every GPU: nvprof's `--print-gpu-trace`, Nsight Systems' `cuda_gpu_trace`.

The first `limit` activities of each GPU (0: all); a row takes about 150 bytes of memory. grid and block are X x Y x
Z; what a file does not hold is null. throughput is that of the file, else size / duration (1 GB/s is a byte
per ns). Raises UsageError where `limit` is negative.
"""

from strobe.model.columns import DEVICE, PROCESS, Column
from strobe.model.option import Option
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "What ran on the GPUs, kernel by kernel and copy by copy?",
    options=(
        Option("limit", "Show at most the first N activities of each GPU (0: all).", type=int, default=1_000_000),
    ),
    raises=("`limit` is below 0",),
    columns=(
        Column("rank", "int64", "", "rank of the process, null where it has none", extra=True),
        Column("start_ns", "int64", "ns", "when it began"),
        Column("duration_ns", "int64", "ns", "how long it ran"),
        Column("grid", "string", "", "blocks in x, y and z"),
        Column("block", "string", "", "threads of a block in x, y and z"),
        Column("registers_per_thread", "int64", "", "registers per thread"),
        Column("static_shared_bytes", "int64", "bytes", "shared memory of a block that the code declares", extra=True),
        Column("dynamic_shared_bytes", "int64", "bytes", "shared memory of a block that the launch asked", extra=True),
        Column("shared_memory_bytes", "int64", "bytes", "shared memory of a block, static and dynamic"),
        Column("size_bytes", "int64", "bytes", "bytes copied or set"),
        Column("throughput_gb_s", "float64", "GB/s", "bytes by time in it"),
        Column("source", "string", "", "memory copied from: Pageable, Pinned, Device, ...", extra=True),
        Column("destination", "string", "", "memory copied to, or set", extra=True),
        DEVICE,
        Column("context", "int64", "", "context of the driver"),
        Column("stream", "int64", "", "stream"),
        Column("name", "string", "", "full name of the kernel, or what was copied or set"),
        Column("correlation", "int64", "", "number that the call shares which launched it", extra=True),
        PROCESS,
        Column("location", "uint32", "", "where it ran", extra=True),
        Column("row", "int64", "", "number of its span in that location", extra=True),
    ),
)
