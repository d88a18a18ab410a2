"""What each stream of a GPU did: how long it was busy, how long alone, and with what.

Show what each stream of each GPU did between the first start and the last end of the GPU's work.

busy = time in which a kernel, copy or set of the stream runs; alone = the part of it in which no other stream of
the GPU has anything to run: what all of it is for the only stream that is used, and what several streams are to
lessen. Kernels and copies of a stream follow each other but for some that a GPU runs at once, so that their times
may add up to more than busy. priority: lower numbers run first; null where it is not known.
"""

from strobe.model.columns import OF_GPU, Column
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "What did each stream of each GPU do: how long was it busy, and how long alone?",
    columns=(
        *OF_GPU,
        Column("stream", "string", "", "name of the stream"),
        Column("priority", "int64", "", "its priority: the lowest number comes first; null where unknown"),
        Column("busy_ns", "int64", "ns", "time in which it runs something"),
        Column("share", "float64", "", "busy part of the time between first and last work of the GPU, 0 to 1"),
        Column("alone_ns", "int64", "ns", "time in which it runs something and no other stream of the GPU does"),
        Column("kernels", "int64", "", "kernels that ran on it"),
        Column("kernel_ns", "int64", "ns", "sum of their durations"),
        Column("copies", "int64", "", "copies and sets of memory on it"),
        Column("copy_ns", "int64", "ns", "sum of their durations"),
        Column("first_ns", "int64", "ns", "start of its first work", extra=True),
        Column("last_ns", "int64", "ns", "end of its last work", extra=True),
    ),
)
