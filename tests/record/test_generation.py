"""Requests of a program that generates tokens: their latency is what the program itself has measured."""

import json
from pathlib import Path

import pytest

import strobe
from tests.record.workshop import Workshop

pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

MEANING = Path(__file__).parents[1] / "meaning"


@pytest.mark.parametrize("keep", ["all", "10"])
def test_latency_is_what_the_program_has_measured(workshop: Workshop, keep: str) -> None:
    program = str(MEANING / "programs" / "generate_tokens.py")
    variables = {"MEANING_TRUTH": str(workshop.folder), "PYTHONPATH": str(MEANING), "PYTHONDONTWRITEBYTECODE": "1"}
    done = workshop.recorded("--keep", keep, program, env=variables)
    assert done.returncode == 0, done.stderr
    truth = json.loads((workshop.folder / "rank0.json").read_text())
    trace = strobe.open(workshop.trace)
    (row,) = trace.ask("serving", by="latency").to_pylist()
    assert (row["function"], row["requests"], row["output_tokens"]) == ("generate", 6, 30)
    prefill_ns, decode_ns = truth["phases_ns"]["prefill"] / 6, truth["phases_ns"]["decode"] / 6 / 29
    assert row["time_to_first_token_ns"] == pytest.approx(prefill_ns, rel=0.05, abs=200_000)
    assert row["time_per_output_token_ns"] == pytest.approx(decode_ns, rel=0.05, abs=200_000)
    prefill, decode = trace.ask("serving").to_pylist()
    assert (prefill["class"], prefill["steps"], decode["class"], decode["steps"]) == ("prefill", 6, "decode", 174)
