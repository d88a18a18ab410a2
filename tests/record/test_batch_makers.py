"""Trainings that a generator or an iterator feeds, recorded: the time in it is the wait for data, folded or not."""

from __future__ import annotations

import json

import numpy as np
import pytest

import strobe
from strobe.model.kinds import HOST_KINDS
from strobe.steps.batch_makers import making_regions
from strobe.steps.thread_spans import read_streams
from strobe.steps.training_activities import DATA_WAIT, activities
from strobe.trace.folded import ALL
from tests.record.workshop import Workshop

pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

PROGRAM = """
import json, sys, time
import torch

def rows(count):
    for _ in range(count):
        time.sleep(0.001)
        yield torch.randn(32, 64)

def pairs(count):
    for x in rows(count):
        yield x, torch.randn(32, 64).argmax(1)  # operators that are no forward pass

class Pairs:
    def __init__(self, count):
        self.source = range(count).__iter__()
    def __iter__(self):
        return self
    def __next__(self):
        next(self.source)
        time.sleep(0.001)
        return torch.randn(32, 64), torch.randn(32, 64).argmax(1)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(64, 256), torch.nn.Linear(256, 64)
    def layers(self):
        for each in (self.first, torch.relu, self.last):
            yield each
    def forward(self, x):
        for each in self.layers():
            x = each(x)
        return x

class Trainer:
    def __init__(self, source):
        self.source, self.net = source, Net()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01)
    def fetch(self):
        return next(self.source)
    def learn(self, x, y):
        arrived.append(time.monotonic_ns())
        loss = torch.nn.functional.cross_entropy(self.net(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        updated.append(time.monotonic_ns())
    def train_by_fetching(self, count):
        for _ in range(count):
            self.learn(*self.fetch())
    def train(self):
        for x, y in self.source:
            self.learn(x, y)

torch.set_num_threads(1)
arrived, updated, count = [], [], 400
if sys.argv[1] == "generator":
    Trainer(pairs(count)).train()
elif sys.argv[1] == "iterator":
    Trainer(Pairs(count)).train()
else:
    Trainer(pairs(count)).train_by_fetching(count)
# A step waits for its data from the update of the step before on. The first steps load PyTorch's libraries.
waited = sum(until - since for since, until in zip(updated[19:], arrived[20:]))
json.dump(waited / (updated[-1] - updated[19]), open("wait_share.json", "w"))
"""


def wait_share(steps: list[dict]) -> float:
    return sum(row["data_wait_ns"] for row in steps) / sum(row["duration_ns"] for row in steps)


@pytest.mark.parametrize(
    ("feed", "maker", "keep"),
    [
        ("generator", "pairs", "all"),
        ("generator", "pairs", "10"),
        ("iterator", "Pairs.__next__", "10"),
        ("next", "pairs", "10"),
    ],
)
def test_the_time_in_it_is_the_wait_for_data(workshop: Workshop, feed: str, maker: str, keep: str) -> None:
    workshop.write("program.py", PROGRAM)
    assert workshop.recorded("--keep", keep, "program.py", feed).returncode == 0
    waited_share = json.loads((workshop.folder / "wait_share.json").read_text())
    with strobe.open(workshop.trace) as trace:
        names = trace.regions.column("name")
        assert [names[region] for region in np.flatnonzero(making_regions(trace)).tolist()] == [maker]
        steps = trace.steps().to_pylist()
        assert abs(len(steps) - 400) <= 1
        # Up to the first call of a module a batch is waited for: 10 us of these steps, 40 on a busy machine.
        assert wait_share(steps[20:]) == pytest.approx(waited_share, abs=0.08)
        (found,) = trace.step_time().to_pylist()
        steady = {row["step"]: row["duration_ns"] for row in steps if row["steady"]}
        parts = [row for row in trace.breakdown(by="step").to_pylist() if row["step"] in steady]
        waited = sum(row["data_wait_ns"] for row in parts if row["part"] == "data_wait") / sum(steady.values())
        assert found["data_loader_share"] == pytest.approx(waited, abs=0.08)
        if keep == "all":
            return
        # What the recorder found while the program ran is what the reader finds in the spans that it kept.
        records, cells = trace.iterations(0), trace.iteration_cells(0)
        assert cells is not None
        waiting_ns = cells[HOST_KINDS.index("data_wait")]  # of the first part
        assert np.count_nonzero(records.detail != ALL) > 300
        ((_, stream),) = read_streams(trace)
        acts = activities(stream)
        waits = acts.part == DATA_WAIT
        # The last step has the fetch that finds nothing, too. In the first ones it may not be known who makes batches.
        kept = np.flatnonzero(records.detail[:-1] == ALL)
        kept = kept[kept > 64]
        assert len(kept) >= 2
        for row in kept.tolist():
            begin = records.start_ns[row]
            inside = waits & (acts.start_ns >= begin) & (acts.start_ns < begin + records.duration_ns[row])
            assert acts.end_ns[inside].tolist() == [begin + waiting_ns[row]]


def test_without_training_nothing_changes(workshop: Workshop) -> None:
    """A generator that feeds a simulation is a function like any other."""
    code = """
    import numpy, time
    def fields(count):
        for n in range(count):
            time.sleep(0.002)
            yield numpy.full((20, 20), n)
    def advance(field): return (field @ field).sum()
    def main():
        for field in fields(300): advance(field)
    main()
    """
    workshop.write("program.py", code)
    assert workshop.recorded("program.py").returncode == 0
    with strobe.open(workshop.trace) as trace:
        assert not making_regions(trace).any()
        assert len(trace.steps()) > 200
        assert not any(row["data_wait_ns"] for row in trace.steps().to_pylist())
