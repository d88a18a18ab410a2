"""POP's serialisation and transfer: runs on an ideal network that are computed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

import strobe
from tests.ranks import wait_archives
from tests.ranks.wait_case import (
    Case,
    around,
    call,
    mpi_collective,
    mpi_irecv,
    mpi_isend,
    mpi_recv,
    mpi_send,
    of_other,
    of_root,
    received_by,
    sent_by,
)
from tests.unit.hand_made import HandMadeProcess, make_trace, span

US = 1000
# By name: the events of each rank, how long the run would last on an ideal network, and its longest useful time.
CASES: dict[str, tuple[dict[int, list[list]], int, int]] = {
    # Each computes 100 after the message of the one before it; a transfer takes 10. Ideal: 3 * 100.
    "a chain is serialised": (
        {
            0: [mpi_send(100 * US, 101 * US, 1)],
            1: [mpi_recv(0, 111 * US, 0), mpi_send(211 * US, 212 * US, 2)],
            2: [mpi_recv(0, 222 * US, 1), around(322 * US, 322 * US, "end")],
        },
        300 * US,
        100 * US,
    ),
    # All come at 100 and leave at 150: nothing but transfer.
    "an all-reduce of balanced ranks is transfer": (
        {rank: [mpi_collective(100 * US, 150 * US, "MPI_Allreduce")] for rank in range(3)},
        100 * US,
        100 * US,
    ),
    # The one that comes last differs: 100 + 200 for the slowest of each part. In the run, rank 0 leaves the first
    # barrier at 110, 1 at 120; so they come to the second at 310 and 220, and leave at 320.
    "imbalance that moves is serialised": (
        {
            0: [mpi_collective(50 * US, 110 * US, "MPI_Barrier"), mpi_collective(310 * US, 320 * US, "MPI_Barrier")],
            1: [mpi_collective(100 * US, 120 * US, "MPI_Barrier"), mpi_collective(220 * US, 320 * US, "MPI_Barrier")],
        },
        300 * US,
        250 * US,
    ),
    # The root comes at 80; rank 1 would come at 30 and compute 100 after it; rank 2 comes at 120 and waits for nobody.
    "a broadcast needs its root only": (
        {
            0: [of_root(80 * US, 85 * US, "MPI_Bcast", 0, 3)],
            1: [of_other(30 * US, 95 * US, "MPI_Bcast", 0), around(195 * US, 196 * US, "end")],
            2: [of_other(120 * US, 125 * US, "MPI_Bcast", 0)],
        },
        181 * US,
        131 * US,
    ),
    # Rank 1 posts at 10 and waits from 60: the message of 40 is there. Its computation of 10 + 50 + 40 is all.
    "overlap hides a message": (
        {
            0: [mpi_isend(40 * US, 1, 7), call(60 * US, 70 * US, "MPI_Wait", sent_by(7))],
            1: [
                mpi_irecv(10 * US, 7),
                call(60 * US, 90 * US, "MPI_Wait", received_by(0, 7)),
                around(130 * US, 130 * US, "end"),
            ],
        },
        100 * US,
        100 * US,
    ),
    # A send that waited for its receiver (from 10 to 60) still does; the receiver is done then, too.
    "a send that waited is synchronous": (
        {
            0: [call(10 * US, 70 * US, "MPI_Ssend", mpi_send(0, 0, 1)[1]), around(100 * US, 100 * US, "end")],
            1: [mpi_recv(60 * US, 75 * US, 0)],
        },
        90 * US,
        60 * US,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_runs_last_as_long_as_computed_by_hand(name: str, tmp_path: Path) -> None:
    of_ranks, ideal_ns, useful_ns = CASES[name]
    ranks = {
        rank: [each for events in (around(0, 0, "begin"), *calls) for each in events]
        for rank, calls in of_ranks.items()
    }
    with strobe.open(wait_archives.write(Case(name, "", ranks, []), tmp_path / "run")) as trace:
        table = trace.efficiency()
    rows = {row["factor"]: row for row in table.to_pylist()}
    elapsed = rows["parallel_efficiency"]["elapsed_ns"]
    assert rows["transfer_efficiency"]["value"] == pytest.approx(ideal_ns / elapsed, rel=1e-3)
    assert rows["serialisation_efficiency"]["value"] == pytest.approx(useful_ns / ideal_ns, rel=1e-3)
    product = rows["serialisation_efficiency"]["value"] * rows["transfer_efficiency"]["value"]
    assert product == pytest.approx(rows["communication_efficiency"]["value"], rel=1e-12)


def test_neighbours_need_only_those_that_send_to_them() -> None:
    """Rank 1 comes at 10 and needs rank 0, which comes at 40, not rank 2; then it works 100: 140 of a run of 160."""

    def rank(number: int, enter: int, leave: int, end: int, sources: str) -> HandMadeProcess:
        row = {"collective": "neighbor_allgather", "communicator": "cart", "rank": number, "source_ranks": sources}
        exchange = span(
            "MPI_Neighbor_allgather",
            enter * US,
            leave * US,
            paradigm="mpi",
            role="collective",
            tables={"collective_spans": row},
        )
        spans = [span("work", 0, enter * US), exchange, span("work", leave * US, end * US)]
        return HandMadeProcess({"main": spans}, pid=100 + number, main=number == 0, rank=number)

    ranks = rank(0, 40, 60, 60, "[]"), rank(1, 10, 60, 160, "[0]"), rank(2, 90, 95, 96, "[]")
    table = make_trace(*ranks).efficiency()
    rows = {row["factor"]: row["value"] for row in table.to_pylist()}
    assert rows["transfer_efficiency"] == pytest.approx(140 / 160, rel=1e-3)
