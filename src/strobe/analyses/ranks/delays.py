"""What made ranks wait: the functions that took longer on the rank that came late, and what that cost all others.

Find the causes of waits: delay costs, by Scalasca's definitions (after Boehme et al., ACM TOPC 3(2), 2016).

A rank R waits for a rank S (see strobe waits). Both are compared from where they synchronised last: by a message for
which either waited, by a collective (one with a root only with the root), by MPI_Init, else from the beginning of the
run. Of the call that did it, only its completion counts: what it still did when the other side was done. What a call
path took longer on S than on R, without waits, is a delay; what S waited itself passes the wait on. Both share the
wait in proportion. direct_ns: the part of waits that is due to the cause itself. indirect_ns: the part in which the
awaited rank waited, in a call that is the cause; it is a cost of what made that rank wait. long_term_ns: what others
waited because of these waits, as far as the cause delayed them. unexplained_ns: what is due to nothing known. cost_ns
= direct_ns + long_term_ns. cost_ns and unexplained_ns of all rows add up to all waits. Of each rank that waits,
direct_ns, indirect_ns and unexplained_ns add up to its waits. A cost that is handed on to a wait of an unknown cause
is in long_term_ns of the row without a cause.

GPUs and their hosts (--among gpus): a thread waits for the work of a GPU (late_gpu), a stream for an event of another
one (late_stream), a GPU for the thread that launches (late_host). Both sides are compared from where the host and the
GPU of the process, or the two streams, waited for each other last, or since the first work of the GPU. Such a wait
passes on what the late one waited for, also for another rank: long_term_ns of a wait for a rank has what GPUs and
their hosts waited because of it. Waits for another rank (--among ranks) are due to what the whole process did: where
the host waits for a GPU, it is what that does.

A cause is the function that ran, with what called it. Between two calls of MPI in which nothing was recorded it is
`computation before` the second one. Of steps that were folded, calls that wait are known, and the time before them: if
either rank has only these, both are compared by them. Where a stream of a GPU is idle, it is what other streams of the
GPU do, or else the main thread.

Classes: computation (also the waiting rank runs the function: the load is out of balance), communication (calls that
communicate), single (only the rank that is late runs it).

Waits shorter than twice the error of the clocks are left out: strobe waits has their sum.
"""

from strobe.model.columns import STEP, Column, when
from strobe.model.option import one_of
from strobe.model.plugins import Analysis

_HOW = "One row per cause and its rank, rank that was late, waiting rank, step, class, all of these, or single wait."

ANALYSIS = Analysis(
    __name__,
    "What made ranks wait, and what did it cost, directly and through the waits of others?",
    options=(
        one_of("by", _HOW, "cause", "rank", "waiter", "step", "class", "all", "wait"),
        one_of("among", "Waits of ranks for each other, of GPUs and their hosts, or all.", "all", "ranks", "gpus"),
    ),
    columns=(
        *when(Column("start_ns", "int64", "ns", "when the call began that waited"), by="wait"),
        *when(Column("rank", "int64", "", "rank that was late"), by=("cause", "rank", "all", "wait")),
        *when(Column("cause", "string", "", "function that made it late, null: unknown"), by=("cause", "all")),
        *when(
            Column("class", "string", "", "computation, communication or single; null: unknown"),
            by=("cause", "class", "all"),
        ),
        *when(Column("waiting_rank", "int64", "", "rank that waited"), by=("waiter", "all", "wait")),
        *when(Column("state", "string", "", "what it waited for: see strobe waits"), by=("all", "wait")),
        *when(STEP, by=("step", "all", "wait")),
        *when(Column("wait_ns", "int64", "ns", "how long it waited"), by="wait"),
        *when(
            Column("cost_ns", "int64", "ns", "waits that are due to it: direct and long-term"),
            by=("cause", "rank", "waiter", "step", "class", "all"),
        ),
        Column("direct_ns", "int64", "ns", "waits for the late rank because of it"),
        Column("indirect_ns", "int64", "ns", "waits for the late rank because that waited itself"),
        *when(
            Column("long_term_ns", "int64", "ns", "waits of others because of these waits"),
            by=("cause", "rank", "waiter", "step", "class", "all"),
        ),
        Column("unexplained_ns", "int64", "ns", "waits that are due to nothing known"),
        *when(Column("carried_ns", "int64", "ns", "what others waited because of it"), by="wait"),
        *when(
            Column("waits", "int64", "", "waits that it is a cause of"),
            Column("waiting_ranks", "int64", "", "ranks that waited for the late one"),
            by=("cause", "rank", "waiter", "step", "class", "all"),
        ),
        *when(
            Column("call_path", "string", "", "the cause, and what called it, a `<` between", extra=True),
            by=("cause", "all"),
        ),
        Column("location", "uint32", "", "where the wait was that cost most", extra=True),
        Column("time_ns", "int64", "ns", "when its call began", extra=True),
    ),
)
