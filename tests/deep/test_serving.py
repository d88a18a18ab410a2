"""`strobe serving` on profiles written by hand: every figure is computed on paper."""

from pathlib import Path

import pytest

from strobe.present.summary import summarise
from strobe.present.summary_text import summary_text
from tests.deep.kineto import Event, call, copy, event, kernel, operator, profile, step

PREFILL = "execute_64_context_2(sq64sk80sqsq2048sqsk2560)_generation_0(sq0sk0sqsq0sqsk0)"
DECODE = "execute_2_context_0(sq0sk0sqsq0sqsk0)_generation_2(sq2sk82sqsq2sqsk82)"


def mark(name: str, start_us: float, duration_us: float) -> Event:
    return event("user_annotation", name, start_us, duration_us, 100, 1)


def launched(number: int, at: float, name: str, start_us: float, duration_us: float, **args: int) -> list[Event]:
    """A launch at a time, and its kernel."""
    return [call(at, 2, correlation=number), kernel(name, start_us, duration_us, correlation=number, **args)]


def engine() -> list[Event]:
    """A prefill and three decodes on the host within 4 x 100 us. The GPU begins when the host is nearly through."""
    events = [mark(PREFILL, 0, 90)]
    events += launched(1, 10, "flash_fwd_kernel", 300, 40) + launched(2, 20, "ampere_gemm", 340, 100)
    events += launched(3, 30, "rms_norm_kernel", 420, 60, stream=8)  # 20 us of it beside the product
    for number in range(3):
        at, begins = 100 + 100 * number, 500 + 20 * number
        events.append(mark(DECODE, at, 80 + number))
        events += launched(10 + number, at + 10, "paged_attention", begins, 8)
        events += launched(20 + number, at + 20, "ampere_gemm", begins + 8, 4)
    return events


def test_classes_tokens_and_gpu_time_are_those_of_the_marks(tmp_path: Path) -> None:
    prefill, decode = profile(tmp_path, *engine()).ask("serving").to_pylist()
    assert (prefill["class"], prefill["steps"], prefill["requests"]) == ("prefill", 1, 2)
    assert (prefill["tokens"], prefill["prefill_tokens"], prefill["context_tokens"]) == (64, 64, 80)
    assert prefill["attention_pairs"] == 2560
    assert prefill["duration_ns"] == 100_000
    assert prefill["gpu_ns"] == 180_000  # 300 to 480 us, though its kernels take 200
    assert prefill["gpu_ns_per_token"] == 180_000 / 64
    assert (prefill["kernels"], prefill["attention_ns"], prefill["matrix_product_ns"]) == (3, 40_000, 100_000)
    assert prefill["tokens_per_second"] == pytest.approx(64 / 100e-6)
    assert (decode["class"], decode["steps"], decode["tokens"]) == ("decode", 3, 2)
    assert (decode["prefill_tokens"], decode["context_tokens"], decode["attention_pairs"]) == (0, 82, 82)
    assert (decode["gpu_ns"], decode["attention_ns"], decode["communication_ns"]) == (12_000, 8_000, 0)
    assert decode["tokens_per_second"] == pytest.approx(2 / 100e-6)  # nothing follows the last one


def test_each_step_has_its_own_row(tmp_path: Path) -> None:
    rows = profile(tmp_path, *engine()).ask("serving", by="step").to_pylist()
    assert [row["class"] for row in rows] == ["prefill", "decode", "decode", "decode"]
    assert [row["start_ns"] for row in rows] == [0, 100_000, 200_000, 300_000]
    assert [row["gpu_ns"] for row in rows] == [180_000, 12_000, 12_000, 12_000]
    assert rows[-1]["tokens_per_second"] is None


def test_the_summary_has_the_engine_and_no_phases_of_a_training(tmp_path: Path) -> None:
    summary = summarise(profile(tmp_path, *engine(), operator("aten::mm", 40, 10), operator("aten::mm", 140, 10)))
    assert [(row.step_class, row.tokens, row.gpu_ns) for row in summary.engine] == [
        ("prefill", 64, 180_000),
        ("decode", 2, 12_000),
    ]
    assert summary.step is not None
    assert not {"data_wait", "backward", "optimizer"} & {part.name for part in summary.step.parts}
    lines = summary_text(summary).splitlines()
    (decode,) = (line.split() for line in lines if line.startswith("  decode "))
    assert decode[:5] == ["decode", "3", "2", "2", "0"]
    assert decode[5:9] == ["12.00", "us", "6.00", "us"]


