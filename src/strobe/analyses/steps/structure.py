"""Structure: the loops of a process as a tree; which of them is the step, how often each runs, and what it costs.

List the loops of a process, outer loops before inner ones.

trips: iterations per iteration of the loop around it. share: of the whole run.
The loop whose iterations are the steps has `step` = true.
"""

from strobe.model.option import Option
from strobe.model.plugins import Analysis
from strobe.model.schema import Column

ANALYSIS = Analysis(
    __name__,
    "Which loops does the program run, and which of them is the step?",
    needs=("spans",),
    options=(
        Option("process", "Number of the process. Default: the first one with steps.", type=int),
        Option("stream", "Events to use: auto, calls, operators, kernels, mpi.", default="auto"),
        Option("step_level", "Use the iterations of this loop as steps: +1 (around it), -1 (inside), or its name."),
        Option("step_at", "Begin a step at each event of this name."),
    ),
    raises=("the process has no such events, or no such loop or event",),
    columns=(
        Column("loop", "string", "", "name of the loop: step, the function that it stands in, or its marker"),
        Column("depth", "int64", "", "number of loops around it"),
        Column("marker", "string", "", "event that marks an iteration"),
        Column("count", "int64", "", "iterations in the whole run"),
        Column("in_detail", "int64", "", "of how many of them times and trips are, null: of all", extra=True),
        Column("min_trips", "int64", "", "fewest iterations per iteration of the loop around it"),
        Column("median_trips", "float64", "", "usual number of them"),
        Column("max_trips", "int64", "", "most of them"),
        Column("total_ns", "int64", "ns", "what all iterations took, or those in detail"),
        Column("share", "float64", "", "part of the run that the loop takes, 0 to 1"),
        Column("first_ns", "int64", "ns", "when the first iteration began"),
        Column("last_ns", "int64", "ns", "when the last iteration ended"),
        Column("step", "bool", "", "its iterations are the steps of the run"),
        Column("spine", "float64", "", "events and transitions that occur once in each iteration"),
        Column("coverage", "float64", "", "part of the loop around it that it spans, 0 to 1"),
        Column("cvn", "float64", "", "variation of the number of events per iteration; 0 is perfectly regular"),
        Column("score", "float64", "", "how much it looks like a main loop; 0.2 is little"),
        Column("id", "uint32", "", "number of the loop"),
    ),
)
