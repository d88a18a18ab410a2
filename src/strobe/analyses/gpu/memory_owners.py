"""Who owns the memory that is in use at its peak, and whose part of it grows from step to step.

Show who allocated the memory that is in use at one moment: at the peak, at the end, or when an allocation failed.

Rows are of one memory, owner and category; their bytes add up to what is in use then. by line: the innermost function
of the user, in snapshots of PyTorch with the line that allocates, in profiles with its first line. by module: the
innermost module of PyTorch that is called, where its calls were recorded, else the innermost function `forward`. by
function: what was running, whoever it belongs to. growth is from the median of the first quarter of the steps' ends to
that of the last, without the steps that warm up; without 12 steps, of equal parts of the recording. It is steady if
each quarter is above the one before, by a sixth of the growth at least: then the owner keeps allocating what it never
frees. (unknown) is what was allocated before the recording, or where nothing was recorded. Needs the address of every
block: profiles of PyTorch with profile_memory=True, its snapshots, allocations of CUDA.
"""

from strobe.model.columns import RANK, Column
from strobe.model.option import one_of
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "Who owns the memory that is in use at its peak, and whose part of it grows from step to step?",
    options=(
        one_of("by", "What an owner is.", "line", "module", "function", "category"),
        one_of("at", "Of which moment; oom: when the last allocation failed.", "peak", "end", "oom"),
    ),
    columns=(
        RANK,
        Column("process", "uint32", "", "process", extra=True),
        Column("device", "int64", "", "number of the GPU, null for the host"),
        Column("memory", "string", "", "kind of memory"),
        Column("owner", "string", "", "who allocated it"),
        Column("function", "string", "", "function at that line, null for other owners", extra=True),
        Column("category", "string", "", "what it is for, see strobe memory --by category"),
        Column("allocated_bytes", "int64", "bytes", "of it in use then"),
        Column("share", "float64", "", "part of all that is in use then, 0 to 1"),
        Column("blocks", "int64", "", "number of blocks in use then"),
        Column("growth_bytes", "int64", "bytes", "how much more it is late than early, null where parts are too few"),
        Column("step_growth_bytes", "float64", "bytes", "the same for each step, null without steps"),
        Column("steady", "bool", "", "whether it grows throughout", extra=True),
        Column("time_ns", "int64", "ns", "when: the moment", extra=True),
    ),
    shows=20,
)
