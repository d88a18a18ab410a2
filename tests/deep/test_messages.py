"""The communication matrix: messages written by hand, with sums computed on paper."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strobe.errors import UsageError
from strobe.server.time_range.message_lines import message_lines
from strobe.server.time_range.message_matrix import message_matrix
from strobe.server.trace_context import TraceContext
from tests.public import FOLDER
from tests.unit.hand_made import ZERO_NS, HandMadeProcess, make_trace, span

WORLD = "MPI_COMM_WORLD"


class Rank(HandMadeProcess):
    """A rank on a host of its own name that ran from 0 to 1000 ns, with rows of `messages` and other tables."""

    def __init__(self, rank, *rows, host="here", clock_error_ns=0, spans=()):
        tables = [span("", at, at, tables={table: row}) for at, (table, row) in enumerate(rows)]
        main = span("main", 0, 1000, *tables, *spans)
        quality = {"clock_error_ns": clock_error_ns} if clock_error_ns else {}
        super().__init__({"main": [main]}, pid=100 + rank, main=rank == 0, rank=rank, quality=quality)
        self.host = host
        for table in self.tables():
            self.table(table)  # numbers all texts, which a trace reads once

    def process(self):
        return {**super().process(), "host": self.host}


def message(direction, peer, time_ns, size_bytes, **more):
    row = {"direction": direction, "peer_rank": peer, "time_ns": ZERO_NS + time_ns, "size_bytes": size_bytes}
    return "messages", {**row, "tag": 0, "communicator": WORLD, **more}


def send(peer, time_ns, size_bytes, **more):
    return message("send", peer, time_ns, size_bytes, **more)


def receive(peer, time_ns, size_bytes, **more):
    # The call is the region around all rows, unless it is left to the spans.
    path = {"call_path": 0} if "in_call_ns" in more else {}
    return message("receive", peer, time_ns, size_bytes, **path, **more)


def totals(function, peer, sent, received=0, calls=1):
    row = {"function": function, "communicator": WORLD, "calls": calls, "sent_bytes": sent, "received_bytes": received}
    return "message_totals", row if peer is None else {**row, "peer_rank": peer}


def rows(trace, *columns, **options):
    return [tuple(row[column] for column in columns) for row in trace.messages(**options).to_pylist()]


PAIR = ("kind", "sender", "receiver", "messages", "total_bytes")


def test_a_pair_has_the_sums_of_its_messages():
    # The first receive waits from 50 on for what is sent at 100; the second comes to what was sent at 300 only at 400;
    # the third was requested at 500 and is complete at 700: 300 after it was sent, and 200 after the request.
    trace = make_trace(
        Rank(0, send(1, 100, 10), send(1, 300, 30), send(1, 400, 80, pending_ns=20, request=1)),
        Rank(
            1,
            receive(0, 200, 10, in_call_ns=150),
            receive(0, 450, 30, in_call_ns=50),
            receive(0, 700, 80, pending_ns=200, in_call_ns=10, request=1),
        ),
    )
    (row,) = trace.messages().to_pylist()
    assert row == {
        "kind": "message",
        "sender": 0,
        "receiver": 1,
        "messages": 3,
        "unmatched": 0,
        "total_bytes": 120,
        "min_bytes": 10,
        "mean_bytes": 40,
        "max_bytes": 80,
        "duration_mean_ns": pytest.approx((100 + 150 + 300) / 3),
        "duration_max_ns": 300,
        "transfer_mean_ns": pytest.approx((100 + 50 + 200) / 3),
        "transfer_max_ns": 200,
        "rate_gb_s": pytest.approx(120 / 350),
        "late_sender_ns": 0,
        "late_receiver_ns": 0,
    }


def test_the_n_th_send_is_the_n_th_receive_in_the_order_of_requests():
    # What was requested first is complete last, and has the bytes of what was sent first.
    trace = make_trace(
        Rank(0, send(1, 100, 8), send(1, 110, 800)),
        Rank(
            1,
            receive(0, 300, 800, pending_ns=200, request=2),
            receive(0, 500, 8, pending_ns=450, request=1),
        ),
    )
    sizes = rows(trace, "from_bytes", "duration_max_ns", by="size")
    assert sizes == [(8, 400), (512, 190)]


def test_messages_to_oneself_are_on_the_diagonal_and_one_sided_communication_has_its_direction():
    trace = make_trace(
        Rank(
            0,
            send(0, 10, 5),
            receive(0, 20, 5, in_call_ns=5),
            message("put", 1, 30, 100, tag=None),
            message("get", 1, 40, 200, tag=None),
            message("atomic", 1, 50, 16, tag=None),
            message("get", 1, 60, 50, tag=None),
        ),
        Rank(1),
    )
    assert rows(trace, *PAIR) == [
        ("get", 1, 0, 2, 250),
        ("put", 0, 1, 1, 100),
        ("atomic", 0, 1, 1, 16),
        ("message", 0, 0, 1, 5),
    ]


def test_messages_with_one_end_count_without_times():
    # Two sends of tag 7 and one receive: that of the first, as none overtakes another. Rank 9 is not in the trace.
    trace = make_trace(
        Rank(0, send(1, 10, 100, tag=7), send(1, 20, 200, tag=7), receive(9, 30, 7), send(1, 40, 64)),
        Rank(1, receive(0, 50, 100, tag=7), receive(0, 60, 32, in_call_ns=5), send(9, 70, 9)),
    )
    columns = "sender", "receiver", "messages", "unmatched", "total_bytes", "duration_max_ns"
    assert rows(trace, *columns) == [(0, 1, 3, 1, 364, 40), (1, 9, 1, 1, 9, None), (9, 0, 1, 1, 7, None)]
    assert trace.messages().note.startswith("2 sends and 1 receive have no other end in this trace")


def test_the_same_messages_by_tag_communicator_size_and_host():
    trace = make_trace(
        Rank(0, send(1, 10, 0, tag=1), send(1, 20, 1, tag=2), send(2, 30, 3, tag=2, communicator="halo")),
        Rank(1, receive(0, 110, 0, tag=1), receive(0, 120, 1, tag=2), send(2, 200, 4, tag=1)),
        Rank(2, receive(0, 130, 3, tag=2, communicator="halo"), receive(1, 300, 4, tag=1), host="there"),
    )
    assert rows(trace, "tag", "messages", "total_bytes", by="tag") == [(1, 2, 4), (2, 2, 4)]
    found = rows(trace, "communicator", "messages", "total_bytes", by="communicator")
    assert found == [(WORLD, 3, 5), ("halo", 1, 3)]
    assert rows(trace, "from_bytes", "messages", by="size") == [(0, 1), (1, 1), (2, 1), (4, 1)]
    found = rows(trace, "sender_host", "receiver_host", "messages", "total_bytes", by="node")
    assert found == [("here", "there", 2, 7), ("here", "here", 2, 1)]


def test_messages_between_clusters_are_those_of_the_pairs_in_them():
    def rank(number, work, *ends):
        return Rank(number, *ends, spans=[span(work, 0, 900)])

    trace = make_trace(
        rank(0, "solve", send(1, 910, 8), send(2, 920, 16)),
        rank(1, "solve", receive(0, 930, 8), send(2, 940, 32)),
        rank(2, "write", receive(0, 950, 16), receive(1, 960, 32), send(3, 970, 64)),
        rank(3, "write", receive(2, 980, 64)),
    )
    cluster = {row["rank"]: row["cluster"] for row in trace.clusters(by="rank").to_pylist()}
    assert len(set(cluster.values())) > 1
    expected = Counter[tuple[int, int]]()
    for sender, receiver, total in ((0, 1, 8), (0, 2, 16), (1, 2, 32), (2, 3, 64)):
        expected[cluster[sender], cluster[receiver]] += total
    found = rows(trace, "sender_cluster", "receiver_cluster", "total_bytes", by="cluster")
    assert {(sender, receiver): total for sender, receiver, total in found} == expected


def test_a_transfer_below_twice_the_error_of_the_clocks_has_no_rate():
    def rates(took_ns, host):
        here = Rank(0, send(1, 100, 90))
        there = Rank(1, receive(0, 100 + took_ns, 90, in_call_ns=500), host=host, clock_error_ns=30)
        return rows(make_trace(here, there), "transfer_max_ns", "rate_gb_s")

    assert rates(59, "there") == [(59, None)]
    assert rates(60, "there") == [(60, 1.5)]
    assert rates(30, "here") == [(30, 3)]  # one clock


def test_calls_are_those_that_completed_a_message_and_what_called_them():
    call = span("MPI_Send", 90, 120, paradigm="mpi", role="p2p")
    waits = span("MPI_Recv", 50, 140, paradigm="mpi", role="p2p")
    # Without the time in the call, as in files of other tools, it is that of the span around the moment.
    trace = make_trace(Rank(0, send(1, 100, 8), spans=[call]), Rank(1, receive(0, 140, 8), spans=[waits]))
    columns = "sender_call", "receiver_call", "messages", "transfer_max_ns"
    assert rows(trace, *columns, by="call") == [("MPI_Send < main", "MPI_Recv < main", 1, 40)]


def test_a_pair_has_what_its_receiver_waited_for_its_sender_and_the_other_way_round():
    # Rank 1 comes to its receive 50 before the send; of the second message, the send comes 60 before the receive.
    trace = make_trace(
        Rank(
            0,
            send(1, 100, 8),
            send(1, 300, 8),
            send(2, 600, 8),
            spans=[
                span(*each, paradigm="mpi", role="p2p") for each in (("MPI_Send", 100, 120), ("MPI_Ssend", 300, 400))
            ],
        ),
        Rank(
            1,
            receive(0, 140, 8),
            receive(0, 410, 8),
            spans=[span(*each, paradigm="mpi", role="p2p") for each in (("MPI_Recv", 50, 140), ("MPI_Recv", 360, 410))],
        ),
        Rank(2, message("put", 0, 700, 1)),
    )
    waits = "late_sender_ns", "late_receiver_ns"
    assert rows(trace, *PAIR, *waits) == [
        ("message", 0, 1, 2, 16, 50, 60),
        ("message", 0, 2, 1, 8, None, None),
        ("put", 2, 0, 1, 1, None, None),
    ]
    assert rows(trace, "messages", *waits, by="node") == [(3, 50, 60), (1, None, None)]


def test_what_only_the_totals_have_is_in_the_row_of_its_pair():
    # The log has 8 of the 100 bytes to rank 1, and nothing of what was got from it. Rank 9 is not in the trace.
    trace = make_trace(
        Rank(
            0,
            send(1, 10, 8),
            send(2, 20, 5),
            totals("MPI_Send", 1, 60),
            totals("MPI_Isend", 1, 40),
            totals("MPI_Send", 2, 5),
            totals("MPI_Rget", 1, 0, 24),
            totals("MPI_Get_accumulate", 1, 3, 4),
            totals("MPI_Recv", 9, 0, 11),
            totals("MPI_Allreduce", None, 1000, 1000),
        ),
        Rank(1, receive(0, 30, 8), totals("MPI_Recv", 0, 0, 100)),
        Rank(2, receive(0, 40, 5), totals("MPI_Recv", 0, 0, 5)),
    )
    assert rows(trace, *PAIR, "mean_bytes") == [
        ("message", 0, 1, None, 100, None),
        ("get", 1, 0, None, 24, None),
        ("message", 9, 0, None, 11, None),
        ("atomic", 0, 1, None, 7, None),
        ("message", 0, 2, 1, 5, 5),
    ]
    assert trace.messages().note.startswith("134 B are known by the totals of the run only")


def gathered(rank, start_ns, size, sent, received):
    """Return an all-gather of 100 ns in a communicator of so many ranks."""
    row = {"collective": "allgather", "communicator": WORLD, "group_size": size, "rank": rank}
    table = {"collective_spans": {**row, "sent_bytes": sent, "received_bytes": received}}
    return span("MPI_Allgather", start_ns, start_ns + 100, paradigm="mpi", role="collective", tables=table)


def test_an_all_gather_goes_from_each_to_each_if_all_are_in_the_trace():
    # Rank 0 gives 8 and 1 bytes, rank 1 gives 20 and 1: each sends them to both, itself included.
    trace = make_trace(
        Rank(0, spans=[gathered(0, 100, 2, 16, 28), gathered(0, 300, 2, 2, 2)]),
        Rank(1, spans=[gathered(1, 110, 2, 40, 28), gathered(1, 310, 2, 2, 2)]),
    )
    assert rows(trace, *PAIR) == []
    found = rows(trace, *PAIR, "min_bytes", "max_bytes", collectives="as-data")
    assert sorted(found) == [
        ("allgather", sender, receiver, 2, size + 1, 1, size)
        for sender, size in ((0, 8), (1, 20))
        for receiver in (0, 1)
    ]
    columns = "kind", "communicator", "messages", "total_bytes", "mean_bytes"
    of_all = [("allgather", WORLD, 8, 60, 7.5)]
    assert rows(trace, *columns, by="communicator", collectives="as-data") == of_all

    without_one = make_trace(Rank(0, spans=[gathered(0, 100, 3, 24, 36)]), Rank(1, spans=[gathered(1, 110, 3, 60, 36)]))
    table = without_one.messages(collectives="as-data")
    assert len(table) == 0
    assert table.note.startswith("left out: 1 collective ")


PROGRAMS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 1), st.integers(0, 100)), max_size=30
)


@given(PROGRAMS, st.randoms(use_true_random=False))
def test_whatever_is_sent_arrives_in_its_column(program, chance):
    """Messages are sent one after the other, and received after all were sent, in any order that MPI allows."""
    own = {rank: [] for rank in range(4)}
    for at, (sender, receiver, tag, size) in enumerate(program):
        own[sender].append(send(receiver, 1 + at, size, tag=tag))
    order = list(range(len(program)))
    chance.shuffle(order)
    waiting = {}
    for sender, receiver, tag, size in program:
        waiting.setdefault((sender, receiver, tag), []).append(size)
    for done, at in enumerate(order):
        sender, receiver, tag, _ = program[at]
        size = waiting[sender, receiver, tag].pop(0)
        own[receiver].append(receive(sender, 500 + done, size, tag=tag, in_call_ns=1))
    trace = make_trace(*(Rank(rank, *found) for rank, found in own.items()))
    expected = Counter(each[:2] for each in program)
    bytes_of = Counter()
    for sender, receiver, _, size in program:
        bytes_of[sender, receiver] += size
    found = {row[1:3]: row[3:] for row in rows(trace, *PAIR, "unmatched")}
    assert found == {pair: (count, bytes_of[pair], 0) for pair, count in expected.items()}
    for by in ("size", "tag", "call"):
        assert sum(row[0] for row in rows(trace, "total_bytes", by=by)) == bytes_of.total()


def test_a_picture_has_the_sum_of_its_tile_and_the_most_of_a_pair():
    trace = make_trace(
        Rank(0, send(1, 10, 10), send(1, 20, 20), send(3, 30, 100), message("put", 3, 40, 7), send(1, 900, 1)),
        Rank(1, send(0, 15, 5), receive(0, 50, 10)),
        Rank(2),
        Rank(3),
        Rank(4),
    )
    facts = TraceContext(trace, Path())

    def picture(*window, **options):
        table = message_matrix(facts, *window, **options)
        assert table.schema.metadata[b"ranks"] == b"5"
        return [tuple(row.values()) for row in table.to_pylist()]

    # Ranks 0 to 2 and 3 to 4. From 0 to 1 there are 2 messages with 30 bytes until 500, from 1 to 0 one with 5.
    assert picture(0, 500, tiles=2) == [(0, 0, 3, 2, 35, 30), (0, 1, 1, 1, 100, 100)]
    assert picture(0, 500) == [(0, 1, 2, 2, 30, 30), (0, 3, 1, 1, 100, 100), (1, 0, 1, 1, 5, 5)]
    assert picture(20, 30) == [(0, 1, 1, 1, 20, 20)]
    assert picture(0, 500, kind="one_sided", tiles=1) == [(0, 0, 1, 1, 7, 7)]


def test_steps_that_are_not_there_are_refused_in_a_sentence():
    with pytest.raises(UsageError, match="no steps were found"):
        make_trace(Rank(0, send(1, 10, 8)), Rank(1)).messages(step="3")


def test_a_trace_without_messages_explains_itself():
    table = make_trace(Rank(0), Rank(1)).messages()
    assert (len(table), table.note.split(":")[0]) == (0, "no messages in this trace")


def test_a_public_trace_has_the_times_that_the_official_reader_finds(public):
    archives = pytest.importorskip("tests.formats.otf2_archives")
    trace = public("otf2/ping-pong-otf2")
    told = archives.oracle(FOLDER / "otf2/ping-pong-otf2/traces.otf2")
    expected = []
    for sender, receiver in ((0, 1), (1, 0)):
        # One tag at a time, and in order: the n-th of a side is the n-th of the other. Ranks are in order of location.
        sides = [sorted({each[0] for each in told.sends})[rank] for rank in (sender, receiver)]
        sends = [each for each in told.sends if each[0] == sides[0]]
        receives = [each for each in told.receives if each[0] == sides[1]]
        calls = sorted(start for at, name, start, _ in told.spans if (at, name) == (sides[1], "MPI_Recv"))
        both = list(zip(sends, receives, calls, strict=True))
        assert all(send[3:6] == receive[3:6] for send, receive, _ in both)
        duration = [receive[1] - send[1] for send, receive, _ in both]
        transfer = [receive[1] - max(send[1], call) for send, receive, call in both]
        sizes = sum(send[5] for send, _, _ in both)
        expected.append((sender, receiver, len(both), sizes, max(duration), max(transfer), sizes / sum(transfer)))
    columns = "messages", "total_bytes", "duration_max_ns", "transfer_max_ns", "rate_gb_s"
    assert sorted(rows(trace, "sender", "receiver", *columns)) == [pytest.approx(row) for row in expected]
    assert sum(row[2] for row in expected) == 16


def test_lines_of_messages_go_from_the_send_to_the_receive_or_there_are_too_many(monkeypatch):
    facts = TraceContext(
        make_trace(
            Rank(0, send(1, 10, 10), send(1, 20, 20), send(1, 700, 1), send(1, 995, 1)),
            Rank(1, receive(0, 50, 10), receive(0, 60, 20), receive(0, 710, 1)),
        ),
        Path(),
    )
    # The last send has no receive in the trace: nothing is known of the order of any of the four.
    assert message_lines(facts, 0, 1000)["count"] == 0
    facts = TraceContext(
        make_trace(
            Rank(0, send(1, 10, 10), send(1, 20, 20), send(1, 700, 1)),
            Rank(1, receive(0, 50, 10), receive(0, 60, 20), receive(0, 710, 1)),
        ),
        Path(),
    )
    found = message_lines(facts, 30, 100)
    assert list(zip(found["sent_ns"], found["received_ns"], strict=True)) == [(10, 50), (20, 60)]
    assert set(zip(found["from_location"], found["to_location"], strict=True)) == {(0, 1)}
    assert message_lines(facts, 55, 100)["count"] == 1
    monkeypatch.setattr("strobe.server.time_range.message_lines.MOST_LINES", 2)
    found = message_lines(facts, 0, 1000)
    assert (found["count"], found["sent_ns"]) == (3, [])
