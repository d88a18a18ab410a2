"""How much of a run its recording took."""

from __future__ import annotations

import numpy as np

from strobe.steps.selection import select
from strobe.sums.path_statistics import path_statistics
from strobe.trace.quality import counters
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# Cost of reporting one span in a framework, without that of the recorder; `./dev bench cost ranges`: 110 to 160 ns.
_REPORTING_NS = 130
_REPORT = ("torch", "onednn", "itt", "nvtx")


@cached_on_trace
def recording_cost(trace: Trace) -> float | None:
    """Return the time of the recorder, and of frameworks that reported to it, as a share of the run (an estimate).

    None if another tool recorded the run.
    """
    if trace.info.source:
        return None
    total = counters(trace)
    sums = path_statistics(trace, select(trace, "all"))
    reported = [paradigm in _REPORT for paradigm in trace.regions.texts("paradigm")]
    spans = int(sums.calls[np.array(reported, dtype=bool)[sums.region]].sum()) if reported else 0
    run_ns = sum(row["ended_ns"] - row["started_ns"] for row in trace.processes.to_arrow().to_pylist())
    return float((total["estimated_cost_ns"] + total["own_cpu_ns"] + _REPORTING_NS * spans) / max(1, run_ns))
