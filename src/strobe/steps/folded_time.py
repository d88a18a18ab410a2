"""When those iterations of a process ran that were folded into statistics: nothing else is known of that time.

What is looked for in spans alone (another level of the loops) sees gaps there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.steps.thread_spans import Bools, Ints
from strobe.steps.training_activities import PARTS
from strobe.tables.column_arrays import Columns
from strobe.trace.folded import ALL, PART, Iterations
from strobe.trace.spans import SpanArrays
from strobe.trace.trace import Trace

# Later than every moment of a run, ns; sums of such still fit.
_NEVER = 2**61
# A loop with so many iterations in each recorded one lies inside of that one, or is the same.
_INSIDE = 0.75
_REST = PARTS.index("rest")


@dataclass(frozen=True)
class Stretches(Columns):
    """When the folded iterations of a process ran, or what of each was folded: begins and ends in order, ns.

    `rows` are those of the records.
    """

    begin_ns: Ints
    end_ns: Ints
    rows: Ints

    def overlapping(self, start_ns: int, end_ns: int) -> Stretches:
        """Return those that reach into [start_ns, end_ns)."""
        return self.chosen((self.end_ns > start_ns) & (self.begin_ns < end_ns))

    def before(self, time_ns: Ints) -> Ints:
        """Return how much folded time lies before each of some moments, ns."""
        until = np.concatenate([[0], np.cumsum(self.end_ns - self.begin_ns)])
        at = np.searchsorted(self.begin_ns, time_ns, side="right")
        last = np.maximum(at - 1, 0)
        beyond = np.maximum(0, self.end_ns[last] - time_ns) if len(self) else np.zeros(len(time_ns), dtype=np.int64)
        return until[at] - np.where(at > 0, beyond, 0)

    def inside_ns(self, start_ns: int, end_ns: int) -> int:
        """Return how much of [start_ns, end_ns) is folded time, ns."""
        begin, end = self.before(np.array([start_ns, end_ns])).tolist()
        return int(end - begin)

    def until_known(self, spans: SpanArrays) -> Stretches:
        """Return the same for a thread beside the one whose iterations these are.

        What began there in a folded iteration was folded as a whole, also if it ended later: what runs is known again
        from the next begin or end of a span on.
        """
        known = np.unique(np.concatenate([spans["start_ns"], spans["start_ns"] + spans["duration_ns"]]))
        at = np.searchsorted(known, self.end_ns)
        # No stretch overlaps the next: then all is unknown up to there, and from there on.
        following = np.append(self.begin_ns[1:], _NEVER)
        next_known = np.append(known, _NEVER)[at]
        return Stretches(self.begin_ns, np.minimum(next_known, following), self.rows)


def stretches_of(iterations: Iterations) -> Stretches:
    """Return when the folded iterations ran; of one whose end was kept, what lies before that."""
    rows = np.flatnonzero(iterations.detail != ALL)
    begin = iterations.start_ns[rows]
    end = np.where(iterations.detail[rows] == PART, iterations.detail_ns[rows], begin + iterations.duration_ns[rows])
    return Stretches(begin, np.maximum(begin, end), rows)


@dataclass(frozen=True)
class FoldedTime:
    """The recorded iterations of a process of which some were folded."""

    iterations: Iterations
    stretches: Stretches

    def is_inside(self, starts_ns: Ints) -> bool:
        """Whether iterations that begin then are those of a loop inside of the recorded one, or of the same."""
        kept = self.iterations.detail == ALL
        begin = self.iterations.start_ns[kept]
        end = begin + self.iterations.duration_ns[kept]
        within = np.searchsorted(starts_ns, end) - np.searchsorted(starts_ns, begin)
        return bool(kept.any()) and float(within.sum()) >= _INSIDE * float(kept.sum())

    def until_folded(self, starts_ns: Ints, ends_ns: Ints) -> Ints:
        """Return the ends of iterations of a loop inside: the next mark after a kept one may lie far behind it."""
        following = np.append(self.stretches.begin_ns, _NEVER)
        found: Ints = np.minimum(ends_ns, following[np.searchsorted(self.stretches.begin_ns, starts_ns)])
        return found

    def touched(self, starts_ns: Ints, ends_ns: Ints) -> Bools:
        """Return which of some stretches of time hold folded time."""
        return self.stretches.before(ends_ns) > self.stretches.before(starts_ns)

    def with_parts(self, parts_ns: Ints, starts_ns: Ints, ends_ns: Ints) -> Ints:
        """Return the parts of steps that hold folded iterations: those in detail, and those of the records.

        Of an iteration whose end was kept, the folded beginning is split like the whole.
        """
        begin, rows = self.stretches.begin_ns, self.stretches.rows
        length = self.stretches.end_ns - begin
        step = np.searchsorted(starts_ns, begin, side="right") - 1
        whole = (step >= 0) & (self.stretches.end_ns <= ends_ns[np.maximum(step, 0)])
        took = np.maximum(1, self.iterations.duration_ns[rows])
        of_records = self.iterations.parts_ns[rows] * length[:, None] // took[:, None]
        of_records[:, _REST] += length - of_records.sum(axis=1)
        added = np.zeros_like(parts_ns)
        np.add.at(added, step[whole], of_records[whole])
        # Spans alone take folded time for the rest of a step.
        added[:, _REST] -= added.sum(axis=1)
        found: Ints = parts_ns + added
        known = found[:, _REST] >= 0
        return np.where(known[:, None], found, parts_ns)

    def note(self, starts_ns: Ints) -> str:
        """Return a phrase for what steps that begin then are made from."""
        folded, count = len(self.stretches), len(self.iterations)
        if self.is_inside(starts_ns):
            return f"seen only where there is detail: {folded} of {count} recorded iterations are statistics only"
        return (
            f"{folded} of the {count} recorded iterations in them are statistics only: "
            "their parts are those of the records, and classes are those of what is in detail"
        )


def folded_stretches(trace: Trace, process: int) -> Stretches:
    """Return when iterations of a process were folded, none where all of it is in detail."""
    found = folded_time(trace, process)
    return found.stretches if found else Stretches.joined(())


def folded_time(trace: Trace, process: int) -> FoldedTime | None:
    """Return when iterations of a process were folded; None where all of it is in detail."""
    if process not in trace.folded or trace.folded[process].is_short.all():
        return None
    iterations = trace.iterations(process)
    return FoldedTime(iterations, stretches_of(iterations))
