"""Which rank is late: who comes last to collectives, by how much, and what the others wait for it.

Sum by how much every rank comes too late to collectives: by its arrival there, not by the time of its phases.

Looked at are collectives in which all wait for all (all-reduce, all-gather, reduce-scatter, all-to-all, barrier).
A rank arrives when its kernel starts on the GPU (NCCL, RCCL), or when its call begins (MPI, gloo; NCCL where its
kernels are not recorded: then the host does not wait, and `wait` is what the GPU would). late = arrival
minus that of the middle one, the earlier of two (below 0: earlier). wait = last arrival minus its own. delay = last
arrival minus the last but one: how much sooner the collective could begin if the last one came with the next.
`last` and `delay_ns` count only delays above the error of the clocks: the sum of what that of the last one, and of
any of the others, may be off. It is how well ends of collectives agree, as found when the files of ranks were
put together; 0 on one machine. The sentence below the table names the late rank if one causes half of the delays
(of two ranks: two thirds). Ranks are matched by group and number of the collective, else by order, else by what
overlaps.
"""

from strobe.model.columns import RANK, Column, when
from strobe.model.option import one_of
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "Which rank comes late to collectives, and what do the others wait for it?",
    options=(
        one_of("by", "One row per rank, rank and kind of collective, or collective.", "rank", "kind", "collective"),
    ),
    columns=(
        *when(
            RANK,
            Column("process", "uint32", "", "process", extra=True),
            Column("device", "int64", "", "number of the GPU, null for collectives on the host", extra=True),
            by=("rank", "kind"),
        ),
        *when(
            Column("kind", "string", "", "kind of collective: allreduce, allgather, ..."),
            Column("group", "string", "", "name of the group, null where unknown"),
            by=("kind", "collective"),
        ),
        *when(
            Column("collectives", "int64", "", "collectives that it and another rank took part in"),
            Column("last", "int64", "", "those to which it came last, by more than the error of the clocks"),
            Column("delay_ns", "int64", "ns", "how much sooner those could have begun: its arrival - the last but one"),
            Column("late_mean_ns", "float64", "ns", "its arrival - that of the middle rank, mean"),
            Column("late_median_ns", "float64", "ns", "the same, median"),
            Column("late_max_ns", "int64", "ns", "the same, most", extra=True),
            Column("wait_ns", "int64", "ns", "what it waited itself: last arrival - its own, all collectives"),
            Column("clock_error_ns", "int64", "ns", "by how much its clock may be wrong"),
            Column("unmatched", "int64", "", "collectives that are of no other rank in this trace", extra=True),
            by=("rank", "kind"),
        ),
        *when(
            Column("sequence", "int64", "", "number in the group, null where unknown", extra=True),
            Column("ranks", "int64", "", "who took part, as far as they are in this trace"),
            Column("start_ns", "int64", "ns", "first arrival"),
            Column("last_rank", "int64", "", "rank that arrived last"),
            Column("late_ns", "int64", "ns", "last arrival - that of the middle rank"),
            Column("delay_ns", "int64", "ns", "last arrival - the last but one"),
            Column("wait_ns", "int64", "ns", "what all waited: last arrival - their own, summed"),
            Column("clock_error_ns", "int64", "ns", "by how much the last two arrivals may be wrong"),
            Column("location", "uint32", "", "where the last one ran", extra=True),
            Column("row", "int64", "", "number of its span there", extra=True),
            by="collective",
        ),
    ),
)
