"""What serving engines write about a step into its mark: requests, tokens, and work of attention.

vLLM: `execute_context_2(512)_generation_30(30)`, and with the sums that attention's work follows from:
`execute_542_context_2(sq512sk900sqsq131072sqsk230400)_generation_30(sq30sk9000sqsq30sqsk9000)`, where q are the tokens
that a request computes in this step, and k all that it has by then; c_ and g_ are those of prompts and of answers.
SGLang: `step[EXTEND bs=15 toks=15360 c_sq=15360 c_sk=15360 c_sqsq=15728640 c_sqsk=15728640]`, or without the sums.
ATOM: `prefill[bs=2 tok=14721 ctx=[7803, 6918]]`, `decode[bs=117/128 tok=117 d=117]` (of 128 captured for the graph),
also with sums. TensorRT-LLM: `[Executor] _forward_step 7: 2 ctx reqs, 1024 ctx tokens, 30 gen reqs`. xDiT:
`execute_diffusion_1_1024x1024`, a batch of images of that size.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

PREFILL, DECODE, MIXED, IDLE = "prefill", "decode", "mixed", "idle"
SPECULATIVE, DRAFT, DIFFUSION = "speculative", "draft", "diffusion"

# In parentheses: tokens; tokens and a sum of squares (which one is not known); or all sums.
_SUMS = r"\((?:(\d+)(?:_\d+)?|sq(\d+)sk(\d+)sqsq\d+sqsk(\d+))\)"
_EXECUTE = re.compile(rf"execute_(?:\d+_)?context_(\d+){_SUMS}_generation_(\d+){_SUMS}")
_FORWARD = re.compile(r"\[Executor\] _forward_step(?: \d+)?: (\d+) ctx reqs, (?:(\d+) ctx tokens, )?(\d+) gen reqs")
_IMAGES = re.compile(r"execute_diffusion_(\d+)_\d+x\d+")
_STEP = re.compile(r"step\[(\w+) (bs=\d+(?: \w+=\d+)*)\]")
_ATOM = re.compile(r"(prefill|decode)\[(bs=\d+.*)\]")
_VALUES = re.compile(r"(\w+)=(\d+)")
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
    (guesses are made), idle, diffusion (images, which have no tokens). requests: in the batch, of them
    prefill_requests. tokens: computed, of them prefill_tokens. context_tokens: sum over requests of all tokens that
    each has by then. attention_pairs: sum over requests of computed tokens times all tokens; causal attention
    computes, of these, all but half of the pairs among the computed ones.
    """

    step_class: str
    requests: int
    tokens: int | None
    prefill_requests: int | None = None
    prefill_tokens: int | None = None
    context_tokens: int | None = None
    attention_pairs: int | None = None


@dataclass(frozen=True)
class _Half:
    """Prompts or answers of a step: requests, their tokens, their contexts, and the work of attention."""

    requests: int | None
    tokens: int | None
    context_tokens: int | None = None
    pairs: int | None = None


_NOTHING = _Half(0, 0, 0, 0)


def engine_step(name: str) -> EngineStep | None:
    """Return what the mark of an engine's step holds, None for other names."""
    if found := _STEP.fullmatch(name):
        return _of_mode(found[1], {key: int(value) for key, value in _VALUES.findall(found[2])})
    if found := _EXECUTE.fullmatch(name):
        numbers = [None if each is None else int(each) for each in found.groups()]
        return _of_halves(_of_numbers(numbers[:5]), _of_numbers(numbers[5:]))
    if found := _FORWARD.fullmatch(name):
        prefills, decodes = int(found[1]), int(found[3])
        tokens = None if prefills and found[2] is None else int(found[2] or 0)
        # How many guesses an answer verifies is not in the mark.
        return _of_halves(_Half(prefills, tokens), _Half(decodes, None if decodes else 0))
    if found := _ATOM.fullmatch(name):
        return _of_atom(found[1], {key: int(value) for key, value in _VALUES.findall(found[2])})
    if found := _IMAGES.fullmatch(name):
        return EngineStep(DIFFUSION, int(found[1]), None)
    return None


def _of_numbers(values: Sequence[int | None]) -> _Half:
    requests, alone, computed, context, pairs = values
    return _Half(requests or 0, alone if alone is not None else computed, context, pairs)


def _of_mode(mode: str, values: dict[str, int]) -> EngineStep:
    step_class, requests = _MODES.get(mode, mode.lower()), values["bs"]
    prompts, answers = _of_prefix("c", values), _of_prefix("g", values)
    if step_class == MIXED and "c_sq" in values:
        return _of_halves(prompts, answers)
    tokens = values.get("toks", values.get("g_sq", values.get("c_sq")))
    if tokens is None and step_class == DECODE:
        tokens = requests  # a token of each
    if step_class == DECODE and tokens is not None and tokens > requests:
        step_class = DRAFT  # several branches of each request: SGLang's step_span_name.py
    if step_class == MIXED or mode not in _MODES:
        return EngineStep(step_class, requests, tokens)
    sums = answers if prompts.context_tokens is None else prompts
    whole = step_class == PREFILL
    return EngineStep(
        step_class,
        requests,
        tokens,
        requests if whole else 0,
        tokens if whole else 0,
        sums.context_tokens,
        sums.pairs,
    )


def _of_prefix(prefix: str, values: dict[str, int]) -> _Half:
    return _Half(values.get(prefix), *(values.get(f"{prefix}_{key}") for key in ("sq", "sk", "sqsk")))


def _of_atom(phase: str, values: dict[str, int]) -> EngineStep:
    requests, tokens, prefills = values["bs"], values.get("tok"), values.get("p", 0)
    if phase == DECODE and prefills and values.get("d"):
        # How the tokens are divided is not in the mark.
        return EngineStep(MIXED, requests, tokens, prefills, None, values.get("sk"), values.get("sqsk"))
    half = _Half(requests, tokens, values.get("sk"), values.get("sqsk"))
    return _of_halves(half, _NOTHING) if phase == PREFILL else _of_halves(_NOTHING, half)


def _of_halves(prompts: _Half, answers: _Half) -> EngineStep:
    """Return the step that computes both; what is not known of a half that is empty is 0."""
    prefills, decodes = prompts.requests or 0, answers.requests or 0
    several = answers.tokens is not None and answers.tokens > decodes
    return EngineStep(
        (MIXED if decodes else PREFILL) if prefills else (SPECULATIVE if several else DECODE) if decodes else IDLE,
        prefills + decodes,
        _sum(prompts.tokens, answers.tokens),
        prefills,
        prompts.tokens,
        _sum(prompts.context_tokens, answers.context_tokens),
        _sum(prompts.pairs, answers.pairs),
    )


def _sum(prompts: int | None, answers: int | None) -> int | None:
    return None if prompts is None or answers is None else prompts + answers
