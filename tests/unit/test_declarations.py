"""Analyses are what their declarations promise: options, columns, types, units, documentation."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import strobe
from strobe import registry
from strobe.errors import UsageError
from strobe.model.columns import GIVEN, when
from strobe.model.kinds import RECORDED_WITH
from strobe.model.option import Option
from strobe.model.plugins import Analysis
from strobe.model.schema import Column
from tests.unit.declared import is_declared, variants
from tests.unit.hand_made import make_trace, train_steps

NAMES = registry.names("analyses")


def declared(name: str) -> Analysis:
    analysis = registry.load("analyses", name)
    assert isinstance(analysis, Analysis)
    return analysis


@pytest.mark.parametrize("name", NAMES)
def test_a_declaration_is_complete(name: str) -> None:
    analysis = declared(name)
    assert analysis.name == name
    assert analysis.question.endswith("?")
    assert len(analysis.details) > 100, "users read how the columns are computed"
    assert set(analysis.needs) <= set(RECORDED_WITH)
    options = {option.name for option in analysis.options}
    for column in analysis.columns:
        assert column.meaning
        assert {option for option, _ in column.when} <= options
    for chosen in variants(analysis):
        names = [column.name for column in analysis.columns_with(**chosen)]
        assert len(names) == len(set(names)), f"{chosen}: a column is there twice"


@pytest.mark.parametrize("name", NAMES)
def test_what_computes_takes_the_declared_options_and_no_default_of_its_own(name: str) -> None:
    analysis = declared(name)
    _, *options = inspect.signature(registry.function(analysis.run)).parameters.values()
    assert {each.name for each in options} == {option.name for option in analysis.options}
    for each in options:
        assert (each.kind, each.default) == (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty)


def test_columns_may_depend_on_options() -> None:
    options = (Option("by", "", default="run", choices=("run", "step", "line")), Option("text", "", default=""))
    one, step, either, changed = (Column(name, "int64", "", name) for name in ("one", "step", "either", "changed"))
    columns = (
        one,
        *when(step, by="step"),
        *when(either, by=("step", "line")),
        *when(changed, text=GIVEN),
    )
    analysis = Analysis("x", "x?", columns, options=options)

    def names(**chosen: str) -> list[str]:
        return [column.name for column in analysis.columns_with(**chosen)]

    assert names() == ["one"]
    assert names(by="step") == ["one", "step", "either"]
    assert names(by="line", text="a") == ["one", "either", "changed"]


def hand_made() -> strobe.Trace:
    return make_trace({"main": train_steps(30)})


@pytest.mark.parametrize("name", NAMES)
def test_answers_of_a_trace_without_a_gpu_have_the_declared_columns(name: str) -> None:
    trace, analysis = hand_made(), declared(name)
    for chosen in variants(analysis):
        is_declared(trace.ask(name, **chosen), analysis.columns_with(**chosen))


def test_a_choice_that_there_is_not_is_refused() -> None:
    with pytest.raises(UsageError, match="kernels has no 'colour' for 'by'") as caught:
        hand_made().ask("kernels", by="colour")
    assert "collective" in caught.value.do


def test_loading_every_declaration_imports_nothing_that_computes() -> None:
    code = """
import sys
from strobe import registry
for name in registry.names("analyses"):
    registry.load("analyses", name)
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"numpy", "pyarrow", "duckdb"}))
print(*(name for name in sys.modules if name.startswith("strobe.") and name.split(".")[1] not in
    ("analyses", "model", "registry")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_help_of_an_analysis_imports_nothing_that_computes() -> None:
    code = """
import sys
from strobe.cli.main import main
try:
    main(["kernels", "--help"])
except SystemExit:
    print(*{"numpy", "pyarrow", "duckdb"} & set(sys.modules), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "--by" in done.stdout
    assert done.stderr.split() == []


def test_names_are_unique_across_subjects() -> None:
    folder = Path(strobe.__file__).parent / "analyses"
    files = [path.stem for path in folder.glob("*/*.py") if path.stem != "__init__"]
    assert sorted(files) == NAMES
