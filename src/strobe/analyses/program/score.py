"""Scoring of functions for a filter: how often each was called, what its spans take, and whether to leave it out.

A recorded call costs the program about the same time, whatever the function does, and its span some bytes of the
trace. As in `scorep-score -g`, a function is to be left out (EXCLUDE) if it has `min_share` of all recorded calls or
more, and takes `max_call_ns` on average or less, without what it calls. `strobe filter` writes these functions into a
filter file for `strobe cc --filter` and `strobe run --filter`. Calls of MPI, kernels and others are never left out.

bytes: size of the trace, shared out by spans. Calls that were folded have none.
"""

from strobe.model.columns import Column
from strobe.model.option import Option
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "Which functions cost more to record than they are worth?",
    needs=("spans",),
    options=(
        Option(
            "min_share", "Leave out functions with this share of all calls or more, 0 to 1.", type=float, default=0.01
        ),
        Option(
            "max_call_ns",
            "Leave out functions that take so long on average or less.",
            type=int,
            default=1000,
            unit="ns",
        ),
    ),
    columns=(
        Column("name", "string", "", "name of the region"),
        Column("paradigm", "string", "", "who reported it"),
        Column("calls", "int64", "", "executions"),
        Column("share", "float64", "", "part of all calls, 0 to 1"),
        Column("bytes", "int64", "bytes", "of its spans in the trace"),
        Column("self_ns", "int64", "ns", "time in it alone"),
        Column("per_call_ns", "float64", "ns", "self time per call"),
        Column("filter", "string", "", "EXCLUDE, if it is to be left out"),
    ),
)
