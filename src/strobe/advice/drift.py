"""Rule `drift`: steps take longer, or less long, for good: leaks, growing data, a schedule, a throttled machine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.breakdown.growth import BY_THE_MACHINE, grown_call, throttled_ns, waited_for_core_ns
from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_count, format_ns, format_share
from strobe.steps.usual_steps import evidence, usual_steps
from strobe.trace.trace import Trace

# What the recorder changed itself, it changed so close to the drift, as a share of the steps.
_CLOSE = 0.125


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding for each class of steps that drifts in the loop with the usual steps.

    cost = (median after - median before) * steps of the class after / all steady steps; none where steps got faster.
    Steps that are faster since the recorder has left out a short function have not changed.
    """
    usual = usual_steps(trace)
    if usual is None:
        return
    steps = usual.steps
    names = steps.class_names
    for each in steps.drifts:
        if each.loop != usual.loop:
            continue
        of_class = steps.steady & (names == each.class_name) & (steps.loop == each.loop)
        after = of_class & (np.arange(len(steps)) >= each.since)
        before = of_class & ~after
        change = each.after_ns / each.before_ns - 1
        if change < 0 and (at_ns := throttled_ns(trace, steps.process)) is not None:
            numbers = np.flatnonzero(of_class)
            apart = np.searchsorted(steps.start_ns[numbers], at_ns) - np.searchsorted(numbers, each.since)
            if abs(apart) <= _CLOSE * len(numbers):
                continue
        slow, fast = (
            np.flatnonzero(rows & ~steps.outlier) for rows in ((after, before) if change > 0 else (before, after))
        )
        cost = abs(each.after_ns - each.before_ns) * len(slow)
        if waited_for_core_ns(trace, steps.process, steps.start_ns[slow], steps.end_ns[slow]) >= BY_THE_MACHINE * cost:
            continue
        growth = grown_call(trace, steps, slow, fast)
        growth_ns = (growth.slow_ns, growth.usual_ns)[:: 1 if change > 0 else -1] if growth else ()
        gain = max(0.0, each.after_ns - each.before_ns) * int(after.sum()) / usual.count
        yield Finding(
            rule="drift",
            what=f"from step {format_count(each.since)} on, `{each.class_name}` takes {format_share(abs(change))} "
            f"{'longer' if change > 0 else 'less'}: {format_ns(each.after_ns)} instead of {format_ns(each.before_ns)}",
            do=f"most of it is in {growth.name}: {' instead of '.join(map(format_ns, growth_ns))}"
            if growth
            else "no recorded call changed by half of that: see the metrics of the run on the timeline",
            where=growth.where if growth else "",
            gain_high_ns=round(gain),
            confidence="medium",
            informative=True,
            evidence=evidence(trace, steps, np.array([each.since])),
        )


RULE = Rule("drift", "Steps change their duration for good", run)
