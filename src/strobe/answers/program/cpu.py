"""CPU time: what cores and threads did: user, system, waiting for a core or for I/O, idle."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.analyses.program.cpu import ANALYSIS
from strobe.breakdown.cpu_time import CpuTime, cpu_times, of_machines
from strobe.breakdown.step_phases import Phases, phases
from strobe.breakdown.step_spans import step_spans
from strobe.model.kinds import CPU_KINDS
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.steps import find_steps
from strobe.tables.column_arrays import Ints
from strobe.tables.table import Table, make_table
from strobe.trace.definition_rows import ranks_of
from strobe.trace.trace import Trace

_NOT_READ = "the recorder of this trace did not read user and system time; record the program again"
_NO_STEPS = "no steps were found in this trace; see `strobe steps`, or ask with `--by run`"
_TOO_SHORT = "no three readings lie in {}: they are too short for figures; `--by run` has those of the whole run"

# Labels of a part of the run (columns and their cells), and when it was: begins and ends, in order.
_Part = tuple[dict[str, object], Ints, Ints]


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.program.cpu`."""
    columns, times = ANALYSIS.columns_with(by=by), cpu_times(trace)
    if not times:
        return make_table(columns, [], note=trace.missing(("metrics",)) if not trace.readings() else _NOT_READ)
    ranks = ranks_of(trace)
    if by == "run":
        machines = of_machines(trace)
        chosen = (*machines, *(each for each in times if each.what != "machine"))
        return make_table(columns, [_row(each, ranks) for each in chosen], about="the whole run, by readings")
    parts = {process: list(found) for process, found in _parts(trace, by)}
    rows = []
    for each in times:
        for labels, begin_ns, end_ns in parts.get(each.process, ()):
            found = each.within(begin_ns, end_ns)
            if found is not None:
                covered = min(1.0, found.duration_ns / int((end_ns - begin_ns).sum()))
                rows.append({**_row(found, ranks), **labels, "covered": covered})
    what = {"class": "the steps of any class", "part": "any part of the steps", "step": "any step"}[by]
    note = "" if rows else _TOO_SHORT.format(what) if any(parts.values()) else _NO_STEPS
    return make_table(columns, rows, about="readings within steps", note=note)


def _row(time: CpuTime, ranks: list[int | None]) -> dict[str, object]:
    kinds_ns = {kind: time.time_ns(kind) for kind in CPU_KINDS}
    core_ns, duration_ns = time.core_ns, time.duration_ns
    return {
        "rank": None if time.what == "machine" else ranks[time.process],
        **{name: getattr(time, name) for name in ("process", "what", "name", "location")},
        "readings": len(time),
        "duration_ns": duration_ns,
        "cores": core_ns / duration_ns if core_ns and duration_ns else None,
        **{f"{kind}_ns": None if ns is None else round(ns) for kind, ns in kinds_ns.items()},
        **{f"{kind}_share": ns / core_ns if ns is not None and core_ns else None for kind, ns in kinds_ns.items()},
    }


def _parts(trace: Trace, by: str) -> Iterator[tuple[int, Iterator[_Part]]]:
    """Yield for each process that has steps the parts of the run that it is asked for."""
    if by == "part":
        for found in phases(trace, step_spans(trace)):
            yield found.steps.process, _of_phases(found)
        return
    for steps in find_steps(trace).processes:
        yield steps.process, _of_classes(steps) if by == "class" else _of_steps(steps)


def _of_phases(found: Phases) -> Iterator[_Part]:
    counted = found.steps.counted
    bounds = (found.steps.start_ns, found.forward_ns, found.backward_end_ns, found.steps.end_ns)
    for name, begin_ns, end_ns in zip(("interval", "forward_backward", "tail"), bounds, bounds[1:], strict=False):
        yield {"part": name}, begin_ns[counted], end_ns[counted]


def _of_classes(steps: ProcessSteps) -> Iterator[_Part]:
    for name in dict.fromkeys(steps.class_names[steps.steady].tolist()):
        rows = np.flatnonzero(steps.steady & (steps.class_names == name))
        yield {"class": name}, steps.start_ns[rows], steps.end_ns[rows]


def _of_steps(steps: ProcessSteps) -> Iterator[_Part]:
    for row in np.flatnonzero(steps.complete).tolist():
        one = slice(row, row + 1)
        yield (
            {"step": row + steps.first_number, "class": steps.class_names[row]},
            steps.start_ns[one],
            steps.end_ns[one],
        )
