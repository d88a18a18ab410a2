"""What serving engines write into the marks of their steps."""

import pytest

from strobe.model.engine_stages import engine_stage
from strobe.model.engine_steps import EngineStep, engine_step


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # Marks of public profiles of vLLM and SGLang (TraceLens); sums by hand.
        (
            "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37sqsk34489)",
            EngineStep("mixed", 46, 8192, 9, 8155, 42919, 7705799),
        ),
        (
            "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)",
            EngineStep("decode", 32, 32, 0, 0, 32785, 32785),
        ),
        ("execute_context_2(512)_generation_30(30)", EngineStep("mixed", 32, 542, 2, 512)),
        ("execute_context_2(512)_generation_0(0)", EngineStep("prefill", 2, 512, 2, 512)),
        ("execute_context_0(0)_generation_8(8)", EngineStep("decode", 8, 8, 0, 0)),
        # Each of 8 requests computes its token and 3 that were guessed.
        ("execute_context_0(0)_generation_8(32)", EngineStep("speculative", 8, 32, 0, 0)),
        ("execute_context_0(0)_generation_0(0)", EngineStep("idle", 0, 0, 0, 0)),
        ("step[EXTEND bs=15 toks=15360]", EngineStep("prefill", 15, 15360, 15, 15360)),
        ("step[DECODE bs=32]", EngineStep("decode", 32, 32, 0, 0)),
        ("step[MIXED bs=12 toks=2060]", EngineStep("mixed", 12, 2060)),
        ("step[TARGET_VERIFY bs=8 toks=32]", EngineStep("speculative", 8, 32, 0, 0)),
        ("step[DRAFT_EXTEND_V2 bs=8 toks=32]", EngineStep("draft", 8, 32, 0, 0)),
        ("step[IDLE bs=0]", EngineStep("idle", 0, None, 0, 0)),
        ("step[PREBUILT bs=4]", EngineStep("prebuilt", 4, None)),
    ],
)
def test_marks_are_read(name: str, expected: EngineStep) -> None:
    assert engine_step(name) == expected


@pytest.mark.parametrize(
    "name",
    ["execute_model", "step[3]", "step[DECODE]", "execute_context_2(512)", "execute_diffusion_1_256x256", "step"],
)
def test_other_names_are_not_marks_of_engines(name: str) -> None:
    assert engine_step(name) is None


@pytest.mark.parametrize(
    ("function", "file", "stage"),
    [
        ("schedule", "vllm/v1/core/sched/scheduler.py", "scheduler"),
        ("get_new_blocks", "vllm/v1/core/block_pool.py", "scheduler"),
        ("match_prefix", "/sgl-workspace/sglang/srt/mem_cache/radix_cache.py", "scheduler"),
        ("apply_all_penalties", "vllm/v1/sample/ops/penalties.py", "sampling"),
        ("_sample", "vllm/v1/worker/gpu_model_runner.py", "sampling"),
        ("nn.Module: Sampler_0", "", "sampling"),
        ("batch_decode", "transformers/tokenization_utils_base.py", "detokenising"),
        ("decode_batch", "/sgl-workspace/sglang/srt/managers/detokenizer_manager.py", "detokenising"),
        ("execute_model", "vllm/v1/worker/gpu_worker.py", "launch"),
        ("nn.Module: LlamaModel_0", "", "launch"),
        ("resample", "audio/resample.py", ""),
        ("step", "vllm/v1/engine/core.py", ""),
    ],
)
def test_functions_belong_to_stages_of_the_engine(function: str, file: str, stage: str) -> None:
    assert engine_stage(function, file) == stage
