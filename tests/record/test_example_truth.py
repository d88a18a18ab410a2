"""The example writes down its own steps; what strobe finds from outside must agree with it."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import strobe
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.steps import find_steps
from strobe.steps.training_activities import PARTS
from tests.record.workshop import Workshop

pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "train_cnn.py")
STEPS = 330  # every 300 steps validate and save
STALL_NS = 400_000_000


@dataclass(frozen=True)
class Run:
    """What strobe found, and what the program itself wrote down. Nanoseconds since the trace's zero."""

    found: ProcessSteps
    operator_start_ns: np.ndarray  # of the main thread
    start_ns: np.ndarray
    end_ns: np.ndarray
    wait_ns: np.ndarray
    kinds: tuple[str, ...]
    stalled: set[int]

    def operators_between(self, a_ns: np.ndarray, b_ns: np.ndarray) -> np.ndarray:
        """How many operators of PyTorch start between each pair of times."""
        return np.abs(np.searchsorted(self.operator_start_ns, a_ns) - np.searchsorted(self.operator_start_ns, b_ns))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    workshop = Workshop(tmp_path_factory.mktemp("example"))
    truth_file = workshop.folder / "truth.json"
    # Other programs on the same cores hide a part of every stall: 400 ms are seen on any machine that runs tests.
    done = workshop.recorded(
        EXAMPLE,
        f"--steps={STEPS}",
        "--seed=1",
        f"--truth={truth_file}",
        f"--stall-ms={STALL_NS // 10**6}",
    )
    assert done.returncode == 0, done.stderr
    truth = json.loads(truth_file.read_text())["steps"]
    trace = strobe.open(workshop.trace)
    (found,) = find_steps(trace).processes
    torch = {
        name
        for name, who in zip(*(trace.regions.column(c) for c in ("region", "paradigm")), strict=True)
        if who == "torch"
    }
    main = trace.locations.column("thread_id").index(trace.processes.column("pid")[found.process])
    spans = trace.span_arrays(main)
    return Run(
        found,
        spans["start_ns"][np.isin(spans["region"], list(torch))],
        np.array([step["start_ns"] for step in truth]) - trace.zero_ns,
        np.array([step["end_ns"] for step in truth]) - trace.zero_ns,
        np.array([step["wait_ns"] for step in truth]),
        tuple(step["kind"] for step in truth),
        {number for number, step in enumerate(truth) if step["stalled"]},
    )


def test_every_step_is_found_without_a_marker(run: Run) -> None:
    assert len(run.found) == STEPS
    assert run.found.complete.all()
    assert run.found.confidence == "high"


def test_steps_begin_and_end_within_one_operator_of_the_truth(run: Run) -> None:
    ends = run.found.start_ns + run.found.duration_ns
    assert run.operators_between(run.found.start_ns, run.start_ns).max() <= 1
    assert run.operators_between(ends, run.end_ns).max() <= 1
    # The program reads its clock right before it asks: nearly always within microseconds.
    assert np.median(np.abs(run.found.start_ns - run.start_ns)) < 50_000


def test_kinds_of_steps_are_the_true_ones(run: Run) -> None:
    assert run.found.classes == run.kinds
    assert set(run.kinds) == {"train", "train+validation", "train+checkpoint", "train+validation+checkpoint"}


def test_stalls_of_the_data_set_are_outliers_caused_by_data_wait(run: Run) -> None:
    blamed = {number for number in np.flatnonzero(run.found.outlier) if run.found.cause[number] == "data_wait"}
    assert len(run.stalled) >= STEPS // 37
    # What prefetching hid on a busy machine was no stall of the training: its own clock tells which ones it felt.
    felt = {number for number in run.stalled if run.wait_ns[number] > STALL_NS // 2}
    assert len(felt) >= len(run.stalled) // 2
    assert blamed >= felt
    # A busy machine delays other batches too: then the program itself waited unusually long (or its validation did).
    others = [number for number in blamed - run.stalled if "validation" not in run.kinds[number]]
    assert all(run.wait_ns[number] > 1.5 * np.median(run.wait_ns) for number in others)


def test_the_parts_of_every_step_add_up_and_the_wait_is_the_one_that_the_program_measured(run: Run) -> None:
    assert (run.found.parts_ns.sum(axis=1) == run.found.duration_ns).all()
    plain = np.array([kind == "train" for kind in run.kinds])
    waited = run.found.parts_ns[plain, PARTS.index("data_wait")]
    # next() also frees the batch before, which is no wait of the loader.
    assert np.median(np.abs(waited - run.wait_ns[plain])) < 1_000_000
