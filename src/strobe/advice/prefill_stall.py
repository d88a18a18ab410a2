"""Rule `serving.stall`: answers wait while the engine computes prompts in the steps between, or beside them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.answers.ask import ask
from strobe.model.plugins import Below, Evidence, Finding, Rule
from strobe.model.units import format_ns, format_number_of, format_share
from strobe.trace.trace import Trace

LEAST_SHARE = 0.2  # of the time of the steps
_TIMES = 3  # as long as a step of decodes: shorter ones are near what the pace varies by anyway
_LEAST_COUNT = 2  # decodes, and steps with prompts: one may be anything


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield information if steps with prompts, of mixed batches or right between decodes, take 20 % of the time.

    They are needed; how they are cut is what can be chosen. Only those count that last three decodes (median) and more.
    """
    steps = ask(trace, "serving", by="step").to_arrow().to_pylist()
    for process in dict.fromkeys(row["process"] for row in steps):
        own = [row for row in steps if row["process"] == process]
        decodes = [row["duration_ns"] for row in own if row["class"] == "decode"]
        if len(decodes) < _LEAST_COUNT:
            continue
        usual_ns = float(np.median(decodes))
        stalls = [row for at, row in enumerate(own) if _stalls(own, at) and row["duration_ns"] >= _TIMES * usual_ns]
        lost_ns = sum(row["duration_ns"] - usual_ns for row in stalls)
        share = lost_ns / max(1, sum(row["duration_ns"] for row in own))
        if share < LEAST_SHARE:
            yield Below(share, LEAST_SHARE)
            continue
        if len(stalls) < _LEAST_COUNT:
            continue
        stall_ns = float(np.median([row["duration_ns"] for row in stalls]))
        longest = sorted(stalls, key=lambda row: -int(row["duration_ns"]))[:3]
        evidence: tuple[Evidence, ...] = tuple(
            {"start_ns": row["start_ns"], "duration_ns": row["duration_ns"], "text": f"step {row['step']}"}
            for row in longest
        )
        yield Finding(
            rule="serving.stall",
            what=f"answers wait while prompts are computed: {format_number_of(len(stalls), 'step')} of {len(own)} with "
            f"prompts, mixed or between decodes, take {format_ns(round(stall_ns))} (median), decode steps "
            f"{format_ns(round(usual_ns))}. The difference is {format_share(share)} of the time of the steps",
            do="smaller pieces of prompts (vLLM: max_num_batched_tokens, SGLang: --chunked-prefill-size), or prefill "
            "on other GPUs; strobe serving --by step",
            confidence="high",
            informative=True,
            evidence=evidence,
        )
        return


def _stalls(steps: list[dict[str, object]], at: int) -> bool:
    """Whether answers wait for the prompts of a step: they are computed with it, or before it and after it."""
    around = [steps[other]["class"] for other in (at - 1, at + 1) if 0 <= other < len(steps)]
    return steps[at]["class"] == "mixed" or (steps[at]["class"] == "prefill" and around == ["decode", "decode"])


RULE = Rule("serving.stall", "Answers wait while prompts are computed", run, needs=("engine",))