def test_longer_prefills_are_not_a_finding(tmp_path: Path) -> None:
    events: list[Event] = []
    at = 0
    for number in range(12):
        took = 100 if number % 4 else 900
        events += [mark(DECODE if number % 4 else PREFILL, at, took), operator("aten::mm", at + 10, took - 20)]
        at += took + 5
    trace = profile(tmp_path, *events)
    assert {row["class"] for row in trace.ask("steps").to_pylist()} == {"prefill", "decode"}
    assert "classes" not in {finding.rule for finding in summarise(trace).findings}


def test_marks_in_each_other_complete_each_other(tmp_path: Path) -> None:
    outer, inner = mark("execute_context_0(0)_generation_32(32)", 0, 100), mark("step[DECODE bs=32]", 10, 80)
    (row,) = profile(tmp_path, outer, inner, operator("aten::mm", 30, 10)).ask("serving").to_pylist()
    assert (row["class"], row["requests"], row["context_tokens"], row["gpu_ns"]) == ("decode", 32, None, None)


def test_layers_are_the_outermost_modules_of_which_there_are_several(tmp_path: Path) -> None:
    def module(name: str, start_us: float, duration_us: float) -> Event:
        return event("python_function", f"nn.Module: {name}", start_us, duration_us, 100, 1)

    events = [mark("step[EXTEND bs=1 toks=10]", 0, 500), module("Model_0", 5, 480), module("Embedding_0", 6, 20)]
    events += launched(1, 10, "gather", 20, 5)
    for layer in range(2):
        at = 100 + 100 * layer
        events += [module(f"Block_{layer}", at, 90)]
        for part in range(2):  # two of a class in each layer: not layers themselves
            events += [module(f"Linear_{2 * layer + part}", at + 40 * part, 30)]
            events += launched(10 * layer + part + 2, at + 40 * part + 5, "gemm", at + 40 * part + 10, 20 + layer)
    rows = profile(tmp_path, *events).ask("serving", by="layer").to_pylist()
    assert [(row["layer"], row["gpu_ns"], row["kernels"]) for row in rows] == [
        ("Block_0", 40_000, 2),
        ("Block_1", 42_000, 2),
    ]
    assert rows[0]["gpu_ns_per_token"] == 4_000


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    table = profile(tmp_path, operator("aten::mm", 0, 10), operator("aten::mm", 20, 10)).ask("serving")
    assert "no marks of a serving engine" in table.note
    assert "with_stack" in profile(tmp_path, *engine()).ask("serving", by="layer").note


def test_a_gpu_that_does_not_begin_with_what_was_launched_is_not_idle_by_the_hosts_fault(tmp_path: Path) -> None:
    # As profiles that begin while a GPU is busy: what it computes is not in the file, and what was launched waits.
    events = [
        mark("step[DECODE bs=4]", 0, 50_000),
        *launched(1, 10, "first", 20, 5),
        *launched(2, 40, "late", 48_000, 900),
    ]
    events += [call(60, 47_900, "hipMemcpyWithStream", correlation=3), operator("aten::copy_", 50, 47_950)]
    verdict = summarise(profile(tmp_path, *events)).verdict
    assert verdict.kind == "waiting"
    assert "96 % of the time work is launched and does not begin" in verdict.text


def function(name: str, start_us: float, duration_us: float) -> Event:
    return event("python_function", name, start_us, duration_us, 100, 1)


def busy_host(*, functions: bool) -> list[Event]:
    """Four decodes, 200 us each: a kernel of 40 us, then the scheduler for 80 us and detokenising for 10 us."""
    events: list[Event] = []
    for number in range(4):
        at = 200 * number
        events.append(mark(DECODE, at, 90))
        events += launched(10 + number, at + 10, "ampere_gemm", at + 20, 40)
        if functions:
            events += [
                function("vllm/v1/worker/gpu_model_runner.py(9): execute_model", at, 60),
                function("vllm/v1/core/sched/scheduler.py(7): schedule", at + 100, 80),
                function("vllm/v1/core/block_pool.py(5): get_new_blocks", at + 110, 60),
                function("vllm/v1/engine/detokenizer.py(3): update", at + 185, 10),
            ]
    return events


