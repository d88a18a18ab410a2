"""Rule `gpu.attention`: attention is computed as two products with a softmax of all scores between them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.breakdown.gpu_problems import gpu_problems
from strobe.breakdown.gpu_step import Advice
from strobe.model.plugins import Below, Finding, Rule
from strobe.trace.trace import Trace

LEAST_SHARE = 0.05


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield a finding if a step waits for such attention during 5 % of it.

    Fused attention does not write the scores. Lower bound: half of the kernels between the products are saved. Upper
    bound: all but the operations of the products, at the peak of the GPU.
    """
    found = gpu_problems(trace)
    if found is None:
        return
    step, own = found.step, found.of("attention") & found.step.wanted
    cost = step.exposed_ns(own)
    if step.share(cost) < LEAST_SHARE:
        yield Below(step.share(cost), LEAST_SHARE)
        return
    softmax, products = (
        own & np.array([word in each.operator for each in found.kinds])[found.kind] for word in ("softmax", "bmm")
    )
    peaks = {kind.dtype: found.peak_gflops(kind.dtype) for kind in found.kinds}
    least = sum(
        kind.product.flop / peaks[kind.dtype]
        for kind in (found.kind_of(at) for at in np.flatnonzero(products).tolist())
        if kind.product is not None and peaks[kind.dtype]
    )
    scores = step.exposed_ns(own & ~products)
    shapes = found.kind_of(step.longest(softmax)).shapes
    what = (
        f"attention that is not fused takes {step.text(cost)}, with {step.often(int(softmax.sum()))} a softmax between "
        f"two products; what lies between the products takes {step.text(scores)}"
    )
    what += f"; scores of {shapes.partition(']')[0].lstrip('[')}" if shapes else ""
    do = "torch.nn.functional.scaled_dot_product_attention(q, k, v): one kernel, which never writes the scores"
    yield step.finding(Advice("gpu.attention", what, do, "high"), own, scores / 2, max(scores, cost - least))


RULE = Rule("gpu.attention", "Attention is not fused", run)
