"""Runs all rules and puts their findings in order: what gains most comes first."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from strobe import registry
from strobe.breakdown.gpu_step import gpu_step
from strobe.breakdown.lost_data import sure_with_losses
from strobe.breakdown.recording_cost import recording_cost
from strobe.model.cancellation import pieces
from strobe.model.plugins import Below, Finding, Rule
from strobe.steps.steps import find_steps
from strobe.steps.usual_steps import usual_steps
from strobe.trace.trace import Trace

# A gain below this part of a step is not worth a line ...
LEAST_SHARE = 0.01
# ... nor one within the noise: this many median absolute deviations, over the square root of the number of steps.
NOISE = 3.0
# A gain that the whole run would not notice is none, ns.
LEAST_TOTAL_NS = 10_000_000

# What is left of a step is faster by some percent where work goes: caches, memory, the clock of the processor.
BESIDE = 1.1


@dataclass(frozen=True)
class Checked:
    """A rule that had nothing to find: what it measured is a share of the steps (0 to 1) below its `least`."""

    rule: str
    title: str
    share: float
    least: float


def findings(trace: Trace) -> list[Finding]:
    """Return what is worth fixing in a trace, best gain first, then the informative findings."""
    return judged(trace)[0]


def judged(trace: Trace) -> tuple[list[Finding], list[Checked]]:
    """Return the findings as `findings` does, and the rules that measured too little, the nearest to one first."""
    found: list[Finding] = []
    checked: list[Checked] = []
    of_waits: set[str] = set()
    for name in pieces(list(registry.names("advice"))):
        rule = registry.load("advice", name)
        assert isinstance(rule, Rule)
        results = [] if trace.missing(rule.needs) else list(rule.run(trace))
        own = [each for each in results if isinstance(each, Finding)]
        found += own
        of_waits |= {rule.id} if rule.of_waits else set()
        # Nothing at all of what a rule is about: it does not apply to the run.
        below = [] if own else [each for each in results if isinstance(each, Below) and each.share > 0]
        if below:
            nearest = max(below, key=lambda one: one.share / one.least)
            checked.append(Checked(rule.id, rule.title, float(nearest.share), nearest.least))
    checked.sort(key=lambda one: -one.share / one.least)
    usual, cost = usual_steps(trace), recording_cost(trace)
    if cost is not None:
        found = [each if each.informative else _with_cost(each, cost, each.rule in of_waits) for each in found]
    if usual is not None:
        # A GPU may be behind its host: its steps are then longer.
        gpu = gpu_step(trace)
        of_gpu = gpu.duration_ns / gpu.steps if gpu is not None and gpu.of_steps and gpu.steps else 0.0
        found = [_within_step(each, round(max(usual.mean_ns, of_gpu))) for each in found]
    found = [replace(each, confidence=sure_with_losses(each.confidence, trace)) for each in found]
    floor = least_gain_ns(trace)
    worth = [each for each in found if each.informative or each.gain_high_ns >= floor]
    worth.sort(key=lambda each: (each.informative, -(each.gain_low_ns + each.gain_high_ns), each.rule))
    return worth, checked


def _within_step(found: Finding, step_ns: int) -> Finding:
    """Return a finding that gains a whole step at most, however long the part of it is that runs on a GPU."""
    return replace(found, gain_low_ns=min(found.gain_low_ns, step_ns), gain_high_ns=min(found.gain_high_ns, step_ns))


def _with_cost(found: Finding, cost: float, of_wait: bool) -> Finding:
    """Return a finding whose interval holds what it gains without our recorder, wherever the cost of that lies.

    It may be a part of what goes, or of the rest: then a step without a recorder is shorter, and gains a larger part.
    What is left of the step may get faster, too. of_wait: the gain is a wait that goes; it is no longer than that.
    """
    cost = min(cost, 0.5)
    low, high = found.gain_low_ns * (1 - cost), found.gain_high_ns / (1 - cost) * BESIDE
    high = found.gain_high_ns if of_wait else high
    return replace(found, gain_low_ns=round(low), gain_high_ns=round(high))


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
