"""A training of which a few iterations are kept in detail: the sums are those of every call that the program made."""

import json
from collections.abc import Mapping
from itertools import pairwise
from statistics import mean

import pytest

import strobe
from strobe.present.summary import summarise
from strobe.present.summary_text import summary_text
from strobe.steps.selection import select
from strobe.sums.path_statistics import path_statistics
from tests.record.workshop import Workshop

pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

STEPS, VALIDATE_EVERY, VALIDATION_BATCHES, SLOW = 400, 25, 3, 310
TRAINING = f"""
import collections, json, sys, time
import torch

counts = collections.Counter()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(6))

    def forward(self, x):
        counts["forward"] += 1
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def load(batch):
    counts["load"] += 1
    return torch.full((32, 64), float(batch % 7))


def train_step(model, optimizer, x):
    begin = time.monotonic_ns()
    counts["train_step"] += 1
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
    counts["inside_ns"] += time.monotonic_ns() - begin


def validate(model):
    counts["validate"] += 1
    with torch.no_grad():
        for batch in range({VALIDATION_BATCHES}):
            model(load(batch))


def main():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range({STEPS}):
        x = load(step)
        begin = time.monotonic_ns()
        train_step(model, optimizer, x)
        counts["around_ns"] += time.monotonic_ns() - begin
        if step % {VALIDATE_EVERY} == {VALIDATE_EVERY - 1}:
            validate(model)
        if step == {SLOW}:
            time.sleep(0.5)


torch.set_num_threads(1)
main()
json.dump(counts, open("counts.json", "w"))
"""


def recorded(workshop: Workshop, name: str, keep: str) -> strobe.Trace:
    workshop.write("program.py", TRAINING)
    path = workshop.folder / f"{name}.strobe"
    workshop.trace = path
    outcome = workshop.recorded("--keep", keep, "program.py")
    assert outcome.returncode == 0, outcome.stderr
    (workshop.folder / "counts.json").rename(workshop.folder / f"{name}.json")
    return strobe.open(path)


def counts_by_path(trace: strobe.Trace) -> Mapping[tuple[str, ...], int]:
    """How often every chain of names below `main` was executed, as spans or in statistics."""
    names = trace.regions.column("name")
    chains: list[tuple[str, ...]] = []
    for _, parent, region, _ in trace.call_paths.rows():
        chains.append((*(chains[parent] if parent is not None else ()), str(names[region])))
    found: dict[tuple[str, ...], int] = {}
    for path, count in trace.sql("select call_path, sum(count)::bigint from totals group by 1").rows():
        chain = chains[path]
        if "main" in chain:
            found[chain] = found.get(chain, 0) + count
    return found


@pytest.fixture(scope="module")
def workshop_of_all(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("kept"))


@pytest.fixture(scope="module")
def kept(workshop_of_all: Workshop) -> strobe.Trace:
    return recorded(workshop_of_all, "kept", "10")


@pytest.fixture(scope="module")
def everything(workshop_of_all: Workshop) -> strobe.Trace:
    return recorded(workshop_of_all, "everything", "all")


def test_every_call_is_counted_as_the_program_counts_it(
    workshop_of_all: Workshop, kept: strobe.Trace, everything: strobe.Trace
) -> None:
    assert kept.span_count < everything.span_count
    assert counts_by_path(kept) == counts_by_path(everything)
    calls = {row["name"]: row["calls"] for row in kept.profile(step="all").to_pylist()}
    counted = json.loads((workshop_of_all.folder / "kept.json").read_text())
    assert [calls[name] for name in ("train_step", "validate", "load", "Net.forward")] == [
        counted[name] for name in ("train_step", "validate", "load", "forward")
    ]
    validations = STEPS // VALIDATE_EVERY
    assert calls["train_step"] == STEPS
    assert calls["validate"] == validations
    assert calls["load"] == calls["Net.forward"] == STEPS + VALIDATION_BATCHES * validations
    assert calls["Optimizer.step#SGD.step"] == STEPS


