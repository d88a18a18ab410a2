"""`strobe run --armed` and `strobe job`: several processes begin to record at one common step."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import strobe

# Ranks that take steps together, as trainings do: none is more than one step ahead of another.
RANK = """
import os, sys, time
import strobe

rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
number = 0
while not os.path.exists("stop"):
    strobe.step()
    strobe.counter("number", number)
    time.sleep(0.004)
    number += 1
    open(f"at-{rank}", "w").write(str(number))
    while any(int(open(f"at-{other}").read() or number) < number for other in range(ranks)):
        time.sleep(0.0005)
        if os.path.exists("stop"):
            sys.exit()
"""
# Ranks from the second argument on run on another node: one that shares no page with the others, for strobe.
LAUNCHER = """
import os, subprocess, sys

ranks, here = int(sys.argv[1]), int(sys.argv[2])
for rank in range(ranks):
    open(f"at-{rank}", "w").write("0")
elsewhere = ["unshare", "--uts", "sh", "-c", 'hostname other-node && exec "$@"', "sh"]
running = [
    subprocess.Popen(
        [*(elsewhere if rank >= here else ()), sys.executable, "rank.py"],
        env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks)},
    )
    for rank in range(ranks)
]
for each in running:
    each.wait()
"""
RANKS = 3


def job(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`strobe job WORDS`."""
    command = [sys.executable, "-m", "strobe", "job", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@contextmanager
def running(folder: Path, ranks: int, here: int) -> Iterator[Path]:
    """The folder of a job of ranks that are armed, the first of them on this node, while the block runs."""
    (folder / "rank.py").write_text(RANK)
    (folder / "launch.py").write_text(LAUNCHER)
    words = ("-q", "--armed", "-o", "t.strobe", "launch.py", str(ranks), str(here))
    with subprocess.Popen([sys.executable, "-m", "strobe", "run", *words], cwd=folder) as process:
        try:
            for _ in range(300):
                if sum(row["state"] == "armed" and row["steps"] > "0" for row in rows(folder)) == ranks:
                    break
                time.sleep(0.1)
            yield folder
        finally:
            (folder / "stop").touch()
            assert process.wait(60) == 0


def rows(folder: Path) -> list[dict[str, str]]:
    """What `strobe job` lists, of the processes that are armed and count steps."""
    lines = [line.split() for line in job(folder).stdout.splitlines()]
    return [dict(zip(lines[1], words, strict=True)) for words in lines[2:] if len(words) == len(lines[1])]


@pytest.fixture
def armed(tmp_path: Path) -> Iterator[Path]:
    """The folder of a job of ranks that are armed, until the test is over."""
    with running(tmp_path, RANKS, RANKS) as folder:
        yield folder


@pytest.fixture
def two_nodes(tmp_path: Path) -> Iterator[Path]:
    """The same with the last two of four ranks on another node."""
    if subprocess.run(["unshare", "--uts", "true"], check=False, capture_output=True).returncode:
        pytest.skip("another name of this machine needs root")
    with running(tmp_path, 4, 2) as folder:
        yield folder


def numbers(folder: Path) -> dict[int, list[int]]:
    """The steps that each process recorded, as it counted them itself."""
    query = (
        "select process, cast(value as bigint) as number from metrics where metric = 'number' order by process, number"
    )
    found: dict[int, list[int]] = {}
    for row in strobe.open(folder / "t.strobe").sql(query).to_pylist():
        found.setdefault(row["process"], []).append(row["number"])
    return found


@pytest.mark.every_python
def test_all_ranks_record_the_same_steps(armed: Path) -> None:
    done = job(armed, "record", "--steps", "20")
    assert done.returncode == 0, done.stderr
    begin = int(done.stderr.partition("beginning at step ")[2].partition(",")[0])
    assert f"strobe: {RANKS} of {RANKS} processes record 20 steps" in done.stderr
    # Its counter is 0 after the first call of strobe.step().
    assert list(numbers(armed).values()) == [list(range(begin - 1, begin + 19))] * RANKS


def test_a_job_can_be_asked_again_and_for_a_time(armed: Path) -> None:
    assert job(armed, "record", "--steps", "5").returncode == 0
    done = job(armed, "record", "--for", "300ms")
    assert done.returncode == 0, done.stderr
    for own in numbers(armed).values():
        first, later = own[:5], own[5:]
        assert first == list(range(first[0], first[0] + 5))
        assert later == list(range(later[0], later[0] + len(later)))
        assert later[0] > first[-1]
        assert 1 <= len(later) <= 75  # a step takes 4 ms, or longer where others have the processors


def test_a_rank_that_does_not_answer_is_named(armed: Path) -> None:
    pids = {row["rank"]: row["pid"] for row in rows(armed)}
    pid, stopped = pids["1"], list(pids.values())
    subprocess.run(["kill", "-STOP", *stopped], check=True)
    try:
        done = job(armed, "record", "--steps", "5", "--wait", "500ms")
    finally:
        subprocess.run(["kill", "-CONT", *stopped], check=True)
    assert done.returncode == 5
    assert f"rank 1 (pid {pid}) has not answered for 0.5 s" in done.stderr


def test_ranks_of_two_nodes_record_the_same_steps(two_nodes: Path) -> None:
    assert {row["rank"]: row["node"] == "other-node" for row in rows(two_nodes)} == {
        **dict.fromkeys("01", False),
        **dict.fromkeys("23", True),
    }
    for _ in range(2):
        done = job(two_nodes, "record", "--steps", "20")
        assert done.returncode == 0, done.stderr
        assert "strobe: 4 of 4 processes record 20 steps" in done.stderr
        begin = int(done.stderr.partition("beginning at step ")[2].partition(",")[0])
        assert [own[-20:] for own in numbers(two_nodes).values()] == [list(range(begin - 1, begin + 19))] * 4
    assert [len(own) for own in numbers(two_nodes).values()] == [40] * 4


def test_a_process_that_looked_for_its_node_is_replaced(two_nodes: Path) -> None:
    of_node = [row["pid"] for row in rows(two_nodes) if row["node"] == "other-node"]
    for pid in of_node:  # one of the two looks, and the other takes its place
        subprocess.run(["kill", "-STOP", pid], check=True)
        try:
            time.sleep(1)
            assert [row["pid"] for row in rows(two_nodes) if row["node"] == "other-node"] == of_node
        finally:
            subprocess.run(["kill", "-CONT", pid], check=True)


def test_a_node_that_does_not_answer_is_named_with_its_ranks(two_nodes: Path) -> None:
    pids = [row["pid"] for row in rows(two_nodes) if row["node"] == "other-node"]
    names = ", ".join(f"rank {2 + index} (pid {pid})" for index, pid in enumerate(pids))
    subprocess.run(["kill", "-STOP", *pids], check=True)
    try:
        listed = job(two_nodes, "--wait", "2s")
        assert f"strobe: node other-node has not answered for 2 s: {names}" in listed.stderr
        assert listed.returncode == 0
        assert all(pid not in listed.stdout for pid in pids)
        words = [sys.executable, "-m", "strobe", "job", "record", "--steps", "5", "--wait", "2s"]
        with subprocess.Popen(words, cwd=two_nodes, stderr=subprocess.PIPE, text=True) as asking:
            assert asking.stderr is not None
            assert asking.stderr.readline().startswith("strobe: node other-node has not answered for 2 s: rank 2 (pid")
            assert asking.stderr.readline().startswith("strobe: 2 of 4 processes record 5 steps")
            subprocess.run(["kill", "-CONT", *pids], check=True)  # the others wait for them in each step
            assert asking.wait(60) == 5
    finally:
        subprocess.run(["kill", "-CONT", *pids], check=True)


def test_who_cannot_be_asked_is_named(tmp_path: Path) -> None:
    nothing = job(tmp_path, "record", "--steps", "5")
    assert (nothing.returncode, nothing.stderr) == (
        2,
        "strobe: no job is being recorded in this folder\n  strobe run --armed SCRIPT\n",
    )
    assert job(tmp_path, "record", "--trace", "t.strobe").returncode == 2
