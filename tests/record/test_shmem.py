"""Calls of OpenSHMEM under the recorder: waits, counts and bytes against what the PEs of a program saw themselves."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import strobe
from tests.record.test_mpi import Mpi
from tests.record.test_waits import called, together
from tests.record.workshop import Outcome, Workshop

PES, STEPS, LATE_MS = 4, 100, 2
SUM = "shmem_double_sum_to_all"
Key = tuple[str, int, str]  # state, rank, function


class Shmem(Mpi):
    """OpenSHMEM of Debian's Open MPI; that of PyPI is built without."""

    compiler, launcher = "oshcc", "oshrun"

    def __init__(self, workshop: Workshop) -> None:
        found = shutil.which(self.compiler)
        if found is None:
            pytest.skip("no oshcc: apt-get install libopenmpi-dev openmpi-bin")
        self.name, self.workshop, self.home = "openmpi", workshop, Path(found).parents[1]

    def recorded(self, *words: str, **variables: str) -> Outcome:
        """As of MPI. Open MPI 4.1.4 of Debian crashes in shmem_finalize, unless its hooks into malloc are left out."""
        return super().recorded(*words, OMPI_MCA_memory="^patcher", OMPI_MCA_rmaps_base_oversubscribe="1", **variables)


def expected(folder: Path) -> Iterator[tuple[Key, int]]:
    """Yield state, rank, function and wait of each call, by the formulas, written down for this program alone."""
    for (what, _), by_rank in called(folder, PES).items():
        ranks = [rank for rank in range(PES) if by_rank[rank]]
        for calls in zip(*(by_rank[rank] for rank in ranks), strict=True):
            if what in ("barrier", "some", "sum", "collect"):
                kind = "barrier" if what in ("barrier", "some") else "nxn"
                function = {"barrier": "shmem_barrier_all", "some": "shmem_barrier", "sum": SUM}
                for state, at, wait in together(f"wait_at_{kind}", f"{kind}_completion", list(calls)):
                    yield (state, ranks[at], function.get(what, "shmem_fcollect64")), wait
            if what == "broadcast":
                for rank, (enter, leave) in enumerate(calls):
                    yield ("late_broadcast", rank, "shmem_broadcast64"), min(calls[1][0], leave) - enter
    calls_of = called(folder, PES)
    for (enter, leave), (_, held), (_, released) in zip(
        calls_of["lock", 0][3], calls_of["lock", 0][0], calls_of["unlock", 0][0], strict=True
    ):
        yield ("lock_contention", 3, "shmem_set_lock"), min(leave, released) - max(enter, held)


@pytest.mark.parametrize("keep", ["all", "10"])
def test_waits_are_those_that_the_pes_saw(workshop: Workshop, keep: str) -> None:
    """Also those of folded steps."""
    shmem = Shmem(workshop)
    command = shmem.mpirun(PES, shmem.build("pes"), str(STEPS), str(LATE_MS))
    wrong: list[object] = []
    # The program reads its clock outside of the call. On a busy machine it is interrupted in between: then once more.
    for _ in range(4):
        done = shmem.recorded(*command, STROBE_KEEP=keep)
        assert done.returncode == 0, done.stderr
        right, found = Counter[Key](), Counter[Key]()
        for key, wait in expected(workshop.folder):
            right[key] += max(0, wait)
        with strobe.open(done.trace) as trace:
            for row in trace.waits(by="all").to_pylist():
                found[row["state"], row["rank"], row["function"]] += row["wait_ns"] + row["uncertain_ns"]
        allowed = {key: pytest.approx(wait, rel=0.05, abs=STEPS * 50_000) for key, wait in right.items()}
        wrong = [(key, found[key], wait) for key, wait in right.items() if found[key] != allowed[key]]
        assert {state for state, _, _ in found} == {state for state, _, _ in right}
        if not wrong:
            return
        shutil.rmtree(done.trace)
    assert not wrong


def test_accesses_count_from_origin_to_target_as_the_pes_counted_them(workshop: Workshop) -> None:
    """All kinds of accesses; their totals are exact, and a call is named with the place that it comes from."""
    shmem = Shmem(workshop)
    done = shmem.recorded(*shmem.mpirun(PES, shmem.build("pes"), "20", "0"))
    assert (done.returncode, done.stdout.count("of 4 is done")) == (0, PES), done.stderr
    own = Counter[tuple[str, int, int]]()
    calls, moved = own.copy(), own.copy()
    for pe in range(PES):
        for line in (workshop.folder / f"moved-{pe}.txt").read_text().splitlines():
            kind, target, count, size = line.split()
            key = (kind, int(target), pe) if kind == "get" else (kind, pe, int(target))
            calls[key] += int(count)
            moved[key] += int(size)
    with strobe.open(done.trace) as trace:
        pairs = {(row["kind"], row["sender"], row["receiver"]): row for row in trace.messages(by="pair").to_pylist()}
        assert {key: row["messages"] for key, row in pairs.items()} == calls
        assert {key: row["total_bytes"] for key, row in pairs.items()} == moved
        assert trace.messages().note == ""  # the totals have nothing beyond the log
        functions = trace.sql(
            """select r.name as name, count(*)::bigint as n from spans s join regions r on r.region = s.region
            where r.paradigm = 'shmem' group by all"""
        ).to_pylist()
        counts = {row["name"]: row["n"] for row in functions}
        assert counts["shmem_long_wait_until"] == 20
        assert counts["shmem_barrier_all"] == PES * (1 + 9 * 20)
        assert counts["shmem_finalize"] == counts["shmem_malloc"] == PES
        together = {row["function"]: row for row in trace.sql(
            "select function, sum(sent_bytes)::bigint as sent, sum(received_bytes)::bigint as received"
            " from message_totals group by function"
        ).to_pylist()}  # fmt: skip
        assert (together[SUM]["sent"], together[SUM]["received"]) == (16 * 8 * 20, 16 * 8 * 20)
        assert (together["shmem_broadcast64"]["sent"], together["shmem_broadcast64"]["received"]) == (640, 640)
        places = {row["sender_call"] for row in trace.messages(by="call").to_pylist()}
        assert any("shmem_float_p to +1 < accesses (pes.c:" in (place or "") for place in places)
