"""Programs in which there is no step, hardly one, or more than one answer: what is said of them must be sensible."""

import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

import strobe
from strobe.steps.finding.offline_search import steps_of
from strobe.steps.loop_choice.levels import find_levels
from strobe.steps.steps import find_steps
from tests.corpus.judge import judge
from tests.corpus.kineto import stream
from tests.corpus.programs import STROBE, TIMEOUT_S, Program, environment, programs, record

NEGATIVE = {program.name: program for program in programs("negative")}
TORCH_ONLY = {"one_iteration"}


def opened(name: str) -> strobe.Trace:
    """The trace of one of the programs."""
    if name in TORCH_ONLY:
        pytest.importorskip("torch", reason="PyTorch is not installed")
    return strobe.open(record(NEGATIVE[name]).trace)


@pytest.mark.parametrize("name", ["no_loop", "one_pass", "recursion"])
def test_where_nothing_repeats_no_steps_are_told(name: str) -> None:
    trace = opened(name)
    steps = find_steps(trace)
    assert len(steps) == 0
    assert steps.reason.startswith("none: ")
    structure = trace.structure()
    assert structure.confidence == "none"
    assert structure.step is None


@pytest.mark.torch
def test_a_single_update_is_a_single_step() -> None:
    (found,) = find_steps(opened("one_iteration")).processes
    assert len(found) == 1


def test_a_call_that_is_interrupted_is_a_span_and_no_step(tmp_path: Path) -> None:
    trace = tmp_path / "trace.strobe"
    process = subprocess.Popen(
        [STROBE, "run", "--quiet", "-o", str(trace), str(NEGATIVE["endless_call"].path)],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode in (130, -signal.SIGINT)
    found = strobe.open(trace)
    assert len(find_steps(found)) == 0
    functions = found.sql("select name from spans where name like '%settle'").to_pylist()
    assert len(functions) == 1


def test_of_two_equal_loops_every_iteration_of_both_is_a_step() -> None:
    (process,) = judge(record(NEGATIVE["two_equal_loops"])).processes
    assert process.first is not None, process.reason
    assert process.confidence in ("low", "medium")  # nothing but the structure says so


def test_a_loop_that_is_entered_from_two_sides_is_in_the_tree_with_every_iteration() -> None:
    recording = record(NEGATIVE["two_entries"])
    (process,) = judge(recording).processes
    assert process.any_of_five is not None
    assert process.confidence in ("low", "medium")
    # An iteration of its source discharges; one that is entered there does not charge before.
    trace = strobe.open(recording.trace)
    (discharged,) = (row["calls"] for row in trace.profile(step="all").to_pylist() if row["name"] == "discharge")
    (truth,) = recording.truth.values()
    assert len(truth["cycle"]) < discharged
    assert discharged in [level.count for level in trace.structure().levels]


def test_a_million_different_events_are_no_loop() -> None:
    ids = np.random.default_rng(1).permutation(1_000_000)
    times = np.arange(len(ids)) * 1000
    assert find_levels(ids, times) == []
    some = zip(ids[:50_000].tolist(), times[:50_000].tolist(), strict=True)
    found = steps_of(stream([(time, time + 500, str(number)) for number, time in some], "python"))
    assert len(found) == 0
    assert found.confidence == "none"


def test_every_program_is_tested_here() -> None:
    assert set(NEGATIVE) == {
        "endless_call",
        "no_loop",
        "one_iteration",
        "one_pass",
        "recursion",
        "two_entries",
        "two_equal_loops",
    }
    assert all(isinstance(program, Program) for program in NEGATIVE.values())