def test_all_steps_are_there(kept: strobe.Trace, everything: strobe.Trace) -> None:
    steps, others = kept.steps().to_pylist(), everything.steps().to_pylist()
    assert len(steps) == len(others) == STEPS
    classes = [row["class"] for row in steps]
    # The last validation ends with the program: whether it belongs to the last step is not what this is about.
    assert classes[:-1] == [row["class"] for row in others[:-1]]
    unusual = [i for i, name in enumerate(classes[:-1]) if name != "train"]
    # What follows an update belongs to it, until the next step begins as the first one did.
    assert unusual == list(range(VALIDATE_EVERY - 1, STEPS - 1, VALIDATE_EVERY))
    in_detail = [row["step"] for row in steps if row["detail"] == "all"]
    assert 10 <= len(in_detail) < STEPS
    slow = steps[SLOW]
    assert slow["outlier"]
    assert slow["cause"] == "rest"
    assert slow["detail"] != "none", "what is slow is kept"
    for row in steps:
        parts = ("data_wait_ns", "forward_ns", "backward_ns", "optimizer_ns", "validation_ns", "rest_ns")
        assert sum(row[part] for part in parts) == row["duration_ns"]
    for before, after in pairwise(steps):
        assert before["start_ns"] + before["duration_ns"] <= after["start_ns"]


@pytest.mark.parametrize("choice", [{"step": "all"}, {"step": "steady"}, {"step_class": "train+validation"}])
def test_times_add_up(kept: strobe.Trace, choice: dict[str, str]) -> None:
    """Below the spans that last longer than a step, every total is the own time plus the totals of the children."""
    sums = path_statistics(kept, select(kept, **choice))
    names = kept.regions.column("name")
    inside = [0] * len(sums.parent)
    for path, above in enumerate(sums.parent.tolist()):
        if above >= 0:
            inside[above] += int(sums.total_ns[path])
    checked = 0
    for path, region in enumerate(sums.region.tolist()):
        whole = choice == {"step": "all"} or names[region] in ("train_step", "validate", "Net.forward")
        if sums.calls[path] and whole:
            assert sums.total_ns[path] == sums.own_ns[path] + inside[path], names[region]
            checked += 1
    assert checked >= 3
    steps = kept.steps().to_pylist()
    if choice == {"step": "steady"}:
        operators = kept.operators(**choice)
        assert operators.note == ""
        busy = sum(operators.column("self_ns"))
        assert busy <= sum(row["duration_ns"] for row in steps if row["steady"])


def test_a_mean_is_of_all_steps_and_not_of_those_that_were_kept(kept: strobe.Trace) -> None:
    """The one step that sleeps for half a second is in detail, among few dozen others: their mean would be tenfold."""
    (found,) = kept.ask("step_time").to_pylist()
    steady = [row for row in kept.steps().to_pylist() if row["steady"]]
    kept_ns = [row["duration_ns"] for row in steady if row["detail"] != "none"]
    assert found["steps"] == len(steady)
    assert found["duration_ns"] == pytest.approx(sum(row["duration_ns"] for row in steady) / len(steady), abs=1)
    assert mean(kept_ns) > 2 * found["duration_ns"], "no difference would be seen"


def test_times_are_those_that_the_program_measured(workshop_of_all: Workshop, kept: strobe.Trace) -> None:
    """The sum over all steps lies between what the function measured of itself, and what was measured around it."""
    measured = json.loads((workshop_of_all.folder / "kept.json").read_text())
    total = next(row["total_ns"] for row in kept.profile(step="all").to_pylist() if row["name"] == "train_step")
    assert 0.999 * measured["inside_ns"] <= total <= 1.001 * measured["around_ns"]


def test_the_summary_says_what_was_kept(kept: strobe.Trace) -> None:
    in_detail = kept.steps().column("detail").count("all")
    text = summary_text(summarise(kept))
    assert f"kept {in_detail} of {STEPS} steps in detail; statistics for all" in text


def test_what_a_killed_training_had_done_by_then_is_all_there(workshop: Workshop) -> None:
    """Records, statistics and what the rings still held fit together: no step twice, none lost."""
    code = TRAINING.replace(
        f"if step == {SLOW}:", f"if step == {SLOW}: os.kill(os.getpid(), signal.SIGKILL)\n        if step == 0:"
    )
    workshop.write("program.py", code.replace("import collections", "import os, signal, collections"))
    outcome = workshop.recorded("--keep", "10", "program.py")
    assert outcome.returncode == -9
    trace = strobe.open(workshop.trace)
    calls = {row["name"]: row["calls"] for row in trace.profile(step="all").to_pylist()}
    assert calls["train_step"] == calls["Optimizer.step#SGD.step"] == SLOW + 1
    steps = trace.steps().to_pylist()
    assert len([row for row in steps if row["class"] != "partial"]) in (SLOW, SLOW + 1)
    assert [row["step"] for row in steps] == list(range(len(steps)))
    assert {"all", "none"} <= {row["detail"] for row in steps}
