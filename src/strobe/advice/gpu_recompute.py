"""Rule `gpu.recompute`: what activation checkpointing costs: the backward pass computes activations again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from strobe.breakdown.gpu_step import Advice, gpu_step
from strobe.gpu.capabilities import properties_of
from strobe.gpu.memory import allocator_curves
from strobe.model.plugins import Below, Finding, Rule
from strobe.model.units import format_bytes
from strobe.trace.trace import Trace

LEAST_SHARE = 0.05
# torch.utils.checkpoint: its node with use_reentrant=True; without, operators that no backward pass is made of.
_AGAIN = re.compile(
    r"CheckpointFunctionBackward|^recompute_fn$"
    r"|^aten::(linear|conv[123]d|(layer|batch|group|rms)_norm|scaled_dot_product_attention|embedding|dropout)$"
)
_NODE = re.compile(r"^autograd::engine::evaluate_function: ")


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield a finding, as information, if a step waits for activations that are computed again during 5 % of it.

    At most all of it is saved, where the memory suffices to keep them. With use_reentrant=False and without recorded
    Python calls, only products, convolutions, attention and norms are known to be computed again.
    """
    step = gpu_step(trace)
    if step is None:
        return
    own = step.under(_AGAIN, but_for=_NODE) & step.under(_NODE) & step.wanted
    cost = step.exposed_ns(own)
    if step.share(cost) < LEAST_SHARE:
        yield Below(step.share(cost), LEAST_SHARE)
        return
    number, process = step.device.number, step.device.process
    curves = (each for each in allocator_curves(trace) if (each.device, each.process) == (number, process))
    most, size = max((int(each.allocated.max()) for each in curves), default=0), properties_of(trace, number, process)
    what = f"activation checkpointing computes activations again: {step.text(cost)}, {step.often(int(own.sum()))}"
    if most and isinstance(total := size.get("totalGlobalMem"), int):
        what += f"; {format_bytes(most)} of {format_bytes(total)} are in use at most"
    do = (
        "where memory is left, checkpoint fewer modules, or keep what is slow to compute (context_fn="
        "create_selective_checkpoint_contexts); strobe memory"
    )
    yield replace(step.finding(Advice("gpu.recompute", what, do, "medium"), own, 0.0, cost), informative=True)


RULE = Rule("gpu.recompute", "Activations are computed again", run)
