"""Who waited for whom, how long and in what: wait states of communication between ranks, of threads, and of GPUs.

Sum the waits of every rank by what it waited for, by Scalasca's definitions, in every step of the run.

E and L are the enter and the leave of a call. No wait is longer than its call. late_sender: a call that completes a
receive, or a blocking probe, waits until the send begins: min(E of the send, L) - E. A call that completes several has
the longest. wrong_order: the part of late_sender whose message was sent after one that was received later.
late_receiver: a blocking send, or a call that completes one, is over only after the receive was asked for, and waits
until then. wait_at_barrier: until the last has come. wait_at_nxn: the same where all need all (all-reduce, all-gather,
reduce-scatter, all-to-all), and among neighbours for those that send to it. barrier_completion, nxn_completion: from
when the first has left to its own leave. late_broadcast: until the root comes (broadcast, scatter). early_reduce: the
root waits for the last that sends it something (reduce, gather). early_scan: for the last of those before it.
late_collective: a call that completes a collective that does not block waits for the last rank that asks for it.
Kernels of NCCL and its like, which spin until all have come, and collectives of gloo wait in the same way.

One-sided communication: wait_at_fence: until the last rank of the window has come. late_post: the call of an origin
(MPI_Win_start, an access, MPI_Win_complete) in which its target calls MPI_Win_post waits until then. early_wait:
MPI_Win_wait waits for the last MPI_Win_complete to begin. late_complete: the part of early_wait after the last access
of that origin. lock_contention: MPI_Win_lock waits while others hold the same target in a way that excludes it, from
the end of their MPI_Win_lock to the end of their MPI_Win_unlock.

Threads of a process (--by thread), exact also in steps that were folded. Of OpenMP: thread_barrier: until the last
thread of the team has come to the barrier, less the tasks that the waiting one runs meanwhile. lock_contention: until
the thread that had the lock, or was in the critical section, leaves it. no_task: a thread at a barrier, or that waits
for tasks, has none to run while others of its team run theirs. The awaited thread ran the last one. idle_worker: a
worker between two parallel regions waits for the thread that works there. Of pthreads, in programs without Python:
lock_contention (mutexes and read-write locks), condition_wait, semaphore_wait, thread_join and thread_barrier are the
time in the call. The awaited thread has the lock when the wait begins, signalled the condition or posted the semaphore
last, is joined, or came to the barrier last. Waits of less than 50 us that follow each other within 1 ms are one row
of --by wait.

GPUs: late_gpu: a call that synchronises, or a copy that is done before its call returns, waits for the end of the
last work of the GPU that it needs: min(end of that work, L) - E, for a copy without the time before it in which its
stream did nothing. Which work that is, the critical path decides by the same rule. late_stream: a stream waits for an
event of another one: from when its next work was launched, and the work before that was over, until the end of the
last work that was launched before the event was recorded, where the trace has the events. The kernel is what was
waited for, on the stream that is awaited_thread. late_host: a GPU that is done with all that it had begun does nothing
until a thread launches what it does next. All of them are known where the GPU has its spans, not in steps that were
folded.

Calls that only test do not wait. Messages and collectives of steps that were folded are counted as all others. What is
shorter than twice the error of the two clocks is not told apart from none: it is in uncertain_ns.
With --by wait, the million longest waits are shown, and how many others there are is in the note.
Locks that are asked for only by the first access, and waits for the target to come to MPI at all, are not known.
"""

from strobe.model.columns import RANK, STEP, Column, when
from strobe.model.option import one_of
from strobe.model.plugins import Analysis

_HOW = (
    "One row per wait state, function, call path, rank, thread, step, pair of ranks, kernel, all of these, or single"
    " wait.",
)

ANALYSIS = Analysis(
    __name__,
    "Who waited for whom, how long, and in which call?",
    options=(
        one_of(
            "by", *_HOW, "state", "function", "call", "rank", "thread", "step", "pair", "kernel", "all", "wait"
        ),
    ),
    columns=(
        *when(Column("start_ns", "int64", "ns", "when the call began that waited"), by="wait"),
        Column("state", "string", "", "what it waited for: see above"),
        *when(RANK, by=("rank", "thread", "pair", "all", "wait")),
        *when(Column("awaited_rank", "int64", "", "whom it waited for, if for one"), by=("pair", "all", "wait")),
        *when(
            Column("thread", "string", "", "the thread that waited"),
            Column("awaited_thread", "string", "", "the thread that it waited for, null where that is not known"),
            by=("thread", "all", "wait"),
        ),
        *when(STEP, by=("step", "all", "wait")),
        *when(Column("function", "string", "", "what waited"), by=("function", "call", "kernel", "all", "wait")),
        *when(
            Column("place", "string", "", "the function of Python in it: file and first line"), by=("call", "all")
        ),
        *when(Column("kernel", "string", "", "the work of a GPU that it waited for"), by=("kernel", "all", "wait")),
        *when(
            Column("call_path", "string", "", "what waited, and what called it, a `<` between"),
            by=("call", "all", "wait"),
        ),
        Column("wait_ns", "int64", "ns", "waits that are longer than twice the error of the clocks"),
        Column("waits", "int64", "", "how many these are"),
        *when(
            Column("max_ns", "int64", "ns", "the longest of them"),
            by=("state", "function", "call", "rank", "thread", "step", "pair", "kernel", "all"),
        ),
        Column("uncertain_ns", "int64", "ns", "shorter ones, which may be none"),
        *when(
            Column("partial", "int64", "", "waits in collectives of which the trace lacks a rank", extra=True),
            Column("clipped", "int64", "", "waits that end with their call, though what they wait for came later",
                   extra=True),
            by=("state", "function", "call", "rank", "thread", "step", "pair", "kernel", "all"),
        ),
        Column("location", "uint32", "", "where the longest one waited", extra=True),
        Column("time_ns", "int64", "ns", "when the call of the longest one began", extra=True),
    ),
)  # fmt: skip
