"""Analyses are methods that explain themselves: to `help`, to completion, and to a type checker."""

from __future__ import annotations

import inspect
import pydoc
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Literal, get_type_hints

import pytest

import strobe
from strobe import registry
from strobe.model.plugins import Analysis
from tests.unit.hand_made import make_trace, train_steps

ROOT = Path(__file__).parents[2]
# Names that Trace has for something else: these analyses are asked with `trace.ask`.
TAKEN = {"info", "structure"}
METHODS = sorted({*registry.names("analyses")} - TAKEN)
# What a user writes; each line that ends in `# ERROR` must be refused, all others accepted.
SCRIPT = """
import strobe

trace = strobe.open("train.strobe")
total: int = 0
for answer in (
    trace.kernels(by="shape"),
    trace.operators(by="module", per="rank", search="conv", step="10..20"),
    trace.steps(only="outliers", step_class="train"),
    trace.profile(form="tree", min_share=0.01),
    trace.idle(by="stream", kernel_gap_ns=10_000),
    trace.memory(by="time", points=0),
    trace.critical_path(what_if="nccl*=0.5", rank="each"),
    trace.collectives(rank=3),
    trace.lines(function="step", whole=True),
    trace.gemm(peak_gflops=19500.0),
    trace.ask("info"),
):
    total += len(answer.sort("share").head(10).to_pylist())
table: strobe.Table = trace.overlap()
trace.kernel()  # ERROR
trace.kernels(bye="shape")  # ERROR
trace.kernels(by="shapes")  # ERROR
trace.kernels("shape")  # ERROR
trace.memory(points="many")  # ERROR
trace.profile(form=None)  # ERROR
number: int = trace.overlap()  # ERROR
trace.structure().levels.nosuch  # ERROR
"""


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_the_options_of_its_analysis_as_parameters(name: str) -> None:
    analysis = registry.load("analyses", name)
    assert isinstance(analysis, Analysis)
    own, *parameters = inspect.signature(getattr(strobe.Trace, name)).parameters.values()
    assert own.name == "self"
    assert [(each.name, each.default) for each in parameters] == [
        (option.keyword, option.default) for option in analysis.options
    ]
    assert {each.kind for each in parameters} <= {inspect.Parameter.KEYWORD_ONLY}
    hints = get_type_hints(getattr(strobe.Trace, name))
    assert hints["return"] is strobe.Table
    for option in analysis.options:
        if option.choices:
            assert hints[option.keyword] == Literal[option.choices]


@pytest.mark.parametrize("name", METHODS)
def test_help_has_question_options_columns_and_units(name: str) -> None:
    analysis = registry.load("analyses", name)
    assert isinstance(analysis, Analysis)
    text = " ".join(pydoc.plain(pydoc.render_doc(getattr(strobe.Trace, name))).split())
    assert analysis.question in text
    for option in analysis.options:
        assert f"{option.keyword}: {' '.join(option.help.split())}" in text
    for column in analysis.columns:
        assert f"{column.name} ({column.type}{f', {column.unit}' if column.unit else ''}): {column.meaning}" in text


def test_errors_and_what_must_be_recorded_are_in_the_documentation() -> None:
    text = inspect.getdoc(strobe.Trace.operators) or ""
    assert "UsageError: where `step` or `step_class` are not of steps of this trace" in text
    assert "strobe run --trace +torch" in text
    assert "[by=step]" in (inspect.getdoc(strobe.Trace.step_time) or "")
    assert "[with what_if]" in (inspect.getdoc(strobe.Trace.critical_path) or "")


def test_help_of_the_class_lists_every_analysis_as_a_method() -> None:
    text = pydoc.plain(pydoc.render_doc(strobe.Trace))
    assert [name for name in METHODS if f" {name}(self" not in text] == []


def test_completion_offers_analyses_of_a_trace_and_their_options() -> None:
    trace = make_trace({"main": train_steps(30)})
    assert {*METHODS, *TAKEN} <= set(dir(trace))
    assert str(inspect.signature(trace.idle)).startswith(
        "(*, by: Literal['device', 'stream'] = 'device', kernel_gap_ns"
    )


def test_a_method_asks_its_analysis() -> None:
    trace = make_trace({"main": train_steps(30)})
    assert trace.steps(only="all").rows() == trace.ask("steps").rows()
    with pytest.raises(AttributeError, match="nosuch"):
        trace.nosuch()  # type: ignore[attr-defined]


def test_looking_at_a_method_computes_nothing() -> None:
    code = """
import inspect, sys, strobe
for name in dir(strobe.Trace):
    getattr(strobe.Trace, name)
print(*(name for name in sys.modules if name.startswith("strobe.answers.") and name.count(".") > 2))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_strict_type_checker_accepts_a_users_script_and_refuses_what_is_misspelt(tmp_path: Path) -> None:
    script, cache = tmp_path / "script.py", tmp_path / "cache"
    script.write_text(SCRIPT)
    if (ROOT / ".mypy_cache").exists():  # of `./dev check`, with the same options, which are strict
        shutil.copytree(ROOT / ".mypy_cache", cache)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", cache, script], capture_output=True, text=True, cwd=ROOT
    )
    refused = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}
    expected = {number for number, line in enumerate(SCRIPT.splitlines(), 1) if line.endswith("# ERROR")}
    assert refused == expected, done.stdout + done.stderr


def test_the_package_declares_that_it_has_types() -> None:
    assert (resources.files("strobe") / "py.typed").is_file()
