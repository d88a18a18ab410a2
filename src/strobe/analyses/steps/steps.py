"""Steps: every iteration of the main loop with its class, its parts, and whether it was unusually slow and why.

List the steps, by process and in order of time; see schema `steps` for the columns.

Steps are found without a marker: by PyTorch's own ranges (optimizer, data loader), otherwise by what repeats
in the calls. `strobe.step` or profiler steps decide where the program has them. They are all here, whether they
were kept in detail or folded into statistics. `step_class` and `only` leave rows out.
"""

from strobe.model.option import Option, one_of
from strobe.model.plugins import Analysis
from strobe.model.schema import STEPS

ANALYSIS = Analysis(
    __name__,
    "Which steps does the run have, and which were slow?",
    needs=("spans",),
    options=(
        Option("step_class", "Only steps of this class.", default=None, also=("--class",)),
        Option("step_level", "Use the iterations of this loop as steps: +1 (around it), -1 (inside), or its name."),
        Option("step_at", "Begin a step at each event of this name."),
        one_of("only", "All steps, or only outliers.", "all", "outliers", flags=True),
    ),
    raises=("the trace has no such class of steps, loop or event",),
    columns=STEPS,
)
