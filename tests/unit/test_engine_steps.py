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
        # Marks with sums, of SGLang's builder of names: a request of 8 tokens with 5 new ones, and one that decodes.
        (
            "step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12 g_sqsq=1 g_sqsk=12]",
            EngineStep("mixed", 2, 6, 1, 5, 20, 52),
        ),
        (
            "step[EXTEND bs=2 toks=14721 c_sq=14721 c_sqsq=108745533 c_sqsk=108745533 c_sk=14721]",
            EngineStep("prefill", 2, 14721, 2, 14721, 14721, 108745533),
        ),
        ("step[DECODE bs=4 g_sqsq=4 g_sqsk=40 g_sk=40]", EngineStep("decode", 4, 4, 0, 0, 40, 40)),
        ("step[DECODE bs=4 g_sq=8 g_sqsq=16 g_sqsk=80 g_sk=40]", EngineStep("draft", 4, 8, 0, 0, 40, 80)),
        # ATOM: of 128 places in the graph 117 are taken; two answers of which each verifies three guesses.
        ("prefill[bs=2 tok=14721 ctx=[7803, 6918]]", EngineStep("prefill", 2, 14721, 2, 14721)),
        ("prefill[bs=6 tok=17408 ctx=[4096, 4096]...+4]", EngineStep("prefill", 6, 17408, 6, 17408)),
        ("decode[bs=117/128 tok=117 d=117]", EngineStep("decode", 117, 117, 0, 0)),
        ("decode[bs=2 tok=8 d=2 spec=3 sqsq=32 sqsk=800 sk=200]", EngineStep("speculative", 2, 8, 0, 0, 200, 800)),
        ("decode[bs=128 tok=384 p=2 d=126 sqsq=1 sqsk=9 sk=8 tbo=1]", EngineStep("mixed", 128, 384, 2, None, 8, 9)),
        # TensorRT-LLM (nvtx ranges of its executor). How many guesses an answer verifies is not in them.
        ("[Executor] _forward_step 7: 2 ctx reqs, 900 ctx tokens, 3 gen reqs", EngineStep("mixed", 5, None, 2, 900)),
        ("[Executor] _forward_step 7: 2 ctx reqs, 900 ctx tokens, 0 gen reqs", EngineStep("prefill", 2, 900, 2, 900)),
        ("[Executor] _forward_step: 0 ctx reqs, 32 gen reqs", EngineStep("decode", 32, None, 0, 0)),
        ("[Executor] _forward_step 9: 1 ctx reqs, 0 gen reqs", EngineStep("prefill", 1, None, 1, None)),
        # A profile of vLLM on a B200 (TraceLens): 788544 is the square of 888.
        ("execute_context_1(888_788544)_generation_0(0)", EngineStep("prefill", 1, 888, 1, 888)),
        ("execute_diffusion_2_1024x768", EngineStep("diffusion", 2, None)),
    ],
)
def test_marks_are_read(name: str, expected: EngineStep) -> None:
    assert engine_step(name) == expected


@pytest.mark.parametrize(
    "name",
    ["execute_model", "step[3]", "step[DECODE]", "execute_context_2(512)", "prefill[3]", "decode", "step"],
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
        ("__call__", "transformers/tokenization_utils_base.py", "tokenising"),
        ("_convert_encoding", "transformers/tokenization_utils_fast.py", "tokenising"),
        ("convert_ids_to_tokens", "transformers/tokenization_utils_fast.py", "detokenising"),
        ("set_timesteps", "diffusers/schedulers/scheduling_flow_match_euler_discrete.py", "launch"),
        ("decode_batch", "/sgl-workspace/sglang/srt/managers/detokenizer_manager.py", "detokenising"),
        ("execute_model", "vllm/v1/worker/gpu_worker.py", "launch"),
        ("nn.Module: LlamaModel_0", "", "launch"),
        ("resample", "audio/resample.py", ""),
        ("step", "vllm/v1/engine/core.py", ""),
    ],
)
def test_functions_belong_to_stages_of_the_engine(function: str, file: str, stage: str) -> None:
    assert engine_stage(function, file) == stage
