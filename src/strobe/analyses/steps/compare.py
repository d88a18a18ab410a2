"""Compare: what one run, rank, class of steps or range of steps (B) does otherwise than another (A), and what it costs.

Steps are compared by class. What a step does is a tree: functions, operators, calls of MPI and of the GPU's
interface by the calls around them, and kernels below the operators that launched them. Names count without addresses,
hashes, arguments of templates, and numbers of modules. Nodes of equal names below aligned ones are the same; else a
level that one side has more is looked through; else what stands beside the same neighbours, is called as often and
calls the same was renamed. Kernels that an operator has left on both sides are the same work, fused differently.

Rows are the changes of a class and a lane, the largest difference first, and what is left as one row without a
change. Over the rows of a lane, differences add up to that of its mean step: `host` is the thread of the loop,
`threads` are all others, `GPU` is the lane of `strobe overlap --by lane` (of steps in detail) for each GPU, in which
`several at once` takes away what kernels on several streams count twice. The lane `steps` is there where classes have
another share of the steps: its rows add up to the difference of the mean of all steps.

A change of counts holds all that is called because of it, as often per call as before. by_count_ns is what comes from
the number of calls, at the mean time of a call of both sides; by_time_ns is the rest. Counts are exact where steps are
alike. A time is `longer` or `shorter` if the steps of A and B are apart but for a tenth of either, by 1 % of the step
at least, and by another factor than all else (4 robust standard deviations). What makes everything longer may be the
machine: that is the business of `strobe bench`.
"""

from strobe.model.columns import Column
from strobe.model.option import Option, one_of
from strobe.model.plugins import Analysis

_OF_BOTH = "of A and of B, with a comma between them; one stands for both"

ANALYSIS = Analysis(
    __name__,
    "What does B do otherwise than A in a step, and what does each difference cost?",
    options=(
        Option("other", "B: path of a trace, last~1; on a server the name of a run. Default: A.", metavar="TRACE"),
        Option("ranks", f"Rank {_OF_BOTH}: 0,1.", metavar="A,B"),
        Option("classes", f"Class of steps {_OF_BOTH}: train,train+validation.", metavar="A,B"),
        Option("steps", f"Steps {_OF_BOTH}: 10..20,30..40. Default: steady ones.", metavar="A,B"),
        one_of("by", "Rows per change, or per place in the step, changed or not.", "change", "place"),
    ),
    columns=(
        Column("class", "string", "", "class of the steps"),
        Column("lane", "string", "", "steps, host, threads, GPU"),
        Column("name", "string", "", "function, operator, call or kernel; `A -> B` where names differ"),
        Column(
            "change",
            "string",
            "",
            "only in A, only in B, more calls, fewer calls, renamed, reordered, fused differently, longer, shorter; "
            "null: no change beyond the spread",
        ),
        Column("a_calls", "float64", "", "calls per step in A; of the lane `steps` the share of the steps"),
        Column("b_calls", "float64", "", "the same in B"),
        Column("a_ns", "float64", "ns", "time per step in A, without inner calls that have a row of their own"),
        Column("b_ns", "float64", "ns", "the same in B"),
        Column("difference_ns", "float64", "ns", "by how much B takes longer"),
        Column("by_count_ns", "float64", "ns", "the part of it that comes from the number of calls"),
        Column("by_time_ns", "float64", "ns", "the part of it that comes from the time of a call"),
        Column("where", "string", "", "the calls around it, the outermost first", extra=True),
    ),
    raises=(
        "B is neither another trace nor another part of A",
        "a trace has no such rank, class or step",
    ),
)
