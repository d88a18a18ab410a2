"""Rules about serving engines: what they count is computed on paper, and sound engines get no advice from them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from strobe.advice.rank import judged
from strobe.model.plugins import Finding
from strobe.trace.trace import Trace
from tests.deep.kineto import Event, operator, profile
from tests.deep.test_serving import launched, mark


def steps(*wanted: tuple[str, int, float, float]) -> list[Event]:
    """Steps one after the other: class, tokens, us on the host, us of its kernel; decodes have a token a request."""
    events: list[Event] = []
    at = 0.0
    for number, (kind, tokens, host_us, gpu_us) in enumerate(wanted, 1):
        name = f"step[DECODE bs={tokens}]" if kind == "decode" else f"step[{kind.upper()} bs=4 toks={tokens}]"
        events += [mark(name, at, host_us - 10), *launched(number, at + 5, "ampere_gemm", at + 10, gpu_us)]
        at += host_us
    return events


def found(trace: Trace, rule: str) -> list[Finding]:
    return [each for each in judged(trace)[0] if each.rule == rule]


def test_a_prefill_that_launches_late_names_the_option_of_its_engine(tmp_path: Path) -> None:
    """30 kernels of 5 us, 100 us apart: vLLM compiles a model unless it is told not to; SGLang has no such option."""

    def advice(name: str) -> Finding:
        events = [mark(name, 0, 3100)]
        for number in range(30):
            at = 100 * number
            events += [operator("aten::mm", at, 90), *launched(number + 1, at + 80, "gemm", at + 85, 5)]
        (finding,) = found(profile(tmp_path, *events), "gpu.launch")
        return finding

    assert "enforce_eager" in advice("execute_context_1(888)_generation_0(0)").do
    assert "enforce_eager" not in advice("step[EXTEND bs=1 toks=888]").do


def test_decodes_of_few_tokens_beside_a_full_prefill_are_information(tmp_path: Path) -> None:
    # A token of a decode takes 400 / 4 = 100 us, one of the prefill 2048 / 1024 = 2 us.
    # Decodes have 8 * 400 of 3 200 + 2 048 us of the GPU: 61 %.
    trace = profile(tmp_path, *steps(("extend", 1024, 2100, 2048), *[("decode", 4, 450, 400)] * 8))
    (finding,) = found(trace, "serving.batch")
    assert finding.informative
    assert finding.gain_high_ns == 0
    assert finding.what.startswith("decode steps compute 4 tokens (mean), each in 100.0 us of the GPU")
    assert "a token of prefill steps of 1 024 takes 2.00 us" in finding.what
    assert finding.what.endswith("Decodes take 61 % of the GPU's time in the steps")


def test_decodes_of_many_tokens_are_none(tmp_path: Path) -> None:
    # 400 / 64 = 6.25 us: three times a token of the prefill.
    trace = profile(tmp_path, *steps(("extend", 1024, 2100, 2048), *[("decode", 64, 450, 400)] * 8))
    assert found(trace, "serving.batch") == []


def test_prompts_between_decodes_make_answers_wait(tmp_path: Path) -> None:
    # Two prefills and a mixed step of 2 000 us, decodes of 200: 3 * 1 800 of 6 000 + 1 200 us are 75 %.
    decode, prefill = ("decode", 4, 200.0, 150.0), ("extend", 512, 2000.0, 1800.0)
    mixed = ("mixed", 600, 2000.0, 1800.0)
    trace = profile(tmp_path, *steps(decode, decode, prefill, decode, prefill, decode, mixed, decode, decode))
    (finding,) = found(trace, "serving.stall")
    assert finding.informative
    assert re.search(r"3 steps of 9 .* take 2\.00 ms \(median\), decode steps 200\.0 us", finding.what)
    assert finding.what.endswith("The difference is 75 % of the time of the steps")
    assert {each["duration_ns"] for each in finding.evidence} == {2_000_000}


def test_a_prefill_before_the_first_answer_makes_nobody_wait(tmp_path: Path) -> None:
    decode, prefill = ("decode", 4, 200.0, 150.0), ("extend", 512, 2000.0, 1800.0)
    trace = profile(tmp_path, *steps(prefill, prefill, *[decode] * 8))
    assert found(trace, "serving.stall") == []


def test_mixed_steps_as_long_as_decodes_make_nobody_wait(tmp_path: Path) -> None:
    decode, mixed = ("decode", 4, 200.0, 150.0), ("mixed", 64, 300.0, 250.0)
    assert found(profile(tmp_path, *steps(*[decode, mixed] * 6)), "serving.stall") == []


@pytest.mark.parametrize(("call", "asks"), [("cudaLaunchKernel", True), ("cudaGraphLaunch", False)])
def test_decodes_that_are_bound_by_launches_ask_for_the_graphs_of_the_engine(
    tmp_path: Path, call: str, asks: bool
) -> None:
    # 40 kernels of 2 us in a step, each launched 25 us after the one before; one of the calls may launch a graph.
    events: list[Event] = []
    for step in range(6):
        at = 1100.0 * step
        events += [mark("step[DECODE bs=4]", at, 1050), operator("aten::mm", at + 1, 1000)]
        for kernel in range(40):
            number, start = 1 + 40 * step + kernel, at + 5 + 25 * kernel
            own = launched(number, start, "ampere_gemm", start + 5, 2)
            own[0]["name"] = call if kernel == 0 else "cudaLaunchKernel"
            events += own
    (finding,) = found(profile(tmp_path, *events), "gpu.launch")
    assert ("--disable-cuda-graph" in finding.do) == asks
