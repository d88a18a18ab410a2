"""Rule `gpu.host`: the GPU has nothing to do while the host computes something else between launches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from strobe.breakdown.gpu_problems import gpu_problems
from strobe.breakdown.gpu_step import Advice
from strobe.breakdown.known_work import what_to_do
from strobe.model.plugins import Below, Finding, Rule
from strobe.model.units import format_share
from strobe.trace.definition_rows import region_rows
from strobe.trace.trace import Trace

LEAST_SHARE = 0.05
_MOSTLY = 0.3  # a region with this part of the time is named


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield a finding if gaps of 0.1 ms and more, in which the host neither waits nor allocates, take 5 % of the steps.

    All of them at most are saved if the work is done beside the launches, on the GPU, or not at all; the lower bound is
    what the region takes that most of the time is spent in, without its callees. If few steps have a gap, nothing is
    promised.
    """
    found = gpu_problems(trace)
    if found is None:
        return
    step = found.step
    gaps = step.gaps_of("host") & ~found.of("optimizer")[step.gaps.ended_by]
    lost = float(step.gaps.lost_ns[gaps].sum())
    if step.share(lost) < LEAST_SHARE:
        yield Below(step.share(lost), LEAST_SHARE)
        return
    regions = region_rows(trace)
    time_ns = np.bincount(step.gaps.call[gaps] + 1, step.gaps.call_ns[gaps], minlength=len(regions) + 1)[1:]
    most = int(time_ns.argmax())
    name, part = regions[most].name, min(1.0, float(time_ns[most]) / lost)
    seen = [regions[each].name for each in np.flatnonzero(time_ns > _MOSTLY * lost).tolist()]
    do = what_to_do([*seen, regions[most].file])
    do = do or "move this work behind the launches of the step, into another thread or onto the GPU"
    own = gaps & (step.gaps.call == most)
    named = part >= _MOSTLY
    what = (
        f"{step.device.name} idles {step.text(lost)} in gaps of 0.1 ms and more, {step.often(int(gaps.sum()))}, "
        "while the host does something else"
    )
    what += f": {format_share(part)} of it in {name}" if named else ", most of which was not recorded"
    low, confidence = (lost * part, "medium") if named else (0.0, "low")
    finding = step.gap_finding(
        Advice("gpu.host", what, f"{do}; strobe idle", confidence), own if named else gaps, low, lost
    )
    # Few steps have one: those may have more to do.
    yield replace(finding, informative=True) if gaps.sum() < step.steps / 2 else finding


RULE = Rule("gpu.host", "The GPU waits while the host works", run)
