"""Which stage of a serving engine a function belongs to, by its name and file in vLLM and SGLang.

vLLM: `v1/core/sched/scheduler.py`, `v1/core/block_pool.py`, `v1/sample/`, `v1/engine/detokenizer.py`,
`v1/worker/gpu_model_runner.py`. SGLang: `managers/scheduler.py`, `managers/schedule_policy.py`,
`mem_cache/radix_cache.py`, `layers/sampler.py`, `managers/detokenizer_manager.py`, `model_executor/`. A scheduler of
diffusers is part of the model: it computes what noise remains.
"""

from __future__ import annotations

import re

SCHEDULER, SAMPLING, LAUNCH = "scheduler", "sampling", "launch"
TOKENISING, DETOKENISING = "tokenising", "detokenising"

# In order: SGLang's scheduler calls all the others, and model runners of both call the sampler.
_STAGES = (
    (DETOKENISING, re.compile(r"detoken|(decode|ids_to_tokens|tokens_to_string)\S* .*token|tokenizer\.decode", re.I)),
    (TOKENISING, re.compile(r"tokenizers?[./]|tokenization", re.I)),
    (SAMPLING, re.compile(r"(?<![a-z])_?sampl|penalties|logits_processor", re.I)),
    (
        LAUNCH,
        re.compile(
            r"model_executor|model_runner|gpu_worker|tp_worker|execute_model|^nn\.Module|cuda_?graph|diffusers/"
        ),
    ),
    (SCHEDULER, re.compile(r"sched|block_pool|block_manager|kv_cache_manager|radix_cache", re.I)),
)


def engine_stage(function: str, file: str) -> str:
    """Return the stage that a function is of, "" where it is of none."""
    text = f"{function} {file}"
    return next((stage for stage, pattern in _STAGES if pattern.search(text)), "")
