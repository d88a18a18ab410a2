"""Structure: the loops of a process as a tree; which of them is the step, how often each runs, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from strobe.store.table import Table
    from strobe.store.trace import Trace


def run(
    trace: Trace,
    *,
    process: int | None = None,
    stream: str = "auto",
    step_level: str | None = None,
    step_at: str | None = None,
) -> Table:
    """List the loops of a process, outer loops before inner ones.

    trips: iterations per iteration of the loop around it. share: of the whole run. The loop that is the step says so.
    """
    from strobe.model.schema import Column
    from strobe.store.table import make_table
    from strobe.structure.structure import structure_asked

    structure = structure_asked(trace, process, stream, step_level=step_level, step_at=step_at)
    depths: list[int] = []
    rows: list[tuple[object, ...]] = []
    for number, level in enumerate(structure.levels):
        depths.append(0 if level.parent < 0 else depths[level.parent] + 1)
        trips = level.trips or (None, None, None)
        facts = (level.spine, level.coverage, level.cvn, level.score, number)
        times = (level.time_ns, level.share, level.first_ns, level.last_ns)
        rows.append((level.name, depths[-1], level.marker, level.count, *trips, *times, level.is_step, *facts))
    columns = (
        Column(
            "loop", "string", "", "what the loop is called: the step, the function that it stands in, or its marker"
        ),
        Column("depth", "int64", "", "number of loops around it"),
        Column("marker", "string", "", "event that marks an iteration"),
        Column("count", "int64", "", "iterations in the whole run"),
        Column("min_trips", "int64", "", "fewest iterations per iteration of the loop around it"),
        Column("median_trips", "float64", "", "usual number of them"),
        Column("max_trips", "int64", "", "most of them"),
        Column("total_ns", "int64", "ns", "what all iterations took"),
        Column("share", "float64", "", "part of the run that the loop takes, 0 to 1"),
        Column("first_ns", "int64", "ns", "when the first iteration began"),
        Column("last_ns", "int64", "ns", "when the last iteration ended"),
        Column("step", "bool", "", "its iterations are the steps of the run"),
        Column("spine", "float64", "", "events and transitions that occur once in each iteration"),
        Column("coverage", "float64", "", "part of the loop around it that it spans, 0 to 1"),
        Column("cvn", "float64", "", "variation of the number of events per iteration; 0 is perfectly regular"),
        Column("score", "float64", "", "how much it looks like a main loop; 0.2 is little"),
        Column("id", "uint32", "", "number of the loop"),
    )
    about = f"{structure.confidence}: {structure.reason}"
    note = "" if structure.levels or not trace.span_count else f"no loops: {structure.reason}"
    return make_table(columns, rows, name="structure", about=about, note=note)


ANALYSIS = Analysis(
    "structure",
    "Which loops does the program run, and which of them is the step?",
    run,
    needs=("spans",),
    options=(
        Option("process", "number of the process; default: the first that has steps", type=int),
        Option("stream", "events to look at: auto, calls, operators, kernels, mpi", default="auto"),
        Option("step_level", "a step is an iteration of this loop: +1 (around it), -1 (inside), or its name"),
        Option("step_at", "a step begins at each event of this name"),
    ),
)
