"""Rule `gpu.launch`: the GPU runs out of work because the host launches many short kernels one by one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.breakdown.gpu_problems import gpu_problems
from strobe.breakdown.gpu_step import Advice
from strobe.model.engine_steps import DECODE, MIXED, PREFILL, engine_step
from strobe.model.plugins import Below, Finding, Rule
from strobe.model.units import format_ns
from strobe.trace.trace import Trace

LEAST_SHARE = 0.05
_LEAST_COUNT = 20  # gaps in a step: fewer are no pattern
# Kernels of a CUDA graph follow each other within a microsecond (NVIDIA, "Constant time launch for straight-line CUDA
# graphs", 2024): so much of each gap stays.
_GRAPH_NS = 1_000
# A kernel takes some microseconds, however little it does: three quarters of that are saved where four become one, or
# a larger batch fills them.
_SHORT_NS, _SAVED = 10_000, 0.75


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield a finding if gaps in which the host is on its way to the next launch take 5 % of the steps.

    Upper bound: a CUDA graph leaves a microsecond of each gap, and of kernels below 10 us torch.compile makes a quarter
    as many. Lower bound: half of the former. Gaps within a step of the optimizer belong to the rule `gpu.optimizer`.
    """
    found = gpu_problems(trace)
    if found is None:
        return
    step = found.step
    gaps = step.gaps_of("launch") & ~found.of("optimizer")[step.gaps.ended_by]
    count, lost = int(gaps.sum()), float(step.gaps.lost_ns[gaps].sum())
    if step.share(lost) < LEAST_SHARE:
        yield Below(step.share(lost), LEAST_SHARE)
        return
    if count < _LEAST_COUNT * step.steps:
        return
    kernels = ~found.of("copy") & step.wanted
    typical = float(np.median((step.work.end_ns - step.work.start_ns)[kernels])) if kernels.any() else 0.0
    length = (step.work.end_ns - step.work.start_ns)[kernels]
    saved = float(np.maximum(0, step.gaps.lost_ns[gaps] - _GRAPH_NS).sum())
    high = saved + _SAVED * float(length[length < _SHORT_NS].sum())
    torch = (step.operator.row >= 0).any()
    do = "launch the kernels of a step as one CUDA graph (cudaStreamBeginCapture, cudaGraphLaunch), or make them fewer"
    if torch:
        do = 'torch.compile(model, mode="reduce-overhead"), or torch.cuda.graph() around the step: one launch for all'
    marks = {mark.step_class for mark in map(engine_step, step.names) if mark is not None}
    if DECODE in marks and not any("GraphLaunch" in name for name in step.names):
        do = "let the engine launch decode steps as CUDA graphs: vLLM without enforce_eager, SGLang without "
        do += "--disable-cuda-graph"
    elif marks & {PREFILL, MIXED} and any(name.startswith("execute_") for name in step.names):
        do = "if enforce_eager is set, unset it: vLLM then compiles the model, and needs fewer launches"
    what = (
        f"{step.device.name} idles {step.text(lost)} until the host has launched the next kernel, {step.often(count)}; "
        f"kernels take {format_ns(typical)} (median of {step.often(int(kernels.sum()))})"
    )
    confidence = "high" if torch else "medium"
    yield step.gap_finding(Advice("gpu.launch", what, f"{do}; strobe launches", confidence), gaps, saved / 2, high)


RULE = Rule("gpu.launch", "The GPU waits for launches of short kernels", run)
