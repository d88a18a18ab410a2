"""What a time range holds of steps that were folded into statistics: when they ran, and what is known of them.

A folded step left a record (its time and its five parts), and a share in sums over all folded steps of its class. So of
some folded steps only their time is known; what they called is known of all of them together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.server.trace_context import TraceContext
from strobe.steps.folded_time import Stretches, stretches_of
from strobe.steps.thread_spans import main_location
from strobe.trace.definition_rows import location_rows
from strobe.trace.folded import NO_CLASS, Folded, Iterations


@dataclass(frozen=True)
class FoldedProcess:
    """What was folded of a process: its records, when that was, the statistics, and the thread whose steps they are."""

    iterations: Iterations
    stretches: Stretches
    statistics: Folded
    main: int | None

    def whole_in(self, context: TraceContext, start_ns: int, end_ns: int) -> bool:
        """Whether everything that the statistics hold ran in [start_ns, end_ns): then they belong to it as they are."""
        if len(self.stretches) and (self.stretches.begin_ns[0] < start_ns or self.stretches.end_ns[-1] > end_ns):
            return False
        # What other threads did follows the steps only roughly, and what was folded by itself not at all.
        sums = self.statistics
        loose = (sums.location != self.main) | (sums.class_id == NO_CLASS) | sums.is_short
        for location in np.unique(sums.location[loose]).tolist():
            row = location_rows(context.trace)[location]
            if row.first_ns < start_ns or row.last_ns > end_ns:
                return False
        return True

    @property
    def unplaced(self) -> int:
        """Executions that were folded by themselves, not with their step: it is not known when they ran."""
        sums = self.statistics
        return int(sums.count[(sums.class_id == NO_CLASS) | sums.is_short].sum())

    def of_location(self, context: TraceContext, location: int) -> Stretches:
        """Return when it is not known what a thread of the process did."""
        if location == self.main or not context.span_counts[location]:
            return self.stretches
        return self.stretches.until_known(context.whole_location(location))


def folded_process(context: TraceContext, process: int) -> FoldedProcess:
    """Return what was folded of a process of `trace.folded`."""
    trace = context.trace
    iterations = trace.iterations(process)
    main = main_location(trace, process)
    return FoldedProcess(iterations, stretches_of(iterations), trace.folded[process], main)
