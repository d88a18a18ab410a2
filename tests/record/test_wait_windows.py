"""Waits for posts, fences, locks, neighbours and in probes of real programs, against the ranks' own clocks."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import strobe
from tests.record.test_mpi import Mpi
from tests.record.test_waits import Call, called
from tests.record.workshop import Workshop

pytestmark = pytest.mark.mpi
STEPS, RANKS, LATE_MS = 120, 4, 8  # 7 s: what lasts less than 5 s is not folded
FUNCTIONS = {
    **{name: f"MPI_Win_{name}" for name in ("fence", "start", "complete", "wait", "lock")},
    "put": "MPI_Put",
    "ring": "MPI_Neighbor_alltoall",
    "one_way": "MPI_Neighbor_allgather",
}
SOURCES = {"ring": (-1, 1), "one_way": (-1,)}  # a rank's neighbours that send to it, counted from it
Key = tuple[str, int, str]  # state, rank, function


def expected(folder: Path) -> Iterator[tuple[Key, int]]:
    """Yield state, rank, function and wait of each call of `windows`, by the formulas, written down for it alone."""
    calls = called(folder, RANKS)
    for step in range(STEPS):

        def of(name: str, rank: int, number: int = 0, step: int = step) -> Call:
            return calls[name, number][rank][step]

        last = max(of("fence", rank)[0] for rank in range(RANKS))
        for rank in range(RANKS):
            enter, leave = of("fence", rank)
            yield ("wait_at_fence", rank, FUNCTIONS["fence"]), min(last, leave) - enter
            for name, offsets in SOURCES.items():
                enter, leave = of(name, rank)
                sources = [of(name, (rank + offset) % RANKS) for offset in offsets]
                awaited = max(each for each, _ in sources)
                yield ("wait_at_nxn", rank, FUNCTIONS[name]), min(awaited, leave) - enter
                first = min(each for _, each in [*sources, (enter, leave)])
                yield ("nxn_completion", rank, FUNCTIONS[name]), leave - max(first, min(awaited, leave))
        posted = of("post", 1)[0]
        for name in ("start", "put", "complete"):
            enter, leave = of(name, 0)
            yield ("late_post", 0, FUNCTIONS[name]), posted - enter if posted <= leave else 0
        (enter, leave), completed = of("wait", 1), of("complete", 0)[0]
        yield ("early_wait", 1, FUNCTIONS["wait"]), min(completed, leave) - enter
        yield ("late_complete", 1, FUNCTIONS["wait"]), min(completed, leave) - max(enter, of("put", 0)[1])
        (enter, leave), held, released = of("lock", 2), of("lock", 0)[1], of("unlock", 0)[1]
        yield ("lock_contention", 2, FUNCTIONS["lock"]), min(leave, released) - max(enter, held)
        for rank, function in ((1, "MPI_Probe"), (2, "MPI_Mprobe")):
            enter, leave = of("probe", rank)
            yield ("late_sender", rank, function), min(of("send", 0, rank - 1)[0], leave) - enter


def of_two_windows(folder: Path) -> Iterator[tuple[Key, int]]:
    """The same of the program with two windows."""
    calls = called(folder, 2)
    for step in range(STEPS):
        at = {what: next(of[step] for of in by_rank if of) for (what, _), by_rank in calls.items()}
        for window in ("first", "second"):
            posted, completed = at[f"post_{window}"][0], at[f"complete_{window}"][0]
            for name in ("start", "put", "complete"):
                enter, leave = at[f"{name}_{window}"]
                if posted <= leave:
                    yield ("late_post", 0, FUNCTIONS[name]), posted - enter
            enter, leave = at[f"wait_{window}"]
            yield ("early_wait", 1, FUNCTIONS["wait"]), min(completed, leave) - enter
            last = at[f"put_{window}"][1]
            yield ("late_complete", 1, FUNCTIONS["wait"]), min(completed, leave) - max(enter, last)


OF_EPOCHS = {"late_post", "early_wait", "late_complete"}
# Ranks, what is expected, states that are found, bytes put from origin to target.
PROGRAMS = {
    "windows": (4, expected, OF_EPOCHS | {"wait_at_fence", "lock_contention"}, {(0, 1): 32, (0, 3): 8}),
    "two_windows": (2, of_two_windows, OF_EPOCHS, {(0, 1): 32 + 8}),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_waits_are_those_that_the_ranks_saw(workshop: Workshop, name: str, program: str) -> None:
    """Also those of folded steps; and puts count from origin to target. Ranks of MPICH sleep between polls."""
    mpi = Mpi(name, workshop)
    ranks, seen, of_program, bytes_each = PROGRAMS[program]
    command = mpi.mpirun(ranks, mpi.build(program, "-Wno-stringop-overread"), str(STEPS), str(LATE_MS))
    wrong: list[object] = []
    # The program reads its clock outside of the call. On a busy machine it is interrupted in between: then once more.
    for _ in range(4):
        done = mpi.recorded(*command, STROBE_KEEP="10")
        assert done.returncode == 0, done.stderr
        right, found = Counter[Key](), Counter[Key]()
        for key, wait in seen(workshop.folder):
            right[key] += max(0, wait)
        with strobe.open(done.trace) as trace:
            for row in trace.waits(by="all").to_pylist():
                found[row["state"], row["rank"], row["function"]] += row["wait_ns"] + row["uncertain_ns"]
            folded = len(trace.folded) > 0
            puts = [row for row in trace.messages(by="pair").to_pylist() if row["kind"] == "put"]
        allowed = {key: pytest.approx(wait, rel=0.05, abs=STEPS * 50_000) for key, wait in right.items()}
        wrong = [(key, found[key], wait) for key, wait in right.items() if found[key] != allowed[key]]
        states = {state for state, _, _ in found}
        assert of_program <= states
        assert folded or program == "two_windows"  # which takes 2 s
        moved = {(row["sender"], row["receiver"]): row["total_bytes"] for row in puts}
        assert moved == {pair: size * STEPS for pair, size in bytes_each.items()}
        if not wrong:
            return
        shutil.rmtree(done.trace)
    assert not wrong
