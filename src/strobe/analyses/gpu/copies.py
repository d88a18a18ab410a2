"""What was copied and set on each GPU: how much, how long, how fast, and from which kind of memory.

Sum the copies and memory sets of every GPU by direction and kinds of memory; sizes and times (nsys: mem_*_sum).

share = total / total of all copies and sets of the GPU; stddev that of a sample, 0 for one. bandwidth = bytes /
time of those whose size is known (1 GB/s is a byte per ns); the peak is the highest of a single copy. A copy is
pageable where the host's memory is not pinned: the driver copies it twice, and it cannot overlap with the host.

by time: the bandwidth of each kind in each of `points` equal parts of the time of the GPU's work, those in which
something is copied; 0: from change to change, the sum of what runs at once (HTA: memory bandwidth time series). A
copy counts as equally fast all along; those without length or size are left out.
"""

from strobe.model.columns import OF_GPU, Column, durations, when
from strobe.model.option import Option, one_of
from strobe.model.plugins import Analysis

_OF_KINDS = (
    Column("source", "string", "", "memory copied from: Pageable, Pinned, Device, ..., null where unknown", extra=True),
    Column("destination", "string", "", "memory copied to, or set", extra=True),
    Column("pageable", "bool", "", "whether memory of the host took part that was not pinned, null where unknown"),
    Column("share", "float64", "", "part of the time of all copies and sets of the GPU, 0 to 1"),
    *durations(calls="copies or sets", shown=()),
    Column("size_bytes", "int64", "bytes", "bytes copied or set; null where no size is known"),
    Column("avg_size_bytes", "float64", "bytes", "mean size", extra=True),
    Column("median_size_bytes", "float64", "bytes", "median size", extra=True),
    Column("min_size_bytes", "int64", "bytes", "smallest", extra=True),
    Column("max_size_bytes", "int64", "bytes", "largest", extra=True),
    Column("stddev_size_bytes", "float64", "bytes", "standard deviation of the sizes", extra=True),
    Column("bandwidth_gb_s", "float64", "GB/s", "bytes by time in it"),
    Column("peak_gb_s", "float64", "GB/s", "the same of the fastest copy", extra=True),
)
_OVER_TIME = (
    Column("start_ns", "int64", "ns", "start of the part of time"),
    Column("duration_ns", "int64", "ns", "its length"),
    Column("busy_ns", "int64", "ns", "time of it in which something is copied"),
    Column("bandwidth_gb_s", "float64", "GB/s", "bytes copied in it by its length"),
    Column("peak_gb_s", "float64", "GB/s", "highest bandwidth at any moment of it, the sum of what runs at once"),
    Column("copies", "int64", "", "most that ran at once", extra=True),
)

ANALYSIS = Analysis(
    __name__,
    "What is copied to, from and on each GPU, and how fast?",
    options=(
        one_of("by", "One row per kind, or per kind and interval of time.", "kind", "time"),
        Option("points", "Number of equal intervals of time (0: one row per change).", type=int, default=500),
    ),
    raises=("`points` is above 1,000,000",),
    columns=(
        *OF_GPU,
        Column("kind", "string", "", "from where to where: HtoD, DtoH, DtoD, PtoP, ...; set where memory was set"),
        *when(*_OF_KINDS, by="kind"),
        *when(*_OVER_TIME, by="time"),
    ),
)
