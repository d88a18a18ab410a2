"""Rule `gpu.efficiency`: products, attention or elementwise kernels are far from the peaks of the GPU."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.breakdown.gpu_problems import gpu_problems
from strobe.breakdown.gpu_step import Advice
from strobe.model.plugins import Below, Finding, Rule
from strobe.model.units import format_share
from strobe.trace.trace import Trace

LEAST_SHARE = 0.10
MOST = 2
_REACHED = 0.7  # of the least time: what good kernels reach
# By cause, else by words in the operator's name: what to do.
_DO = {
    "few tiles": "its result is small and its sum long: split the sum (split-k, a batched product and a sum)",
    "few tokens": "each expert gets few tokens, and its weights are read for these: batch more tokens",
    "thin": "one side of it is thin, so that memory limits it: batch more rows, or fuse it with what reads the result",
    "depthwise": "depthwise convolutions use each value a few times: channels_last, cudnn.benchmark = True, fused ones",
    "conv": "another algorithm: torch.backends.cudnn.benchmark = True (MIOpen: MIOPEN_FIND_MODE=NORMAL), channels_last",
    "attention": "another backend (torch.nn.attention.sdpa_kernel: flash, cuDNN), heads of 64 or 128, a causal mask as "
    "is_causal=True, longer sequences in a call instead of many short ones",
    "mm": 'tune it: torch.compile(mode="max-autotune"), TunableOp on AMD; sizes that are multiples of 64',
    "": "contiguous and aligned operands (strides in the table operator_spans), one kernel for several operations",
}


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield a finding for each operator and shape whose kernels reach less than 40 % of the peaks, for 10 % of a step.

    Peak: the least time to compute its operations and to move its operands and results once. At most what it takes
    longer than well-shaped ones, which reach 70 %, is saved. Where the GPU is unknown: shapes that are slow on any GPU,
    and no gain.
    """
    found = gpu_problems(trace)
    if found is None:
        return
    step, slow = found.step, found.of("inefficient") & found.step.wanted
    costs = {each: step.exposed_ns(slow & (found.kind == each)) for each in np.unique(found.kind[slow]).tolist()}
    for number in sorted(costs, key=lambda each: -costs[each])[:MOST]:
        kind, cost, own = found.kinds[number], costs[number], slow & (found.kind == number)
        if step.share(cost) < LEAST_SHARE:
            yield Below(step.share(cost), LEAST_SHARE)
            return
        executions = len(np.unique(np.stack((step.operator.location[own], step.operator.row[own])), axis=1).T)
        part = executions * found.least_ns(kind) / float((step.work.end_ns - step.work.start_ns)[own].sum())
        do = _DO[kind.cause or next(word for word in ("attention", "conv", "mm", "") if word in kind.operator)]
        what = f"{kind.operator} of {kind.shapes} takes {step.text(cost)}"
        what += f", and reaches {format_share(part)} of the GPU's peak" if part else ", and has a shape that is slow"
        saved = max(0.0, cost * (1 - part / _REACHED)) if part else 0.0
        yield step.finding(Advice("gpu.efficiency", what, f"{do}; strobe gemm", "medium"), own, 0.0, saved)


RULE = Rule("gpu.efficiency", "Kernels are far from the peak of the GPU", run)
