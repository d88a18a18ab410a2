"""Rule `gpu.allocation`: steady steps allocate or free memory of the GPU, which stops both it and the host."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.breakdown.gpu_step import Advice, gpu_step
from strobe.model.plugins import Below, Finding, Rule
from strobe.trace.definition_rows import region_rows
from strobe.trace.trace import Trace

LEAST_SHARE = 0.02


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield a finding if the GPU idles for 2 % of the steps while a thread that launches is in cudaMalloc or cudaFree.

    Memory that is kept and used again saves the calls: the whole gap at most, and for sure what of it the calls take.
    """
    step = gpu_step(trace)
    if step is None:
        return
    gaps = step.gaps_of("allocation")
    lost = float(step.gaps.lost_ns[gaps].sum())
    if step.share(lost) < LEAST_SHARE:
        yield Below(step.share(lost), LEAST_SHARE)
        return
    names = [region_rows(trace)[each].name for each in np.unique(step.gaps.call[gaps]).tolist()]
    torch = (step.operator.row >= 0).any()
    do = "allocate before the loop, or from a pool (cudaMallocAsync)"
    if torch:
        do = (
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, inputs of few sizes, no torch.cuda.empty_cache() in the "
            "loop: the caching allocator then keeps the memory"
        )
    what = (
        f"{step.device.name} idles {step.text(lost)} in {' and '.join(names)}, {step.often(int(gaps.sum()))}, "
        "in steps that should find their memory"
    )
    low = float(np.minimum(step.gaps.lost_ns, step.gaps.call_ns)[gaps].sum())
    yield step.gap_finding(Advice("gpu.allocation", what, f"{do}; strobe calls", "high"), gaps, low, lost)


RULE = Rule("gpu.allocation", "Steps allocate and free memory of the GPU", run)
