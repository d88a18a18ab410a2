"""Source lines: how often each line of the chosen functions ran, how long it took, on the host and on GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from strobe.store.table import Table
    from strobe.store.trace import Trace


def run(trace: Trace, *, function: str | None = None, whole: bool = False) -> Table:
    """Sum the counted lines over all threads and processes: functions by time, each in the order of its source.

    A line's time includes what it calls (line_profiler's definition); its share is of all lines of its function. So
    does its time on GPUs: the kernels, copies and sets whose launching call began while the line was being executed, on
    the same thread, in it or in what it calls, whenever they ran; of a CUDA graph those that were captured meanwhile,
    each time that they run. A recursion counts once. These are counted as they happen, in all iterations, whether kept
    in detail or not; what the backward pass launches on threads of its own is no line's, and after a kill what
    CUPTI had not told (a second, about) is missing. Null where no calls were recorded on threads (those beside them,
    where another tool has CUPTI's callbacks, are no line's). Of an imported profile of samples, `hits` are samples and
    the time is the line's own. `function` is a name, or part of
    one. With `whole`, lines that never ran are listed, too, as long as the source file is there.
    """
    from strobe.model.schema import Column
    from strobe.store.table import make_table
    from strobe.structure.launches import with_calls
    from strobe.structure.source_lines import source_of, summed_lines

    # Counters of lines are there without a GPU, and without the calls that launch something, too.
    locations = trace.locations.to_arrow().to_pylist()
    launches = bool(with_calls(trace, [each["location"] for each in locations if each["kind"] == "thread"]))
    functions = [each for each in summed_lines(trace.side_table("lines")) if (function or "") in each.name]
    rows = []
    changed = set()
    for each in sorted(functions, key=lambda each: -each.total_ns):
        source = source_of(each, trace.job.started_unix_ns)
        if source.changed:
            changed.add(each.file)
        numbers = sorted({*each.lines, *source.lines}) if whole else sorted(each.lines)
        for number in numbers:
            hits, total_ns = each.lines.get(number, (0, 0))
            on_gpu = each.on_gpu.get(number, (0, 0)) if launches and each.on_gpu else (None, None)
            rows.append(
                (
                    each.file,
                    number,
                    each.name,
                    hits,
                    total_ns,
                    total_ns / hits if hits else None,
                    total_ns / each.total_ns if each.total_ns else 0.0,
                    *on_gpu,
                    source.lines.get(number),
                )
            )
    known = launches and any(each.on_gpu for each in functions)
    columns = (
        Column("file", "string", "", "source file"),
        Column("line", "int64", "", "line in it"),
        Column("function", "string", "", "function that the line is in"),
        Column("hits", "int64", "", "how often it ran"),
        Column("total_ns", "int64", "ns", "time in it, with what it calls"),
        Column("per_hit_ns", "float64", "ns", "time of one execution, null where it never ran"),
        Column("share", "float64", "", "part of the time of its function's lines, 0 to 1"),
        Column("gpu_ns", "int64", "ns", "time of GPUs in what it launched, null where unknown", extra=not known),
        Column("kernels", "int64", "", "kernels that it launched", extra=not known),
        Column("source", "string", "", "its text, null where the file is not here, or was changed since the run"),
    )
    note = f"changed since the run, so their text is not shown: {', '.join(sorted(changed))}" if changed else ""
    if not rows:
        note = f"no line of a function '{function}' was counted" if function else trace.missing(("lines",))
    return make_table(columns, rows, name="lines", note=note)


ANALYSIS = Analysis(
    name="lines",
    question="How often did each line of the chosen functions run, and how long did it take?",
    run=run,
    needs=("lines",),
    options=(
        Option("function", "only functions with this in their name"),
        Option("whole", "lines that never ran, too", type=bool, default=False),
    ),
    shows=200,
)
