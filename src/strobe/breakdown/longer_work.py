"""What one rank spends longer in than the others, by the program's own functions: from spans and their statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strobe.model.kinds import HOST_KINDS
from strobe.steps.selection import select
from strobe.steps.thread_spans import innermost, kinds_of, main_location
from strobe.sums.path_statistics import is_own_function, location_statistics
from strobe.tables.column_arrays import Floats
from strobe.trace.definition_rows import region_rows
from strobe.trace.trace import Trace

_LONGER = 1.3  # than in the median of the others: less is what any two processes differ by
_MOST_OF_IT = 0.3  # of all that the rank spends longer in its functions
_WAITS = [HOST_KINDS.index(kind) for kind in ("data_wait", "communication")]


@dataclass(frozen=True)
class LongerWork:
    """A function of the program; its time in a process without other functions of the program, and without waits.

    time_ns: of the steady steps, together with the operators and library functions that it calls; usual_ns: the median
    of the other processes.
    """

    name: str
    where: str  # file:line
    time_ns: float
    usual_ns: float


def longer_work(trace: Trace, process: int, others: Sequence[int]) -> LongerWork | None:
    """Return the function that a process spends most time longer in than the median of the others.

    None where nothing is longer by 30 %, where that is less than 30 % of all that is longer, or without Python calls.
    """
    own = _function_times(trace, process)
    if not others or not own.any():
        return None
    usual = np.median([_function_times(trace, each) for each in others], axis=0)
    longer = np.maximum(own - usual, 0.0)
    region = int(longer.argmax())
    if not longer[region] or own[region] < _LONGER * usual[region] or longer[region] < _MOST_OF_IT * longer.sum():
        return None
    found = region_rows(trace)[region]
    return LongerWork(found.name, f"{found.file}:{found.line}", float(own[region]), float(usual[region]))


def _function_times(trace: Trace, process: int) -> Floats:
    """Return the time by region of the program's functions in the main thread of a process, ns."""
    regions, location = region_rows(trace), main_location(trace, process)
    if location is None:
        return np.zeros(len(regions))
    sums = location_statistics(trace, select(trace), location)
    names, paradigms, roles = (
        list(each) for each in zip(*((r.name, r.paradigm, r.role) for r in regions), strict=True)
    )
    waits = np.isin(kinds_of(names, paradigms, roles), _WAITS)[sums.region]
    function = np.array([is_own_function(each) for each in regions])[sums.region]
    maker = innermost(sums.parent, function)
    inside_wait = innermost(sums.parent, waits) >= 0
    counted = (maker >= 0) & ~inside_wait
    own_ns = sums.own_ns[counted].astype(np.float64)
    return np.bincount(sums.region[maker[counted]], own_ns, len(regions)).astype(np.float64)
