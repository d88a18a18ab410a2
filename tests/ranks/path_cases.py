"""Critical paths computed by hand: imbalance and slack of small MPI programs (`wait_case.py`).

A call that receives a message, or a root that collects, takes what it took from when the last one came. Its own rank,
if it came earlier, costs it nothing more: so it could come as late as the call ended. In a collective in which all
wait for all, what it took when all had come is taken after any of them.

    slack       of a call path on a rank: the length of the run less the longest way through any part of it
    imbalance   max(0, its time in the path - the mean over ranks of its time without waits)
"""

from dataclasses import dataclass

from tests.ranks.wait_case import (
    Event,
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


@dataclass(frozen=True)
class PathCase:
    """A program; by rank and call: ns in the path, ns without waits, slack; and by call its imbalance, where not 0."""

    name: str
    ranks: dict[int, list[Event]]
    rows: dict[tuple[int, str], tuple[int, int, int]]
    imbalance: dict[str, int]


def all_reduce(enter: int, leave: int) -> list[Event]:
    return mpi_collective(enter, leave, "MPI_Allreduce")


CASES = [
    PathCase(
        "a_rank_that_computes_longer",
        {
            0: around(0, 60, "work") + all_reduce(60, 110),
            1: around(0, 100, "work") + all_reduce(100, 110),
        },
        # Both leave at 110, 10 after the last has come. Rank 0 could compute until 100.
        {
            (0, "work"): (0, 60, 40),
            (1, "work"): (100, 100, 0),
            (0, "MPI_Allreduce"): (10, 10, 0),
            (1, "MPI_Allreduce"): (0, 10, 0),
        },
        {"work": 20},  # 100 - (60 + 100) / 2; MPI_Allreduce 10 - (10 + 10) / 2
    ),
    PathCase(
        "imbalance_that_moves",
        {
            0: around(0, 50, "first") + all_reduce(50, 100) + around(100, 180, "second") + all_reduce(180, 190),
            1: around(0, 90, "first") + all_reduce(90, 100) + around(100, 120, "second") + all_reduce(120, 190),
        },
        # 90 + 10 + 80 + 10. Nothing that is early in one part makes up for the other.
        {
            (0, "first"): (0, 50, 40),
            (1, "first"): (90, 90, 0),
            (0, "second"): (80, 80, 0),
            (1, "second"): (0, 20, 60),
            (0, "MPI_Allreduce"): (20, 20, 0),
            (1, "MPI_Allreduce"): (0, 20, 0),
        },
        {"first": 20, "second": 30},  # 90 - 140 / 2, 80 - 100 / 2
    ),
    PathCase(
        "late_sender",
        {
            0: around(0, 80, "before") + mpi_send(80, 90, 1) + around(90, 110, "rest"),
            1: around(0, 30, "before") + mpi_recv(30, 100, 0) + around(100, 150, "after"),
        },
        # 80 + 20 + 50. Rank 1 waits from 30 to 80, and would still be done at 100 if it came then.
        {
            (0, "before"): (80, 80, 0),
            (0, "MPI_Send"): (0, 10, 40),  # 150 - (80 + 10 + 20)
            (0, "rest"): (0, 20, 40),
            (1, "before"): (0, 30, 70),  # 150 - (30 + 50)
            (1, "MPI_Recv"): (20, 20, 0),
            (1, "after"): (50, 50, 0),
        },
        {"before": 25, "MPI_Recv": 10, "after": 25},  # 80 - 110 / 2, 20 - 20 / 2, 50 - 50 / 2
    ),
    PathCase(
        "late_receiver",
        {
            0: around(0, 20, "before") + mpi_send(20, 75, 1) + around(75, 100, "after"),
            1: around(0, 70, "before") + mpi_recv(70, 80, 0) + around(80, 90, "after"),
        },
        # 70 + 5 + 25: the send is over 5 after the receive has begun.
        {
            (0, "before"): (0, 20, 55),  # 100 - (20 + 25)
            (0, "MPI_Send"): (5, 5, 0),
            (0, "after"): (25, 25, 0),
            (1, "before"): (70, 70, 0),
            (1, "MPI_Recv"): (0, 10, 10),  # 100 - (70 + 10 + 10)
            (1, "after"): (0, 10, 10),
        },
        {"before": 25, "MPI_Send": 2.5, "after": 7.5},  # 70 - 90 / 2, 5 - 5 / 2, 25 - 35 / 2
    ),
    PathCase(
        "late_root_of_a_broadcast",
        {
            0: around(0, 10, "before") + of_other(10, 45, "MPI_Bcast", 1) + around(45, 80, "after"),
            1: around(0, 40, "before") + of_root(40, 42, "MPI_Bcast", 1, 3) + around(42, 60, "after"),
            2: around(0, 20, "before") + of_other(20, 44, "MPI_Bcast", 1) + around(44, 50, "after"),
        },
        # 40 + 5 + 35.
        {
            (0, "before"): (0, 10, 35),  # 80 - (10 + 35)
            (0, "MPI_Bcast"): (5, 5, 0),
            (0, "after"): (35, 35, 0),
            (1, "before"): (40, 40, 0),
            (1, "MPI_Bcast"): (0, 2, 20),  # 80 - (40 + 2 + 18)
            (1, "after"): (0, 18, 20),
            (2, "before"): (0, 20, 54),  # 80 - (20 + 6)
            (2, "MPI_Bcast"): (0, 4, 30),  # 80 - (40 + 4 + 6)
            (2, "after"): (0, 6, 30),
        },
        # 40 - 70 / 3, 5 - 11 / 3, 35 - 59 / 3
        {"before": 40 - 70 / 3, "MPI_Bcast": 5 - 11 / 3, "after": 35 - 59 / 3},
    ),
    PathCase(
        "a_root_that_collects",
        {
            0: around(0, 10, "work") + of_root(10, 95, "MPI_Reduce", 0, 3) + around(95, 100, "end"),
            1: around(0, 50, "work") + of_other(50, 60, "MPI_Reduce", 0),
            2: around(0, 90, "work") + of_other(90, 92, "MPI_Reduce", 0),
        },
        # 90 + 5 + 5. Rank 1 only ends at 60: nobody but the last to come is waited for, so it has until 95 to come.
        {
            (0, "work"): (0, 10, 85),
            (0, "MPI_Reduce"): (5, 5, 0),
            (0, "end"): (5, 5, 0),
            (1, "work"): (0, 50, 40),  # 100 - (50 + 10)
            (1, "MPI_Reduce"): (0, 10, 40),
            (2, "work"): (90, 90, 0),
            (2, "MPI_Reduce"): (0, 2, 8),  # 100 - (90 + 2)
        },
        {"work": 40, "end": 5 - 5 / 3},  # 90 - 150 / 3; MPI_Reduce 5 - 17 / 3 < 0
    ),
    PathCase(
        "a_chain_of_three",
        {
            0: around(0, 100, "stage") + mpi_send(100, 104, 1),
            1: around(0, 5, "setup") + mpi_recv(5, 110, 0) + around(110, 210, "stage") + mpi_send(210, 214, 2),
            2: around(0, 8, "setup") + mpi_recv(8, 220, 1) + around(220, 320, "stage"),
        },
        # 100 + 10 + 100 + 10 + 100.
        {
            (0, "stage"): (100, 100, 0),
            (0, "MPI_Send"): (0, 4, 216),  # 320 - 104
            (1, "setup"): (0, 5, 105),  # 320 - (5 + 100 + 10 + 100)
            (1, "MPI_Recv"): (10, 10, 0),
            (1, "stage"): (100, 100, 0),
            (1, "MPI_Send"): (0, 4, 106),  # 320 - 214
            (2, "setup"): (0, 8, 212),  # 320 - (8 + 100)
            (2, "MPI_Recv"): (10, 10, 0),
            (2, "stage"): (100, 100, 0),
        },
        {"stage": 200, "MPI_Recv": 20 - 20 / 3},  # 300 - 300 / 3; all work one after the other
    ),
    PathCase(
        "overlap_hides_a_message",
        {
            0: around(0, 30, "pack")
            + mpi_isend(30, 1, 7)
            + around(40, 100, "inner")
            + call(100, 105, "MPI_Wait", sent_by(7)),
            1: mpi_irecv(0, 7)
            + around(10, 90, "inner")
            + call(90, 95, "MPI_Wait", received_by(0, 7))
            + around(95, 120, "outer"),
        },
        # Rank 1 waits for nobody: 10 + 80 + 5 + 25. Its message was sent at 30; until 95 it has 65 left.
        {
            (0, "pack"): (0, 30, 15),  # 120 - (30 + 10 + 60 + 5)
            (0, "MPI_Isend"): (0, 10, 15),
            (0, "inner"): (0, 60, 15),
            (0, "MPI_Wait"): (0, 5, 15),
            (1, "MPI_Irecv"): (10, 10, 0),
            (1, "inner"): (80, 80, 0),
            (1, "MPI_Wait"): (5, 5, 0),
            (1, "outer"): (25, 25, 0),
        },
        {"MPI_Irecv": 5, "inner": 10, "outer": 12.5},  # 10 - 10 / 2, 80 - 140 / 2, 25 - 25 / 2; MPI_Wait 5 - 10 / 2
    ),
    PathCase(
        "a_balanced_program",
        {rank: around(0, 100, "work") + all_reduce(100, 110) for rank in range(3)},
        {(rank, "work"): (100 * (rank == 0), 100, 0) for rank in range(3)}
        | {(rank, "MPI_Allreduce"): (10 * (rank == 0), 10, 0) for rank in range(3)},
        {},
    ),
    PathCase(
        "nested_calls_have_their_own_time",
        {
            0: around(0, 80, "solve", around(10, 40, "inner")) + all_reduce(80, 100),
            1: around(0, 20, "solve", around(5, 15, "inner")) + all_reduce(20, 100),
        },
        {
            (0, "solve"): (50, 50, 0),
            (0, "inner"): (30, 30, 0),
            (1, "solve"): (0, 10, 60),
            (1, "inner"): (0, 10, 60),
            (0, "MPI_Allreduce"): (20, 20, 0),
            (1, "MPI_Allreduce"): (0, 20, 0),
        },
        {"solve": 20, "inner": 10},  # 50 - 60 / 2, 30 - 40 / 2
    ),
]
