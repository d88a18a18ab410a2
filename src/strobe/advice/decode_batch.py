"""Rule `serving.batch`: decode steps compute few tokens, each of which costs the GPU far more than one of a prefill."""

from __future__ import annotations

from collections.abc import Iterator

from strobe.answers.ask import ask
from strobe.model.plugins import Below, Finding, Rule
from strobe.model.units import format_count, format_ns, format_share
from strobe.trace.trace import Trace

LEAST_SHARE = 0.3  # of the GPU's time in the steps: decodes that take less are not what the engine is about
# A token of a decode reads all weights for a few requests: with hundreds of them it costs about as much as one of a
# prefill (roofline of a linear layer); ten times as much is a batch far below that.
_TIMES = 10
_FULL = 256  # tokens of a step beside which one of a prefill has its weights for nothing


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield information if decodes take 30 % of the GPU's time, and each of their tokens 10 times that of a prefill's.

    What a larger batch would bring is not known from one run: whether there are requests for it, and memory.
    """
    rows = [row for row in ask(trace, "serving").to_arrow().to_pylist() if row["gpu_ns"] and row["tokens"]]
    for process in dict.fromkeys(row["process"] for row in rows):
        own = [row for row in rows if row["process"] == process]
        decodes = [row for row in own if row["class"] == "decode"]
        full = [row for row in own if row["class"] in ("prefill", "mixed") and row["tokens"] >= _FULL]
        if not decodes or not full:
            continue
        decode, prefill = decodes[0], min(full, key=lambda row: row["gpu_ns_per_token"])
        share = decode["gpu_ns"] * decode["steps"] / sum(row["gpu_ns"] * row["steps"] for row in own)
        if share < LEAST_SHARE:
            yield Below(share, LEAST_SHARE)
            continue
        if decode["gpu_ns_per_token"] < _TIMES * prefill["gpu_ns_per_token"]:
            continue
        yield Finding(
            rule="serving.batch",
            what=f"decode steps compute {format_count(round(decode['tokens']))} tokens (mean), each in "
            f"{format_ns(round(decode['gpu_ns_per_token']))} of the GPU; a token of {prefill['class']} steps of "
            f"{format_count(round(prefill['tokens']))} takes {format_ns(round(prefill['gpu_ns_per_token']))}. Decodes "
            f"take {format_share(share)} of the GPU's time in the steps",
            do="if requests wait, let more of them decode at once (vLLM: max_num_seqs, SGLang: --max-running-requests; "
            "both need memory for the KV cache); strobe serving",
            confidence="medium",
            informative=True,
        )
        return


RULE = Rule("serving.batch", "Decode steps have a small batch", run, needs=("engine",))
