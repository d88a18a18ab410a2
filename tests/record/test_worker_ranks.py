"""Ranks that a launcher tells its workers in the environment, as torchrun does: without MPI and torch.distributed."""

from __future__ import annotations

import os

import pytest

import strobe
from strobe.record.program.worker_rank import worker_rank
from tests.record.workshop import Workshop

# What torchrun does, and a worker that has a child and a fork, as data loaders are.
LAUNCHER = """
import os, subprocess, sys
workers = []
for rank in range(3):
    told = {"RANK": str(rank), "WORLD_SIZE": "3", "LOCAL_RANK": str(rank % 2), "LOCAL_WORLD_SIZE": "2"}
    workers.append(subprocess.Popen([sys.executable, "worker.py"], env={**os.environ, **told}))
sys.exit(max(each.wait() for each in workers))
"""
WORKER = """
import os, subprocess, sys
def train():
    return sum(range(1000))
train()
subprocess.run([sys.executable, "-c", "def load(): pass\\nload()"], check=True)
if os.fork() == 0:
    train()
    os._exit(0)
os.wait()
"""


def test_workers_know_their_ranks_and_their_children_have_none(workshop: Workshop) -> None:
    workshop.write("launcher.py", LAUNCHER)
    workshop.write("worker.py", WORKER)
    assert workshop.recorded("launcher.py").returncode == 0
    with strobe.open(workshop.trace) as trace:
        processes = trace.processes.to_pylist()
    by_pid = {row["pid"]: row for row in processes}
    ranks = [row for row in processes if row["rank"] is not None]
    assert sorted(row["rank"] for row in ranks) == [0, 1, 2]
    launcher = processes[0]
    assert all(row["parent_pid"] == launcher["pid"] for row in ranks)
    others = [row for row in processes if row["rank"] is None]
    assert len(others) == 1 + 3 * 2
    assert all(by_pid[row["parent_pid"]]["rank"] is not None for row in others if row is not launcher)


def test_a_rank_that_is_recorded_alone_knows_its_rank(workshop: Workshop) -> None:
    workshop.write("worker.py", WORKER)
    assert workshop.recorded("worker.py", env={"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}).returncode == 0
    with strobe.open(workshop.trace) as trace:
        assert [row["rank"] for row in trace.processes.to_pylist()] == [1, None, None]


TOLD = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, (3, 4)),
        ({"LOCAL_RANK": None}, None),  # RANK alone may be anybody's
        ({"WORLD_SIZE": None}, None),
        ({"RANK": "4"}, None),
        ({"RANK": "-1"}, None),
        ({"RANK": "three"}, None),
        ({"LOCAL_RANK": "4"}, None),
    ],
)
def test_what_the_environment_says(change: dict[str, str | None], expected: tuple[int, int] | None) -> None:
    told = {name: value for name, value in {**TOLD, **change}.items() if value is not None}
    assert "RANK" not in os.environ
    for main in (True, False):
        assert worker_rank(told, main) == expected
