"""The step trace: what lies before forward and backward, they themselves, what comes after, and the collectives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from strobe.analyses.steps.step_trace import ANALYSIS
from strobe.breakdown.step_phases import Phases, phases
from strobe.breakdown.step_spans import step_rows, step_spans
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.steps.step_trace`."""
    found = phases(trace, step_spans(trace))
    about = "; ".join(dict.fromkeys(_CLOCK[each.on_gpu] for each in found))
    columns = ANALYSIS.columns_with(by=by)
    if by == "collective":
        lines = [row for each in found for row in _lines(trace, each)]
        return make_table(columns, lines, about=about, note="" if lines else _NO_LINES)
    rows = [row for each in found for row in _rows(each, by)]
    return make_table(columns, rows, about=about, note="" if rows else _NO_STEPS)


_CLOCK = {True: "passes by their kernels on the GPU", False: "passes by their operators on the host"}
_NO_STEPS = "no steps were found in this trace, so there is nothing to divide; see `strobe steps`"
_NO_LINES = "no kernel of a collective runs in a step of this trace"
_PARTS = ("interval", "forward_backward", "tail")


def _rows(found: Phases, by: str) -> Iterator[Mapping[str, object]]:
    steps = found.steps
    parts = {
        "interval": found.forward_ns - steps.start_ns,
        "forward_backward": found.backward_end_ns - found.forward_ns,
        "tail": steps.end_ns - found.backward_end_ns,
        "wait": found.wait_ns,
    }
    return step_rows(steps, parts, by)


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
