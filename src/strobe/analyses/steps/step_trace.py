"""The step trace: what lies before forward and backward, they themselves, what comes after, and the collectives.

Divide every step into iteration interval, forward and backward, and tail, as MindSpore does; all ranks.

interval = from the end of the step before to the first operator of the forward pass; of it `wait_ns` for data;
forward_backward = from there to the end of the last one of the backward pass (of a step that has none: of the
step); tail = the rest: gradients still under way, the optimizer. They add up to `duration_ns`. Nothing has to be
marked: the passes are recognised by PyTorch's names. Where steps launch kernels that compute, and these end before the
next step begins, times are those of the kernels; else those of the host. A step lasts as long as in `steps`. The rows
of ranks and classes are means over all steady steps (MindSpore: over all);
kept ones stand for those that are statistics only.
MindInsight advises to look at the interval where its mean is above 0.5 ms. With `by=collective`, a row is what a
line `stream_<number>_<k>` of MindSpore is: the k-th collective of a step on a stream.
Source: MindSpore 2.0.0 (mindspore/profiler/parser/step_trace_parser.py).
"""

from strobe.model.columns import RANK, STEP, Column, when
from strobe.model.option import one_of
from strobe.model.plugins import Analysis

_ROWS = ("rank", "class", "step", "collective")

ANALYSIS = Analysis(
    __name__,
    "How long is a step before, in and after its forward and backward pass, and when are its collectives?",
    options=(
        one_of("by", "One row per rank, rank and class (means of their steps), step, or collective of a step.", *_ROWS),
    ),
    columns=(
        RANK,
        Column("process", "uint32", "", "process that runs the steps", extra=True),
        *when(STEP, by=("step", "collective")),
        *when(Column("class", "string", "", "class of the steps"), by=("class", "step")),
        *when(Column("start_ns", "int64", "ns", "when the step begins", extra=True), by="step"),
        *when(Column("steps", "int64", "", "steps of the run that the row is a mean over"), by=("rank", "class")),
        *when(
            Column("duration_ns", "int64", "ns", "how long the step takes"),
            Column("interval_ns", "int64", "ns", "from the end of the step before to the begin of the forward pass"),
            Column("forward_backward_ns", "int64", "ns", "from there to the end of the backward pass"),
            Column("tail_ns", "int64", "ns", "from there to the end of the step: gradients under way, the optimizer"),
            Column("wait_ns", "int64", "ns", "of interval_ns, waits for the next batch"),
            *(
                Column(f"{part}_share", "float64", "", f"{part}_ns as a part of the step, 0 to 1")
                for part in ("interval", "forward_backward", "tail")
            ),
            by=("rank", "class", "step"),
        ),
        *when(Column("counted", "bool", "", "whether it enters the means", extra=True), by="step"),
        *when(
            Column("line", "string", "", "stream_<number>_<k>: the k-th collective of the step on that stream"),
            Column("name", "string", "", "name of its kernel"),
            Column("part", "string", "", "where it begins: interval, forward_backward, tail"),
            Column("start_ns", "int64", "ns", "when it begins"),
            Column("duration_ns", "int64", "ns", "how long it takes"),
            by="collective",
        ),
    ),
)
