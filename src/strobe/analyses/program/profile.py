"""Call-path profile: where the time goes, by function (flat), callers first (tree), callees first (inverted).

Sum all spans, and the statistics of those that were folded, by call path.

flat: a row per region; total counts recursion once. tree: a row per call path, callers before callees. inverted: a
row per region with its callers below it, each with the self time of the region that it is responsible for.
share: self time (in the tree: total time) as a part of the self time of everything, which is the sum of the busy
times of all locations. Rows with a share (of total time) below `min_share` are left out.
"""

from strobe.model.columns import Column, when
from strobe.model.option import Option, one_of
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "Which functions take the time?",
    needs=("spans",),
    options=(
        one_of("form", "A row per function, or a tree of callers or callees.", "flat", "tree", "inverted", flags=True),
        Option("step", "Steps to include: steady, all, 14, 10..20.", default="auto"),
        Option("step_class", "Only steps of this class.", default=None, also=("--class",)),
        Option("min_share", "Leave out rows with a smaller share of the time, 0 to 1.", type=float, default=0.0),
    ),
    raises=("`step` or `step_class` are not of steps of this trace",),
    columns=(
        *when(
            Column("name", "string", "", "name of the region"),
            Column("paradigm", "string", "", "who reported it"),
            Column("role", "string", "", "what it is"),
            Column("group", "string", "", "what it is summed as"),
            Column("calls", "int64", "", "executions"),
            Column("total_ns", "int64", "ns", "time in it and in what it calls, recursion counted once"),
            Column("self_ns", "int64", "ns", "time in it alone"),
            Column("share", "float64", "", "self time as a part of the self time of everything, 0 to 1"),
            Column("avg_ns", "float64", "ns", "total time per call"),
            Column("min_ns", "int64", "ns", "shortest call"),
            Column("max_ns", "int64", "ns", "longest call"),
            Column("self_per_step_ns", "float64", "ns", "self time per step"),
            Column("file", "string", "", "source file"),
            Column("line", "uint32", "", "first line of the definition"),
            form="flat",
        ),
        *when(Column("name", "string", "", "name of the last region of the call path"), form="tree"),
        *when(Column("name", "string", "", "name of the region, or below it of its callers"), form="inverted"),
        *when(
            Column("depth", "int64", "", "number of rows above it that it belongs to"),
            Column("calls", "int64", "", "executions"),
            Column("total_ns", "int64", "ns", "time in it and in what it calls"),
            Column("self_ns", "int64", "ns", "time in it alone"),
            Column("share", "float64", "", "part of the self time of everything, 0 to 1"),
            Column("per_step_ns", "float64", "ns", "time per step"),
            Column("call_path", "uint32", "", "id of the call path"),
            form=("tree", "inverted"),
        ),
    ),
)
