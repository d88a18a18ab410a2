"""What a stretch of time holds of steps that were folded into statistics: when they ran, and what is known of them.

A folded step left a record (its time and its five parts), and a share in sums over all folded steps of its class. So of
some folded steps only their time is known; what they called is known of all of them together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from strobe.store.folded import ALL, NO_CLASS, PART, Folded, Iterations
from strobe.structure.stream import main_location

if TYPE_CHECKING:
    from strobe.server.facts import Facts
    from strobe.store.trace import SpanArrays

Ints = npt.NDArray[np.int64]
# Later than every moment of a run, ns; sums of such still fit.
_NEVER = 2**61


@dataclass(frozen=True)
class Stretches:
    """When the folded steps of a process ran, or what of each was folded: begins and ends in order, ns.

    `rows` are those of the records.
    """

    begin_ns: Ints
    end_ns: Ints
    rows: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def overlapping(self, start_ns: int, end_ns: int) -> Stretches:
        """Return those that reach into [start_ns, end_ns)."""
        some = (self.end_ns > start_ns) & (self.begin_ns < end_ns)
        return Stretches(self.begin_ns[some], self.end_ns[some], self.rows[some])

    def before(self, time_ns: Ints) -> Ints:
        """Return how much folded time lies before each of some moments, ns."""
        until = np.concatenate([[0], np.cumsum(self.end_ns - self.begin_ns)])
        at = np.searchsorted(self.begin_ns, time_ns, side="right")
        last = np.maximum(at - 1, 0)
        beyond = np.maximum(0, self.end_ns[last] - time_ns) if len(self) else np.zeros(len(time_ns), dtype=np.int64)
        found: Ints = until[at] - np.where(at > 0, beyond, 0)
        return found

    def inside_ns(self, start_ns: int, end_ns: int) -> int:
        """Return how much of [start_ns, end_ns) is folded time, ns."""
        begin, end = self.before(np.array([start_ns, end_ns])).tolist()
        return int(end - begin)

    def until_known(self, spans: SpanArrays) -> Stretches:
        """Return the same for a thread beside the one whose steps these are.

        What began there in a folded step was folded as a whole, also if it ended later: only the next begin or end of a
        span says what runs.
        """
        known = np.unique(np.concatenate([spans["start_ns"], spans["start_ns"] + spans["duration_ns"]]))
        at = np.searchsorted(known, self.end_ns)
        # No stretch overlaps the next: then all is unknown up to there, and from there on.
        following = np.append(self.begin_ns[1:], _NEVER)
        next_known = np.append(known, _NEVER)[at]
        return Stretches(self.begin_ns, np.minimum(next_known, following), self.rows)


def stretches_of(iterations: Iterations) -> Stretches:
    """Return when the folded steps of a process ran; of a step whose end was kept, what lies before that."""
    rows = np.flatnonzero(iterations.detail != ALL)
    begin = iterations.start_ns[rows]
    end = np.where(iterations.detail[rows] == PART, iterations.detail_ns[rows], begin + iterations.duration_ns[rows])
    return Stretches(begin, np.maximum(begin, end), rows)


@dataclass(frozen=True)
class FoldedProcess:
    """What was folded of a process: its records, when that was, the statistics, and the thread whose steps they are."""

    iterations: Iterations
    stretches: Stretches
    statistics: Folded
    main: int | None

    def whole_in(self, facts: Facts, start_ns: int, end_ns: int) -> bool:
        """Whether everything that the statistics hold ran in [start_ns, end_ns): then they belong to it as they are."""
        if len(self.stretches) and (self.stretches.begin_ns[0] < start_ns or self.stretches.end_ns[-1] > end_ns):
            return False
        # What other threads did follows the steps only roughly, and what was folded outside of steps not at all.
        loose = (self.statistics.location != self.main) | (self.statistics.class_id == NO_CLASS)
        for location in np.unique(self.statistics.location[loose]).tolist():
            row = facts.locations.slice(location, 1).to_pylist()[0]
            if (row["first_ns"] or 0) < start_ns or (row["last_ns"] or 0) > end_ns:
                return False
        return True

    @property
    def unplaced(self) -> int:
        """Executions that were folded outside of all steps: it is not known when they ran."""
        return int(self.statistics.count[self.statistics.class_id == NO_CLASS].sum())

    def of_location(self, facts: Facts, location: int) -> Stretches:
        """Return when it is not known what a thread of the process did."""
        if location == self.main or not facts.span_counts[location]:
            return self.stretches
        return self.stretches.until_known(facts.whole_location(location))


def folded_process(facts: Facts, process: int) -> FoldedProcess:
    """Return what was folded of a process of `trace.folded`."""
    trace = facts.trace
    iterations = trace.iterations(process)
    main = main_location(trace, process)
    return FoldedProcess(iterations, stretches_of(iterations), trace.folded[process], main)
