"""What the time of a step depends on: the chain of work and waiting that is as long as the step itself.

Find the critical path of a step, and what bounds it: only making something on it faster makes the step faster.

Moments are where spans of threads and work of GPUs begin and end. A moment waits for the one before it in its
thread or stream; a kernel also for its launch and for events of other streams; a call that synchronises for the
last work that it waits for; the main thread for the threads of autograd. The time until a moment belongs to what
came last of all that it waited for. So the path is walked back from the last moment of the step, and its parts
add up to its length. Without synchronisation events in the profile, a call is taken to wait for what ended last
before it returned, and a kernel that begins more than 30 us after its launch and after the kernel before it for
what ended last on any stream. Ranks are linked by collectives: where all wait for all (NCCL, MPI, gloo), for the
last to come; of MPI, with a root all for it, or it for the last of them, in scans for the last of those before; what
does not block is waited for in the call that completes it, until the last has asked for it. And by messages: a call
that receives waits for the one that sends, and one that sends and blocks for the one that receives. Nothing links
processes without ranks: the path is that of the one with most work on GPUs, else of the one that lasts longest, which
the first line names; --rank each has a path for each.

The step: by default a steady one of median length; without steps, the whole run (the middle of one of more than
half a million spans). On threads its time, on GPUs what was launched in it. Kinds: host (Python, operators, calls),
data (waiting for data), launch (from the launching call to the start), queue (between two kernels of a stream),
computation, communication, copy, sync (from the end of what was waited for), unexplained (from the last that is
known to come before, where nothing in the trace accounts for the time until a moment). What GPUs still do for
earlier steps does not belong to a step: the first line has how long that was, and how much later than the step its
last work ends. The parts of a whole run add up to it.

Call paths (--by call, --by location) are those of the path, and all beside it. Their time without waits is own_ns; a
launch has none. imbalance_ns: the time in the path less the mean over all threads of the time without waits; of
kernels and copies the mean over the GPUs that run them; never below 0 (Scalasca's). Even work would make the path
shorter by that. impact_ns: the time for which threads lacked work, charged to what the path did that they did not.
slack_ns: the length of the path less that of the longest way through any part of it. If it takes longer by less than
that, wherever, the end stays. What waits takes no time itself if another comes last; a collective takes what it took
when all had come.

--what-if multiplies the time of a kind, or of what runs in regions of a name, and finds the longest path anew.
"""

from strobe.model.columns import GIVEN, Column, when
from strobe.model.option import Option, one_of
from strobe.model.plugins import Analysis

_HOW = ("One row per kind of work, region, call path, call path and thread or stream, or part of the path in order.",)

ANALYSIS = Analysis(
    __name__,
    "What does the time of a step depend on, across threads, GPUs and ranks?",
    options=(
        one_of("by", *_HOW, "kind", "region", "call", "location", "segment"),
        Option("rank", "all: one path through all ranks; each: one per rank; or the number of a rank.", default="all"),
        Option("step", "Number of the step, as in strobe steps; or all, for the whole run.", default=""),
        Option("what_if", "Predict the duration with other times of names or kinds: 'nccl*=0.5,launch=0'.", default=""),
    ),
    raises=("the trace has no such rank or step, or `what_if` is not a change of something in the path",),
    columns=(
        Column("rank", "int64", "", "rank, null where there is none or the path goes through all"),
        *when(
            Column("start_ns", "int64", "ns", "when it began"),
            Column("location", "string", "", "thread or stream", extra=True),
            by="segment",
        ),
        *when(Column("region", "string", "", "what ran, or was waited in or for"), by=("region", "segment")),
        *when(
            Column("call_path", "string", "", "what ran, and what called it, a `<` between; null: waiting"),
            by=("call", "location"),
        ),
        *when(Column("location", "string", "", "thread or stream"), by="location"),
        Column("kind", "string", "", "what bounds it: see above"),
        Column("time_ns", "int64", "ns", "its time in the path"),
        *when(Column("predicted_ns", "int64", "ns", "its time in the path after the change"), what_if=GIVEN),
        *when(
            Column("own_ns", "int64", "ns", "all its time in the window, without waits"),
            Column("imbalance_ns", "int64", "ns", "its time in the path beyond the mean of all: see above"),
            Column("impact_ns", "int64", "ns", "what threads lose together because they lack it: see above"),
            Column("slack_ns", "int64", "ns", "how much longer it could take before the end moves"),
            Column("share", "float64", "", "its part of the path, 0 to 1"),
            by=("call", "location"),
        ),
        *when(
            Column("location_id", "uint32", "", "number of the location", extra=True),
            Column("row", "int64", "", "number of the span in its location, null between spans", extra=True),
            by="segment",
        ),
        *when(
            Column("share", "float64", "", "its part of the path, 0 to 1"),
            Column("parts", "int64", "", "parts of the path that it is", extra=True),
            by=("kind", "region"),
        ),
    ),
)
