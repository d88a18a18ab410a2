"""More wait states computed by hand: a third of all, drawn by lot, that whoever writes the code does not read."""

from tests.ranks.wait_case import (
    EXCHANGES,
    Case,
    Communicator,
    Wait,
    around,
    begun,
    call,
    ended,
    isend,
    mpi_collective,
    mpi_irecv,
    mpi_isend,
    mpi_recv,
    mpi_send,
    mpi_sendrecv,
    of_other,
    of_root,
    posted,
    receive,
    received_by,
    send,
    sent_by,
    tested,
)

CASES_ASIDE = [
    Case(
        "late_sender",
        "A receive begins 300 ns before its send.",
        {
            0: mpi_send(400, 450, 1),
            1: mpi_recv(100, 500, 0),
        },
        [Wait("late_sender", 1, "MPI_Recv", 1, 300)],  # 400 - 100
    ),
    Case(
        "zero_bytes_wait_too",
        "A message without bytes synchronises like any other.",
        {
            0: call(300, 320, "MPI_Send", send(1, sent=0)),
            1: call(100, 330, "MPI_Recv", receive(0, sent=0)),
        },
        [Wait("late_sender", 1, "MPI_Recv", 1, 200)],
    ),
    Case(
        "synchronous_sends_wait",
        "MPI_Ssend waits for its receiver like MPI_Send; MPI_Bsend and MPI_Rsend have no such wait.",
        {
            0: call(100, 400, "MPI_Ssend", send(1))
            + call(500, 800, "MPI_Bsend", send(1))
            + call(900, 1200, "MPI_Rsend", send(1)),
            1: mpi_recv(350, 410, 0) + mpi_recv(700, 810, 0) + mpi_recv(1100, 1210, 0),
        },
        [Wait("late_receiver", 0, "MPI_Ssend", 1, 250)],  # 350 - 100
    ),
    Case(
        "waitall_has_the_maximum",
        "Three messages complete in one call: the latest counts, and none of them is in the wrong order.",
        {
            0: mpi_irecv(10, request=1)
            + mpi_irecv(30, request=2)
            + mpi_irecv(50, request=3)
            + call(200, 1000, "MPI_Waitall", received_by(1, 1), received_by(2, 2), received_by(3, 3)),
            1: mpi_send(500, 520, 0),
            2: mpi_send(900, 920, 0),
            3: mpi_send(700, 720, 0),
        },
        [Wait("late_sender", 0, "MPI_Waitall", 1, 700)],  # 900 - 200
    ),
    Case(
        "waitall_with_early_messages",
        "Two of three messages were there before the call.",
        {
            0: mpi_irecv(10, request=1)
            + mpi_irecv(30, request=2)
            + mpi_irecv(50, request=3)
            + call(300, 500, "MPI_Waitall", received_by(1, 1), received_by(2, 2), received_by(3, 3)),
            1: mpi_send(450, 470, 0),
            2: mpi_send(100, 120, 0),
            3: mpi_send(150, 170, 0),
        },
        [Wait("late_sender", 0, "MPI_Waitall", 1, 150)],  # 450 - 300
    ),
    Case(
        "waitall_with_a_late_sender_has_no_late_receiver",
        "It waits for a sender until 500 and for a receiver until 900; only the first counts.",
        {
            0: mpi_irecv(10, request=1)
            + mpi_isend(100, 2, request=2)
            + call(300, 1000, "MPI_Waitall", received_by(1, 1), sent_by(2)),
            1: mpi_send(500, 520, 0),
            2: mpi_recv(900, 1000, 0),
        },
        [Wait("late_sender", 0, "MPI_Waitall", 1, 200)],  # 500 - 300
    ),
    Case(
        "waitany",
        "Each call waits only for the message that completes in it.",
        {
            0: mpi_irecv(10, request=1)
            + mpi_irecv(30, request=2)
            + call(200, 600, "MPI_Waitany", received_by(2, 2))
            + call(700, 950, "MPI_Waitany", received_by(1, 1)),
            1: mpi_send(900, 920, 0),
            2: mpi_send(550, 570, 0),
        },
        [Wait("late_sender", 0, "MPI_Waitany", 2, 550)],  # (550 - 200) + (900 - 700)
    ),
    Case(
        "waitsome",
        "Two of three messages complete in the first call, and the maximum of them counts.",
        {
            0: mpi_irecv(10, request=1)
            + mpi_irecv(30, request=2)
            + mpi_irecv(50, request=3)
            + call(100, 500, "MPI_Waitsome", received_by(1, 1), received_by(3, 3))
            + call(510, 640, "MPI_Waitsome", received_by(2, 2)),
            1: mpi_send(300, 320, 0),
            2: mpi_send(610, 620, 0),
            3: mpi_send(450, 470, 0),
        },
        [Wait("late_sender", 0, "MPI_Waitsome", 2, 450)],  # (450 - 100) + (610 - 510)
    ),
    Case(
        "tests_of_sends_never_wait",
        "Although the receive begins while the MPI_Test runs that completes the send.",
        {
            0: mpi_isend(100, 1, request=1)
            + call(200, 210, "MPI_Test", tested(1))
            + call(500, 710, "MPI_Test", sent_by(1)),
            1: mpi_recv(600, 700, 0),
        },
        [],
    ),
    Case(
        "sendrecv_of_two",
        "Two ranks exchange. The receive of the early one waits; a send in MPI_Sendrecv has no wait.",
        {
            0: mpi_sendrecv(100, 600, to=1, source=1),
            1: mpi_sendrecv(500, 600, to=0, source=0),
        },
        [Wait("late_sender", 0, "MPI_Sendrecv", 1, 400)],  # 500 - 100
    ),
    Case(
        "wrong_order_counts_once",
        "Two messages were sent before the awaited one: its wait counts once.",
        {
            0: mpi_send(200, 210, 1, tag=1) + mpi_send(300, 310, 1, tag=2) + mpi_send(700, 740, 1, tag=3),
            1: mpi_recv(100, 750, 0, tag=3) + mpi_recv(760, 780, 0, tag=1) + mpi_recv(790, 800, 0, tag=2),
        },
        [
            Wait("late_sender", 1, "MPI_Recv", 1, 600),  # 700 - 100
            Wait("wrong_order", 1, "MPI_Recv", 1, 600),
        ],
    ),
    Case(
        "wrong_order_of_the_last_hundred",
        "101 receives wait for messages that were sent after one received last: only the last 100 are remembered.",
        {
            # The receives begin at 1000, 2000, ...: the first 50 ns, all others 10 ns before their sends.
            0: [
                event
                for i in range(101)
                for event in mpi_send(1000 * (i + 1) + (10 if i else 50), 1000 * (i + 1) + 70, 1)
            ],
            1: [event for i in range(101) for event in mpi_recv(1000 * (i + 1), 1000 * (i + 1) + 80, 0)]
            + mpi_recv(200_000, 200_010, 2),
            2: mpi_send(100, 110, 1),
        },
        [
            Wait("late_sender", 1, "MPI_Recv", 101, 1050),  # 50 + 100 * 10
            Wait("wrong_order", 1, "MPI_Recv", 100, 1000),  # without the first
        ],
    ),
    Case(
        "send_after_the_end_of_its_receive",
        "The clocks are wrong: the whole receive counts, and no more.",
        {
            0: mpi_send(900, 950, 1),
            1: mpi_recv(100, 400, 0),
        },
        [Wait("late_sender", 1, "MPI_Recv", 1, 300)],  # min(900, 400) - 100
        clipped=1,
    ),
    Case(
        "late_receives_match_as_they_were_posted",
        "The same for sends: each waits for the receive that was posted in its turn.",
        {
            0: mpi_send(100, 350, 1) + mpi_send(400, 750, 1),
            1: mpi_irecv(300, request=1)
            + mpi_irecv(700, request=2)
            + call(800, 810, "MPI_Wait", received_by(0, 2))
            + call(820, 830, "MPI_Wait", received_by(0, 1)),
        },
        [Wait("late_receiver", 0, "MPI_Send", 2, 500)],  # (300 - 100) + (700 - 400)
    ),
    Case(
        "chain_of_late_receivers",
        "Rank 2 is late for 1, and therefore 1 for 0.",
        {
            0: mpi_send(100, 1300, 1),
            1: mpi_send(200, 1200, 2) + mpi_recv(1250, 1310, 0),
            2: mpi_recv(1000, 1210, 1),
        },
        [
            Wait("late_receiver", 0, "MPI_Send", 1, 1150),  # 1250 - 100
            Wait("late_receiver", 1, "MPI_Send", 1, 800),  # 1000 - 200
        ],
    ),
    Case(
        "pipeline",
        "Five ranks pass a message on; the last is late itself, by 5 ns.",
        {
            0: mpi_send(1000, 1010, 1),
            1: mpi_recv(100, 1020, 0) + mpi_send(1030, 1040, 2),
            2: mpi_recv(100, 1050, 1) + mpi_send(1060, 1070, 3),
            3: mpi_recv(500, 1080, 2) + mpi_send(1090, 1100, 4),
            4: mpi_recv(1095, 1110, 3),
        },
        [
            Wait("late_sender", 1, "MPI_Recv", 1, 900),  # 1000 - 100
            Wait("late_sender", 2, "MPI_Recv", 1, 930),  # 1030 - 100
            Wait("late_sender", 3, "MPI_Recv", 1, 560),  # 1060 - 500
            Wait("late_receiver", 3, "MPI_Send", 1, 5),  # 1100 > 1095, 1095 - 1090
        ],
    ),
    Case(
        "persistent_receives",
        "MPI_Start posts the receive of each round.",
        {
            0: mpi_send(650, 690, 1) + mpi_send(800, 1000, 1),
            1: call(10, 20, "MPI_Recv_init")
            + call(100, 110, "MPI_Start", posted(1))
            + call(300, 700, "MPI_Wait", received_by(0, 1))
            + call(900, 910, "MPI_Start", posted(2))
            + call(950, 1010, "MPI_Wait", received_by(0, 2)),
        },
        [
            Wait("late_sender", 1, "MPI_Wait", 1, 350),  # 650 - 300
            Wait("late_receiver", 0, "MPI_Send", 1, 100),  # 1000 > 900, 900 - 800
        ],
    ),
    Case(
        "startall",
        "One call starts two persistent sends.",
        {
            0: call(700, 720, "MPI_Startall", isend(1, 1), isend(2, 2))
            + call(730, 760, "MPI_Waitall", sent_by(1), sent_by(2)),
            1: mpi_recv(100, 800, 0),
            2: mpi_recv(500, 800, 0),
        },
        [
            Wait("late_sender", 1, "MPI_Recv", 1, 600),  # 700 - 100
            Wait("late_sender", 2, "MPI_Recv", 1, 200),  # 700 - 500
        ],
    ),
    Case(
        "receives_at_two_places",
        "One function is called in two functions of the program, which wait differently.",
        {
            0: mpi_send(400, 405, 1) + mpi_send(550, 555, 1) + mpi_send(700, 705, 1),
            1: around(90, 420, "exchange_halo", mpi_recv(100, 410, 0))
            + around(490, 570, "residual", mpi_recv(500, 560, 0))
            + around(590, 720, "exchange_halo", mpi_recv(600, 710, 0)),
        },
        [
            Wait("late_sender", 1, "MPI_Recv", 2, 400, within="exchange_halo"),  # (400 - 100) + (700 - 600)
            Wait("late_sender", 1, "MPI_Recv", 1, 50, within="residual"),  # 550 - 500
        ],
    ),
    Case(
        "communicators_keep_messages_apart",
        "Two duplicates of the world have one name. Rank 1 receives from the second first.",
        {
            0: mpi_send(100, 110, 1, communicator="a") + mpi_send(700, 710, 1, communicator="b"),
            1: mpi_recv(200, 750, 0, communicator="b") + mpi_recv(760, 800, 0, communicator="a"),
        },
        [
            Wait("late_sender", 1, "MPI_Recv", 1, 500),  # 700 - 200
            Wait("wrong_order", 1, "MPI_Recv", 1, 500),
        ],
        {"a": Communicator("MPI_COMM_DUP", (0, 1)), "b": Communicator("MPI_COMM_DUP", (0, 1))},
    ),
    Case(
        "balanced_collectives",
        "All ranks enter and leave together.",
        {
            rank: mpi_collective(100, 200, "MPI_Barrier")
            + mpi_collective(300, 400, "MPI_Allreduce")
            + mpi_collective(500, 600, "MPI_Scan")
            + (of_root(700, 800, "MPI_Bcast", 1, 3) if rank == 1 else of_other(700, 800, "MPI_Bcast", 1))
            + (of_root(900, 950, "MPI_Reduce", 2, 3) if rank == 2 else of_other(900, 950, "MPI_Reduce", 2))
            for rank in range(3)
        },
        [],
    ),
    Case(
        "barrier_without_a_missing_rank",
        "Rank 2 is not in the trace: the wait for the others is the least that there was.",
        {
            0: mpi_collective(100, 600, "MPI_Barrier"),
            1: mpi_collective(500, 610, "MPI_Barrier"),
        },
        [
            Wait("wait_at_barrier", 0, "MPI_Barrier", 1, 400, partial=True),  # 500 - 100
            Wait("barrier_completion", 1, "MPI_Barrier", 1, 10, partial=True),  # 610 - max(600, 500)
        ],
        job_ranks=3,
    ),
    Case(
        "allreduce",
        "Four ranks; the last to come is neither the first nor the last of them.",
        {
            0: mpi_collective(100, 800, "MPI_Allreduce"),
            1: mpi_collective(250, 810, "MPI_Allreduce"),
            2: mpi_collective(700, 790, "MPI_Allreduce"),
            3: mpi_collective(690, 790, "MPI_Allreduce"),
        },
        [
            Wait("wait_at_nxn", 0, "MPI_Allreduce", 1, 600),  # 700 - 100
            Wait("wait_at_nxn", 1, "MPI_Allreduce", 1, 450),  # 700 - 250
            Wait("wait_at_nxn", 3, "MPI_Allreduce", 1, 10),  # 700 - 690
            Wait("nxn_completion", 0, "MPI_Allreduce", 1, 10),  # 800 - max(790, 700)
            Wait("nxn_completion", 1, "MPI_Allreduce", 1, 20),  # 810 - max(790, 700)
        ],
    ),
    Case(
        "every_exchange_of_all_with_all",
        "Rank 1 is 10 ns late for the first, 20 ns for the second, ...; both leave at the same time.",
        {
            rank: [
                event
                for i, function in enumerate(EXCHANGES)
                for event in mpi_collective(1000 * i + 100 + rank * 10 * (i + 1), 1000 * i + 500, function)
            ]
            for rank in (0, 1)
        },
        [
            Wait("wait_at_nxn", 0, "MPI_Allgather", 1, 10),
            Wait("wait_at_nxn", 0, "MPI_Allgatherv", 1, 20),
            Wait("wait_at_nxn", 0, "MPI_Alltoall", 1, 30),
            Wait("wait_at_nxn", 0, "MPI_Alltoallv", 1, 40),
            Wait("wait_at_nxn", 0, "MPI_Alltoallw", 1, 50),
            Wait("wait_at_nxn", 0, "MPI_Reduce_scatter", 1, 60),
            Wait("wait_at_nxn", 0, "MPI_Reduce_scatter_block", 1, 70),
        ],
    ),
    Case(
        "broadcast_of_a_missing_root",
        "When rank 2, the root, came is unknown: nothing is guessed.",
        {
            0: of_other(100, 900, "MPI_Bcast", 2),
            1: of_other(500, 900, "MPI_Bcast", 2),
        },
        [],
        job_ranks=3,
    ),
    Case(
        "reduce_that_ranks_left_before_the_root_came",
        "That is allowed: the others need not wait, and the root finds everything there.",
        {
            0: of_other(100, 150, "MPI_Reduce", 2),
            1: of_other(200, 250, "MPI_Reduce", 2),
            2: of_root(700, 760, "MPI_Reduce", 2, 3),
        },
        [],
    ),
    Case(
        "early_exscan",
        "Rank 1 waits for rank 0, and not for rank 2, who comes last.",
        {
            0: mpi_collective(100, 110, "MPI_Exscan"),
            1: mpi_collective(50, 120, "MPI_Exscan"),
            2: mpi_collective(400, 410, "MPI_Exscan"),
        },
        [Wait("early_scan", 1, "MPI_Exscan", 1, 50)],  # 100 - 50
    ),
    Case(
        "several_communicators_at_once",
        "Ranks 0 and 1 reduce twice, 2 and 3 once, before all meet in a barrier.",
        {
            0: mpi_collective(100, 310, "MPI_Allreduce", communicator="left")
            + mpi_collective(320, 510, "MPI_Allreduce", communicator="left")
            + mpi_collective(520, 600, "MPI_Barrier"),
            1: mpi_collective(300, 310, "MPI_Allreduce", communicator="left")
            + mpi_collective(500, 510, "MPI_Allreduce", communicator="left")
            + mpi_collective(530, 600, "MPI_Barrier"),
            2: mpi_collective(100, 160, "MPI_Allreduce", communicator="right")
            + mpi_collective(200, 600, "MPI_Barrier"),
            3: mpi_collective(150, 160, "MPI_Allreduce", communicator="right")
            + mpi_collective(400, 600, "MPI_Barrier"),
        },
        [
            Wait("wait_at_nxn", 0, "MPI_Allreduce", 2, 380),  # (300 - 100) + (500 - 320)
            Wait("wait_at_nxn", 2, "MPI_Allreduce", 1, 50),  # 150 - 100
            Wait("wait_at_barrier", 0, "MPI_Barrier", 1, 10),  # 530 - 520
            Wait("wait_at_barrier", 2, "MPI_Barrier", 1, 330),  # 530 - 200
            Wait("wait_at_barrier", 3, "MPI_Barrier", 1, 130),  # 530 - 400
        ],
        {"left": Communicator("left", (0, 1)), "right": Communicator("right", (2, 3))},
    ),
    Case(
        "overlapped_collective",
        "Everybody posted before anybody waits: the time of the waits is transfer.",
        {
            0: call(100, 110, "MPI_Iallreduce", begun(1)) + call(400, 500, "MPI_Wait", ended("allreduce", 1)),
            1: call(300, 310, "MPI_Iallreduce", begun(1)) + call(350, 500, "MPI_Wait", ended("allreduce", 1)),
            2: call(200, 210, "MPI_Iallreduce", begun(1)) + call(360, 500, "MPI_Wait", ended("allreduce", 1)),
        },
        [],
    ),
    Case(
        "tested_collective",
        "Test calls never wait, although rank 1 posts while one runs that completes the collective.",
        {
            0: call(100, 110, "MPI_Ibarrier", begun(1))
            + call(200, 210, "MPI_Test", tested(1))
            + call(650, 810, "MPI_Test", ended("barrier", 1, sent=0, received=0)),
            1: call(700, 710, "MPI_Ibarrier", begun(1))
            + call(750, 810, "MPI_Wait", ended("barrier", 1, sent=0, received=0)),
        },
        [],
    ),
]
