"""More delay costs computed by hand, set aside until the code was written."""

from tests.ranks.delay_case import BARRIER, INIT, Delay, DelayCase, Waited, mpi_ssend
from tests.ranks.wait_case import (
    Communicator,
    around,
    call,
    mpi_collective,
    mpi_irecv,
    mpi_recv,
    mpi_send,
    of_other,
    of_root,
    received_by,
)

LOAD, SOLVE, RECV, SEND = ("load",), ("solve",), ("MPI_Recv",), ("MPI_Send",)
LATE = "late_sender"

DELAY_CASES_ASIDE = [
    DelayCase(
        "barrier_left_at_different_times",
        "Rank 1 leaves the barrier that opens the interval 50 ns after rank 0: that is a cause, too.",
        {
            0: mpi_collective(0, 10, "MPI_Barrier") + around(10, 90, "load") + mpi_recv(90, 190, 1),
            1: mpi_collective(0, 60, "MPI_Barrier") + around(60, 160, "load") + mpi_send(160, 180, 0),
        },
        # Completion: rank 1: 60 - max(min(10, 60), min(max(0, 0), 60)) = 60 - 10 = 50; rank 0: 10 - 10 = 0.
        # w = 160 - 90 = 70. T_1: MPI_Barrier 50, load 100. T_0: load 80. D: MPI_Barrier 50, load 20; sum 70. s = 1.
        [Waited(0, 90, RECV, LATE, 1, 70, direct_ns=70)],
        [Delay(1, ("MPI_Barrier",), 0, LATE, 50), Delay(1, LOAD, 0, LATE, 20)],
    ),
    DelayCase(
        "all_below_main",
        "The time of main itself counts, outside of what it calls.",
        {
            0: around(
                0,
                700,
                "main",
                INIT,
                around(30, 330, "load"),
                around(380, 580, "solve", around(400, 500, "inner")),
                mpi_send(610, 640, 1),
            ),
            1: around(
                0,
                700,
                "main",
                INIT,
                around(20, 120, "load"),
                around(130, 230, "solve", around(140, 190, "inner")),
                mpi_recv(240, 650, 0),
            ),
        },
        # w = 610 - 240 = 370.
        # T_0: main (30 - 10) + (380 - 330) + (610 - 580) = 100, load 300, solve 200 - 100 = 100, inner 100.
        # T_1: main (20 - 10) + (130 - 120) + (240 - 230) = 30, load 100, solve 100 - 50 = 50, inner 50.
        # D: main 70, load 200, solve 50, inner 50; sum 370. s = 1.
        [Waited(1, 240, ("main", "MPI_Recv"), LATE, 0, 370, direct_ns=370)],
        [
            Delay(0, ("main",), 1, LATE, 70),
            Delay(0, ("main", "load"), 1, LATE, 200),
            Delay(0, ("main", "solve"), 1, LATE, 50),
            Delay(0, ("main", "solve", "inner"), 1, LATE, 50),
        ],
    ),
    DelayCase(
        "nothing_explains_the_wait",
        "Rank 1 sends at once after a broadcast that it took late: no path took longer than on rank 0.",
        {
            0: BARRIER
            + around(10, 110, "load")
            + of_root(110, 120, "MPI_Bcast", 0, 2)
            + around(120, 220, "solve")
            + mpi_recv(220, 530, 1),
            1: BARRIER + around(10, 500, "load") + of_other(500, 510, "MPI_Bcast", 0) + mpi_send(510, 520, 0),
        },
        # w = 510 - 220 = 290, since the broadcast (of which both have 10 or both nothing).
        # T_1: nothing. T_0: solve 100. D = 0, W = 0: s = 0. Unexplained 290.
        [Waited(0, 220, RECV, LATE, 1, 290, unexplained_ns=290)],
        [],
    ),
    DelayCase(
        "unexplained_wait_that_propagates",
        "The root took the reduction long after the others had left it; rank 1 waits for it, rank 2 for rank 1.",
        {
            0: BARRIER
            + around(10, 500, "load")
            + of_root(500, 510, "MPI_Reduce", 0, 3)
            + around(510, 810, "solve")
            + mpi_send(810, 830, 1),
            1: BARRIER
            + around(10, 50, "load")
            + of_other(50, 60, "MPI_Reduce", 0)
            + around(60, 120, "solve")
            + mpi_recv(120, 850, 0)
            + mpi_send(850, 860, 2),
            2: BARRIER + of_other(10, 20, "MPI_Reduce", 0) + around(20, 80, "solve") + mpi_recv(80, 870, 1),
        },
        # The root: max(50, 10) < 500, no wait.
        # Rank 2: w = 850 - 80 = 770, since the barrier (neither is the root of the reduction).
        #   T_1: load 40, MPI_Reduce 10, solve 60, MPI_Recv 730 - 690 = 40. T_2: MPI_Reduce 10, solve 60.
        #   D: load 40, MPI_Recv 40; sum 80. W = 690. s = 770 / 770 = 1. Direct 80, indirect 690.
        #   Rank 1's wait inherits 690.
        # Rank 1: w = 810 - 120 = 690, since the reduction (of which both have 10 or both nothing).
        #   T_0: solve 300. T_1: solve 60. D: solve 240. s = min(690 / 240, 1) = 1. Direct 240, unexplained 450.
        #   K = 690: long 690 / 240 * 240 = 690.
        # Costs: 80 + 240 + 690 = 1010, unexplained 450: 1460 = 770 + 690.
        [
            Waited(1, 120, RECV, LATE, 0, 690, direct_ns=240, unexplained_ns=450, carried_ns=690),
            Waited(2, 80, RECV, LATE, 1, 770, direct_ns=80, indirect_ns=690),
        ],
        [
            Delay(0, SOLVE, 1, LATE, 240, long_term_ns=690),
            Delay(1, LOAD, 2, LATE, 40),
            Delay(1, RECV, 2, LATE, 40, 690),
        ],
    ),
    DelayCase(
        "late_receiver_of_two_paths",
        "The sender loads longer, the receiver solves and writes: these two are the causes.",
        {
            0: INIT + around(10, 310, "load") + mpi_ssend(310, 720, 1),
            1: INIT
            + around(10, 110, "load")
            + around(110, 410, "solve")
            + around(410, 610, "write")
            + mpi_recv(610, 730, 0),
        },
        # w = 610 - 310 = 300 as 720 > 610. T_1: load 100, solve 300, write 200. T_0: load 300.
        # D: solve 300, write 200; sum 500. s = 300 / 500 = 3/5: solve 180, write 120.
        [Waited(0, 310, ("MPI_Ssend",), "late_receiver", 1, 300, direct_ns=300)],
        [Delay(1, SOLVE, 0, "late_receiver", 180), Delay(1, ("write",), 0, "late_receiver", 120)],
    ),
    DelayCase(
        "wait_at_a_barrier_propagates",
        "Rank 1 waits at a barrier for rank 0 and is then late for rank 2, which was not in it.",
        {
            0: BARRIER + around(10, 510, "load") + mpi_collective(510, 530, "MPI_Barrier", communicator="pair"),
            1: BARRIER
            + around(10, 110, "load")
            + mpi_collective(110, 530, "MPI_Barrier", communicator="pair")
            + mpi_send(530, 550, 2),
            2: BARRIER + around(10, 110, "load") + mpi_recv(110, 560, 1),
        },
        # Rank 2: w = 530 - 110 = 420, since the barrier of all. T_1: load 100, MPI_Barrier 420 - 400 = 20.
        #   T_2: load 100. D: MPI_Barrier 20. W = 400. s = 420 / 420 = 1. Rank 1's wait inherits 400.
        # Rank 1: w = 510 - 110 = 400. D: load 500 - 100 = 400. s = 1. K = 400: long 400.
        [
            Waited(1, 110, ("MPI_Barrier",), "wait_at_barrier", 0, 400, direct_ns=400, carried_ns=400),
            Waited(2, 110, RECV, LATE, 1, 420, direct_ns=20, indirect_ns=400),
        ],
        [
            Delay(0, LOAD, 1, "wait_at_barrier", 400, long_term_ns=400),
            Delay(1, ("MPI_Barrier",), 2, LATE, 20, 400),
        ],
        {"pair": Communicator("pair", (0, 1))},
    ),
    DelayCase(
        "chain_of_broadcasts",
        "Rank 1 waits for the root of one communicator and is the root of the next.",
        {
            0: BARRIER + around(10, 610, "load") + of_root(610, 630, "MPI_Bcast", 0, 2, "first"),
            1: BARRIER
            + around(10, 210, "load")
            + of_other(210, 640, "MPI_Bcast", 0, "first")
            + of_root(640, 660, "MPI_Bcast", 0, 2, "second"),
            2: BARRIER
            + around(10, 110, "load")
            + around(110, 375, "copy")
            + of_other(375, 670, "MPI_Bcast", 0, "second"),
        },
        # Rank 2: w = 640 - 375 = 265. T_1: load 200, MPI_Bcast 430 - 400 = 30. T_2: load 100, copy 265.
        #   D: load 100, MPI_Bcast 30; sum 130. W = 400. s = 265 / 530 = 1/2: load 50, MPI_Bcast 15, indirect 200.
        #   Rank 1's wait inherits 200.
        # Rank 1: w = 610 - 210 = 400. T_0: load 600. T_1: load 200. D: load 400. s = 1. K = 200: long 200.
        # Costs: 65 + 400 + 200 = 665 = 265 + 400.
        [
            Waited(1, 210, ("MPI_Bcast",), "late_broadcast", 0, 400, direct_ns=400, carried_ns=200),
            Waited(2, 375, ("MPI_Bcast",), "late_broadcast", 1, 265, direct_ns=65, indirect_ns=200),
        ],
        [
            Delay(0, LOAD, 1, "late_broadcast", 400, long_term_ns=200),
            Delay(1, LOAD, 2, "late_broadcast", 50),
            Delay(1, ("MPI_Bcast",), 2, "late_broadcast", 15, 200),
        ],
        {"first": Communicator("first", (0, 1)), "second": Communicator("second", (1, 2))},
    ),
    DelayCase(
        "reduce_whose_last_sender_waited",
        "Rank 3, which takes no part, delays rank 1, and so the root.",
        {
            0: BARRIER
            + around(10, 110, "load")
            + around(110, 410, "copy")
            + of_root(410, 730, "MPI_Reduce", 0, 3, "trio"),
            1: BARRIER
            + around(10, 210, "load")
            + mpi_recv(210, 560, 3)
            + around(560, 710, "solve")
            + of_other(710, 720, "MPI_Reduce", 0, "trio"),
            2: BARRIER + around(10, 310, "load") + of_other(310, 330, "MPI_Reduce", 0, "trio"),
            3: BARRIER + around(10, 510, "load") + mpi_send(510, 530, 1),
        },
        # Rank 0: w = 710 - 410 = 300. T_1: load 200, MPI_Recv 350 - 300 = 50, solve 150. T_0: load 100, copy 300.
        #   D: load 100, MPI_Recv 50, solve 150; sum 300. W = 300. s = 300 / 600 = 1/2: 50, 25, 75; indirect 150.
        #   Rank 1's wait inherits 150.
        # Rank 1: w = 510 - 210 = 300. T_3: load 500. T_1: load 200. D: load 300. s = 1. K = 150: long 150.
        # Costs: 150 + 300 + 150 = 600 = 300 + 300.
        [
            Waited(0, 410, ("MPI_Reduce",), "early_reduce", 1, 300, direct_ns=150, indirect_ns=150),
            Waited(1, 210, RECV, LATE, 3, 300, direct_ns=300, carried_ns=150),
        ],
        [
            Delay(1, LOAD, 0, "early_reduce", 50),
            Delay(1, RECV, 0, "early_reduce", 25, 150),
            Delay(1, SOLVE, 0, "early_reduce", 75),
            Delay(3, LOAD, 1, LATE, 300, long_term_ns=150),
        ],
        {"trio": Communicator("trio", (0, 1, 2))},
    ),
    DelayCase(
        "wait_that_hangs_on_two_others",
        "Rank 0 delays ranks 1 and 2, and rank 1 then 3 and 4: the wait of rank 1 carries the cost of both.",
        {
            0: BARRIER + around(10, 510, "load") + mpi_send(510, 520, 1) + mpi_send(520, 540, 2),
            1: BARRIER
            + around(10, 110, "load")
            + mpi_recv(110, 530, 0)
            + mpi_send(530, 540, 3)
            + mpi_send(540, 560, 4),
            2: BARRIER + around(10, 210, "load") + mpi_recv(210, 550, 0),
            3: BARRIER + around(10, 110, "load") + mpi_recv(110, 550, 1),
            4: BARRIER + around(10, 110, "load") + around(110, 325, "copy") + mpi_recv(325, 570, 1),
        },
        # Rank 4: w = 540 - 325 = 215. T_1: load 100, MPI_Recv 420 - 400 = 20, MPI_Send 10. T_4: load 100, copy 215.
        #   D: MPI_Recv 20, MPI_Send 10; sum 30. W = 400. s = 215 / 430 = 1/2: 10, 5; indirect 200.
        # Rank 3: w = 530 - 110 = 420. T_1: load 100, MPI_Recv 20. T_3: load 100. D: MPI_Recv 20. W = 400. s = 1.
        # Rank 1's wait inherits 200 + 400 = 600. w = 510 - 110 = 400. D: load 400. s = 1. Long 600.
        # Rank 2: w = 520 - 210 = 310. T_0: load 500, MPI_Send 10. T_2: load 200. D: load 300, MPI_Send 10. s = 1.
        # Costs: 15 + 20 + 400 + 600 + 310 = 1345 = 215 + 420 + 400 + 310.
        [
            Waited(1, 110, RECV, LATE, 0, 400, direct_ns=400, carried_ns=600),
            Waited(2, 210, RECV, LATE, 0, 310, direct_ns=310),
            Waited(3, 110, RECV, LATE, 1, 420, direct_ns=20, indirect_ns=400),
            Waited(4, 325, RECV, LATE, 1, 215, direct_ns=15, indirect_ns=200),
        ],
        [
            Delay(0, LOAD, 1, LATE, 400, long_term_ns=600),
            Delay(0, LOAD, 2, LATE, 300),
            Delay(0, SEND, 2, LATE, 10),
            Delay(1, RECV, 3, LATE, 20, 400),
            Delay(1, RECV, 4, LATE, 10, 200),
            Delay(1, SEND, 4, LATE, 5),
        ],
    ),
    DelayCase(
        "waitall_for_a_sender_that_waited",
        "The later of two messages comes from rank 1, which waited for rank 3.",
        {
            0: BARRIER + around(10, 510, "load") + mpi_send(510, 530, 2),
            1: BARRIER
            + around(10, 110, "load")
            + mpi_recv(110, 460, 3)
            + around(460, 710, "solve")
            + mpi_send(710, 720, 2),
            2: BARRIER
            + mpi_irecv(10, request=1)
            + mpi_irecv(20, request=2)
            + around(30, 130, "load")
            + around(130, 410, "copy")
            + call(410, 730, "MPI_Waitall", received_by(0, 1), received_by(1, 2)),
            3: BARRIER + around(10, 410, "load") + mpi_send(410, 420, 1),
        },
        # Rank 2: w = max(510, 710) - 410 = 300. Delayer: rank 1. T_1: load 100, MPI_Recv 350 - 300 = 50, solve 250.
        #   T_2: MPI_Irecv 20, load 100, copy 280. D: MPI_Recv 50, solve 250; sum 300. W = 300. s = 300 / 600 = 1/2.
        #   Direct 25 + 125, indirect 150. Rank 1's wait inherits 150.
        # Rank 1: w = 410 - 110 = 300. D: load 400 - 100 = 300. s = 1. K = 150: long 150.
        [
            Waited(1, 110, RECV, LATE, 3, 300, direct_ns=300, carried_ns=150),
            Waited(2, 410, ("MPI_Waitall",), LATE, 1, 300, direct_ns=150, indirect_ns=150),
        ],
        [
            Delay(1, RECV, 2, LATE, 25, 150),
            Delay(1, SOLVE, 2, LATE, 125),
            Delay(3, LOAD, 1, LATE, 300, long_term_ns=150),
        ],
    ),
    DelayCase(
        "barrier_after_a_message",
        "Rank 0 had a message from rank 1, for which it waited: at the barrier only what came after it counts.",
        {
            0: INIT
            + around(10, 60, "load")
            + mpi_recv(60, 130, 1)
            + around(130, 230, "solve")
            + mpi_collective(230, 640, "MPI_Barrier"),
            1: INIT
            + around(10, 110, "load")
            + mpi_send(110, 120, 0)
            + around(120, 620, "solve")
            + mpi_collective(620, 640, "MPI_Barrier"),
            2: INIT + around(10, 110, "load") + mpi_collective(110, 640, "MPI_Barrier"),
        },
        # Message: w = 110 - 60 = 50. D: load 100 - 50 = 50. s = 1.
        # Barrier, rank 0: w = 620 - 230 = 390, since the message. T_1: solve 500, of MPI_Send max(0, 120 - 130) = 0.
        #   T_0: solve 100. D: solve 400. s = 390 / 400: solve 390.
        # Barrier, rank 2: w = 620 - 110 = 510, since MPI_Init. T_1: load 100, MPI_Send 10, solve 500. T_2: load 100.
        #   D: MPI_Send 10, solve 500; sum 510. s = 1.
        [
            Waited(0, 60, RECV, LATE, 1, 50, direct_ns=50),
            Waited(0, 230, ("MPI_Barrier",), "wait_at_barrier", 1, 390, direct_ns=390),
            Waited(2, 110, ("MPI_Barrier",), "wait_at_barrier", 1, 510, direct_ns=510),
        ],
        [
            Delay(1, LOAD, 0, LATE, 50),
            Delay(1, SOLVE, 0, "wait_at_barrier", 390),
            Delay(1, SEND, 2, "wait_at_barrier", 10),
            Delay(1, SOLVE, 2, "wait_at_barrier", 500),
        ],
    ),
    DelayCase(
        "two_exchanges",
        "Rank 0 is late for the first, rank 1 for the second, began later, too: what it waited first is past.",
        {
            0: BARRIER
            + around(10, 410, "load")
            + mpi_collective(410, 420, "MPI_Allgather")
            + around(420, 520, "solve")
            + mpi_collective(520, 750, "MPI_Alltoall"),
            1: BARRIER
            + around(10, 110, "load")
            + mpi_collective(110, 430, "MPI_Allgather")
            + around(430, 730, "solve")
            + mpi_collective(730, 750, "MPI_Alltoall"),
        },
        # First, rank 1: w = 410 - 110 = 300. D: load 400 - 100 = 300. s = 1.
        # Second, rank 0: w = 730 - 520 = 210, since the first.
        #   Completion of rank 1: 430 - max(min(420, 430), min(410, 430)) = 430 - 420 = 10; of rank 0: 420 - 420 = 0.
        #   T_1: MPI_Allgather 10, solve 300. T_0: solve 100. D: MPI_Allgather 10, solve 200; sum 210.
        #   The wait of rank 1 opened the interval: W = 0. s = 1.
        [
            Waited(1, 110, ("MPI_Allgather",), "wait_at_nxn", 0, 300, direct_ns=300),
            Waited(0, 520, ("MPI_Alltoall",), "wait_at_nxn", 1, 210, direct_ns=210),
        ],
        [
            Delay(0, LOAD, 1, "wait_at_nxn", 300),
            Delay(1, ("MPI_Allgather",), 0, "wait_at_nxn", 10),
            Delay(1, SOLVE, 0, "wait_at_nxn", 200),
        ],
    ),
]
