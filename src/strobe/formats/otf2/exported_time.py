"""The time of a process that an archive has spans of."""

from __future__ import annotations

from dataclasses import dataclass

from strobe.steps.folded_time import Stretches, folded_stretches
from strobe.steps.thread_spans import Bools, Ints
from strobe.trace.definition_rows import process_rows
from strobe.trace.trace import Trace


@dataclass(frozen=True)
class ExportedTime:
    """From the begin to the end of a process, without the iterations that were folded: times of the archive, ns."""

    begin_ns: int
    end_ns: int
    zero_ns: int  # of the trace, in the archive's times
    folded: Stretches

    def is_folded(self, at: Ints) -> Bools:
        """Return which moments lie in folded iterations."""
        found: Bools = self.folded.before(at - self.zero_ns + 1) > self.folded.before(at - self.zero_ns)
        return found

    def lacks(self, at: Ints) -> Bools:
        """Return which moments the archive has no spans of."""
        return (at < self.begin_ns) | (at > self.end_ns) | self.is_folded(at)


def exported_time(trace: Trace, process: int, zero_ns: int) -> ExportedTime:
    """Return that of a process, in times that count from `zero_ns` before the trace's zero."""
    row = process_rows(trace)[process]
    return ExportedTime(row.started_ns + zero_ns, row.ended_ns + zero_ns, zero_ns, folded_stretches(trace, process))
