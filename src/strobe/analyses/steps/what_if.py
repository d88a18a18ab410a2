"""How long would a step take if something in it took another time? With the error of the replay.

Replay usual steps, with a change and without. A step is the graph of the critical path: threads, streams of
GPUs, launches, synchronisation, messages and collectives of all ranks. A replay keeps the time of each piece of
work and what waits for what; launches, gaps and returns in between take their usual time (the median of the
stretch), and time that nothing accounts for is left out. What the replay of the unchanged steps lacks of the
recorded time, or has beyond it, is its error. Where the GPU is behind the host, up to four consecutive steps are
one stretch.

The times of the row are scaled from the steps that are replayed to the mean of all usual ones of the run (steady, of
the most frequent class, no outliers). With `by=stretch` they are as recorded.

A change: PATTERN=FACTOR multiplies the time of what runs in regions of a name, or of a kind (host, data, launch,
queue, computation, communication, copy, sync): 'gemm*=0.5'; a factor that is not sure is a range:
'gemm*=0.4..0.6'. Or a word: no-launch (work of GPUs needs no launch of its own, as in a graph), no-sync (no call
waits for a GPU), async-copies (no call waits for a copy), no-copies (they take no time), no-straggler (what a
rank calls takes what the median of the ranks takes for it). Several with commas. Others come with a range of
their own:

half: what computes in float32 on a GPU computes in 16 bits: products by the ratio of the peaks, the rest by its
bytes. fuse=PATTERN: elementwise kernels that follow each other, in what the pattern matches, are one, which takes
as long as the longest of them (at worst, and half of the others). merge=PATTERN: so are equal matrix products;
tails of their grids are saved at most, down to the roofline. overlap: collectives run beside computation (at worst
the last of a step does not). ranks=2x: so many times the ranks, each with the work of one now; collectives take
longer (from their bytes to the steps of a ring), and their last rank comes later. workers=4, prefetch=4: the
batches of a DataLoader as a queue, served by so many workers, each so many ahead, as long as there are cores; alone.
Where the trace does not show what comes of a change, there is no row, and a sentence why.

by=change without a change: those that may gain something in these steps, the best first; what is changed is what their
critical path goes through, and the loader.

The gain is an interval: the range of the factors, widened by the error of the replay (the largest of the
stretches, as a part of the new time) and by how much the stretches differ (1.96 standard errors), added as
squares. A gain below 1 % of a step, or below three median deviations of the stretches by the root of their
number, counts as none. No gain of waits (data,
sync, communication, workers, prefetch) is longer than these.
"""

from strobe.model.columns import Column, when
from strobe.model.option import Option, one_of
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "How long would a step take if something in it took another time?",
    options=(
        Option("change", "What changes: 'nccl*=0.5', 'gemm*=0.4..0.6,no-sync'. Default: nothing.", default=""),
        one_of(
            "by",
            "One row of all stretches, one per stretch of steps, or one per change that may gain something here.",
            *("class", "stretch", "change"),
        ),
        Option("rank", "all: all ranks together; or the number of a rank.", default="all"),
    ),
    raises=("the trace has no such rank, or `change` is not a change of something in the steps",),
    columns=(
        *when(Column("change", "string", "", "what changes, as `change` takes it"), by="change"),
        Column("class", "string", "", "class of the steps"),
        *when(Column("step", "int64", "", "first step of the stretch"), by="stretch"),
        Column("steps", "int64", "", "steps that were replayed"),
        Column("recorded_ns", "int64", "ns", "how long a step took, until its last work on a GPU was done"),
        Column("replayed_ns", "int64", "ns", "how long its replay takes without a change"),
        Column("error", "float64", "", "by how much a replay is off, as a part of the recorded time: the mean"),
        *when(Column("largest_error", "float64", "", "the largest of these of all stretches"), by=("class", "change")),
        Column("predicted_ns", "int64", "ns", "how long a step takes with the change: the middle of its factors"),
        Column("gain_ns", "int64", "ns", "how much shorter it is than the replay; negative: longer"),
        *when(
            Column("gain_low_ns", "int64", "ns", "at least so much; 0 where that is within the error"),
            Column("gain_high_ns", "int64", "ns", "at most so much"),
            by=("class", "change"),
        ),
    ),
)
