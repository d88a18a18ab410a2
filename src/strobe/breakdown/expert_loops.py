"""Experts of a mixture that run one after the other: the host asks the GPU for the tokens of each."""

from __future__ import annotations

import re

import numpy as np

from strobe.breakdown.gpu_step import GpuStep, gpu_step
from strobe.tables.column_arrays import Bools
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

_MIXTURE = re.compile(r"^nn\.Module: \w*(MoE|Moe|Expert|Mixtral)")
_LEAST = 8  # waits a step: two layers of four experts


@cached_on_trace
def expert_loop(trace: Trace) -> tuple[GpuStep, Bools, Bools] | None:
    """Return the busiest GPU, which of its activities are of experts, and which gaps behind a wait in their loop.

    None where the host does not wait several times a step inside of modules that are named after experts.
    """
    step = gpu_step(trace)
    if step is None or not step.of_steps:
        return None
    own = step.under(_MIXTURE) & step.wanted
    gaps = step.gaps_of("sync") & own[step.gaps.ended_by]
    return (step, own, gaps) if np.count_nonzero(gaps) >= _LEAST * step.steps else None
