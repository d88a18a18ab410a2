"""Rule `gpu.products`: matrix products and convolutions run on slower units than the GPU has, or with bad shapes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.breakdown.gpu_problems import Problems, gpu_problems
from strobe.breakdown.gpu_step import Advice
from strobe.model.plugins import Below, Finding, Rule
from strobe.tables.column_arrays import Bools
from strobe.trace.trace import Trace

LEAST_SHARE = 0.05
# Well-tuned convolutions take at least this part of the time of general ones: MIOpen's naive ones are 14 times as slow.
_BEST = 0.1
_LONGEST = 80  # letters of shapes that are shown
# By problem: what is wrong, the types that would be faster (the first that the GPU has), and what to do.
_WORDS = {
    "algorithm": (
        "run by slow algorithms of cuDNN or MIOpen, made for any shape or for large filters",
        ("float32",),
        "let cuDNN measure: torch.backends.cudnn.benchmark = True, without cudnn.deterministic; or channels_last",
    ),
    "fp64": (
        "compute in float64",
        ("tf32", "float32"),
        "compute in float32: a float64 tensor (NumPy's default, torch.set_default_dtype) makes all that follows one",
    ),
    "fp32": (
        "compute in float32 without tensor cores",
        ("tf32", "float16"),
        "torch.autocast(dtype=torch.bfloat16)",
    ),
    "misaligned": (
        "have sizes that are no multiple of 8, for which tensor cores load operands in pieces",
        ("bfloat16", "float16"),
        "pad that size (vocabulary, hidden size, channels, batch) to a multiple of 8, better 64",
    ),
}


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield a finding for each of these problems whose kernels a step waits for during 5 % of it.

    At best, the kernels reach the peak of the faster units, or of the memory (upper bound); by the ratio of the peaks
    if the operands' shapes are not recorded. Half of that is the lower bound; for alignment and
    algorithms, nothing is sure.
    """
    found = gpu_problems(trace)
    for problem, (words, types, do) in _WORDS.items() if found is not None else ():
        assert found is not None
        step, own = found.step, found.of(problem) & found.step.wanted
        cost = step.exposed_ns(own)
        if step.share(cost) < LEAST_SHARE:
            yield Below(step.share(cost), LEAST_SHARE)
            continue
        saved = _saved(found, own, problem, types)
        longest = step.longest(own)
        if problem == "fp32" and found.peak_gflops("tf32"):
            do = f'torch.set_float32_matmul_precision("high") and cudnn.allow_tf32 = True (TF32), or {do}'
        elif problem == "fp32":
            do = "torch.autocast(dtype=torch.float16) with torch.amp.GradScaler: tensor cores of this GPU need float16"
        operator, shapes, *_ = found.kind_of(longest)
        what = f"matrix products and convolutions {words}: {step.text(cost)}, {step.often(int(own.sum()))}"
        what += f", the longest in {operator}" if operator else ""
        what += f" of {shapes}" if shapes and len(shapes) < _LONGEST else ""
        low = 0.0 if problem in ("misaligned", "algorithm") else cost * saved / 2
        confidence = "low" if not found.peak_gflops("float32") else "high" if low else "medium"
        yield step.finding(Advice("gpu.products", what, f"{do}; strobe gemm", confidence), own, low, cost * saved)


def _saved(found: Problems, own: Bools, problem: str, types: tuple[str, ...]) -> float:
    """Return which part of the time of these activities the faster units would save at most."""
    time_ns = (found.step.work.end_ns - found.step.work.start_ns).astype(np.float64)
    faster = next((each for each in types if found.peak_gflops(each)), "float32")
    now = {"fp64": "float64", "fp32": "float32"}.get(problem, faster)
    ratio = found.peak_gflops(now) / max(1.0, found.peak_gflops(faster))
    saved = 0.0
    part = _BEST if problem == "algorithm" else min(1.0, ratio) if ratio and problem != "misaligned" else 0.5
    for at in np.flatnonzero(own).tolist():
        least = found.least_ns(found.kind_of(at), faster)
        saved += max(0.0, time_ns[at] - max(least, 0.0 if least and problem == "misaligned" else part * time_ns[at]))
    return float(saved / max(1.0, time_ns[own].sum()))


RULE = Rule("gpu.products", "Matrix products run on slow units, or with bad sizes", run)
