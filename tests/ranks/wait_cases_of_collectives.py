"""Wait states of collectives computed by hand from their definitions (`wait_case.py`), before there was code.

A comment has the sum of each wait that its times do not show at once.
"""

from tests.ranks.wait_case import (
    Case,
    Communicator,
    Wait,
    around,
    begun,
    call,
    ended,
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

CASES_OF_COLLECTIVES = [
    Case(
        "barrier",
        "Three ranks come one after the other, and leave one after the other.",
        {
            0: mpi_collective(100, 600, "MPI_Barrier"),
            1: mpi_collective(300, 620, "MPI_Barrier"),
            2: mpi_collective(500, 650, "MPI_Barrier"),
        },
        [
            Wait("wait_at_barrier", 0, "MPI_Barrier", 1, 400),  # 500 - 100
            Wait("wait_at_barrier", 1, "MPI_Barrier", 1, 200),  # 500 - 300
            Wait("barrier_completion", 1, "MPI_Barrier", 1, 20),  # 620 - max(600, 500)
            Wait("barrier_completion", 2, "MPI_Barrier", 1, 50),  # 650 - max(600, 500)
        ],
    ),
    Case(
        "barrier_that_a_rank_left_too_early",
        "The clocks are wrong: rank 0 leaves before rank 1 comes.",
        {
            0: mpi_collective(100, 300, "MPI_Barrier"),
            1: mpi_collective(500, 600, "MPI_Barrier"),
        },
        [
            Wait("wait_at_barrier", 0, "MPI_Barrier", 1, 200),  # min(500, 300) - 100
            Wait("barrier_completion", 1, "MPI_Barrier", 1, 100),  # 600 - max(300, min(500, 600))
        ],
        clipped=1,
    ),
    Case(
        "barriers_add_up",
        "Each rank is late once.",
        {
            0: mpi_collective(100, 510, "MPI_Barrier") + mpi_collective(900, 920, "MPI_Barrier"),
            1: mpi_collective(500, 510, "MPI_Barrier") + mpi_collective(600, 930, "MPI_Barrier"),
        },
        [
            Wait("wait_at_barrier", 0, "MPI_Barrier", 1, 400),  # 500 - 100
            Wait("wait_at_barrier", 1, "MPI_Barrier", 1, 300),  # 900 - 600
            Wait("barrier_completion", 1, "MPI_Barrier", 1, 10),  # 930 - max(920, 900)
        ],
    ),
    Case(
        "alltoall_that_a_rank_left_too_early",
        "The clocks are wrong: rank 1 leaves before rank 2 comes.",
        {
            0: mpi_collective(100, 700, "MPI_Alltoall"),
            1: mpi_collective(200, 450, "MPI_Alltoall"),
            2: mpi_collective(500, 690, "MPI_Alltoall"),
        },
        [
            Wait("wait_at_nxn", 0, "MPI_Alltoall", 1, 400),  # 500 - 100
            Wait("wait_at_nxn", 1, "MPI_Alltoall", 1, 250),  # min(500, 450) - 200
            Wait("nxn_completion", 0, "MPI_Alltoall", 1, 200),  # 700 - max(450, min(500, 700))
            Wait("nxn_completion", 2, "MPI_Alltoall", 1, 190),  # 690 - max(450, min(500, 690))
        ],
        clipped=1,
    ),
    Case(
        "allreduce_at_two_places",
        "A solver calls it in dot and in norm.",
        {
            0: around(0, 600, "dot", mpi_collective(100, 510, "MPI_Allreduce"))
            + around(700, 1100, "norm", mpi_collective(800, 1010, "MPI_Allreduce")),
            1: around(0, 600, "dot", mpi_collective(500, 510, "MPI_Allreduce"))
            + around(700, 1100, "norm", mpi_collective(1000, 1010, "MPI_Allreduce")),
        },
        [
            Wait("wait_at_nxn", 0, "MPI_Allreduce", 1, 400, within="dot"),  # 500 - 100
            Wait("wait_at_nxn", 0, "MPI_Allreduce", 1, 200, within="norm"),  # 1000 - 800
        ],
    ),
    Case(
        "late_broadcast",
        "The root is rank 1. Who comes after it does not wait, and nobody waits for the last.",
        {
            0: of_other(100, 460, "MPI_Bcast", 1),
            1: of_root(400, 450, "MPI_Bcast", 1, 4),
            2: of_other(350, 460, "MPI_Bcast", 1),
            3: of_other(900, 920, "MPI_Bcast", 1),
        },
        [
            Wait("late_broadcast", 0, "MPI_Bcast", 1, 300),  # 400 - 100
            Wait("late_broadcast", 2, "MPI_Bcast", 1, 50),  # 400 - 350
        ],
    ),
    Case(
        "broadcast_of_an_early_root",
        "The root comes first and leaves before the others come.",
        {
            0: of_root(100, 120, "MPI_Bcast", 0, 3),
            1: of_other(300, 330, "MPI_Bcast", 0),
            2: of_other(500, 530, "MPI_Bcast", 0),
        },
        [],
    ),
    Case(
        "late_scatter",
        "MPI_Scatter and MPI_Scatterv wait for the root like a broadcast.",
        {
            0: of_other(100, 310, "MPI_Scatter", 2) + of_other(400, 660, "MPI_Scatterv", 2),
            1: of_other(280, 310, "MPI_Scatter", 2) + of_other(500, 660, "MPI_Scatterv", 2),
            2: of_root(300, 320, "MPI_Scatter", 2, 3) + of_root(650, 670, "MPI_Scatterv", 2, 3),
        },
        [
            Wait("late_broadcast", 0, "MPI_Scatter", 1, 200),  # 300 - 100
            Wait("late_broadcast", 1, "MPI_Scatter", 1, 20),  # 300 - 280
            Wait("late_broadcast", 0, "MPI_Scatterv", 1, 250),  # 650 - 400
            Wait("late_broadcast", 1, "MPI_Scatterv", 1, 150),  # 650 - 500
        ],
    ),
    Case(
        "broadcast_that_a_rank_left_too_early",
        "The clocks are wrong: rank 1 has the data before the root comes.",
        {
            0: of_root(600, 700, "MPI_Bcast", 0, 3),
            1: of_other(200, 500, "MPI_Bcast", 0),
            2: of_other(400, 700, "MPI_Bcast", 0),
        },
        [
            Wait("late_broadcast", 1, "MPI_Bcast", 1, 300),  # min(600, 500) - 200
            Wait("late_broadcast", 2, "MPI_Bcast", 1, 200),  # 600 - 400
        ],
        clipped=1,
    ),
    Case(
        "early_reduce",
        "The root waits for the last of the others, who do not wait.",
        {
            0: of_root(100, 700, "MPI_Reduce", 0, 3),
            1: of_other(400, 410, "MPI_Reduce", 0),
            2: of_other(600, 610, "MPI_Reduce", 0),
        },
        [Wait("early_reduce", 0, "MPI_Reduce", 1, 500)],  # 600 - 100
    ),
    Case(
        "reduces_in_a_row",
        "Rank 1 is a reduce ahead of the others: each is matched with its own.",
        {
            0: of_root(500, 560, "MPI_Reduce", 0, 3) + of_root(600, 950, "MPI_Reduce", 0, 3),
            1: of_other(100, 120, "MPI_Reduce", 0) + of_other(130, 150, "MPI_Reduce", 0),
            2: of_other(520, 540, "MPI_Reduce", 0) + of_other(900, 920, "MPI_Reduce", 0),
        },
        [Wait("early_reduce", 0, "MPI_Reduce", 2, 320)],  # (520 - 500) + (900 - 600)
    ),
    Case(
        "gather_of_nothing_from_one",
        "Rank 2 is the last to come, but sends no bytes: the root waits only for rank 1.",
        {
            0: mpi_collective(100, 350, "MPI_Gatherv", 0, sent=8, received=16),
            1: of_other(300, 310, "MPI_Gatherv", 0),
            2: mpi_collective(800, 810, "MPI_Gatherv", 0, sent=0, received=0),
        },
        [Wait("early_reduce", 0, "MPI_Gatherv", 1, 200)],  # 300 - 100
    ),
    Case(
        "gather_of_nothing_from_all_others",
        "Only the root has bytes: it waits for nobody.",
        {
            0: mpi_collective(400, 410, "MPI_Gatherv", 1, sent=0, received=0),
            1: mpi_collective(100, 150, "MPI_Gatherv", 1, sent=8, received=8),
            2: mpi_collective(500, 510, "MPI_Gatherv", 1, sent=0, received=0),
        },
        [],
    ),
    Case(
        "gather_that_the_root_left_too_early",
        "The clocks are wrong: rank 1 comes after the root has its bytes.",
        {
            0: of_root(100, 400, "MPI_Gather", 0, 2),
            1: of_other(500, 510, "MPI_Gather", 0),
        },
        [Wait("early_reduce", 0, "MPI_Gather", 1, 300)],  # min(500, 400) - 100
        clipped=1,
    ),
    Case(
        "reduce_without_a_missing_rank",
        "The root waits for those who are in the trace.",
        {
            0: of_root(100, 500, "MPI_Reduce", 0, 3),
            1: of_other(400, 410, "MPI_Reduce", 0),
        },
        [Wait("early_reduce", 0, "MPI_Reduce", 1, 300, partial=True)],  # 400 - 100
        job_ranks=3,
    ),
    Case(
        "early_scan",
        "A rank waits for those before it in the communicator only.",
        {
            0: mpi_collective(300, 310, "MPI_Scan"),
            1: mpi_collective(100, 350, "MPI_Scan"),
            2: mpi_collective(500, 550, "MPI_Scan"),
            3: mpi_collective(200, 560, "MPI_Scan"),
        },
        [
            Wait("early_scan", 1, "MPI_Scan", 1, 200),  # max(300, 100) - 100
            Wait("early_scan", 3, "MPI_Scan", 1, 300),  # max(300, 100, 500, 200) - 200
        ],
    ),
    Case(
        "scan_of_a_reversed_communicator",
        "Rank 2 of the job is the first of the communicator, and rank 0 the last.",
        {
            0: mpi_collective(200, 460, "MPI_Scan", communicator="back"),
            1: mpi_collective(100, 450, "MPI_Scan", communicator="back"),
            2: mpi_collective(400, 410, "MPI_Scan", communicator="back"),
        },
        [
            Wait("early_scan", 0, "MPI_Scan", 1, 200),  # 400 - 200
            Wait("early_scan", 1, "MPI_Scan", 1, 300),  # 400 - 100
        ],
        {"back": Communicator("back", (2, 1, 0))},
    ),
    Case(
        "scan_that_a_rank_left_too_early",
        "The clocks are wrong: rank 1 has its sum before rank 0 comes.",
        {
            0: mpi_collective(500, 510, "MPI_Scan"),
            1: mpi_collective(100, 300, "MPI_Scan"),
        },
        [Wait("early_scan", 1, "MPI_Scan", 1, 200)],  # min(500, 300) - 100
        clipped=1,
    ),
    Case(
        "communicators_of_one_name",
        "Both halves of the job are called half: each has a barrier of its own.",
        {
            0: mpi_collective(100, 510, "MPI_Barrier", communicator="low"),
            1: mpi_collective(500, 510, "MPI_Barrier", communicator="low"),
            2: mpi_collective(900, 1010, "MPI_Barrier", communicator="high"),
            3: mpi_collective(1000, 1010, "MPI_Barrier", communicator="high"),
        },
        [
            Wait("wait_at_barrier", 0, "MPI_Barrier", 1, 400),  # 500 - 100
            Wait("wait_at_barrier", 2, "MPI_Barrier", 1, 100),  # 1000 - 900
        ],
        {"low": Communicator("half", (0, 1)), "high": Communicator("half", (2, 3))},
    ),
    Case(
        "root_of_a_reversed_communicator",
        "Root 0 is rank 2 of the job.",
        {
            0: of_other(100, 510, "MPI_Bcast", 0, communicator="back") + of_other(520, 530, "MPI_Gather", 0, "back"),
            1: of_other(450, 510, "MPI_Bcast", 0, communicator="back") + of_other(800, 810, "MPI_Gather", 0, "back"),
            2: of_root(500, 520, "MPI_Bcast", 0, 3, communicator="back")
            + of_root(540, 820, "MPI_Gather", 0, 3, "back"),
        },
        [
            Wait("late_broadcast", 0, "MPI_Bcast", 1, 400),  # 500 - 100
            Wait("late_broadcast", 1, "MPI_Bcast", 1, 50),  # 500 - 450
            Wait("early_reduce", 2, "MPI_Gather", 1, 260),  # 800 - 540
        ],
        {"back": Communicator("back", (2, 1, 0))},
    ),
    Case(
        "collectives_of_one_rank",
        "In a communicator of its own a rank waits for nobody.",
        {
            0: mpi_collective(100, 200, "MPI_Barrier", communicator="alone")
            + mpi_collective(300, 500, "MPI_Allreduce", communicator="alone"),
            1: around(0, 600, "compute"),
        },
        [],
        {"alone": Communicator("MPI_COMM_SELF", (0,))},
    ),
    Case(
        "rows_and_columns",
        "A grid of 2 x 3: a broadcast in each row from its first, then a reduction in each column.",
        {
            0: of_root(300, 350, "MPI_Bcast", 0, 3, "row 0")
            + mpi_collective(360, 560, "MPI_Allreduce", communicator="column 0"),
            1: of_other(100, 350, "MPI_Bcast", 0, "row 0")
            + mpi_collective(360, 650, "MPI_Allreduce", communicator="column 1"),
            2: of_other(200, 350, "MPI_Bcast", 0, "row 0")
            + mpi_collective(360, 600, "MPI_Allreduce", communicator="column 2"),
            3: of_root(500, 510, "MPI_Bcast", 0, 3, "row 1")
            + mpi_collective(520, 560, "MPI_Allreduce", communicator="column 0"),
            4: of_other(600, 610, "MPI_Bcast", 0, "row 1")
            + mpi_collective(620, 640, "MPI_Allreduce", communicator="column 1"),
            5: of_other(400, 550, "MPI_Bcast", 0, "row 1")
            + mpi_collective(560, 600, "MPI_Allreduce", communicator="column 2"),
        },
        [
            Wait("late_broadcast", 1, "MPI_Bcast", 1, 200),  # 300 - 100
            Wait("late_broadcast", 2, "MPI_Bcast", 1, 100),  # 300 - 200
            Wait("late_broadcast", 5, "MPI_Bcast", 1, 100),  # 500 - 400; rank 4: 500 < 600
            Wait("wait_at_nxn", 0, "MPI_Allreduce", 1, 160),  # 520 - 360
            Wait("wait_at_nxn", 1, "MPI_Allreduce", 1, 260),  # 620 - 360
            Wait("wait_at_nxn", 2, "MPI_Allreduce", 1, 200),  # 560 - 360
            Wait("nxn_completion", 1, "MPI_Allreduce", 1, 10),  # 650 - max(640, 620)
        ],
        {
            "row 0": Communicator("row", (0, 1, 2)),
            "row 1": Communicator("row", (3, 4, 5)),
            "column 0": Communicator("column", (0, 3)),
            "column 1": Communicator("column", (1, 4)),
            "column 2": Communicator("column", (2, 5)),
        },
    ),
    Case(
        "step_of_a_stencil",
        "Four ranks in a ring exchange with MPI_Waitall, then reduce. Rank 1 is late for everybody.",
        {
            0: mpi_irecv(100, request=1)
            + mpi_isend(120, 1, request=2)
            + call(140, 430, "MPI_Waitall", received_by(3, 1), sent_by(2))
            + mpi_collective(440, 500, "MPI_Allreduce"),
            1: mpi_irecv(400, request=1)
            + mpi_isend(420, 2, request=2)
            + call(440, 450, "MPI_Waitall", received_by(0, 1), sent_by(2))
            + mpi_collective(460, 500, "MPI_Allreduce"),
            2: mpi_irecv(200, request=1)
            + mpi_isend(220, 3, request=2)
            + call(240, 430, "MPI_Waitall", received_by(1, 1), sent_by(2))
            + mpi_collective(440, 510, "MPI_Allreduce"),
            3: mpi_irecv(100, request=1)
            + mpi_isend(120, 0, request=2)
            + call(140, 230, "MPI_Waitall", received_by(2, 1), sent_by(2))
            + mpi_collective(240, 500, "MPI_Allreduce"),
        },
        [
            Wait("late_receiver", 0, "MPI_Waitall", 1, 260),  # 430 > 400, 400 - 140; its message was sent at 120
            Wait("late_sender", 2, "MPI_Waitall", 1, 180),  # 420 - 240
            Wait("late_sender", 3, "MPI_Waitall", 1, 80),  # 220 - 140
            Wait("wait_at_nxn", 0, "MPI_Allreduce", 1, 20),  # 460 - 440
            Wait("wait_at_nxn", 2, "MPI_Allreduce", 1, 20),  # 460 - 440
            Wait("wait_at_nxn", 3, "MPI_Allreduce", 1, 220),  # 460 - 240
            Wait("nxn_completion", 2, "MPI_Allreduce", 1, 10),  # 510 - max(500, 460)
        ],
    ),
    Case(
        "late_collective",
        "Rank 0 waits for a non-blocking reduction that rank 1 has not posted yet.",
        {
            0: call(100, 110, "MPI_Iallreduce", begun(1)) + call(200, 900, "MPI_Wait", ended("allreduce", 1)),
            1: call(600, 610, "MPI_Iallreduce", begun(1)) + call(700, 900, "MPI_Wait", ended("allreduce", 1)),
        },
        [Wait("late_collective", 0, "MPI_Wait", 1, 400)],  # 600 - 200; rank 1: 600 < 700
    ),
    Case(
        "collective_that_ended_too_early",
        "The clocks are wrong: rank 0 ends its wait before rank 2 posts.",
        {
            0: call(100, 110, "MPI_Ialltoall", begun(1)) + call(200, 500, "MPI_Wait", ended("alltoall", 1)),
            1: call(300, 310, "MPI_Ialltoall", begun(1)) + call(400, 700, "MPI_Wait", ended("alltoall", 1)),
            2: call(600, 610, "MPI_Ialltoall", begun(1)) + call(620, 700, "MPI_Wait", ended("alltoall", 1)),
        },
        [
            Wait("late_collective", 0, "MPI_Wait", 1, 300),  # min(600, 500) - 200
            Wait("late_collective", 1, "MPI_Wait", 1, 200),  # 600 - 400
        ],
        clipped=1,
    ),
    Case(
        "collectives_match_as_they_were_posted",
        "Rank 0 completes its second reduction first.",
        {
            0: call(100, 110, "MPI_Iallreduce", begun(1))
            + call(120, 130, "MPI_Iallreduce", begun(2))
            + call(200, 700, "MPI_Wait", ended("allreduce", 2))
            + call(710, 760, "MPI_Wait", ended("allreduce", 1)),
            1: call(400, 410, "MPI_Iallreduce", begun(1))
            + call(650, 660, "MPI_Iallreduce", begun(2))
            + call(670, 680, "MPI_Wait", ended("allreduce", 1))
            + call(690, 700, "MPI_Wait", ended("allreduce", 2)),
        },
        [Wait("late_collective", 0, "MPI_Wait", 1, 450)],  # the second: 650 - 200; the first: 400 < 710
    ),
    Case(
        "collective_around_a_barrier",
        "A non-blocking reduction is under way while all meet in a barrier of the same communicator.",
        {
            0: call(100, 110, "MPI_Iallreduce", begun(1))
            + mpi_collective(200, 600, "MPI_Barrier")
            + call(650, 700, "MPI_Wait", ended("allreduce", 1)),
            1: call(550, 560, "MPI_Iallreduce", begun(1))
            + mpi_collective(580, 600, "MPI_Barrier")
            + call(640, 700, "MPI_Wait", ended("allreduce", 1)),
        },
        [Wait("wait_at_barrier", 0, "MPI_Barrier", 1, 380)],  # 580 - 200
    ),
    Case(
        "late_root_of_a_non_blocking_broadcast",
        "The root posts last, and the others wait for it.",
        {
            0: call(100, 110, "MPI_Ibcast", begun(5))
            + call(150, 700, "MPI_Wait", ended("bcast", 5, root=2, sent=0, received=8)),
            1: call(300, 310, "MPI_Ibcast", begun(6))
            + call(420, 700, "MPI_Wait", ended("bcast", 6, root=2, sent=0, received=8)),
            2: call(500, 510, "MPI_Ibcast", begun(7))
            + call(520, 690, "MPI_Wait", ended("bcast", 7, root=2, sent=24, received=8)),
        },
        [
            Wait("late_collective", 0, "MPI_Wait", 1, 350),  # 500 - 150
            Wait("late_collective", 1, "MPI_Wait", 1, 80),  # 500 - 420
        ],
    ),
    Case(
        "non_blocking_barriers_of_two_communicators",
        "Rank 1 is in both; rank 0 and rank 2 wait for it at different times.",
        {
            0: call(100, 110, "MPI_Ibarrier", begun(1))
            + call(120, 620, "MPI_Wait", ended("barrier", 1, None, 0, 0, "left")),
            1: call(600, 610, "MPI_Ibarrier", begun(1))
            + call(800, 810, "MPI_Ibarrier", begun(2))
            + call(820, 830, "MPI_Wait", ended("barrier", 1, None, 0, 0, "left"))
            + call(840, 850, "MPI_Wait", ended("barrier", 2, None, 0, 0, "right")),
            2: call(100, 110, "MPI_Ibarrier", begun(1))
            + call(300, 820, "MPI_Wait", ended("barrier", 1, None, 0, 0, "right")),
        },
        [
            Wait("late_collective", 0, "MPI_Wait", 1, 480),  # 600 - 120
            Wait("late_collective", 2, "MPI_Wait", 1, 500),  # 800 - 300
        ],
        {"left": Communicator("pair", (0, 1)), "right": Communicator("pair", (1, 2))},
    ),
    Case(
        "program_of_three_ranks",
        "Rank 0 reads and broadcasts, rank 1 computes longest and reports to rank 2, all meet at the end.",
        {
            0: of_root(1000, 1050, "MPI_Bcast", 0, 3)
            + of_root(1100, 1950, "MPI_Reduce", 0, 3)
            + mpi_collective(2000, 3050, "MPI_Barrier"),
            1: of_other(100, 1060, "MPI_Bcast", 0)
            + of_other(1900, 1910, "MPI_Reduce", 0)
            + mpi_send(2200, 2250, 2)
            + mpi_send(2300, 2900, 2)
            + mpi_collective(3000, 3050, "MPI_Barrier"),
            2: of_other(600, 1070, "MPI_Bcast", 0)
            + of_other(1200, 1210, "MPI_Reduce", 0)
            + mpi_recv(1500, 2260, 1)
            + mpi_recv(2800, 2910, 1)
            + mpi_collective(2950, 3080, "MPI_Barrier"),
        },
        [
            Wait("late_broadcast", 1, "MPI_Bcast", 1, 900),  # 1000 - 100
            Wait("late_broadcast", 2, "MPI_Bcast", 1, 400),  # 1000 - 600
            Wait("early_reduce", 0, "MPI_Reduce", 1, 800),  # 1900 - 1100
            Wait("late_sender", 2, "MPI_Recv", 1, 700),  # 2200 - 1500
            Wait("late_receiver", 1, "MPI_Send", 1, 500),  # 2900 > 2800, 2800 - 2300
            Wait("wait_at_barrier", 0, "MPI_Barrier", 1, 1000),  # 3000 - 2000
            Wait("wait_at_barrier", 2, "MPI_Barrier", 1, 50),  # 3000 - 2950
            Wait("barrier_completion", 2, "MPI_Barrier", 1, 30),  # 3080 - max(3050, 3000)
        ],
    ),
]
