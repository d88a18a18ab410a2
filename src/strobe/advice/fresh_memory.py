"""Rule `memory.fresh`: steps allocate large arrays anew, and the kernel clears their pages each time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.breakdown.function_times import longest_function
from strobe.breakdown.usual_calls import usual_calls
from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_bytes, format_ns, format_share
from strobe.trace.trace import Trace

LEAST_SHARE = 0.15  # of the step, if a fault takes 1 us
# A minor fault of a page of 4 KiB takes 0.25 us and the page is cleared in another 0.25 us; in virtual machines, and
# with caches that are cold then, three to four times as much.
_LEAST_NS, _USUAL_NS, _MOST_NS = 500, 1000, 2000
_PAGE = 4096
_METRIC = "minor page faults"  # a second
_MUCH = 0.3  # a function that takes this part of the step is named
_GAINS = 0.08  # of the step, at least: below that it is not told from what any program does


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding if page faults of the process take 15 % of the usual step, at 1 us each."""
    calls = usual_calls(trace)
    if calls is None or trace.job.imported:
        return
    steps = calls.usual.steps
    begin, end = int(steps.start_ns[steps.steady][0]), int(steps.end_ns[steps.steady][-1])
    median_ns = calls.usual.median_ns
    for each in trace.readings(steps.process):
        inside = (each.time_ns >= begin) & (each.time_ns <= end) & np.isfinite(each.values)
        if each.metric != _METRIC or not inside.any():
            continue
        faults = float(np.median(each.values[inside])) * median_ns / 1e9
        if faults * _USUAL_NS < LEAST_SHARE * median_ns:
            return
        low, high = faults * _LEAST_NS, min(faults * _MOST_NS, median_ns)
        gains = low >= _GAINS * median_ns
        found = longest_function(trace)
        at = found[0] if found is not None and found[1] >= _MUCH else None
        look = f"; {at.name} takes more of it than any other function, {format_share(found[1])}" if at and found else ""
        yield Finding(
            rule="memory.fresh",
            what=f"a step touches {format_bytes(faults * _PAGE)} of new memory, {faults:.4g} page faults: about "
            f"{format_ns(faults * _USUAL_NS)} ({format_share(faults * _USUAL_NS / median_ns)}) of it{look}",
            where=f"{at.file}:{at.line}" if at is not None and at.line else "",
            do="allocate large arrays once and use them again (out=, in place), or keep freed memory: "
            "MALLOC_TRIM_THRESHOLD_ and MALLOC_MMAP_THRESHOLD_ above the size of the largest",
            gain_low_ns=round(low) if gains else 0,
            gain_high_ns=round(high),
            confidence="low",
            informative=not gains,
        )


RULE = Rule("memory.fresh", "Steps touch new memory", run, needs=("metrics",))
