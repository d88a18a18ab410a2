"""Data transforms: what the data loader spends its time in, as a tree of calls.

List what batches are made of, each call before those inside it, the longest first.

The trees begin with the fetch of a batch where the recorder saw it, else with `__getitem__` of a dataset below a wait
for data, in whichever process or thread; calls of equal names at one place are summed up. share = total / total of all
trees; self = total minus the time in calls inside. The functions inside need Python calls (`--trace +python`). Folded
steps count.
"""

from strobe.model.columns import Column
from strobe.model.option import Option
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "Which transforms does the data loader spend its time in?",
    needs=("spans",),
    options=(
        Option("min_share", "Leave out calls with a smaller share of the time, 0 to 1.", type=float, default=0.001),
    ),
    columns=(
        Column("name", "string", "", "function"),
        Column("depth", "int64", "", "number of calls around it in the tree"),
        Column("calls", "int64", "", "executions"),
        Column("total_ns", "int64", "ns", "time in it and in what it calls"),
        Column("self_ns", "int64", "ns", "time in it alone"),
        Column("share", "float64", "", "total as a part of that of all trees, 0 to 1"),
        Column("avg_ns", "float64", "ns", "mean duration of a call"),
        Column("file", "string", "", "source file"),
        Column("line", "int64", "", "line that it begins in, null where unknown"),
    ),
)
