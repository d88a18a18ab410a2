"""Instructions and cycles of computation, by counters that are read at each begin and end of a call (Score-P)."""

from __future__ import annotations

import numpy as np

from strobe.model.kinds import HOST_KINDS
from strobe.steps.thread_spans import kinds_of, outermost
from strobe.tables.column_arrays import Floats, Ints
from strobe.trace.definition_rows import region_rows
from strobe.trace.metrics.readings import Readings
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# Names of instructions, and of cycles: PAPI's and perf's.
_NAMES = (("PAPI_TOT_INS", "instructions"), ("PAPI_TOT_CYC", "cycles"))
_USEFUL = [HOST_KINDS.index(kind) for kind in ("operators", "host")]


def instructions_and_cycles(trace: Trace, location: int, begin_ns: Ints, end_ns: Ints) -> Floats:
    """Return what a thread executes in its computation, in stretches of time: an array (stretches, 2).

    The stretches are in order, do not overlap, and have all their spans in the trace. NaN where a counter does not only
    grow, or was not read at each begin and end of a stretch, of communication and of waits.
    """
    counts = np.full((len(begin_ns), 2), np.nan)
    counters = {at: _counters(trace).get((location, at)) for at in range(2)}
    if not any(counters.values()) or not len(begin_ns):
        return counts
    regions, spans = region_rows(trace), trace.span_arrays(location, int(begin_ns[0]), int(end_ns[-1]))
    names, paradigms, roles = ([getattr(each, name) for each in regions] for name in ("name", "paradigm", "role"))
    (at,) = np.nonzero(~np.isin(kinds_of(names, paradigms, roles), _USEFUL)[spans["region"]])
    begin, end = spans["start_ns"][at], (spans["start_ns"] + spans["duration_ns"])[at]
    begin, end = (times[outermost(begin, end)] for times in (begin, end))
    step = np.searchsorted(begin_ns, begin, side="right") - 1
    inside = (step >= 0) & (begin < end_ns[step])
    step, begin, end = step[inside], begin[inside], np.minimum(end[inside], end_ns[step[inside]])
    for column, counter in counters.items():
        if counter is not None:
            counts[:, column] = _grown(counter, begin_ns, end_ns)
            np.subtract.at(counts[:, column], step, _grown(counter, begin, end))
    return counts


def _grown(counter: Readings, begin_ns: Ints, end_ns: Ints) -> Floats:
    """Return by how much a counter grows in each stretch; NaN where it was not read at its begin and end."""
    last = len(counter.time_ns) - 1
    before, after = (np.minimum(np.searchsorted(counter.time_ns, at), last) for at in (begin_ns, end_ns))
    read = (counter.time_ns[before] == begin_ns) & (counter.time_ns[after] == end_ns)
    return np.where(read, counter.values[after] - counter.values[before], np.nan)


@cached_on_trace
def _counters(trace: Trace) -> dict[tuple[int, int], Readings]:
    """Return the counters of each location that only grow: 0 instructions, 1 cycles."""
    return {
        (each.location, column): each
        for each in trace.readings()
        for column, names in enumerate(_NAMES)
        if each.location is not None and each.metric in names and len(each.values) and (np.diff(each.values) >= 0).all()
    }
