"""The mesh of a distributed training: what each dimension of its groups is for, bubbles of pipelines, hot experts.

Show the dimensions of a training (data, sharded, tensor, pipeline, expert), bubbles by cause, and uneven experts.

A dimension is a set of groups of ranks that do the same, are of one size, and have no rank in common. What it is for
is known by the name that the program gives it (a description of the group, a dimension of DeviceMesh), else by what
its ranks communicate: expert where they exchange parts (all-to-all); pipeline where messages connect each rank with
two others at most; sharded with all-gathers and reduce-scatters; tensor with all-reduces in the forward and in the
backward pass, or reduce-scatters in the forward and all-gathers in the backward pass; data with all-reduces in or
after the backward pass alone. Calls of up to 64 bytes, or of 1 % of a group's bytes, do not count (a loss, a norm).
Else it is unknown: null.

By dimension: a steady step, the mean of the ranks. time: in its calls and kernels. wait: of that, for ranks that come
later, as in strobe waits. exposed: of that, what no computation hides.

A step of a pipeline is, for all its stages, that of the first one: until the first stage begins the next step. idle =
waits for other ranks (on a GPU also when nothing runs); communicating = other time in communication that nothing
hides; computing = all other time. They add up to the step. idle = fill + between + drain + sync. fill: until the first
message arrived at the stage. drain: from the last message that it sent or got until all stages are done. between: in
between, for messages. sync: the rest: for replicas and other dimensions. The bubble = fill + between + drain. Of it,
schedule = what all stages together idle in a replay of the step in which each stage computes as long as the mean of
all, and messages take no time: for GPipe and 1F1B with p stages and m microbatches it is (p - 1) / m of the
computation, with v stages of the model on each rank (p - 1) / (v m). imbalance = what that replay lasts longer with
the computation of each stage as it was. What is left is due to messages and other waits.

By expert: a dispatch is an all-to-all whose successor in the group, the combine, sends back on every rank what the
rank got. expert = computation between the two. imbalance = 1 - mean / max over the ranks of the group, of expert_ns.
"""

from strobe.model.columns import RANK, STEP, Column, when
from strobe.model.option import one_of
from strobe.model.plugins import Analysis

_STAGE = (
    Column("computing_ns", "float64", "ns", "all time that is none of the following"),
    Column("communicating_ns", "float64", "ns", "in communication that no computation hides, without waits"),
    Column("fill_ns", "float64", "ns", "idle until its first message arrived"),
    Column("between_ns", "float64", "ns", "idle between its first and its last message, for messages"),
    Column("drain_ns", "float64", "ns", "idle from its last message until all stages are done"),
    Column("sync_ns", "float64", "ns", "other waits: for replicas, in other dimensions"),
    Column("step_ns", "float64", "ns", "the sum of these"),
)

ANALYSIS = Analysis(
    __name__,
    "Which groups of ranks does a training have, what are they for, and what do pipelines and experts lose?",
    options=(
        one_of(
            "by",
            "One row per dimension, rank (its coordinates), stage of a pipeline, stage and step, or rank of experts.",
            *("dimension", "rank", "stage", "step", "expert"),
        ),
    ),
    columns=(
        *when(RANK, by=("rank", "expert")),
        *when(STEP, by="step"),
        *when(
            Column("dimension", "string", "", "what the program calls it, else what it is for"),
            Column("kind", "string", "", "data, sharded, tensor, sequence, pipeline or expert; null unknown"),
            by=("dimension", "rank", "expert"),
        ),
        *when(
            Column("source", "string", "", "how the kind is known: by its name or its use"),
            Column("also", "string", "", "other kinds of communication among the same ranks"),
            Column("groups", "int64", "", "number of its groups"),
            Column("size", "int64", "", "ranks in each group"),
            Column("ranks", "string", "", "ranks of its groups, as JSON"),
            Column("calls", "float64", "", "calls of a rank in a step"),
            Column("sent_bytes", "float64", "bytes", "bytes that a rank puts in"),
            Column("received_bytes", "float64", "bytes", "bytes that a rank gets out"),
            Column("time_ns", "float64", "ns", "time in its calls and kernels"),
            Column("wait_ns", "float64", "ns", "of that, waiting for ranks that come later"),
            Column("exposed_ns", "float64", "ns", "of that, what no computation hides"),
            by="dimension",
        ),
        *when(
            Column("coordinate", "int64", "", "place of the rank in its group: its coordinate"),
            Column("group_ranks", "string", "", "ranks of its group, as JSON"),
            by="rank",
        ),
        *when(
            Column("pipeline", "int64", "", "number of the pipeline, one per replica"),
            Column("stage", "int64", "", "place of the rank in the order in which activations reach it"),
            RANK,
            by=("stage", "step"),
        ),
        *when(Column("steps", "int64", "", "steady steps that are summed"), by=("stage", "expert")),
        *when(*_STAGE, by=("stage", "step")),
        *when(
            Column("received_bytes", "float64", "bytes", "bytes that dispatches bring it in a step"),
            Column("expert_ns", "float64", "ns", "computation between dispatch and combine, of a step"),
            Column("wait_ns", "float64", "ns", "waits for other ranks in all-to-alls, of a step"),
            Column("busiest", "int64", "", "steps in which its experts compute longest"),
            by="expert",
        ),
    ),
)
