"""What a job hangs in: the collectives and messages that were not complete when PyTorch's flight recorder was dumped.

Show for each process group the first collective that is not complete on all ranks, and who has not called it.

For dumps of PyTorch's flight recorder (`nccl_trace_rank_N`) of all ranks. One row per rank of the group: what it
called, in which line, and its state: scheduled (called), started (runs on the GPU) or completed, as far as PyTorch
had noticed. `not called`: its last entry in the group is an earlier one; `last_call` is the last thing that it called
in any group. `no dump`: nothing is known of the rank. `overwritten`: it called later ones, and its buffer no longer
has this one. difference: what is not as most ranks called it (of equally many, as the lowest rank): operation, size,
dtype; missing where the rank has not called it. Sizes and types are compared by the rules of PyTorch's own analyser
(torch.distributed.flight_recorder). Of messages: the first send or receive of each pair of ranks that is not
complete. Operations come first whose missing ranks wait in no other one: the others may wait for them. Of gloo, an
operation is complete when its entry is no longer in use; that is all that gloo notes.
"""

from strobe.model.columns import Column
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "Which collective or message does a job hang in, and which rank has not come to it?",
    columns=(
        Column("group", "string", "", "name of the process group"),
        Column("description", "string", "", "what the group is for", extra=True),
        Column("sequence", "int64", "", "number of the operation in the group (of a message: on its rank)"),
        Column("rank", "int64", "", "rank of the group"),
        Column("state", "string", "", "scheduled, started, completed, not called, no dump, overwritten"),
        Column("difference", "string", "", "missing, operation, size, dtype; empty where it is as on most ranks"),
        Column("operation", "string", "", "what it called, null where it did not", nullable=True),
        Column("in_shapes", "string", "", "shapes of what it put in, as JSON", nullable=True),
        Column("out_shapes", "string", "", "shapes of what it gets out, as JSON", extra=True, nullable=True),
        Column("dtype", "string", "", "types of what it put in, as JSON", nullable=True),
        Column("called_at", "string", "", "function and line of the program that called it, or its last call"),
        Column("last_call", "string", "", "of a rank that did not call it: its last call in any group", nullable=True),
        Column("called_ns", "int64", "ns", "when it called that", nullable=True),
        Column("location", "uint32", "", "where the span of that call is", extra=True, nullable=True),
        Column("row", "int64", "", "number of its span there", extra=True, nullable=True),
    ),
)
