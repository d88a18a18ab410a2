"""Delay costs computed by hand from their definitions (`delay_case.py`), before there was code for them.

The comments below a program are its arithmetic. "since X": the interval of the wait is opened by X.
"""

from tests.ranks.delay_case import BARRIER, INIT, Delay, DelayCase, Waited, mpi_ssend
from tests.ranks.wait_case import (
    Communicator,
    Event,
    around,
    call,
    mpi_collective,
    mpi_irecv,
    mpi_recv,
    mpi_send,
    mpi_sendrecv,
    of_other,
    of_root,
    received_by,
)

LOAD, SOLVE, RECV, SEND = ("load",), ("solve",), ("MPI_Recv",), ("MPI_Send",)
LATE = "late_sender"

DELAY_CASES = [
    DelayCase(
        "late_sender_of_one_path",
        "Rank 0 loads 400 ns longer than rank 1, which waits for its message.",
        {
            0: BARRIER + around(10, 510, "load") + mpi_send(510, 530, 1),
            1: BARRIER + around(10, 110, "load") + mpi_recv(110, 540, 0),
        },
        # w = 510 - 110 = 400. T_0: load 500. T_1: load 100.
        # D: load 500 - 100 = 400. W = 0. s = 400 / 400 = 1.
        [Waited(1, 110, RECV, LATE, 0, 400, direct_ns=400)],
        [Delay(0, LOAD, 1, LATE, 400)],
    ),
    DelayCase(
        "late_sender_of_two_paths",
        "Three quarters of the delay are in load, one quarter in solve.",
        {
            0: INIT + around(10, 410, "load") + around(410, 610, "solve") + mpi_send(610, 630, 1),
            1: INIT + around(10, 110, "load") + around(110, 210, "solve") + mpi_recv(210, 640, 0),
        },
        # w = 610 - 210 = 400. T_0: load 400, solve 200. T_1: load 100, solve 100.
        # D: load 300, solve 100; sum 400. s = 1.
        [Waited(1, 210, RECV, LATE, 0, 400, direct_ns=400)],
        [Delay(0, LOAD, 1, LATE, 300), Delay(0, SOLVE, 1, LATE, 100)],
    ),
    DelayCase(
        "late_sender_of_a_nested_path",
        "Most of the delay is in inner, called by solve; a part is in solve itself.",
        {
            0: BARRIER + around(10, 760, "solve", around(110, 560, "inner")) + mpi_send(760, 780, 1),
            1: BARRIER + around(10, 310, "solve", around(60, 110, "inner")) + mpi_recv(310, 790, 0),
        },
        # w = 760 - 310 = 450.
        # T_0: inner 560 - 110 = 450, solve 750 - 450 = 300. T_1: inner 50, solve 300 - 50 = 250.
        # D: inner 400, solve 50; sum 450. s = 1.
        [Waited(1, 310, RECV, LATE, 0, 450, direct_ns=450)],
        [Delay(0, ("solve", "inner"), 1, LATE, 400), Delay(0, SOLVE, 1, LATE, 50)],
    ),
    DelayCase(
        "chain_of_three",
        "Rank 0 computes 1000 ns longer: rank 1 waits for it, and rank 2 for rank 1, which itself only waited.",
        {
            0: INIT + around(10, 2010, "solve") + mpi_send(2010, 2030, 1),
            1: INIT + around(10, 1010, "solve") + mpi_recv(1010, 2110, 0) + mpi_send(2110, 2130, 2),
            2: INIT + around(10, 1010, "solve") + mpi_recv(1010, 2140, 1),
        },
        # Rank 2: w = 2110 - 1010 = 1100. T_1: solve 1000, MPI_Recv (2110 - 1010) - 1000 waited = 100. T_2: solve 1000.
        #   D: MPI_Recv 100. W = 1000. s = 1100 / 1100 = 1. Direct 100, indirect 1000. Rank 1's wait inherits 1000.
        # Rank 1: w = 2010 - 1010 = 1000. T_0: solve 2000. T_1: solve 1000. D: solve 1000. s = 1.
        #   K = 1000: long 1000 / 1000 * 1000 = 1000.
        # Costs: 100 + 1000 + 1000 = 2100 = waits 1100 + 1000.
        [
            Waited(1, 1010, RECV, LATE, 0, 1000, direct_ns=1000, carried_ns=1000),
            Waited(2, 1010, RECV, LATE, 1, 1100, direct_ns=100, indirect_ns=1000),
        ],
        [
            Delay(0, SOLVE, 1, LATE, 1000, long_term_ns=1000),
            Delay(1, RECV, 2, LATE, 100, 1000),
        ],
    ),
    DelayCase(
        "chain_of_four",
        "The same with a fourth rank: the cost of rank 0 grows with each rank that waits.",
        {
            0: BARRIER + around(10, 2010, "solve") + mpi_send(2010, 2030, 1),
            1: BARRIER + around(10, 1010, "solve") + mpi_recv(1010, 2110, 0) + mpi_send(2110, 2130, 2),
            2: BARRIER + around(10, 1010, "solve") + mpi_recv(1010, 2210, 1) + mpi_send(2210, 2230, 3),
            3: BARRIER + around(10, 1010, "solve") + mpi_recv(1010, 2240, 2),
        },
        # Rank 3: w = 2210 - 1010 = 1200. T_2: solve 1000, MPI_Recv 1200 - 1100 = 100. T_3: solve 1000.
        #   D: MPI_Recv 100. W = 1100. s = 1. Direct 100, indirect 1100. Rank 2's wait inherits 1100.
        # Rank 2: w = 2110 - 1010 = 1100. T_1: solve 1000, MPI_Recv 1100 - 1000 = 100. D: MPI_Recv 100. W = 1000.
        #   s = 1.
        #   Direct 100, indirect 1000. K = 1100: long 1100 / 1100 * 100 = 100.
        #   Rank 1's wait inherits (1 + 1100 / 1100) * 1000 = 2000.
        # Rank 1: w = 1000. D: solve 1000. K = 2000: long 2000 / 1000 * 1000 = 2000.
        # Costs: 100 + 100 + 100 + 1000 + 2000 = 3300 = 1200 + 1100 + 1000.
        [
            Waited(1, 1010, RECV, LATE, 0, 1000, direct_ns=1000, carried_ns=2000),
            Waited(2, 1010, RECV, LATE, 1, 1100, direct_ns=100, indirect_ns=1000, carried_ns=1100),
            Waited(3, 1010, RECV, LATE, 2, 1200, direct_ns=100, indirect_ns=1100),
        ],
        [
            Delay(0, SOLVE, 1, LATE, 1000, long_term_ns=2000),
            Delay(1, RECV, 2, LATE, 100, 1000, 100),
            Delay(2, RECV, 3, LATE, 100, 1100),
        ],
    ),
    DelayCase(
        "delayer_that_waited_and_worked_more",
        "Rank 1 waits for rank 0, and is itself slower than rank 2 in two regions.",
        {
            0: BARRIER + around(10, 810, "load") + mpi_send(810, 830, 1),
            1: BARRIER
            + around(10, 410, "load")
            + mpi_recv(410, 860, 0)
            + around(860, 1410, "solve")
            + mpi_send(1410, 1430, 2),
            2: BARRIER + around(10, 210, "load") + around(210, 710, "solve") + mpi_recv(710, 1440, 1),
        },
        # Rank 2: w = 1410 - 710 = 700. T_1: load 400, MPI_Recv 450 - 400 = 50, solve 550. T_2: load 200, solve 500.
        #   D: load 200, MPI_Recv 50, solve 50; sum 300. W = 400. s = 700 / 700 = 1. Rank 1's wait inherits 400.
        # Rank 1: w = 810 - 410 = 400. T_0: load 800. T_1: load 400. D: load 400. s = 1. K = 400: long 400.
        [
            Waited(1, 410, RECV, LATE, 0, 400, direct_ns=400, carried_ns=400),
            Waited(2, 710, RECV, LATE, 1, 700, direct_ns=300, indirect_ns=400),
        ],
        [
            Delay(0, LOAD, 1, LATE, 400, long_term_ns=400),
            Delay(1, LOAD, 2, LATE, 200),
            Delay(1, RECV, 2, LATE, 50, 400),
            Delay(1, SOLVE, 2, LATE, 50),
        ],
    ),
    DelayCase(
        "path_in_which_the_waiter_took_longer",
        "Rank 1 is faster in load and slower in solve: only load delays, and more than rank 1 waits.",
        {
            0: BARRIER + around(10, 610, "load") + around(610, 710, "solve") + mpi_send(710, 730, 1),
            1: BARRIER + around(10, 110, "load") + around(110, 410, "solve") + mpi_recv(410, 740, 0),
        },
        # w = 710 - 410 = 300. T_0: load 600, solve 100. T_1: load 100, solve 300.
        # D: load 500, solve max(0, -200) = 0. s = 300 / 500. Direct of load 300 / 500 * 500 = 300.
        [Waited(1, 410, RECV, LATE, 0, 300, direct_ns=300)],
        [Delay(0, LOAD, 1, LATE, 300)],
    ),
    DelayCase(
        "paths_only_on_the_delayer",
        "Rank 1 never writes, and it parses below solve, rank 0 below read: these are two paths.",
        {
            0: INIT
            + around(10, 410, "read", around(110, 310, "parse"))
            + around(410, 610, "write")
            + mpi_send(610, 630, 1),
            1: INIT
            + around(10, 110, "read")
            + around(110, 210, "solve", around(110, 210, "parse"))
            + mpi_recv(210, 640, 0),
        },
        # w = 610 - 210 = 400.
        # T_0: read 400 - 200 = 200, (read, parse) 200, write 200. T_1: read 100, solve 0, (solve, parse) 100.
        # D: read 100, (read, parse) 200, write 200; sum 500. s = 400 / 500 = 4/5: 80, 160, 160.
        [Waited(1, 210, RECV, LATE, 0, 400, direct_ns=400)],
        [
            Delay(0, ("read",), 1, LATE, 80),
            Delay(0, ("read", "parse"), 1, LATE, 160),
            Delay(0, ("write",), 1, LATE, 160),
        ],
    ),
    DelayCase(
        "less_waiting_than_delay",
        "Rank 2 is itself busy for long: it waits a third of what rank 1 was delayed and waited.",
        {
            0: BARRIER + around(10, 710, "load") + mpi_send(710, 730, 1),
            1: BARRIER
            + around(10, 110, "load")
            + mpi_recv(110, 740, 0)
            + around(740, 1010, "solve")
            + mpi_send(1010, 1030, 2),
            2: BARRIER + around(10, 310, "load") + around(310, 710, "copy") + mpi_recv(710, 1040, 1),
        },
        # Rank 2: w = 1010 - 710 = 300. T_1: load 100, MPI_Recv 630 - 600 = 30, solve 270. T_2: load 300, copy 400.
        #   D: MPI_Recv 30, solve 270; sum 300. W = 600. s = 300 / 900 = 1/3: MPI_Recv 10, solve 90; indirect 200.
        #   Rank 1's wait inherits 1/3 * 600 = 200.
        # Rank 1: w = 710 - 110 = 600. T_0: load 700. T_1: load 100. D: load 600. s = 1. K = 200: long 200.
        # Costs: 10 + 90 + 600 + 200 = 900 = 300 + 600.
        [
            Waited(1, 110, RECV, LATE, 0, 600, direct_ns=600, carried_ns=200),
            Waited(2, 710, RECV, LATE, 1, 300, direct_ns=100, indirect_ns=200),
        ],
        [
            Delay(0, LOAD, 1, LATE, 600, long_term_ns=200),
            Delay(1, RECV, 2, LATE, 10, 200),
            Delay(1, SOLVE, 2, LATE, 90),
        ],
    ),
    DelayCase(
        "late_receiver",
        "A synchronous send waits for rank 1, which loads longer.",
        {
            0: BARRIER + around(10, 110, "load") + mpi_ssend(110, 720, 1),
            1: BARRIER + around(10, 610, "load") + mpi_recv(610, 730, 0),
        },
        # w = 610 - 110 = 500 as 720 > 610. Delayer: rank 1. T_1: load 600. T_0: load 100. D: load 500. s = 1.
        [Waited(0, 110, ("MPI_Ssend",), "late_receiver", 1, 500, direct_ns=500)],
        [Delay(1, LOAD, 0, "late_receiver", 500)],
    ),
    DelayCase(
        "late_receiver_that_waited",
        "Rank 1 receives late as it waited for rank 2 before.",
        {
            0: BARRIER + around(10, 110, "load") + mpi_ssend(110, 760, 1),
            1: BARRIER + around(10, 110, "load") + mpi_recv(110, 660, 2) + mpi_recv(660, 770, 0),
            2: BARRIER + around(10, 610, "load") + mpi_send(610, 630, 1),
        },
        # Rank 0: w = 660 - 110 = 550 as 760 > 660. T_1: load 100, MPI_Recv 550 - 500 = 50. T_0: load 100.
        #   D: MPI_Recv 50. W = 500. s = 550 / 550 = 1. Rank 1's wait inherits 500.
        # Rank 1: w = 610 - 110 = 500. T_2: load 600. T_1: load 100. D: load 500. K = 500: long 500.
        [
            Waited(0, 110, ("MPI_Ssend",), "late_receiver", 1, 550, direct_ns=50, indirect_ns=500),
            Waited(1, 110, RECV, LATE, 2, 500, direct_ns=500, carried_ns=500),
        ],
        [
            Delay(1, RECV, 0, "late_receiver", 50, 500),
            Delay(2, LOAD, 1, LATE, 500, long_term_ns=500),
        ],
    ),
    DelayCase(
        "barrier_with_one_late_rank",
        "Rank 2 comes last; the two others wait differently long.",
        {
            0: INIT + around(10, 110, "load") + mpi_collective(110, 530, "MPI_Barrier"),
            1: INIT + around(10, 210, "load") + mpi_collective(210, 530, "MPI_Barrier"),
            2: INIT + around(10, 510, "load") + mpi_collective(510, 530, "MPI_Barrier"),
        },
        # Rank 0: w = 510 - 110 = 400. D: load 500 - 100 = 400. s = 1.
        # Rank 1: w = 510 - 210 = 300. D: load 500 - 200 = 300. s = 1.
        [
            Waited(0, 110, ("MPI_Barrier",), "wait_at_barrier", 2, 400, direct_ns=400),
            Waited(1, 210, ("MPI_Barrier",), "wait_at_barrier", 2, 300, direct_ns=300),
        ],
        [Delay(2, LOAD, 0, "wait_at_barrier", 400), Delay(2, LOAD, 1, "wait_at_barrier", 300)],
    ),
    DelayCase(
        "barrier_of_ranks_that_met_at_different_times",
        "Ranks 1 and 2 have met in a barrier of their own: for rank 1 only what came after it counts.",
        {
            0: INIT + around(10, 110, "load") + around(110, 310, "solve") + mpi_collective(310, 930, "MPI_Barrier"),
            1: INIT
            + around(10, 210, "load")
            + mpi_collective(210, 320, "MPI_Barrier", communicator="pair")
            + around(320, 420, "solve")
            + mpi_collective(420, 930, "MPI_Barrier"),
            2: INIT
            + around(10, 310, "load")
            + mpi_collective(310, 330, "MPI_Barrier", communicator="pair")
            + around(330, 920, "solve")
            + mpi_collective(920, 930, "MPI_Barrier"),
        },
        # pair, rank 1: w = 310 - 210 = 100. D: load 300 - 200 = 100. s = 1.
        # world, rank 1: w = 920 - 420 = 500, since pair.
        #   Completion of rank 2: 330 - max(min(320, 330), min(310, 330)) = 330 - 320 = 10; of rank 1: 320 - 320 = 0.
        #   T_2: MPI_Barrier 10, solve 590. T_1: solve 100. D: MPI_Barrier 10, solve 490; sum 500. s = 1.
        # world, rank 0: w = 920 - 310 = 610, since MPI_Init. T_2: load 300, MPI_Barrier 20, solve 590.
        #   T_0: load 100, solve 200. D: load 200, MPI_Barrier 20, solve 390; sum 610. s = 1.
        [
            Waited(1, 210, ("MPI_Barrier",), "wait_at_barrier", 2, 100, direct_ns=100),
            Waited(1, 420, ("MPI_Barrier",), "wait_at_barrier", 2, 500, direct_ns=500),
            Waited(0, 310, ("MPI_Barrier",), "wait_at_barrier", 2, 610, direct_ns=610),
        ],
        [
            Delay(2, LOAD, 1, "wait_at_barrier", 100),
            Delay(2, ("MPI_Barrier",), 1, "wait_at_barrier", 10),
            Delay(2, SOLVE, 1, "wait_at_barrier", 490),
            Delay(2, LOAD, 0, "wait_at_barrier", 200),
            Delay(2, ("MPI_Barrier",), 0, "wait_at_barrier", 20),
            Delay(2, SOLVE, 0, "wait_at_barrier", 390),
        ],
        {"pair": Communicator("pair", (1, 2))},
    ),
    DelayCase(
        "all_reduce",
        "Rank 0 is last, as it was slow in a region that is called by solve.",
        {
            0: BARRIER
            + around(10, 710, "solve", around(110, 610, "inner"))
            + mpi_collective(710, 740, "MPI_Allreduce"),
            1: BARRIER
            + around(10, 310, "solve", around(110, 210, "inner"))
            + mpi_collective(310, 740, "MPI_Allreduce"),
            2: BARRIER
            + around(10, 610, "solve", around(110, 210, "inner"))
            + mpi_collective(610, 740, "MPI_Allreduce"),
        },
        # T_0: solve 200, inner 500.
        # Rank 1: w = 710 - 310 = 400. T_1: solve 200, inner 100. D: inner 400. s = 1.
        # Rank 2: w = 710 - 610 = 100. T_2: solve 500, inner 100. D: inner 400, solve 0. s = 100 / 400: inner 100.
        [
            Waited(1, 310, ("MPI_Allreduce",), "wait_at_nxn", 0, 400, direct_ns=400),
            Waited(2, 610, ("MPI_Allreduce",), "wait_at_nxn", 0, 100, direct_ns=100),
        ],
        [
            Delay(0, ("solve", "inner"), 1, "wait_at_nxn", 400),
            Delay(0, ("solve", "inner"), 2, "wait_at_nxn", 100),
        ],
    ),
    DelayCase(
        "all_reduce_after_the_last_one_waited",
        "Rank 3, which takes no part, delays rank 2, and by it ranks 0 and 1.",
        {
            0: BARRIER
            + around(10, 210, "load")
            + around(210, 310, "solve")
            + mpi_collective(310, 1100, "MPI_Allreduce", communicator="trio"),
            1: BARRIER
            + around(10, 510, "load")
            + around(510, 610, "solve")
            + mpi_collective(610, 1100, "MPI_Allreduce", communicator="trio"),
            2: BARRIER
            + around(10, 210, "load")
            + mpi_recv(210, 660, 3)
            + around(660, 1060, "solve")
            + mpi_collective(1060, 1100, "MPI_Allreduce", communicator="trio"),
            3: BARRIER + around(10, 610, "load") + mpi_send(610, 630, 2),
        },
        # T_2: load 200, MPI_Recv 450 - 400 = 50, solve 400; W = 400.
        # Rank 0: w = 1060 - 310 = 750. T_0: load 200, solve 100. D: MPI_Recv 50, solve 300; sum 350.
        #   s = 750 / 750 = 1.
        #   Direct 50 + 300, indirect 400.
        # Rank 1: w = 1060 - 610 = 450. T_1: load 500, solve 100. D: MPI_Recv 50, solve 300. s = 450 / 750 = 3/5.
        #   Direct 30 + 180, indirect 240.
        # Rank 2's wait inherits 400 + 240 = 640. w = 610 - 210 = 400. T_3: load 600. D: load 400. s = 1. Long 640.
        # Costs: 350 + 210 + 400 + 640 = 1600 = 750 + 450 + 400.
        [
            Waited(0, 310, ("MPI_Allreduce",), "wait_at_nxn", 2, 750, direct_ns=350, indirect_ns=400),
            Waited(1, 610, ("MPI_Allreduce",), "wait_at_nxn", 2, 450, direct_ns=210, indirect_ns=240),
            Waited(2, 210, RECV, LATE, 3, 400, direct_ns=400, carried_ns=640),
        ],
        [
            Delay(2, RECV, 0, "wait_at_nxn", 50, 400),
            Delay(2, SOLVE, 0, "wait_at_nxn", 300),
            Delay(2, RECV, 1, "wait_at_nxn", 30, 240),
            Delay(2, SOLVE, 1, "wait_at_nxn", 180),
            Delay(3, LOAD, 2, LATE, 400, long_term_ns=640),
        ],
        {"trio": Communicator("trio", (0, 1, 2))},
    ),
    DelayCase(
        "broadcast_with_a_late_root",
        "Two ranks wait for the root, which alone reads; the fourth comes even later, and delays nobody.",
        {
            0: BARRIER + around(10, 210, "load") + around(210, 510, "read") + of_root(510, 540, "MPI_Bcast", 0, 4),
            1: BARRIER + around(10, 110, "load") + of_other(110, 550, "MPI_Bcast", 0),
            2: BARRIER + around(10, 610, "load") + of_other(610, 640, "MPI_Bcast", 0),
            3: BARRIER + around(10, 310, "load") + of_other(310, 550, "MPI_Bcast", 0),
        },
        # T_0: load 200, read 300.
        # Rank 1: w = 510 - 110 = 400. T_1: load 100. D: load 100, read 300; sum 400. s = 1.
        # Rank 3: w = 510 - 310 = 200. T_3: load 300. D: read 300. s = 200 / 300: read 200.
        [
            Waited(1, 110, ("MPI_Bcast",), "late_broadcast", 0, 400, direct_ns=400),
            Waited(3, 310, ("MPI_Bcast",), "late_broadcast", 0, 200, direct_ns=200),
        ],
        [
            Delay(0, LOAD, 1, "late_broadcast", 100),
            Delay(0, ("read",), 1, "late_broadcast", 300),
            Delay(0, ("read",), 3, "late_broadcast", 200),
        ],
    ),
    DelayCase(
        "reduce_with_a_late_last_sender",
        "The root is first and waits for the last of the others; rank 1, late too, costs nothing.",
        {
            0: INIT + around(10, 110, "load") + of_root(110, 720, "MPI_Reduce", 0, 3),
            1: INIT + around(10, 410, "load") + of_other(410, 430, "MPI_Reduce", 0),
            2: INIT + around(10, 210, "load") + around(210, 610, "solve") + of_other(610, 700, "MPI_Reduce", 0),
        },
        # w = max(410, 610) - 110 = 500. Delayer: rank 2. T_2: load 200, solve 400. T_0: load 100.
        # D: load 100, solve 400; sum 500. s = 1.
        [Waited(0, 110, ("MPI_Reduce",), "early_reduce", 2, 500, direct_ns=500)],
        [Delay(2, LOAD, 0, "early_reduce", 100), Delay(2, SOLVE, 0, "early_reduce", 400)],
    ),
    DelayCase(
        "several_waits_in_one_interval",
        "Rank 1 waits for ranks 0 and 3 before it sends to rank 2: both have a share in that wait.",
        {
            0: BARRIER + around(10, 210, "load") + mpi_send(210, 220, 1),
            1: BARRIER
            + around(10, 110, "load")
            + mpi_recv(110, 230, 0)
            + around(230, 410, "solve")
            + mpi_recv(410, 650, 3)
            + mpi_send(650, 670, 2),
            2: BARRIER + around(10, 110, "load") + around(110, 380, "copy") + mpi_recv(380, 680, 1),
            3: BARRIER + around(10, 610, "load") + mpi_send(610, 630, 1),
        },
        # Rank 1 waits 210 - 110 = 100 for rank 0, and 610 - 410 = 200 for rank 3.
        # Rank 2: w = 650 - 380 = 270. T_1: load 100, MPI_Recv (120 - 100) + (240 - 200) = 60, solve 180.
        #   T_2: load 100, copy 270. D: MPI_Recv 60, solve 180; sum 240. W = 100 + 200 = 300. s = 270 / 540 = 1/2.
        #   Direct 30 + 90, indirect 150. The waits of rank 1 inherit 50 and 100.
        # Rank 1 for rank 3: w = 200, since the barrier. T_3: load 600. T_1: load 100, MPI_Recv 20, solve 180.
        #   D: load 500. s = 200 / 500: load 200. K = 100: long 100 / 500 * 500 = 100.
        # Rank 1 for rank 0: w = 100. T_0: load 200. T_1: load 100. D: load 100. K = 50: long 50.
        # Costs: 120 + 200 + 100 + 100 + 50 = 570 = 270 + 200 + 100.
        [
            Waited(1, 110, RECV, LATE, 0, 100, direct_ns=100, carried_ns=50),
            Waited(1, 410, RECV, LATE, 3, 200, direct_ns=200, carried_ns=100),
            Waited(2, 380, RECV, LATE, 1, 270, direct_ns=120, indirect_ns=150),
        ],
        [
            Delay(0, LOAD, 1, LATE, 100, long_term_ns=50),
            Delay(3, LOAD, 1, LATE, 200, long_term_ns=100),
            Delay(1, RECV, 2, LATE, 30, 150),
            Delay(1, SOLVE, 2, LATE, 90),
        ],
    ),
    DelayCase(
        "two_waiters_on_one_delayer",
        "Rank 0 sends to rank 1, then to rank 2, for which the first send counts, too.",
        {
            0: BARRIER + around(10, 510, "load") + mpi_send(510, 520, 1) + mpi_send(520, 540, 2),
            1: BARRIER + around(10, 110, "load") + mpi_recv(110, 530, 0),
            2: BARRIER + around(10, 210, "load") + mpi_recv(210, 550, 0),
        },
        # Rank 1: w = 510 - 110 = 400. D: load 500 - 100 = 400. s = 1.
        # Rank 2: w = 520 - 210 = 310. T_0: load 500, MPI_Send 10. T_2: load 200.
        #   D: load 300, MPI_Send 10; sum 310. s = 1.
        [
            Waited(1, 110, RECV, LATE, 0, 400, direct_ns=400),
            Waited(2, 210, RECV, LATE, 0, 310, direct_ns=310),
        ],
        [Delay(0, LOAD, 1, LATE, 400), Delay(0, LOAD, 2, LATE, 300), Delay(0, SEND, 2, LATE, 10)],
    ),
    DelayCase(
        "sub_communicators",
        "Ranks 3 and 1 are 0 and 1 of one communicator, ranks 0 and 2 have a barrier in another.",
        {
            0: BARRIER + around(10, 210, "load") + mpi_collective(210, 430, "MPI_Barrier", communicator="even"),
            1: BARRIER + around(10, 110, "load") + mpi_recv(110, 840, 0, communicator="odd"),
            2: BARRIER
            + around(10, 110, "load")
            + around(110, 410, "solve")
            + mpi_collective(410, 430, "MPI_Barrier", communicator="even"),
            3: BARRIER + around(10, 810, "load") + mpi_send(810, 830, 1, communicator="odd"),
        },
        # Rank 1: w = 810 - 110 = 700. Delayer: rank 0 of odd = rank 3. D: load 800 - 100 = 700. s = 1.
        # Rank 0: w = 410 - 210 = 200. Delayer: rank 2; ranks 1 and 3 take no part.
        #   T_2: load 100, solve 300. T_0: load 200. D: solve 300. s = 200 / 300: solve 200.
        [
            Waited(1, 110, RECV, LATE, 3, 700, direct_ns=700),
            Waited(0, 210, ("MPI_Barrier",), "wait_at_barrier", 2, 200, direct_ns=200),
        ],
        [Delay(3, LOAD, 1, LATE, 700), Delay(2, SOLVE, 0, "wait_at_barrier", 200)],
        {"odd": Communicator("odd", (3, 1)), "even": Communicator("even", (0, 2))},
    ),
    DelayCase(
        "no_waits",
        "Messages are there in time, all come to collectives together: there is no delay, although times differ.",
        {
            0: INIT
            + around(10, 110, "load")
            + mpi_send(110, 130, 1)
            + around(130, 310, "solve")
            + mpi_collective(310, 330, "MPI_Barrier")
            + call(330, 350, "MPI_Finalize"),
            1: INIT
            + around(10, 210, "load")
            + mpi_recv(210, 230, 0)
            + around(230, 310, "copy")
            + mpi_collective(310, 330, "MPI_Barrier")
            + call(330, 350, "MPI_Finalize"),
            2: INIT
            + around(10, 310, "solve")
            + mpi_collective(310, 330, "MPI_Barrier")
            + call(330, 350, "MPI_Finalize"),
        },
        # 110 < 210: no late sender. 130 < 210: no late receiver. All enter the barrier at 310.
        [],
        [],
    ),
    DelayCase(
        "waitall_of_two_messages",
        "Rank 2 waits for the later of two messages; who sent the earlier one delays nobody.",
        {
            0: BARRIER + around(10, 510, "load") + mpi_send(510, 530, 2),
            1: BARRIER + around(10, 710, "load") + mpi_send(710, 720, 2),
            2: BARRIER
            + mpi_irecv(10, request=1)
            + mpi_irecv(20, request=2)
            + around(30, 310, "load")
            + call(310, 730, "MPI_Waitall", received_by(0, 1), received_by(1, 2)),
        },
        # w = max(510, 710) - 310 = 400. Delayer: rank 1. T_1: load 700. T_2: MPI_Irecv 20, load 280.
        # D: load 420. s = 400 / 420: load 400.
        [Waited(2, 310, ("MPI_Waitall",), LATE, 1, 400, direct_ns=400)],
        [Delay(1, LOAD, 2, LATE, 400)],
    ),
    DelayCase(
        "messages_both_ways",
        "Rank 1 is late for rank 0, then rank 0 for rank 1: each interval begins with the message before.",
        {
            0: BARRIER
            + around(10, 110, "load")
            + mpi_sendrecv(110, 160, to=1, source=1)
            + around(160, 260, "solve")
            + mpi_recv(260, 580, 1)
            + around(580, 1080, "solve")
            + mpi_send(1080, 1090, 1),
            1: BARRIER
            + around(10, 110, "load")
            + mpi_sendrecv(110, 160, to=0, source=0)
            + around(160, 560, "solve")
            + mpi_send(560, 570, 0)
            + mpi_recv(570, 590, 2)
            + around(590, 690, "solve")
            + mpi_recv(690, 1100, 0),
            2: BARRIER + mpi_send(10, 20, 1),
        },
        # Rank 0: w = 560 - 260 = 300, since MPI_Sendrecv, the same on both. T_1: solve 400. T_0: solve 100.
        #   D: solve 300. s = 1.
        # Rank 1: w = 1080 - 690 = 390, since the message of rank 1.
        #   T_0: solve 500, of MPI_Recv at most 580 - 560 = 20.
        #   T_1: solve 100, MPI_Recv 20 (of rank 2, which does not wait), of MPI_Send max(0, 570 - 580) = 0.
        #   D: solve 400, MPI_Recv 0. The wait of rank 0 is not strictly inside: W = 0. s = 390 / 400: solve 390.
        [
            Waited(0, 260, RECV, LATE, 1, 300, direct_ns=300),
            Waited(1, 690, RECV, LATE, 0, 390, direct_ns=390),
        ],
        [Delay(1, SOLVE, 0, LATE, 300), Delay(0, SOLVE, 1, LATE, 390)],
    ),
    DelayCase(
        "more_waiting_than_delay",
        "Rank 1 took the broadcast long after the root had left it: that part of its lateness nothing explains.",
        {
            0: BARRIER
            + around(10, 110, "load")
            + of_root(110, 120, "MPI_Bcast", 0, 2)
            + around(120, 220, "solve")
            + mpi_recv(220, 730, 1),
            1: BARRIER
            + around(10, 500, "load")
            + of_other(500, 510, "MPI_Bcast", 0)
            + around(510, 710, "solve")
            + mpi_send(710, 720, 0),
        },
        # The broadcast: 110 < 500, no wait.
        # Rank 0: w = 710 - 220 = 490, since the broadcast (of which both have 10 or both nothing).
        #   T_1: solve 200. T_0: solve 100. D: solve 100. s = min(490 / 100, 1) = 1. Direct 100, unexplained 390.
        [Waited(0, 220, RECV, LATE, 1, 490, direct_ns=100, unexplained_ns=390)],
        [Delay(1, SOLVE, 0, LATE, 100)],
    ),
    DelayCase(
        "two_probes",
        "Rank 1 probes for each message before it receives it: the second interval begins with the first probe.",
        {
            0: BARRIER
            + around(10, 310, "load")
            + mpi_send(310, 316, 1)
            + around(316, 730, "solve")
            + mpi_send(730, 736, 1),
            1: BARRIER
            + around(10, 110, "load")
            + call(110, 320, "MPI_Mprobe", Event("probe", peer=0, sent=8, request=1))
            + call(320, 336, "MPI_Mrecv", Event("mrecv", sent=8, request=1))
            + around(336, 430, "solve")
            + call(430, 740, "MPI_Mprobe", Event("probe", peer=0, sent=8, request=2))
            + call(740, 750, "MPI_Mrecv", Event("mrecv", sent=8, request=2)),
        },
        # First: w = 310 - 110 = 200, since the barrier. T_0: load 300. T_1: load 100. D: load 200. s = 1.
        # Second: w = 730 - 430 = 300, since the first probe.
        #   T_0: solve 414, of MPI_Send 0. T_1: solve 94, MPI_Mrecv 16, of MPI_Mprobe 320 - 316 = 4.
        #   D: solve 320. s = 300 / 320: solve 300.
        [
            Waited(1, 110, ("MPI_Mprobe",), LATE, 0, 200, direct_ns=200),
            Waited(1, 430, ("MPI_Mprobe",), LATE, 0, 300, direct_ns=300),
        ],
        [Delay(0, LOAD, 1, LATE, 200), Delay(0, SOLVE, 1, LATE, 300)],
    ),
]
