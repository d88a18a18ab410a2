"""Flow graph: how far the event flow graph describes a run, and when it stops growing."""

from __future__ import annotations

from strobe.analyses.steps.flow_graph import ANALYSIS
from strobe.steps.loops.graph_statistics import Growth, growth_of, size_of
from strobe.steps.loops.structure import find_structure
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.steps import find_steps
from strobe.steps.thread_spans import read_streams
from strobe.tables.table import Table, make_table
from strobe.trace.definition_rows import ranks_of
from strobe.trace.trace import Trace


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.steps.flow_graph`."""
    steps_of = {each.process: each for each in find_steps(trace).processes}
    ranks = ranks_of(trace)
    rows: list[dict[str, object]] = []
    for process, stream in read_streams(trace):
        kind = find_structure(trace, process).stream
        size = size_of(stream, kind)
        if size is None:
            continue
        cells = {"rank": ranks[process], "process": process}
        steps = steps_of.get(process)
        growth = None
        if steps is not None:
            kept = steps.kept.nonzero()[0]
            growth = growth_of(stream, kind, steps.start_ns[kept], steps.end_ns[kept])
        if by == "process":
            own: dict[str, int | None] = {"paths": None, "stable_from": None}
            if steps is not None and growth is not None:
                own = {"paths": int(growth.paths[-1]) if len(kept) else None, "stable_from": _stable(steps, growth)}
            rows.append({**cells, "stream": kind, **vars(size), **own})
        elif steps is not None and growth is not None:
            numbers = steps.kept.nonzero()[0] + steps.first_number
            columns = {name: values.tolist() for name, values in vars(growth).items()}
            rows += [
                {**cells, "step": step, **{name: values[at] for name, values in columns.items()}}
                for at, step in enumerate(numbers.tolist())
            ]
    note = "" if rows or trace.missing(("spans",)) else "no events and no steps: there is no flow graph"
    folded = any(not each.kept.all() for each in steps_of.values())
    about = "of the steps that are kept in detail" if folded else ""
    return make_table(ANALYSIS.columns_with(by=by), rows, about=about, note=note)


def _stable(steps: ProcessSteps, growth: Growth) -> int | None:
    """The number of the first step from which on no step adds a node; None if the last one does."""
    adding = growth.new_nodes.nonzero()[0]
    first = int(adding[-1]) + 1 if len(adding) else 0
    kept = steps.kept.nonzero()[0]
    return int(kept[first]) + steps.first_number if first < len(kept) else None
