"""Traces that were recorded and imported long ago still open, and answer every question as they did then."""

from __future__ import annotations

import difflib
import re
import tarfile
from pathlib import Path

import pytest

import strobe
from strobe.gpu.devices import devices
from strobe.trace.definition_rows import location_rows
from tests.golden import answers
from tests.golden.questions import Answer
from tests.golden.recipes import RECIPES

MOST_LINES = 25  # of the difference of one answer


@pytest.fixture(scope="module", params=answers.names())
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Answer]]:
    """Each golden trace in turn: its name, and what it answers now."""
    name = str(request.param)
    return name, answers.ask(name, tmp_path_factory.mktemp(name))


def without_noise(text: str) -> str:
    """Round numbers to 12 digits: the order in which NumPy adds depends on the processor."""
    return re.sub(r"\d+\.\d{12,}(e-?\d+)?", lambda number: f"{float(number[0]):.12g}", text)


def differences(expected: dict[str, str], got: dict[str, str]) -> str:
    """Show what is different, question by question."""
    shown = []
    for question in expected:
        before, after = map(without_noise, (expected[question], got.get(question, "(not asked)\n")))
        if before != after:
            lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "expected", "got", lineterm="", n=0)
            shown.append("\n".join([f"=== {question}", *list(lines)[2 : 2 + MOST_LINES]]))
    return "\n".join(shown)


def test_columns_types_units_values_and_their_order_stay(trace: tuple[str, dict[str, Answer]]) -> None:
    name, got = trace
    expected = answers.expected(name)
    different = differences(
        {question: answer.frozen for question, answer in expected.items()},
        {question: answer.frozen for question, answer in got.items()},
    )
    assert not different, f"{name} answers otherwise than when it was made:\n{different}"


def test_sentences_are_as_reviewed(trace: tuple[str, dict[str, Answer]]) -> None:
    name, got = trace
    expected = answers.expected(name)
    different = differences(
        {question: answer.sentences for question, answer in expected.items()},
        {question: answer.sentences for question, answer in got.items()},
    )
    assert not different, f"{name}: if this wording is meant, python tests/golden/make.py --texts\n{different}"


def test_each_trace_can_be_made_again() -> None:
    assert set(answers.names()) == set(RECIPES)


def test_a_lane_of_which_all_is_folded_belongs_to_its_gpu(tmp_path: Path) -> None:
    """Work that overlaps lies on a second lane of its stream; here no span of it was kept."""
    with tarfile.open(Path(__file__).parent / "traces" / "gpu-folded.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.glob("**/job.json")
    with strobe.open(folder.parent) as opened:
        streams = [each for each in location_rows(opened) if each.kind == "stream"]
        assert [each.span_count > 0 for each in streams] == [True, True, False]
        (gpu,) = devices(opened)
        assert gpu.locations == tuple(each.location for each in streams)
        assert gpu.first_ns == min(each.first_ns for each in streams[:2])
