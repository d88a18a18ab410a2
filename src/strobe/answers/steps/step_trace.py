"""The step trace: what lies before forward and backward, they themselves, what comes after, and the collectives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from strobe.analyses.steps.step_trace import ANALYSIS
from strobe.breakdown.step_phases import Phases, phases
from strobe.breakdown.step_spans import step_spans
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.steps.step_trace`."""
    found = phases(trace, step_spans(trace))
    about = "; ".join(dict.fromkeys(f"{each.steps.said}; {_CLOCK[each.on_gpu]}" for each in found))
    columns = ANALYSIS.columns_with(by=by)
    if by == "collective":
        lines = [row for each in found for row in _lines(trace, each)]
        return make_table(columns, lines, name="step_trace", about=about, note="" if lines else _NO_LINES)
    rows = [row for each in found for row in _rows(each, by)]
    return make_table(columns, rows, name="step_trace", about=about, note="" if rows else _NO_STEPS)


_CLOCK = {True: "passes by their kernels on the GPU", False: "passes by their operators on the host"}
_NO_STEPS = "no steps were found in this trace, so there is nothing to divide; see `strobe steps`"
_NO_LINES = "no kernel of a collective runs in a step of this trace"
_PARTS = ("interval", "forward_backward", "tail")


def _rows(found: Phases, by: str) -> Iterator[Mapping[str, object]]:
    """Yield the rows of one process."""
    steps = found.steps
    who = {"rank": steps.rank, "process": steps.process}
    duration = steps.end_ns - steps.start_ns
    parts = (
        found.forward_ns - steps.start_ns,
        found.backward_end_ns - found.forward_ns,
        steps.end_ns - found.backward_end_ns,
    )
    times = np.stack((duration, *parts, found.wait_ns), axis=1)
    if by == "step":
        for k in range(len(steps)):
            yield {
                **who,
                "step": int(steps.number[k]),
                "class": steps.classes[k],
                "start_ns": int(steps.start_ns[k]),
                **_cells(times[k].tolist()),
                "counted": bool(steps.counted[k]),
            }
        return
    classes = np.array(steps.classes, dtype=object)
    for name in dict.fromkeys(steps.classes) if by == "class" else (None,):
        chosen = steps.counted if name is None else steps.counted & (classes == name)
        count = int(chosen.sum())
        if count:
            means = [round(int(total) / count) for total in times[chosen].sum(axis=0)]
            yield {**who, "class": name, "steps": count, **_cells(means)}


def _cells(times: list[int]) -> dict[str, object]:
    """Return the cells for the duration, the parts and the wait of a step: the times, and the shares of the parts."""
    duration, *parts, wait = times
    return {
        "duration_ns": duration,
        **{f"{name}_ns": part for name, part in zip(_PARTS, parts, strict=True)},
        "wait_ns": wait,
        **{f"{name}_share": part / duration if duration else None for name, part in zip(_PARTS, parts, strict=True)},
    }


def _lines(trace: Trace, found: Phases) -> Iterator[Mapping[str, object]]:
    """Yield the collectives of one process."""
    names = trace.regions.column("name")
    streams = trace.locations.column("thread_id")
    steps = found.steps
    counts: dict[tuple[int, int], int] = {}
    columns = (found.step, found.location, found.region, found.begin_ns, found.end_ns)
    for step, location, region, begin, end in zip(*(column.tolist() for column in columns), strict=True):
        k = counts[step, location] = counts.get((step, location), -1) + 1
        part = _PARTS[int(begin >= found.forward_ns[step]) + int(begin >= found.backward_end_ns[step])]
        yield {
            "rank": steps.rank,
            "process": steps.process,
            "step": int(steps.number[step]),
            "line": f"stream_{streams[location]}_{k}",
            "name": names[region],
            "part": part,
            "start_ns": begin,
            "duration_ns": end - begin,
        }
