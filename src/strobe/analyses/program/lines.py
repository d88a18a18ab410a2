"""Source lines: how often each line of the chosen functions ran, how long it took, on the host and on GPUs.

Sum the counted lines over all threads and processes: functions by time, each in the order of its source.

A line's time includes what it calls (line_profiler's definition); its share is of all lines of its function. So
does its time on GPUs: the kernels, copies and sets whose launching call began while the line was being executed, on
the same thread, in it or in what it calls, whenever they ran; of a CUDA graph those that were captured meanwhile,
each time that they run. A recursion counts once. These are counted as they happen, in all iterations, whether kept
in detail or not; what the backward pass launches on threads of its own belongs to no line, and after a kill
about a second of what CUPTI had not delivered is missing. Null where no calls were recorded on threads (those beside
them, where another tool has CUPTI's callbacks, belong to no line). Of an imported profile of samples, `hits` are
samples and the time is the line's own. `function` is a name, or part of one. With `whole`, lines that never ran are
listed, too, as long as the source file is there.
"""

from strobe.model.option import Option
from strobe.model.plugins import Analysis
from strobe.model.schema import Column

ANALYSIS = Analysis(
    __name__,
    "How often did each line of the chosen functions run, and how long did it take?",
    needs=("lines",),
    options=(
        Option("function", "Only functions whose name contains this."),
        Option("whole", "Include lines that never ran.", type=bool, default=False),
    ),
    shows=200,
    columns=(
        Column("file", "string", "", "source file"),
        Column("line", "int64", "", "line in it"),
        Column("function", "string", "", "function that the line is in"),
        Column("hits", "int64", "", "how often it ran"),
        Column("total_ns", "int64", "ns", "time in it, with what it calls"),
        Column("per_hit_ns", "float64", "ns", "time of one execution, null where it never ran"),
        Column("share", "float64", "", "part of the time of its function's lines, 0 to 1"),
        Column("gpu_ns", "int64", "ns", "time of GPUs in what it launched, null where unknown"),
        Column("kernels", "int64", "", "kernels that it launched"),
        Column("source", "string", "", "its text, null where the file is not here, or was changed since the run"),
    ),
)
