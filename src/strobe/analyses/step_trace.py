"""The step trace: what lies before forward and backward, they themselves, what comes after, and the collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from strobe.model.schema import Column
    from strobe.store.table import Table
    from strobe.store.trace import Trace
    from strobe.structure.step_phases import Phases


def run(trace: Trace, *, by: str = "rank") -> Table:
    """Divide every step into iteration interval, forward and backward, and tail, as MindSpore does; all ranks.

    interval = from the end of the step before to the first operator of the forward pass; of it `wait_ns` for data;
    forward_backward = from there to the end of the last one of the backward pass (of a step that has none: of the
    step); tail = the rest: gradients still under way, the optimizer. They add up to `duration_ns`. Nothing has to be
    marked: the passes are told by PyTorch's names. Where steps launch kernels that compute, times are those of the
    kernels. The rows of ranks and classes are means over steps that are complete (MindSpore: over all).
    MindInsight advises to look at the interval where its mean is above 0.5 ms. With `by=collective`, a row is what a
    line `stream_<number>_<k>` of MindSpore is: the k-th collective of a step on a stream.
    Source: MindSpore 2.0.0 (mindspore/profiler/parser/step_trace_parser.py).
    """
    from strobe.store.table import make_table
    from strobe.structure.step_phases import phases
    from strobe.structure.step_spans import step_spans

    found = phases(trace, step_spans(trace))
    about = "; ".join(dict.fromkeys(f"{each.steps.said}; {_CLOCK[each.on_gpu]}" for each in found))
    if by == "collective":
        lines = [row for each in found for row in _lines(trace, each)]
        return make_table(_line_columns(), lines, name="step_trace", about=about, note="" if lines else _NO_LINES)
    rows = [row for each in found for row in _rows(each, by)]
    return make_table(_columns(by), rows, name="step_trace", about=about, note="" if rows else _NO_STEPS)


_CLOCK = {True: "passes by their kernels on the GPU", False: "passes by their operators on the host"}
_NO_STEPS = "no steps were found in this trace, so there is nothing to divide; see `strobe steps`"
_NO_LINES = "no kernel of a collective runs in a step of this trace"
_PARTS = ("interval", "forward_backward", "tail")


def _columns(by: str) -> tuple[Column, ...]:
    from strobe.model.schema import Column

    return (
        Column("rank", "int64", "", "rank of the process, null where it has none"),
        Column("process", "uint32", "", "process that runs the steps", extra=True),
        *((Column("step", "int64", "", "number of the step in its process"),) if by == "step" else ()),
        *((Column("class", "string", "", "class of the steps"),) if by != "rank" else ()),
        *(
            (Column("start_ns", "int64", "ns", "when the step begins", extra=True),)
            if by == "step"
            else (Column("steps", "int64", "", "steps that the row is a mean over"),)
        ),
        Column("duration_ns", "int64", "ns", "how long the step takes"),
        Column("interval_ns", "int64", "ns", "from the end of the step before to the begin of the forward pass"),
        Column("forward_backward_ns", "int64", "ns", "from there to the end of the backward pass"),
        Column("tail_ns", "int64", "ns", "from there to the end of the step: gradients under way, the optimizer"),
        Column("wait_ns", "int64", "ns", "of interval_ns, waits for the next batch"),
        *(Column(f"{part}_share", "float64", "", f"{part}_ns as a part of the step, 0 to 1") for part in _PARTS),
        *((Column("counted", "bool", "", "whether it enters the means", extra=True),) if by == "step" else ()),
    )


def _line_columns() -> tuple[Column, ...]:
    from strobe.model.schema import Column

    return (
        Column("rank", "int64", "", "rank of the process, null where it has none"),
        Column("process", "uint32", "", "process that runs the steps", extra=True),
        Column("step", "int64", "", "number of the step in its process"),
        Column("line", "string", "", "stream_<number>_<k>: the k-th collective of the step on that stream"),
        Column("name", "string", "", "name of its kernel"),
        Column("part", "string", "", "where it begins: interval, forward_backward, tail"),
        Column("start_ns", "int64", "ns", "when it begins"),
        Column("duration_ns", "int64", "ns", "how long it takes"),
    )


def _rows(found: Phases, by: str) -> Iterator[tuple[object, ...]]:
    """Yield the rows of one process."""
    import numpy as np

    steps = found.steps
    who = (steps.rank, steps.process)
    duration = steps.end_ns - steps.start_ns
    parts = (
        found.forward_ns - steps.start_ns,
        found.backward_end_ns - found.forward_ns,
        steps.end_ns - found.backward_end_ns,
    )
    times = np.stack((duration, *parts, found.wait_ns), axis=1)
    if by == "step":
        for k in range(len(steps)):
            facts = (int(steps.number[k]), steps.classes[k], int(steps.start_ns[k]))
            yield (*who, *facts, *_cells(times[k].tolist()), bool(steps.counted[k]))
        return
    classes = np.array(steps.classes, dtype=object)
    for name in dict.fromkeys(steps.classes) if by == "class" else (None,):
        chosen = steps.counted if name is None else steps.counted & (classes == name)
        count = int(chosen.sum())
        if count:
            means = [round(int(total) / count) for total in times[chosen].sum(axis=0)]
            yield (*who, *(() if name is None else (name,)), count, *_cells(means))


def _cells(times: list[int]) -> tuple[object, ...]:
    """Return the times, and the shares of the parts."""
    return (*times, *(part / times[0] if times[0] else None for part in times[1:4]))


def _lines(trace: Trace, found: Phases) -> Iterator[tuple[object, ...]]:
    """Yield the collectives of one process."""
    names = trace.regions.column("name")
    streams = trace.locations.column("thread_id")
    steps = found.steps
    counts: dict[tuple[int, int], int] = {}
    columns = (found.step, found.location, found.region, found.begin_ns, found.end_ns)
    for step, location, region, begin, end in zip(*(column.tolist() for column in columns), strict=True):
        k = counts[step, location] = counts.get((step, location), -1) + 1
        part = _PARTS[int(begin >= found.forward_ns[step]) + int(begin >= found.backward_end_ns[step])]
        line = f"stream_{streams[location]}_{k}"
        yield steps.rank, steps.process, int(steps.number[step]), line, names[region], part, begin, end - begin


ANALYSIS = Analysis(
    "step_trace",
    "How long is a step before, in and after its forward and backward pass, and when are its collectives?",
    run,
    options=(
        Option(
            "by",
            "one row a rank (the mean of its steps), a rank and class of steps, a step, or a collective of a step",
            default="rank",
            choices=("rank", "class", "step", "collective"),
        ),
    ),
)
