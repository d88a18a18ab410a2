"""What serving engines write about a step into its mark: requests, tokens, and work of attention.

vLLM: `execute_context_2(512)_generation_30(30)`, and with the sums that attention's work follows from:
`execute_542_context_2(sq512sk900sqsq131072sqsk230400)_generation_30(sq30sk9000sqsq30sqsk9000)`, where q are the tokens
that a request computes in this step, and k all that it has by then. SGLang: `step[EXTEND bs=15 toks=15360]`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

PREFILL, DECODE, MIXED, IDLE = "prefill", "decode", "mixed", "idle"
SPECULATIVE, DRAFT = "speculative", "draft"

_SUMS = r"\((?:(\d+)|sq(\d+)sk(\d+)sqsq(\d+)sqsk(\d+))\)"
_EXECUTE = re.compile(rf"execute_(?:\d+_)?context_(\d+){_SUMS}_generation_(\d+){_SUMS}")
_STEP = re.compile(r"step\[(\w+) bs=(\d+)(?: toks=(\d+))?\]")
# SGLang's ForwardMode. What has no class here (PREBUILT) has the mode's own name, in small letters.
_MODES = {
    "EXTEND": PREFILL,
    "SPLIT_PREFILL": PREFILL,
    "DECODE": DECODE,
    "MIXED": MIXED,
    "TARGET_VERIFY": SPECULATIVE,
    "DRAFT_EXTEND": DRAFT,
    "DRAFT_EXTEND_V2": DRAFT,
    "IDLE": IDLE,
}


@dataclass(frozen=True)
class EngineStep:
    """What a step of an engine computes; None where its mark does not have it.

    step_class: prefill, decode, mixed, speculative (more tokens than requests that decode: guesses are verified), draft
    (guesses are made), idle. requests: in the batch, of them prefill_requests. tokens: computed, of them
    prefill_tokens. context_tokens: sum over requests of all tokens that each has by then. attention_pairs: sum over
    requests of computed tokens times all tokens; causal attention computes, of these, all but half of the pairs among
    the computed ones.
    """

    step_class: str
    requests: int
    tokens: int | None
    prefill_requests: int | None = None
    prefill_tokens: int | None = None
    context_tokens: int | None = None
    attention_pairs: int | None = None


def engine_step(name: str) -> EngineStep | None:
    """Return what the mark of an engine's step holds, None for other names."""
    if found := _STEP.fullmatch(name):
        return _of_mode(found[1], int(found[2]), None if found[3] is None else int(found[3]))
    if not (found := _EXECUTE.fullmatch(name)):
        return None
    numbers = [None if each is None else int(each) for each in found.groups()]
    prefills, decodes = numbers[0] or 0, numbers[6] or 0
    prefill_tokens, prefill_context, prefill_pairs = _sums(numbers[1:6])
    decode_tokens, decode_context, decode_pairs = _sums(numbers[7:])
    return EngineStep(
        step_class=_class(prefills, decodes, decode_tokens),
        requests=prefills + decodes,
        tokens=prefill_tokens + decode_tokens,
        prefill_requests=prefills,
        prefill_tokens=prefill_tokens,
        context_tokens=_both(prefill_context, decode_context),
        attention_pairs=_both(prefill_pairs, decode_pairs),
    )


def _of_mode(mode: str, requests: int, tokens: int | None) -> EngineStep:
    step_class = _MODES.get(mode, mode.lower())
    if tokens is None and step_class == DECODE:
        tokens = requests  # a token of each; where it computes more the mode is another one
    if step_class == MIXED or mode not in _MODES:
        return EngineStep(step_class, requests, tokens)
    prefills = step_class == PREFILL
    return EngineStep(step_class, requests, tokens, requests if prefills else 0, tokens if prefills else 0)


def _sums(values: Sequence[int | None]) -> tuple[int, int | None, int | None]:
    """Return tokens, context and pairs from the numbers in the parentheses."""
    alone, computed, context, _, pairs = values
    return alone if alone is not None else computed or 0, context, pairs


def _class(prefills: int, decodes: int, decode_tokens: int) -> str:
    if prefills:
        return MIXED if decodes else PREFILL
    if not decodes:
        return IDLE
    return SPECULATIVE if decode_tokens > decodes else DECODE


def _both(prefill: int | None, decode: int | None) -> int | None:
    return None if prefill is None or decode is None else prefill + decode
