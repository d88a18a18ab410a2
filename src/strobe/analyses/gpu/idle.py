"""Why GPUs had nothing to do: idle time by cause, of each GPU or each of its streams.

Sum the gaps between activities of every GPU (or stream) by what kept the next activity from starting.

data, sync, copy, host: it was launched only after the gap had begun; until then the launching thread waited for
data (`data`), for the GPU (`sync`), in a copy that blocks it (`copy`), or did something else (`host`, with the time
from the launch to the start). kernel: it was launched before, and began less than `kernel_gap_ns` after the one
before it. other: it was launched before and waited longer (for another stream, mostly), or its launch is unknown.
The sum of the first four is the `host_wait` of Holistic Trace Analysis, kernel its `kernel_wait`, other its
`other`, without its rounding to microseconds.

Where steps were folded, gaps count as often as steps stand for those of their class, and the sum of a GPU's causes is
what is known of all steps.
"""

from strobe.model.columns import OF_GPU, Column, when
from strobe.model.option import Option, one_of
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "Why do the GPUs have nothing to do?",
    options=(
        one_of("by", "Gaps of each GPU as a whole, or of each of its streams.", "device", "stream"),
        Option(
            "kernel_gap_ns",
            "Longest gap between two launched kernels that counts as the GPU's own.",
            type=int,
            default=30_000,
            unit="ns",
        ),
    ),
    columns=(
        *OF_GPU,
        *when(Column("stream", "string", "", "stream of the GPU"), by="stream"),
        Column("cause", "string", "", "data, sync, copy, host, kernel, other: see above"),
        Column("idle_ns", "int64", "ns", "time that this cause takes of the gaps"),
        Column("share", "float64", "", "the same as a part of all idle time of the GPU (or stream), 0 to 1"),
        Column("gaps", "int64", "", "gaps of which this cause takes most; of folded steps none"),
        Column("longest_ns", "int64", "ns", "the longest of these gaps"),
        Column("start_ns", "int64", "ns", "when that one began", extra=True),
        Column("location", "uint32", "", "where the activity that ended it ran", extra=True),
        Column("row", "int64", "", "number of that activity's span in its location", extra=True),
    ),
)
