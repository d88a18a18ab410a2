"""Rule `data.wait`: the loop waits for its next batch, and a loader that keeps up would give that time back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.breakdown.data_pipeline import MAKE_AHEAD, MODERATE, pipelines, worth_hiding
from strobe.breakdown.host_time import MOSTLY, fetching
from strobe.model.plugins import Below, Finding, Rule
from strobe.model.units import format_ns, format_share
from strobe.steps.usual_steps import evidence, usual_steps
from strobe.trace.trace import Trace

# Waiting this part of a step is worth a finding; torch_tb_profiler's rule fires at 5 %, too.
LEAST_SHARE = MODERATE
# It must not be the business of a few slow steps: those are outliers (rule `outlier`).
LEAST_STEPS = 0.2
# A larger part of the wait that slow steps have is named.
_OF_SLOW_STEPS = 0.1


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield one finding if waiting is at least 5 % of a step, in at least 20 % of the usual steps.

    Slow steps are the business of the rule `outlier`: what they wait is named, but does not count. Only time in which
    the GPU, where there is one, has nothing to do counts: what it computes meanwhile is not lost.
    Without worker processes, the wait is the fetch itself, or what the generator does that makes batches. Workers do it
    beside the step, which saves the shorter of fetch and rest of the step; at least half of that, as long as a core is
    free. Less work in the fetch saves all of it at most, also in slow steps. With workers, the wait is what they fall
    short by: more of them save it all (upper bound) unless the machine has no core left (lower bound: nothing). Below
    20 % of a step, or a millisecond, no gain is promised.
    """
    usual = usual_steps(trace)
    if usual is None:
        return
    steps = usual.steps
    waiting_ns = steps.cells.waiting_ns
    wait, duration = waiting_ns[usual.usual], steps.duration_ns[usual.usual]
    # What others than slow steps wait, as a part of all.
    counted = usual.steps.steady & ~usual.steps.outlier & (usual.steps.loop == usual.loop)
    waits, typical, mean_ns = usual.waiting_ns, float(waiting_ns[counted].sum()) / usual.count, usual.mean_ns
    if (found := next((each for each in pipelines(trace) if each.steps.process == steps.process), None)) is not None:
        waits, typical, mean_ns = found.wait_exposed, found.usual_wait, found.duration
    share = typical / mean_ns
    if share < LEAST_SHARE:
        yield Below(share, LEAST_SHARE)
        return
    if np.mean(wait >= LEAST_SHARE * duration) < LEAST_STEPS:
        return
    workers = found.workers if found is not None else 0  # None: there are some, but they were not recorded
    alone = workers == 0
    maker = found.maker if found is not None else ""
    if alone:
        low, high = min(typical, mean_ns - typical) / 2, waits
        do = "let worker processes fetch while the step computes: DataLoader(num_workers=2, persistent_workers=True)"
        if maker:
            do = f"the main thread makes batches itself, in {maker}: {MAKE_AHEAD}"
        do += "; or make a batch with less work"
    else:
        low, high = 0.0, typical
        above = f" above {workers}" if workers else ""
        do = f"raise num_workers{above} while cores are free, or make a fetch cheaper (decoding, transforms)"
    process = np.flatnonzero(usual.usual)
    worst = process[np.argsort(-wait)[:5]]
    place = fetching(trace)
    place = place if place is not None and place.share >= MOSTLY else None
    gains = worth_hiding(typical, mean_ns)
    yield Finding(
        rule="data.wait",
        what=f"the loop waits {format_ns(waits)} ({format_share(waits / mean_ns)}) of a step on average"
        " for its next batch"
        + (f", {format_ns(waits - typical)} of it in slow steps" if waits - typical >= _OF_SLOW_STEPS * waits else "")
        + (
            f", {'made' if maker else 'fetched'} in the loop itself"
            if alone
            else f", with {workers or 'some'} loader worker{'' if workers == 1 else 's'}"
        )
        + (f", mostly in {place.name}" if place else ""),
        where=place.where if place else "",
        do=do if gains else "",
        gain_low_ns=round(low) if gains else 0,
        gain_high_ns=round(high) if gains else 0,
        informative=not gains,
        confidence="high" if alone else "medium",
        evidence=evidence(trace, steps, worst),
    )


RULE = Rule("data.wait", "The loop waits for data", run, needs=("torch",), of_waits=True)
