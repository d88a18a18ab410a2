"""`strobe run --armed` and `strobe job`: several processes begin to record at one common step."""

import subprocess
import sys
import time
from collections.abc import Iterator
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
LAUNCHER = """
import os, subprocess, sys

ranks = int(sys.argv[1])
for rank in range(ranks):
    open(f"at-{rank}", "w").write("0")
running = [
    subprocess.Popen([sys.executable, "rank.py"], env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks)})
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


@pytest.fixture
def armed(tmp_path: Path) -> Iterator[Path]:
    """The folder of a job of ranks that are armed, until the test is over."""
    (tmp_path / "rank.py").write_text(RANK)
    (tmp_path / "launch.py").write_text(LAUNCHER)
    command = [sys.executable, "-m", "strobe", "run", "-q", "--armed", "-o", "t.strobe", "launch.py", str(RANKS)]
    with subprocess.Popen(command, cwd=tmp_path) as process:
        try:
            for _ in range(300):
                lines = [line.split() for line in job(tmp_path).stdout.splitlines()]
                if sum(len(words) == 4 and words[3] == "armed" and words[2] > "0" for words in lines) == RANKS:
                    break
                time.sleep(0.1)
            yield tmp_path
        finally:
            (tmp_path / "stop").touch()
            assert process.wait(60) == 0


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
        assert 10 <= len(later) <= 75


def test_a_rank_that_does_not_answer_is_named(armed: Path) -> None:
    rows = [line.split() for line in job(armed).stdout.splitlines()]
    pid = next(words[1] for words in rows if words[0] == "1")
    stopped = [pid, *(words[1] for words in rows if words[0] in ("0", "2"))]
    subprocess.run(["kill", "-STOP", *stopped], check=True)
    try:
        done = job(armed, "record", "--steps", "5", "--wait", "500ms")
    finally:
        subprocess.run(["kill", "-CONT", *stopped], check=True)
    assert done.returncode == 5
    assert f"rank 1 (pid {pid}) has not answered for 0.5 s" in done.stderr


def test_who_cannot_be_asked_is_named(tmp_path: Path) -> None:
    nothing = job(tmp_path, "record", "--steps", "5")
    assert (nothing.returncode, nothing.stderr) == (
        2,
        "strobe: no job is being recorded in this folder\n  strobe run --armed SCRIPT\n",
    )
    assert job(tmp_path, "record", "--trace", "t.strobe").returncode == 2
