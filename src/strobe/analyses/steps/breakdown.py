"""Breakdown: where the time of a step goes in the thread of the loop, by part of the step and kind of work.

Divide the steps of every rank by part (data, forward, backward, ...) and, in each part, by kind.

Data last until the batch is at hand; the waiting in them is the kind `data_wait`. The kind of all other time is
that of the innermost span of the main thread: communication (calls of MPI, collectives on the host), a call that
waits for the GPU, another call of the GPU's interface, an operator; `host` is all else: functions of the program
and of libraries, and time outside of all spans. So the kinds of a part add up to it, and the parts to the step, to
the nanosecond, in every step. The recorder adds them up when a step ends: they are exact of all steps of a run,
kept or folded. Rows of ranks and classes are means over all steps that are complete and not part of the warm-up.
Kinds are null where an older strobe folded steps without them.
"""

from __future__ import annotations

from strobe.model.columns import RANK, STEP, Column, when
from strobe.model.kinds import HOST_KINDS
from strobe.model.option import one_of
from strobe.model.plugins import Analysis

_MEANING = {
    "communication": "in calls of MPI, and in collectives on the host",
    "gpu_wait": "in calls that wait for the GPU",
    "gpu_call": "in other calls of CUDA or HIP: launches, copies, memory",
    "operators": "in operators, of PyTorch or a library",
    "data_wait": "waiting for the next batch, in a loader or in what makes batches for the loop",
    "host": "in functions of the program and of libraries, and time outside of all spans",
}

ANALYSIS = Analysis(
    __name__,
    "Where does the time of a step go on the host, by part and kind of work?",
    options=(
        one_of("by", "Rows per rank, per rank and class (means of their steps), or per step.", "rank", "class", "step"),
    ),
    columns=(
        RANK,
        Column("process", "uint32", "", "process that runs the steps", extra=True),
        *when(STEP, by="step"),
        *when(Column("class", "string", "", "class of the steps"), by=("class", "step")),
        *when(Column("steps", "int64", "", "steps of the run that the row is a mean over"), by=("rank", "class")),
        Column("part", "string", "", "part of the step; `step`: all of it"),
        Column("duration_ns", "int64", "ns", "how long it takes"),
        Column("share", "float64", "", "the same as a part of the step, 0 to 1"),
        *(Column(f"{kind}_ns", "int64", "ns", f"of it, {_MEANING[kind]}") for kind in HOST_KINDS),
    ),
)
