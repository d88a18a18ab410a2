"""Rule `gpu.movement`: kernels that compute nothing: they reorder, copy or gather elements, or add them up by index."""

from __future__ import annotations

from collections.abc import Iterator

from strobe.breakdown.gpu_problems import gpu_problems
from strobe.breakdown.gpu_step import Advice
from strobe.model.plugins import Below, Finding, Rule
from strobe.trace.trace import Trace

LEAST_SHARE = 0.03
# By problem: what the kernels do, which part of them is saved for sure, and what to do about it.
_WORDS = {
    "layout": (
        "kernels that transform the layout of images",
        0.5,
        "keep one layout: model.to(memory_format=torch.channels_last), and the inputs, too",
    ),
    "zeros": (
        "kernels that fill gradients with zeros, and add to them later,",
        0.5,
        "optimizer.zero_grad(set_to_none=True), the default: the backward pass then writes instead of adding",
    ),
    "contiguous": (
        "kernels that copy tensors only to reorder their elements",
        0.5,
        "avoid .contiguous(), .permute() and .clone() there: produce the order that the next operator reads, or let it "
        "take strides (reshape before, einsum)",
    ),
    "concatenation": (
        "kernels that concatenate tensors",
        0.5,
        "write the parts into slices of one tensor that is allocated once (out=), instead of torch.cat or torch.stack",
    ),
    "scatter": (
        "kernels that add to indexed elements, one after the other where indices repeat,",
        0.0,
        "sort or count the indices first (torch.unique, segment_reduce), use index_select for reading, or "
        "nn.Embedding(sparse=True) for large tables",
    ),
}


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield a finding for each of these kinds of kernels that a step waits for during 3 % of it.

    At most all of it is saved; half of it for sure, where one of two copies remains; of additions by index nothing.
    """
    found = gpu_problems(trace)
    for problem, (words, sure, do) in _WORDS.items() if found is not None else ():
        assert found is not None
        step, own = found.step, found.of(problem)
        cost = step.exposed_ns(own)
        if step.share(cost) < LEAST_SHARE:
            yield Below(step.share(cost), LEAST_SHARE)
            continue
        operator = found.kind_of(step.longest(own)).operator
        what = f"{words} take {step.text(cost)}, {step.often(int((own & step.wanted).sum()))}"
        what += f", most of all in {operator}" if operator else ""
        yield step.finding(
            Advice("gpu.movement", what, f"{do}; strobe kernels --by operator", "high"), own, sure * cost, cost
        )


RULE = Rule("gpu.movement", "Kernels move elements, and compute nothing", run)
