"""`strobe run --keep`: most iterations become statistics; spans and statistics together are all that ran."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import strobe
from strobe._native import ProcessReader
from strobe.steps.finding.recorded_steps import searched_stretches, with_records
from strobe.steps.steps import find_steps
from strobe.steps.thread_spans import read_streams
from tests.record.workshop import Workshop

pytest.importorskip("torch")

# A training that counts what it calls, and takes the times of its steps itself.
PROGRAM = """
import json, sys, time
import torch
from torch.utils.data import DataLoader, Dataset

calls = {"checkpoint": 0, "validate": 0, "__getitem__": 0, "steps": 0}
steps = int(sys.argv[1])

class Samples(Dataset):
    def __len__(self):
        return steps * 4
    def __getitem__(self, index):
        calls["__getitem__"] += 1
        if index % 200 == 102:
            time.sleep(0.15)
        return torch.full((8,), float(index % 5)), index % 3

def checkpoint():
    calls["checkpoint"] += 1
    time.sleep(0.004)

def validate(model):
    calls["validate"] += 1
    with torch.no_grad():
        for _ in range(20):
            model(torch.ones(4, 8))
    time.sleep(0.002)

def train():
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    begun = []
    asked = time.monotonic_ns()
    for inputs, labels in DataLoader(Samples(), batch_size=4):
        begun.append((asked, time.monotonic_ns()))
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        calls["steps"] += 1
        if calls["steps"] % 60 == 0:
            checkpoint()
        if calls["steps"] % 45 == 0:
            validate(model)
        asked = time.monotonic_ns()
    return begun

json.dump({"begun": train(), "calls": calls}, open("truth.json", "w"))
"""
STEPS = 400


class Recorded:
    """One recording of the training, read natively, beside what the training says itself."""

    def __init__(self, folder: Path, keep: str) -> None:
        workshop = Workshop(folder)
        workshop.write("program.py", PROGRAM)
        assert workshop.recorded("program.py", str(STEPS), env={"STROBE_KEEP": keep}).visible == ("", "", 0)
        self.truth = json.loads((folder / "truth.json").read_text())
        (self.blocks,) = workshop.trace.glob("*.blocks")
        self.reader = ProcessReader(str(self.blocks), None)
        self.names = {number: name for number, name, *_ in self.reader.regions()}
        self.iterations = self.reader.iterations()

    def executions(self) -> Counter[str]:
        """How often every region ran: spans and statistics together."""
        region = self.reader.call_paths()["region"]
        found: Counter[str] = Counter()
        for location in self.reader.locations():
            for path in self.reader.spans(location["id"], -(2**62), 2**62)["call_path"].tolist():
                found[self.names[int(region[path])]] += 1
        folded = self.reader.statistics()
        for path, count in zip(folded["call_path"].tolist(), folded["count"].tolist(), strict=True):
            found[self.names[int(region[path])]] += count
        return found

    def of_function(self, name: str) -> int:
        """Executions of the program's function of this name, whatever its module and class are."""
        return sum(n for region, n in self.executions().items() if region.split(".")[-1].split(":")[-1] == name)

    def extras(self, row: int) -> set[str]:
        """What an iteration does beyond the usual, by the last words of the names."""
        of_class = self.reader.classes()[int(self.iterations["class_id"][row])]
        return {self.names[region].split(".")[-1] for region in of_class if region}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("kept"), "10")


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("all"), "all")


def test_nothing_that_ran_is_missing(kept: Recorded, everything: Recorded) -> None:
    for name, calls in kept.truth["calls"].items():
        if name != "steps":
            assert kept.of_function(name) == calls, name
    torch = {name for name in everything.executions() if "::" in name or name.startswith("Optimizer.")}
    assert len(torch) > 10
    assert {name: kept.executions()[name] for name in torch} == {name: everything.executions()[name] for name in torch}
    assert kept.executions()["Optimizer.step#SGD.step"] == STEPS
    assert int(kept.reader.statistics()["count"].sum()) > kept.executions().total() / 2


def test_the_loop_is_accepted_early(kept: Recorded) -> None:
    (loop,) = kept.reader.loops()
    assert loop["kind"] == "optimizer"
    assert loop["accepted_iteration"] <= 15
    assert len(kept.iterations["loop"]) == STEPS - loop["accepted_iteration"]


def test_iterations_lie_where_the_program_says(kept: Recorded) -> None:
    """Each begins after the body of the step before, and before its own batch has come; they follow without gaps."""
    first = STEPS - len(kept.iterations["loop"])
    start = kept.iterations["start_ns"]
    for step, begun_ns in enumerate(start.tolist(), first):
        asked, came = kept.truth["begun"][step]
        assert asked - 2_000_000 < begun_ns <= came
    assert np.array_equal(start[1:], (start + kept.iterations["duration_ns"])[:-1])
    parts = sum(
        kept.iterations[f"{part}_ns"]
        for part in ("data_wait", "forward", "backward", "optimizer", "validation", "rest")
    )
    assert np.array_equal(parts, kept.iterations["duration_ns"])


def test_stalls_stay_in_detail(kept: Recorded) -> None:
    first = STEPS - len(kept.iterations["loop"])
    stalled = [step - first for step in range(first, STEPS) if step % 50 == 25]
    assert len(stalled) >= 7
    for row in stalled:
        assert kept.iterations["data_wait_ns"][row] > 100_000_000
        assert kept.iterations["detail"][row] > 0


def test_what_some_iterations_do_makes_their_class(kept: Recorded) -> None:
    first = STEPS - len(kept.iterations["loop"]) + 1
    for row in range(len(kept.iterations["loop"])):
        step = row + first
        assert ("checkpoint" in kept.extras(row)) == (step % 60 == 0), step
        assert ("validate" in kept.extras(row)) == (step % 45 == 0), step


def test_the_trace_is_smaller(kept: Recorded, everything: Recorded) -> None:
    assert len(everything.iterations["loop"]) == 0
    assert len(everything.reader.statistics()["count"]) == 0
    # On a busy machine many iterations are slow, and kept for it.
    assert kept.blocks.stat().st_size < everything.blocks.stat().st_size * 0.8


def test_graph_alone_keeps_no_iteration(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    workshop.write("program.py", PROGRAM)
    assert workshop.recorded("--trace", "graph", "program.py", "60").visible == ("", "", 0)
    (blocks,) = workshop.trace.glob("*.blocks")
    reader = ProcessReader(str(blocks), None)
    assert not reader.iterations()["detail"].any()
    assert reader.graph(0) is not None
    assert int(reader.statistics()["count"].sum()) > 1000


def test_a_number_or_all(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    workshop.write("program.py", "print(1)")
    refused = workshop.recorded("--keep", "some", "program.py")
    assert refused.returncode == 2
    assert "'some' is not a number of iterations" in refused.stderr


def test_steps_are_the_same_where_spans_of_recorded_iterations_are_not_read(kept: Recorded) -> None:
    trace = strobe.open(kept.blocks.parent)
    whole = list(read_streams(trace))
    expected = [with_records(trace, stream, process) for process, stream in whole]
    found = find_steps(trace).processes
    assert [len(each) for each in found] == [len(each) for each in expected] != []
    for one, other in zip(found, expected, strict=True):
        assert (one.classes, one.cause, one.loops) == (other.classes, other.cause, other.loops)
        for name in ("start_ns", "duration_ns", "parts_ns", "complete", "outlier", "warm_up"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
    read = sum(len(stream) for _, stream in read_streams(trace, searched_stretches))
    assert read < 0.2 * sum(len(stream) for _, stream in whole)
