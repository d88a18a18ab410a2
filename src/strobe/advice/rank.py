"""Runs all rules and puts their findings in order: what gains most comes first."""

from __future__ import annotations

import math

import numpy as np

from strobe import registry
from strobe.breakdown.gpu_step import gpu_step
from strobe.model.plugins import Finding, Rule
from strobe.steps.steps import find_steps
from strobe.trace.trace import Trace

# A gain below this part of a step is not worth a line ...
LEAST_SHARE = 0.01
# ... nor one within the noise: this many median absolute deviations, over the square root of the number of steps.
NOISE = 3.0
# A gain that the whole run would not notice is none, ns.
LEAST_TOTAL_NS = 10_000_000


def findings(trace: Trace) -> list[Finding]:
    """Return what is worth fixing in a trace, best gain first, then the informative findings."""
    found: list[Finding] = []
    for name in registry.names("advice"):
        rule = registry.load("advice", name)
        assert isinstance(rule, Rule)
        if not trace.missing(rule.needs):
            found.extend(rule.run(trace))
    floor = least_gain_ns(trace)
    worth = [each for each in found if each.informative or each.gain_high_ns >= floor]
    return sorted(worth, key=lambda each: (each.informative, -(each.gain_low_ns + each.gain_high_ns), each.rule))


def least_gain_ns(trace: Trace) -> float:
    """Return the smallest gain per step that is distinguishable from noise and worth mentioning."""
    processes = find_steps(trace).processes
    if not processes or not processes[0].steady.any():
        return 0.0
    steps = processes[0]
    duration = steps.duration_ns[steps.steady]
    if (found := gpu_step(trace)) is not None and len(found.step_ns) >= max(2, len(duration) - 2):
        duration = found.step_ns  # the host may be far ahead: its steps are not those of the GPU
    median = float(np.median(duration))
    deviation = float(np.median(np.abs(duration - median)))
    # A profile of another tool is a part of a run.
    unnoticed = 0 if trace.job.imported else LEAST_TOTAL_NS / len(duration)
    return max(unnoticed, LEAST_SHARE * median, NOISE * deviation / math.sqrt(len(duration)))
