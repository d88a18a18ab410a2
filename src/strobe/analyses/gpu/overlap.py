"""What the time of a GPU went into: computing, communicating, copying, several at once, or nothing.

Divide the time of every GPU among sets of kinds of work; all ranks and all their GPUs.

The time from the first start to the last end of a GPU's kernels, copies and memory sets (or one step of its
process, or one lane) is cut where anything begins or ends, on any stream. busy = something runs; idle = nothing does.
The last seven columns (`only_...`) hold the time in which exactly the kinds of their name run: with `idle_ns` they add
up to `duration_ns`. communication = collectives and messages among GPUs: kernels with names of NCCL, RCCL, oneCCL,
HCCL, DeepEP, NVSHMEM, MSCCL or custom all-reduces, kernels with the name of a collective among their arguments, those
launched directly by a collective (`c10d::`), and those that the file of rules in STROBE_RULES names; exposed
communication = the part in which nothing computes; overlap = the part of communication in which something does, 0 to 1
(HTA: comm_comp_overlap).

The lane of a step begins with the first activity that was launched since the step began, and ends with the first
that was launched since the next one began: `step` is the time of the host, `lane` the work of the step. Lanes follow
each other without gap, and are known of folded steps, too; by step these have no rows. In traces of an older strobe
folded steps count by the sums of what they launched, of which as much runs at the same time as in detail.
"""

from strobe.model.columns import OF_GPU, STEP, Column, when
from strobe.model.option import one_of
from strobe.model.plugins import Analysis

# Sets of kinds of work that may run at once, by number in binary: see `strobe.gpu.work.KINDS`.
_SETS = (
    "computation",
    "communication",
    "computation_and_communication",
    "copy",
    "computation_and_copy",
    "communication_and_copy",
    "computation_and_communication_and_copy",
)

ANALYSIS = Analysis(
    __name__,
    "What does the time of each GPU go into, and is communication hidden behind computation?",
    options=(one_of("by", "One row per GPU, or per GPU and step: its time, or its lane.", "rank", "step", "lane"),),
    columns=(
        *OF_GPU,
        *when(STEP, by=("step", "lane")),
        Column("duration_ns", "int64", "ns", "first start to last end of its work; with --by step, lane: of that"),
        Column("busy_ns", "int64", "ns", "time in which anything runs on it"),
        Column("idle_ns", "int64", "ns", "time in which nothing does"),
        Column("computation_ns", "int64", "ns", "time in which a kernel computes"),
        Column("communication_ns", "int64", "ns", "time in which a kernel communicates"),
        Column("copy_ns", "int64", "ns", "time in which memory is copied or set"),
        Column("exposed_communication_ns", "int64", "ns", "communication while nothing computes"),
        Column("overlap", "float64", "", "part of the communication while something computes, 0 to 1"),
        *(Column(f"only_{kinds}_ns", "int64", "ns", "time in which exactly these run", extra=True) for kinds in _SETS),
    ),
)