def test_gaps_between_steps_are_divided_by_what_the_host_does(tmp_path: Path) -> None:
    rows = profile(tmp_path, *busy_host(functions=True)).ask("serving", by="gap").to_pylist()
    # Three gaps of 160 us before four steps. 10 us until the launch, and 10 from it to the kernel.
    assert {(row["where"], row["cause"]): row["idle_ns"] for row in rows} == {
        ("between", "scheduler"): 60_000,
        ("between", None): 37_500,
        ("between", "launch"): 15_000,
        ("between", "detokenising"): 7_500,
    }
    scheduler = rows[0]
    assert (scheduler["function"], scheduler["line"]) == ("get_new_blocks", "vllm/v1/core/block_pool.py:5")
    assert scheduler["function_share"] == pytest.approx(60 / 80)
    assert (scheduler["steps"], scheduler["gaps"], scheduler["class"]) == (4, 0.75, "decode")


def test_without_spans_of_the_host_the_cause_of_a_gap_is_not_known(tmp_path: Path) -> None:
    rows = profile(tmp_path, *busy_host(functions=False)).ask("serving", by="gap").to_pylist()
    assert {row["cause"]: row["idle_ns"] for row in rows} == {None: 112_500, "launch": 7_500}
    assert all(row["function"] is None for row in rows)


def test_a_copy_of_tokens_between_two_steps_does_not_end_the_time_between_them(tmp_path: Path) -> None:
    events = busy_host(functions=True)
    for number in range(4):
        at = 200 * number
        events += [
            call(at + 80, 2, "cudaMemcpyAsync", correlation=90 + number),
            copy("Memcpy DtoH", at + 90, 5, correlation=90 + number),
        ]
    rows = profile(tmp_path, *events).ask("serving", by="gap").to_pylist()
    last = 30_000 / 4  # from the last kernel to the copy behind it: no kernel follows
    assert sum(row["idle_ns"] for row in rows if row["where"] == "between") == 3 * 155_000 / 4
    assert sum(row["idle_ns"] for row in rows if row["where"] == "inside") == last


def test_marks_of_an_engine_count_more_than_those_of_the_profiler(tmp_path: Path) -> None:
    # Two steps of the profiler, each around two of the engine.
    events = [step(number, 400 * number, 390) for number in range(2)]
    for number in range(4):
        name, at = f"decode[bs={3 + number}/8 tok={3 + number} d={3 + number}]", 200 * number
        events += [mark(name, at + 5, 180), *launched(number + 1, at + 20, "gemm", at + 30, 40)]
    rows = profile(tmp_path, *events).ask("serving", by="step").to_pylist()
    assert [(row["class"], row["requests"], row["gpu_ns"]) for row in rows] == [
        ("decode", each, 40_000) for each in (3, 4, 5, 6)
    ]


def test_images_are_steps_without_tokens(tmp_path: Path) -> None:
    events = [mark("execute_diffusion_2_512x512", 0, 900), step(3, 0, 950), *launched(1, 10, "gemm", 20, 600)]
    (row,) = profile(tmp_path, *events).ask("serving").to_pylist()
    assert (row["class"], row["requests"], row["tokens"], row["gpu_ns"]) == ("diffusion", 2, None, 600_000)


def test_a_lone_step_waits_for_its_first_kernel(tmp_path: Path) -> None:
    # The host prepares the input for 600 us of 1 ms; then kernels run for 250.
    events = [step(6, 0, 1000), function("preprocess.py(3): normalize", 5, 590), operator("aten::mm", 600, 20)]
    events += launched(1, 605, "gemm", 610, 250)
    summary = summarise(profile(tmp_path, *events))
    assert summary.verdict.kind == "host-bound"
    assert "the GPU is idle 75 % of the time" in summary.verdict.text
