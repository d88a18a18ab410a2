"""Wait states of messages computed by hand from their definitions (`wait_case.py`), before there was code for them.

A comment has the sum of each wait that its times do not show at once.
"""

from tests.ranks.wait_case import (
    Case,
    Communicator,
    Event,
    Wait,
    around,
    call,
    isend,
    mpi_irecv,
    mpi_isend,
    mpi_recv,
    mpi_send,
    mpi_sendrecv,
    received_by,
    sent_by,
    tested,
)

CASES = [
    Case(
        "messages_in_time",
        "Sends are over before their receives begin, the second one in the same nanosecond.",
        {
            0: mpi_send(100, 150, 1) + mpi_send(200, 600, 1),
            1: mpi_recv(300, 360, 0) + mpi_recv(600, 660, 0),
        },
        [],
    ),
    Case(
        "balanced_ping_pong",
        "Both ranks begin each message at the same moment.",
        {
            0: mpi_send(100, 200, 1) + mpi_recv(300, 400, 1),
            1: mpi_recv(100, 200, 0) + mpi_send(300, 400, 0),
        },
        [],
    ),
    Case(
        "late_senders_add_up",
        "Two receives of one function wait; the messages come in the order in which they are received.",
        {
            0: mpi_send(400, 450, 1) + mpi_send(850, 880, 1),
            1: mpi_recv(100, 500, 0) + mpi_recv(600, 900, 0),
        },
        [Wait("late_sender", 1, "MPI_Recv", 2, 550)],  # (400 - 100) + (850 - 600)
    ),
    Case(
        "wildcards_have_their_real_source",
        "Rank 2 receives from anybody: first from 1, then from 0.",
        {
            0: mpi_send(500, 540, 2, tag=7),
            1: mpi_send(300, 340, 2, tag=9),
            2: mpi_recv(100, 350, 1, tag=9) + mpi_recv(360, 550, 0, tag=7),
        },
        [Wait("late_sender", 2, "MPI_Recv", 2, 340)],  # (300 - 100) + (500 - 360)
    ),
    Case(
        "late_receiver",
        "A send that needs its receiver begins 500 ns before the receive.",
        {
            0: mpi_send(100, 700, 1),
            1: mpi_recv(600, 710, 0),
        },
        [Wait("late_receiver", 0, "MPI_Send", 1, 500)],  # 700 > 600, 600 - 100
    ),
    Case(
        "late_receivers_add_up",
        "Two sends of one tag meet their receives in order.",
        {
            0: mpi_send(100, 600, 1) + mpi_send(610, 900, 1),
            1: mpi_recv(500, 600, 0) + mpi_recv(800, 900, 0),
        },
        [Wait("late_receiver", 0, "MPI_Send", 2, 590)],  # (500 - 100) + (800 - 610)
    ),
    Case(
        "wait_of_an_isend",
        "Not MPI_Isend waits for the receiver, but the MPI_Wait that completes it.",
        {
            0: mpi_isend(100, 1, request=1) + call(200, 900, "MPI_Wait", sent_by(1)),
            1: mpi_recv(700, 910, 0),
        },
        [Wait("late_receiver", 0, "MPI_Wait", 1, 500)],  # 900 > 700, 700 - 200
    ),
    Case(
        "wait_of_an_isend_for_an_irecv",
        "What counts is when the receive was posted, not when rank 1 waits for it.",
        {
            0: mpi_isend(100, 1, request=1) + call(200, 900, "MPI_Wait", sent_by(1)),
            1: mpi_irecv(400, request=1) + call(600, 900, "MPI_Wait", received_by(0, 1)),
        },
        [Wait("late_receiver", 0, "MPI_Wait", 1, 200)],  # 900 > 400, 400 - 200; rank 1: 100 < 600
    ),
    Case(
        "wait_of_an_irecv",
        "The receive was posted early, and waits from MPI_Wait on.",
        {
            0: mpi_send(600, 700, 1),
            1: mpi_irecv(50, request=1) + call(200, 800, "MPI_Wait", received_by(0, 1)),
        },
        [Wait("late_sender", 1, "MPI_Wait", 1, 400)],  # 600 - 200, not 600 - 50; rank 0: 50 - 600 < 0
    ),
    Case(
        "waitall_of_sends",
        "Two sends complete in one call: it waits for the later receiver.",
        {
            0: mpi_isend(100, 1, request=1)
            + mpi_isend(120, 2, request=2)
            + call(200, 1000, "MPI_Waitall", sent_by(1), sent_by(2)),
            1: mpi_recv(500, 1000, 0),
            2: mpi_recv(900, 1000, 0),
        },
        [Wait("late_receiver", 0, "MPI_Waitall", 1, 700)],  # max(500, 900) - 200
    ),
    Case(
        "waitall_with_a_sender_in_time_has_a_late_receiver",
        "The message was there before the call, which waits for the receiver.",
        {
            0: mpi_irecv(10, request=1)
            + mpi_isend(100, 2, request=2)
            + call(300, 1000, "MPI_Waitall", received_by(1, 1), sent_by(2)),
            1: mpi_send(150, 170, 0),
            2: mpi_recv(900, 1000, 0),
        },
        [Wait("late_receiver", 0, "MPI_Waitall", 1, 600)],  # 1000 > 900, 900 - 300
    ),
    Case(
        "waitany_of_sends",
        "Each call waits only for the receiver of the send that completes in it.",
        {
            0: mpi_isend(100, 1, request=1)
            + mpi_isend(120, 2, request=2)
            + call(200, 600, "MPI_Waitany", sent_by(2))
            + call(610, 900, "MPI_Waitall", sent_by(1)),
            1: mpi_recv(850, 900, 0),
            2: mpi_recv(550, 600, 0),
        },
        [
            Wait("late_receiver", 0, "MPI_Waitany", 1, 350),  # 550 - 200
            Wait("late_receiver", 0, "MPI_Waitall", 1, 240),  # 850 - 610
        ],
    ),
    Case(
        "tests_of_receives_never_wait",
        "Although a message is sent while MPI_Test and MPI_Testall run that complete its receive.",
        {
            0: mpi_send(650, 660, 1) + mpi_send(850, 860, 1),
            1: mpi_irecv(10, request=1)
            + mpi_irecv(30, request=2)
            + call(100, 120, "MPI_Test", tested(1))
            + call(600, 710, "MPI_Test", received_by(0, 1))
            + call(800, 900, "MPI_Testall", received_by(0, 2)),
        },
        [],
    ),
    Case(
        "sendrecv_in_a_ring",
        "Each of three ranks sends to the next one and receives from the one before.",
        {
            0: mpi_sendrecv(100, 500, to=1, source=2),
            1: mpi_sendrecv(400, 500, to=2, source=0),
            2: mpi_sendrecv(300, 500, to=0, source=1),
        },
        [
            Wait("late_sender", 0, "MPI_Sendrecv", 1, 200),  # rank 2 at 300, - 100
            Wait("late_sender", 2, "MPI_Sendrecv", 1, 100),  # rank 1 at 400, - 300; rank 1: rank 0 at 100 < 400
        ],
    ),
    Case(
        "sendrecv_with_oneself",
        "A rank never waits for itself.",
        {
            0: mpi_sendrecv(100, 500, to=0, source=0),
            1: mpi_sendrecv(300, 350, to=1, source=1),
        },
        [],
    ),
    Case(
        "send_to_a_sendrecv",
        "Rank 1 passes a message on: it is late for the send of 0 and the receive of 2.",
        {
            0: mpi_send(100, 800, 1),
            1: mpi_sendrecv(700, 850, to=2, source=0),
            2: mpi_recv(650, 860, 1),
        },
        [
            Wait("late_receiver", 0, "MPI_Send", 1, 600),  # 800 > 700, 700 - 100
            Wait("late_sender", 2, "MPI_Recv", 1, 50),  # 700 - 650
        ],
    ),
    Case(
        "wrong_order_of_one_source",
        "Rank 1 receives the second message first, and could have had the first meanwhile.",
        {
            0: mpi_send(200, 210, 1, tag=1) + mpi_send(600, 640, 1, tag=2),
            1: mpi_recv(100, 650, 0, tag=2) + mpi_recv(660, 700, 0, tag=1),
        },
        [
            Wait("late_sender", 1, "MPI_Recv", 1, 500),  # 600 - 100
            Wait("wrong_order", 1, "MPI_Recv", 1, 500),  # sent at 600; the message received later at 200
        ],
    ),
    Case(
        "wrong_order_of_two_sources",
        "Rank 2 waits for rank 1 although the message of rank 0 was sent first.",
        {
            0: mpi_send(300, 310, 2),
            1: mpi_send(800, 840, 2),
            2: mpi_recv(100, 850, 1) + mpi_recv(860, 900, 0),
        },
        [
            Wait("late_sender", 2, "MPI_Recv", 1, 700),  # 800 - 100
            Wait("wrong_order", 2, "MPI_Recv", 1, 700),
        ],
    ),
    Case(
        "wrong_order_is_a_part",
        "Of two waits only the first is for a message that was sent after one that is received later.",
        {
            0: mpi_send(300, 310, 1, tag=1) + mpi_send(700, 740, 1, tag=2) + mpi_send(1000, 1040, 1, tag=3),
            1: mpi_recv(100, 750, 0, tag=2) + mpi_recv(760, 800, 0, tag=1) + mpi_recv(850, 1050, 0, tag=3),
        },
        [
            Wait("late_sender", 1, "MPI_Recv", 2, 750),  # (700 - 100) + (1000 - 850)
            Wait("wrong_order", 1, "MPI_Recv", 1, 600),  # 700 - 100
        ],
    ),
    Case(
        "one_message_makes_two_waits_wrong",
        "A message that was sent first is received last, after two waits, the second of them in a wait call.",
        {
            0: mpi_send(200, 210, 2),
            1: mpi_send(500, 510, 2, tag=1) + mpi_send(900, 910, 2, tag=2),
            2: mpi_recv(100, 550, 1, tag=1)
            + mpi_irecv(560, request=4)
            + call(600, 950, "MPI_Wait", received_by(1, 4, tag=2))
            + mpi_recv(960, 1000, 0),
        },
        [
            Wait("late_sender", 2, "MPI_Recv", 1, 400),  # 500 - 100
            Wait("late_sender", 2, "MPI_Wait", 1, 300),  # 900 - 600
            Wait("wrong_order", 2, "MPI_Recv", 1, 400),
            Wait("wrong_order", 2, "MPI_Wait", 1, 300),
        ],
    ),
    Case(
        "receives_match_as_they_were_posted",
        "Two receives of one source and tag complete in the opposite order: the first posted has the first message.",
        {
            0: mpi_send(1200, 1210, 1) + mpi_send(1500, 1510, 1),
            1: mpi_irecv(100, request=1)
            + mpi_irecv(200, request=2)
            + call(1000, 1600, "MPI_Wait", received_by(0, 2))
            + call(1700, 1710, "MPI_Wait", received_by(0, 1)),
        },
        [
            Wait("late_sender", 1, "MPI_Wait", 1, 500),  # the second message: 1500 - 1000
            Wait("wrong_order", 1, "MPI_Wait", 1, 500),  # the first message was sent at 1200, received later
        ],
    ),
    Case(
        "cancelled_receives_match_nothing",
        "A receive is cancelled before the message comes, which the next one gets.",
        {
            0: mpi_send(400, 420, 1),
            1: mpi_irecv(50, request=1)
            + call(70, 80, "MPI_Wait", Event("request_cancelled", request=1))
            + mpi_irecv(100, request=2)
            + call(200, 500, "MPI_Wait", received_by(0, 2)),
        },
        [Wait("late_sender", 1, "MPI_Wait", 1, 200)],  # 400 - 200
    ),
    Case(
        "messages_without_a_partner",
        "Nobody receives tag 5, nobody sends tag 6, and calls with MPI_PROC_NULL have no message.",
        {
            0: mpi_send(100, 900, 1, tag=5) + call(910, 920, "MPI_Send") + mpi_send(1000, 1020, 1, tag=8),
            1: mpi_recv(200, 700, 0, tag=6) + call(710, 720, "MPI_Recv") + mpi_recv(950, 1030, 0, tag=8),
        },
        [Wait("late_sender", 1, "MPI_Recv", 1, 50)],  # tag 8: 1000 - 950
    ),
    Case(
        "messages_of_a_missing_rank",
        "Rank 2 is not in the trace: what was sent to it, or came from it, has no waits.",
        {
            0: mpi_send(100, 900, 2) + mpi_send(950, 970, 1),
            1: mpi_recv(200, 700, 2) + mpi_recv(750, 980, 0),
        },
        [Wait("late_sender", 1, "MPI_Recv", 1, 200)],  # 950 - 750
        job_ranks=3,
    ),
    Case(
        "chain_of_late_senders",
        "Rank 0 computes 10 ms longer: it is late for rank 1, and therefore 1 for 2.",
        {
            0: around(0, 20_000_000, "compute") + mpi_send(20_000_000, 20_100_000, 1),
            1: around(0, 10_000_000, "compute")
            + mpi_recv(10_000_000, 20_100_000, 0)
            + mpi_send(20_100_000, 20_200_000, 2),
            2: around(0, 10_100_000, "compute") + mpi_recv(10_100_000, 20_200_000, 1),
        },
        [
            Wait("late_sender", 1, "MPI_Recv", 1, 10_000_000),  # 20.0 - 10.0 ms
            Wait("late_sender", 2, "MPI_Recv", 1, 10_000_000),  # 20.1 - 10.1 ms
        ],
    ),
    Case(
        "persistent_sends",
        "MPI_Start is the send of each round; the first is late, the second too early.",
        {
            0: call(10, 20, "MPI_Send_init")
            + call(500, 510, "MPI_Start", isend(1, 1))
            + call(520, 560, "MPI_Wait", sent_by(1))
            + call(1000, 1010, "MPI_Start", isend(1, 2))
            + call(1020, 1300, "MPI_Wait", sent_by(2)),
            1: mpi_recv(200, 600, 0) + mpi_recv(1200, 1300, 0),
        },
        [
            Wait("late_sender", 1, "MPI_Recv", 1, 300),  # 500 - 200
            Wait("late_receiver", 0, "MPI_Wait", 1, 180),  # 1300 > 1200, 1200 - 1020
        ],
    ),
    Case(
        "matched_probe",
        "The probe waits for the message; the receive after it does not.",
        {
            0: mpi_send(600, 620, 1),
            1: call(100, 650, "MPI_Mprobe", Event("probe", peer=0, sent=8, request=1))
            + call(660, 700, "MPI_Mrecv", Event("mrecv", sent=8, request=1)),
        },
        [Wait("late_sender", 1, "MPI_Mprobe", 1, 500)],  # 600 - 100
    ),
    Case(
        "sends_at_two_places",
        "The same for sends, deeper in the program.",
        {
            0: around(
                0,
                2000,
                "main",
                around(90, 600, "scatter_rows", mpi_send(100, 590, 1)),
                around(700, 1000, "scatter_columns", mpi_send(710, 990, 1)),
            ),
            1: around(0, 2000, "main", mpi_recv(500, 590, 0), mpi_recv(800, 990, 0)),
        },
        [
            Wait("late_receiver", 0, "MPI_Send", 1, 400, within="scatter_rows"),  # 500 - 100
            Wait("late_receiver", 0, "MPI_Send", 1, 90, within="scatter_columns"),  # 800 - 710
        ],
    ),
    Case(
        "peers_are_ranks_of_the_communicator",
        "In the communicator rank 3 of the job is 0, and rank 1 is 1.",
        {
            0: around(0, 1000, "compute"),
            1: mpi_recv(100, 650, 0, communicator="odd"),
            2: around(0, 1000, "compute"),
            3: mpi_send(600, 640, 1, communicator="odd"),
        },
        [Wait("late_sender", 1, "MPI_Recv", 1, 500)],  # 600 - 100
        {"odd": Communicator("odd", (3, 1))},
    ),
]
