"""Wait states of real MPI programs, in detail and folded, against when the ranks themselves entered and left."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import strobe
from strobe.advice.rank import findings
from tests.record.test_mpi import Mpi
from tests.record.workshop import Workshop

pytestmark = pytest.mark.mpi
STEPS = 200
Call = tuple[int, int]  # enter and leave
# Of calls that wait: of others (MPI_Isend) the log has no span.
SLEEPERS = ((0, "Send"), (1, "Recv"), (2, "Allreduce"), (1, "Bcast"), (2, "Reduce"), (0, "Scan"))


def called(folder: Path, ranks: int) -> dict[tuple[str, int], list[list[Call]]]:
    """By what was called and its number in the step: for each rank the calls of all steps, in order."""
    found: dict[tuple[str, int], list[list[Call]]] = {}
    for rank in range(ranks):
        number = Counter[tuple[str, str]]()
        for line in (folder / f"called-{rank}.txt").read_text().splitlines():
            what, step, enter, leave = line.split()
            of = found.setdefault((what, number[what, step]), [[] for _ in range(ranks)])
            number[what, step] += 1
            of[rank].append((int(enter), int(leave)))
    return found


def pairs(folder: Path, ranks: int) -> Iterator[tuple[str, int, int]]:
    """Yield state, rank and wait of each call, by the formulas, written down for this program alone."""
    calls = called(folder, ranks)
    for step in range(STEPS):
        at = {name: [of[step] if len(of) > step else (0, 0) for of in by_rank] for name, by_rank in calls.items()}
        yield "late_sender", 1, min(at["send", 0][0][0], at["recv", 0][1][1]) - at["recv", 0][1][0]
        (enter, leave), received = at["send", 0][0], at["recv", 0][1][0]
        yield "late_receiver", 0, received - enter if leave > received else 0
        yield "late_receiver", 0, at["recv2", 0][1][0] - at["ssend", 0][0][0]
        yield "late_sender", 1, min(at["ssend", 0][0][0], at["recv2", 0][1][1]) - at["recv2", 0][1][0]
        enter, leave = at["waitall", 0][2]
        yield "late_sender", 2, min(max(at["isend", 0][0][0], at["isend", 0][1][0]), leave) - enter
        for number in range(7):
            yield from together("wait_at_barrier", "barrier_completion", at["barrier", number])
        yield from together("wait_at_nxn", "nxn_completion", at["allreduce", 0])
        for rank in range(ranks):
            enter, leave = at["bcast", 0][rank]
            yield "late_broadcast", rank, min(at["bcast", 0][1][0], leave) - enter
            enter, leave = at["scan", 0][rank]
            yield "early_scan", rank, min(max(each for each, _ in at["scan", 0][: rank + 1]), leave) - enter
            enter, leave = at["wait", 1 if rank < 2 else 0][rank]
            yield "late_collective", rank, min(max(each for each, _ in at["iallreduce", 0]), leave) - enter
        enter, leave = at["reduce", 0][0]
        yield "early_reduce", 0, min(max(each for each, _ in at["reduce", 0][1:]), leave) - enter


def together(wait: str, completion: str, calls: list[Call]) -> Iterator[tuple[str, int, int]]:
    """Of a collective in which all need all."""
    last, first = max(enter for enter, _ in calls), min(leave for _, leave in calls)
    for rank, (enter, leave) in enumerate(calls):
        yield wait, rank, min(last, leave) - enter
        yield completion, rank, leave - max(first, min(last, leave))


def waiting_share(folder: Path, ranks: int, waits: Counter[tuple[str, int]]) -> float:
    """The part of their loop that ranks wait for one another, by their own clocks."""
    lasted = 0
    for rank in range(ranks):
        calls = [line.split() for line in (folder / f"called-{rank}.txt").read_text().splitlines()]
        lasted += int(calls[-1][3]) - int(calls[0][2])
    return sum(wait for (state, _), wait in waits.items() if not state.endswith("completion")) / lasted


@pytest.mark.parametrize(
    ("name", "keep", "late_ms"), [("mpich", "all", 2), ("mpich", "10", 4), ("openmpi", "10", 4), ("openmpi", "10", 0)]
)
def test_waits_are_those_that_the_ranks_saw(workshop: Workshop, name: str, keep: str, late_ms: int) -> None:
    mpi, ranks = Mpi(name, workshop), 3
    command = mpi.mpirun(ranks, mpi.build("waits"), str(STEPS), str(late_ms))
    wrong: list[object] = []
    # The program reads its clock outside of the call. On a busy machine it is interrupted in between: then once more.
    for _ in range(4):
        done = mpi.recorded(*command, STROBE_KEEP=keep)
        assert done.returncode == 0, done.stderr
        expected = Counter[tuple[str, int]]()
        for state, rank, wait in pairs(workshop.folder, ranks):
            expected[state, rank] += max(0, wait)
        with strobe.open(done.trace) as trace:
            folded = len(trace.folded) > 0
            rows = trace.waits(by="rank").to_pylist()
            causes = trace.delays(by="cause").to_pylist()
        # 200 steps last 7 s if somebody is late by 4 ms; what lasts less than 5 s is not folded.
        assert folded == (keep == "10") or not late_ms
        found = {(row["state"], row["rank"]): row["wait_ns"] + row["uncertain_ns"] for row in rows}
        right = {key: pytest.approx(wait, rel=0.05, abs=STEPS * 50_000) for key, wait in expected.items()}
        wrong = [(key, found.get(key, 0), wait) for key, wait in right.items() if found.get(key, 0) != wait]
        advice = {each.rule: each.what for each in findings(strobe.open(done.trace))}
        if late_ms:
            share = re.search(r" of a step for one another, ([\d.]+) % of it \(mean of 3 ranks\)", advice["rank.waits"])
            assert share is not None
            assert float(share[1]) / 100 == pytest.approx(waiting_share(workshop.folder, ranks, expected), abs=0.08)
        waited = sum(row["wait_ns"] for row in rows if not row["state"].endswith(("order", "completion")))
        assert sum(row["cost_ns"] + row["unexplained_ns"] for row in causes) == waited
        if late_ms:  # each rank that slept, and the call to which it came late for that
            known = {(row["rank"], (row["cause"] or "").partition(" (")[0]) for row in causes if row["direct_ns"]}
            assert {(rank, f"computation before MPI_{call}") for rank, call in SLEEPERS} <= known
        assert not {state for state, _ in found} - {"wrong_order"} - {state for state, _ in expected}
        if not wrong:
            return
        shutil.rmtree(done.trace)
    assert not wrong
