"""What the main thread calls in the usual steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.steps.selection import Selection, select_steps
from strobe.steps.thread_spans import main_location
from strobe.steps.usual_steps import Usual, usual_steps
from strobe.sums.path_statistics import PathStatistics, location_statistics
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace


@dataclass(frozen=True)
class UsualCalls:
    """The calls of the main thread in the usual steps, by call path; `duration_ns`: of these `steps` together.

    Where usual steps were folded, the outliers of their class count, too: in statistics they are one with the others.
    """

    usual: Usual
    selection: Selection
    steps: int
    duration_ns: int
    main: PathStatistics


@cached_on_trace
def usual_calls(trace: Trace) -> UsualCalls | None:
    """Return the calls of the first process that has steps, or None where there are none."""
    usual = usual_steps(trace)
    location = main_location(trace, usual.steps.process) if usual is not None else None
    if usual is None or location is None:
        return None
    steps = usual.steps
    chosen = np.flatnonzero(usual.usual if steps.kept.all() else usual.members)
    selection = select_steps(trace, {steps.process: chosen + steps.first_number})
    duration_ns = int(steps.duration_ns[chosen].sum())
    return UsualCalls(usual, selection, len(chosen), duration_ns, location_statistics(trace, selection, location))
