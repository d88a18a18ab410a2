"""Rule `gpu.experts`: experts run one after the other, and the host waits for the GPU before each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.breakdown.expert_loops import expert_loop
from strobe.breakdown.gpu_step import Advice
from strobe.model.plugins import Finding, Rule
from strobe.trace.trace import Trace

LEAST_SHARE = 0.02


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding if the GPU idles for 2 % of the steps behind waits in a loop over experts.

    What the GPU idles for sure because the host has waited is saved (lower bound). At most all idle time between the
    kernels of experts is, and as much again in the backward pass, which has the same small products.
    """
    found = expert_loop(trace)
    if found is None:
        return
    step, own, gaps = found
    lost = float(step.gaps.lost_ns[gaps].sum())
    if step.share(lost) < LEAST_SHARE:
        return
    both = own[1:] & own[:-1]
    idle = np.maximum(0, step.work.start_ns[1:] - np.maximum.accumulate(step.work.end_ns)[:-1])
    low = float(np.minimum(step.gaps.lost_ns, step.gaps.waited_ns)[gaps].sum())
    often = step.often(int((gaps & (step.gaps.waited_ns > 0)).sum()))
    what = (
        f"experts run one after the other: the host waits for {step.device.name} {often} to know the tokens of the "
        f"next one; then the GPU idles {step.text(lost)}"
    )
    do = (
        "sort the tokens by expert once, and compute all experts in one grouped product "
        '(torch.nn.functional.grouped_mm; transformers: experts_implementation="grouped_mm"); strobe idle'
    )
    yield step.gap_finding(Advice("gpu.experts", what, do, "high"), gaps, low, 2 * float(idle[both].sum()))


RULE = Rule("gpu.experts", "Experts run one after the other", run)
