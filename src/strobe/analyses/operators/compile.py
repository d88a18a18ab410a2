"""What torch.compile compiles, how often and why, and what the code that it makes costs, by line of the program.

Sum up the compilations of the whole run. A function is compiled to one graph, or with graph breaks to several: what
follows a break is a frame of its own, and counts as the function that breaks off. `recompiles` and `graph_breaks` are
those that TORCH_LOGS=recompiles,graph_breaks prints; a function that reaches the limit of recompiles is counted once
more than it is compiled. `cause` is the most frequent one. A compilation is one of a frame, or of a backward graph:
that has the number of its frame's compilation, and its guards.

Of kernels, `source_lines` are those of the program's own files, or of its libraries, that the nodes of the graph come
from, without PyTorch's. A kernel that fuses several lines counts for each of them: rows by line do not add up. Code
that comes from Inductor's cache has no lines; `reason` is why they are not known. `size_bytes` is known of kernels of
Triton in profiles with shapes: a tensor counts once for each call that gets it, whether it is read, written or both.

Profiles of PyTorch have compiled regions and kernels, and no graph breaks: there a frame is a function, its graphs are
those that were called, and recompiles those before the last of them. The kernels of GPUs are those that a compiled
region launched. Phases have the time of threads in each phase, without the phases inside it: of the
threads that wait for a compilation, not of those that compile C++ meanwhile.
"""

from strobe.model.columns import RANK, Column, when
from strobe.model.option import one_of
from strobe.model.plugins import Analysis

_KERNELS = ("kernel", "line")
_OF_PROCESS = ("function", "compilation", "event")

ANALYSIS = Analysis(
    __name__,
    "What does torch.compile compile, how often and why, and which lines do its kernels work for?",
    needs=("compiled",),
    options=(one_of("by", "What a row is of.", "function", "compilation", "event", "kernel", "line", "phase"),),
    columns=(
        *when(RANK, Column("process", "uint32", "", "process that compiled", extra=True), by=_OF_PROCESS),
        *when(Column("event", "string", "", "compile, recompile, graph_break"), by="event"),
        *when(Column("time_ns", "int64", "ns", "when it began"), by="event"),
        *when(Column("start_ns", "int64", "ns", "when it began", extra=True), by="compilation"),
        *when(
            Column("step", "int64", "", "step that its middle lies in, null outside of every step", nullable=True),
            by="compilation",
        ),
        *when(Column("compile_id", "string", "", "PyTorch's number: frame/compilation"), by=("compilation", "event")),
        *when(Column("function", "string", "", "function that is compiled"), by=_OF_PROCESS),
        *when(
            Column("again", "bool", "", "whether its frame had been compiled before"),
            Column("backward", "bool", "", "whether it is of a backward graph"),
            by="compilation",
        ),
        *when(
            Column("kernel", "string", "", "kernel, or operator that the generated code calls"),
            Column("operators", "string", "", "ATen operators that it does the work of"),
            by="kernel",
        ),
        *when(Column("source_lines", "string", "", "lines of the program that it works for"), by="kernel"),
        *when(Column("source_line", "string", "", "line of the program"), by="line"),
        *when(Column("kernels", "int64", "", "calls in the generated code that work for it"), by="line"),
        *when(Column("phase", "string", "", "phase of the compilation, by PyTorch's name"), by="phase"),
        *when(
            Column("graphs", "int64", "", "compilations that made a graph"),
            Column("recompiles", "int64", "", "times that a guard failed"),
            Column("graph_breaks", "int64", "", "times that tracing broke off; null: unknown", nullable=True),
            Column("compile_ns", "int64", "ns", "time of compiling it; null: unknown", nullable=True),
            by="function",
        ),
        *when(Column("calls", "int64", "", "calls"), by=("function", *_KERNELS, "phase")),
        *when(Column("total_ns", "int64", "ns", "time of these calls"), by=("function", *_KERNELS)),
        *when(Column("self_ns", "int64", "ns", "time of it without phases inside it"), by="phase"),
        *when(Column("share", "float64", "", "of the time of all kernels of compiled code"), by=_KERNELS),
        *when(
            Column("size_bytes", "int64", "bytes", "of the tensors that its calls get; null: unknown", nullable=True),
            by="kernel",
        ),
        *when(Column("duration_ns", "int64", "ns", "of a compilation", nullable=True), by=("compilation", "event")),
        *when(
            Column("run_share", "float64", "", "duration as a part of the run"),
            Column("causes", "string", "", "guards that failed, graph breaks, why it made no graph"),
            by="compilation",
        ),
        *when(Column("cause", "string", "", "most frequent cause of recompiles or graph breaks"), by="function"),
        *when(Column("reason", "string", "", "guard that failed, cause of a break, why not compiled"), by="event"),
        *when(
            Column("place", "string", "", "FILE:LINE of the function, or of the break", extra=True),
            by=_OF_PROCESS,
        ),
        *when(
            Column("region", "string", "", "compiled region that calls it: frame/compilation"),
            Column("graph", "string", "", "hash of its fx graph, as the profile has it", extra=True),
            Column("file", "string", "", "file of the generated code", extra=True),
            Column("line", "int64", "", "line of the call in it, null if unknown", extra=True, nullable=True),
            Column("shapes", "string", "", "shapes of what the operators make", extra=True),
            Column("reason", "string", "", "why its source lines are not known"),
            by="kernel",
        ),
    ),
)
