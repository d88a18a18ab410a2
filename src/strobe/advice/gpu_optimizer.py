"""Rule `gpu.optimizer`: the optimizer updates one parameter after the other, with some small kernels for each."""

from __future__ import annotations

from collections.abc import Iterator

from strobe.breakdown.gpu_problems import gpu_problems
from strobe.breakdown.gpu_step import Advice
from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_share
from strobe.trace.trace import Trace

LEAST_SHARE = 0.03
_LEAST_COUNT = 50  # kernels in a step
# Adam with one kernel for each operation reads and writes about 24 arrays of a parameter's size, a fused one 7
# (gradient, parameter and two moments read, the last three written).
_SAVED = 2 / 3
_GAP_NS = 1_000  # between two kernels of a stream


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding if `Optimizer.step` runs 50 kernels and more, none for many parameters, and costs 3 % of a step.

    Cost: its kernels, where nothing else runs and the step waits for them, and gaps between them for which the host is
    late. One kernel for many parameters saves the gaps (lower bound: half), and up to two thirds of the kernels' time.
    """
    found = gpu_problems(trace)
    if found is None:
        return
    step, own = found.step, found.of("optimizer")
    count = int((own & step.wanted).sum())
    gaps = own[step.gaps.ended_by] & (step.gaps_of("launch") | step.gaps_of("host"))
    ran, idle = step.exposed_ns(own), float(step.gaps.lost_ns[gaps].sum())
    if count < _LEAST_COUNT * step.steps or step.share(ran + idle) < LEAST_SHARE:
        return
    what = (
        f"the optimizer updates its parameters one by one: its kernels run {step.often(count)} and cost "
        f"{step.text(ran + idle)}, {format_share(idle / (ran + idle))} of that between them"
    )
    do = "fused=True (or foreach=True) for the optimizer: a few kernels update all parameters"
    yield step.finding(Advice("gpu.optimizer", what, do, "high"), own, idle / 2, idle + _SAVED * ran + _GAP_NS * count)


RULE = Rule("gpu.optimizer", "The optimizer updates parameters one by one", run)
