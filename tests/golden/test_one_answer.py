"""Whoever is asked how many steps there are and how long one takes, the answer is the same."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

import strobe
from strobe.present.summary import summarise
from tests.golden import answers


@pytest.mark.parametrize("name", answers.names())
def test_steps_and_their_mean_are_the_same_for_all_who_divide_them(name: str, tmp_path: Path) -> None:
    with tarfile.open(answers.TRACES / f"{name}.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    trace = strobe.open(tmp_path / f"{name}.strobe")
    rows = trace.ask("steps").to_pylist()
    summary = summarise(trace)
    if summary.step is None:
        assert not rows
        return
    process = min(row["process"] for row in rows)
    own = [row for row in rows if row["process"] == process]
    assert summary.step.count == len(own)
    assert sum(each.count for each in summary.classes) == len(own)
    divided = {
        question: row
        for question in ("step_time", "step_trace", "data_pipeline")
        for row in trace.ask(question).to_pylist()
        if row["process"] == process
    }
    assert len({row["duration_ns"] for row in divided.values()}) == 1
    (counted,) = {row["steps"] for row in divided.values() if "steps" in row}
    # The warm-up does not count, but where another tool's user chose what to record. A profile may have lost the end of
    # its last step.
    imported = bool(trace.info.source)
    enter = [row["duration_ns"] for row in own if (row["class"] != "partial" if imported else row["steady"])]
    assert len(enter) - bool(trace.info.source) <= counted <= len(enter)
    for question, columns in [("step_time", ROLES), ("step_trace", PARTS)]:
        row = divided[question]
        assert sum(row[f"{each}_ns"] for each in columns) == pytest.approx(row["duration_ns"], abs=len(columns))
    if not imported and not summary.gpus:
        # Waiting for data: of all steps, folded or not. Within half a point: an operator of the loader is not waiting.
        waits = sum(row["data_wait_ns"] for row in own if row["steady"]) / sum(enter)
        for answer in (divided.get("data_pipeline", {}).get("wait_share"), divided["step_time"]["data_loader_share"]):
            assert answer is None or answer == pytest.approx(waits, abs=0.005)
        assert divided["step_time"]["duration_ns"] == pytest.approx(sum(enter) / len(enter), abs=1)


ROLES = ("kernel", "memcpy", "memset", "communication", "runtime", "data_loader", "cpu_exec", "other")
PARTS = ("interval", "forward_backward", "tail")
