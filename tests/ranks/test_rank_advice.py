"""Advice about ranks on programs whose times are given by hand: each rule on one that has the problem, and one not.

Times are in µs, of 20 steps of 10 ms. A rank computes until it calls, and a call takes 10 µs beyond its waits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import strobe
from strobe.advice.rank import BESIDE, findings
from strobe.model.plugins import Finding
from strobe.present.summary import summarise
from tests.ranks import wait_archives
from tests.ranks.wait_case import (
    Case,
    Event,
    around,
    call,
    isend,
    mpi_collective,
    mpi_recv,
    mpi_send,
    of_other,
    of_root,
    posted,
    receive,
    received_by,
    send,
    sent_by,
)
from tests.unit.hand_made import ZERO_NS, HandMadeProcess, make_trace, span

STEPS, STEP = 20, 10_000
Step = list[Event]


def work(start: int, end: int, name: str) -> Step:
    return around(1000 * start, 1000 * end, name)


def collective(start: int, end: int, function: str) -> Step:
    return mpi_collective(1000 * start, 1000 * end, function)


def late_sum(start: int) -> Step:
    """The all-reduce that ends the step of a moment; the last rank comes 10 us before its end at the latest."""
    return collective(start, (start // STEP + 1) * STEP, "MPI_Allreduce")


def advice(folder: Path, ranks: int, step: Callable[[int, int, int], Step]) -> dict[str, Finding]:
    """Findings about ranks by rule, of a program whose rank r does step(r, n, begin) in step n."""
    events = {rank: [each for n in range(STEPS) for each in step(rank, n, n * STEP)] for rank in range(ranks)}
    with strobe.open(wait_archives.write(Case("", "", events, []), folder / "archive")) as trace:
        found = [each for each in findings(trace) if each.rule.startswith("rank.")]
    assert len({each.rule for each in found}) == len(found)
    return {each.rule: each for each in found}


def uneven(rank: int, at: int, extra: int) -> Step:
    """Rank 2 computes longer, 5 ms + extra."""
    until = at + 5000 + extra * (rank == 2)
    return work(at, until, "relax") + late_sum(until)


def test_the_rank_that_has_more_work_is_named_with_its_function(tmp_path: Path) -> None:
    found = advice(tmp_path, 4, lambda rank, _, at: uneven(rank, at, 4000))["rank.waits"]
    # Three of four wait 4 ms for rank 2: 3 ms in the mean, which is what even work would save; half of that for sure.
    assert "3.00 ms of a step for one another, 30 % of it (mean of 4 ranks)" in found.what
    assert "rank 2, because of `relax`, which takes it longer than the others" in found.what
    assert "rank 2 less of `relax`" in found.do
    assert found.gain_low_ns == pytest.approx(2_100_000, rel=0.01)
    assert found.gain_high_ns == pytest.approx(4_000_000, rel=0.01)


def test_work_that_is_a_little_uneven_is_no_finding(tmp_path: Path) -> None:
    assert not advice(tmp_path, 4, lambda rank, _, at: uneven(rank, at, 400))


def test_a_rank_that_is_late_in_turn_is_not_blamed(tmp_path: Path) -> None:
    def step(rank: int, n: int, at: int) -> Step:
        late = n % 4 == rank
        return work(at, at + 5000, "relax") + work(at + 5000, at + 5000 + 4000 * late + 10, "checkpoint") + late_sum(
            at + 5010 + 4000 * late
        )  # fmt: skip

    found = advice(tmp_path, 4, step)["rank.waits"]
    assert "because of `checkpoint`, on another rank each time" in found.what
    assert "`checkpoint` in the same step" in found.do


def test_noise_that_makes_any_rank_late_now_and_then_has_no_cause(tmp_path: Path) -> None:
    def step(rank: int, n: int, at: int) -> Step:
        until = at + 5000 + (4900 if n % 5 == 2 and n // 5 == rank else 10 * ((rank + n) % 4))
        return work(at, until, "relax") + late_sum(until)

    found = advice(tmp_path, 4, step)
    assert found["rank.waits"].informative
    assert "because of" not in found["rank.waits"].what


def borders(rank: int, at: int, *, first: bool) -> Step:
    """Rank 0 sends to rank 1; both take statistics of 4 ms, rank 0 before it sends (`first`) or after."""
    if rank == 1:
        got = at + 4000 * first + 20
        return mpi_recv(1000 * at, 1000 * got, 0) + work(got, got + 4000, "statistics") + late_sum(got + 4000)
    sends = at + 4000 * first
    parts = mpi_send(1000 * sends, 1000 * (sends + 10), 1)
    own = work(at, at + 4000, "statistics") if first else work(at + 10, at + 4010, "statistics")
    until = sends + 10 if first else at + 4010
    return (own + parts if first else parts + own) + late_sum(until)


def test_what_a_late_sender_does_before_it_sends_is_named(tmp_path: Path) -> None:
    found = advice(tmp_path, 2, lambda rank, _, at: borders(rank, at, first=True))["rank.waits"]
    assert "for rank 0, because of `statistics`, which it does before it sends" in found.what
    assert "let rank 0 send first, and do `statistics` after that" in found.do


def test_a_sender_that_sends_first_is_not_late(tmp_path: Path) -> None:
    assert not advice(tmp_path, 2, lambda rank, _, at: borders(rank, at, first=False))


def chain(rank: int, at: int, *, waits: bool) -> Step:
    """Ranks sweep 2 ms: all at once, or each when it has the message of the one before."""
    begin = at + 2020 * rank if waits else at + 20
    parts = mpi_recv(1000 * at, 1000 * begin, rank - 1) if rank and waits else []
    parts = parts + work(begin, begin + 2000, "sweep")
    end = begin + 2000
    if rank < 3:
        parts += mpi_send(1000 * end, 1000 * (end + 10), rank + 1)
    if rank and not waits:
        parts += mpi_recv(1000 * (end + 10), 1000 * (end + 30), rank - 1)
    return parts + late_sum(end + 30)


def test_ranks_that_work_one_after_the_other_are_serialised(tmp_path: Path) -> None:
    found = advice(tmp_path, 4, lambda rank, _, at: chain(rank, at, waits=True))["rank.waits"]
    assert "ranks do `sweep` one after the other" in found.what
    assert found.do.startswith("send before `sweep` what does not depend on it")


def test_ranks_that_send_after_working_at_once_are_not(tmp_path: Path) -> None:
    assert not advice(tmp_path, 4, lambda rank, _, at: chain(rank, at, waits=False))


def frame(rank: int, at: int, written_by: range) -> Step:
    """After a gather, some ranks write for 4 ms before the broadcast of rank 0."""
    call = of_root(1000 * (at + 3000), 1000 * (at + 3010), "MPI_Gather", 0, 4) if rank == 0 else of_other(
        1000 * (at + 3000), 1000 * (at + 3010), "MPI_Gather", 0
    )  # fmt: skip
    writes = rank in written_by
    begin = at + 3010 + 4000 * writes
    last = (1000 * begin, 1000 * (at + 7030), "MPI_Bcast", 0)
    parts = work(at, at + 3000, "render") + call
    if writes:
        parts += work(at + 3010, begin, "write")
    return parts + (of_root(*last, 4) if rank == 0 else of_other(*last)) + work(at + 7030, at + 9990, "show")


def test_serial_work_of_the_root_is_told_from_uneven_work(tmp_path: Path) -> None:
    found = advice(tmp_path, 4, lambda rank, _, at: frame(rank, at, range(1)))["rank.waits"]
    assert "for rank 0, because of `write`, which the root does alone while the others wait" in found.what
    assert found.do.startswith("divide `write` among the ranks")


def test_work_that_all_do_beside_the_root_is_none(tmp_path: Path) -> None:
    assert not advice(tmp_path, 4, lambda rank, _, at: frame(rank, at, range(4)))


def phases(rank: int, at: int, *, opposite: bool) -> Step:
    """Two phases with a barrier in between: ranks that are long in the first are short in the second, or in both."""
    first = 6000 if rank % 2 else 2000
    second = 8000 - first if opposite else first - 2000
    end = at + 6010 + second
    return (
        work(at, at + first, "collide")
        + collective(at + first, at + 6010, "MPI_Barrier")
        + work(at + 6010, end, "stream")
        + mpi_collective(1000 * end, 1000 * (at + 12_020 if opposite else at + 10_020), "MPI_Allreduce")
    )


def test_a_barrier_between_phases_that_even_out_is_named_alone(tmp_path: Path) -> None:
    found = advice(tmp_path, 4, lambda rank, n, at: phases(rank, at + 3000 * n, opposite=True))
    assert list(found) == ["rank.barrier"]
    # Ranks would take 2 + 6 or 6 + 2 ms instead of 6 + 6.
    assert found["rank.barrier"].gain_high_ns == pytest.approx(4_000_000, rel=0.02)
    assert "MPI_Allreduce after it synchronises the same ranks" in found["rank.barrier"].do


def test_a_barrier_at_which_the_same_ranks_come_late_gains_nothing(tmp_path: Path) -> None:
    found = advice(tmp_path, 4, lambda rank, n, at: phases(rank, at + 3000 * n, opposite=False))
    assert list(found) == ["rank.waits"]


def column(rank: int, at: int, count: int, each_us: int) -> Step:
    """Rank 0 sends rank 1 messages of 8 bytes in a row."""
    parts = work(at, at + 2000, "advance")
    for now in range(at + 2000, at + 2000 + count * each_us, each_us):
        parts += (mpi_recv if rank else mpi_send)(1000 * now, 1000 * now + 900 * each_us, 1 - rank)
    end = at + 2000 + count * each_us
    return parts + work(end, at + 9900, "advance") + late_sum(at + 9900)


def test_many_small_messages_are_counted_and_timed(tmp_path: Path) -> None:
    found = advice(tmp_path, 2, lambda rank, _, at: column(rank, at, 50, 40))["rank.small_messages"]
    # 50 of 36 µs are 1.8 ms of 10 ms; of the step at one end of the loop they may lie outside.
    assert "rank 0 sends rank 1 50 messages of 8 B in a row" in found.what
    assert "18 %, in MPI_Send" in found.what
    assert found.gain_high_ns == pytest.approx(1_800_000 * 49 / 50, rel=1 / STEPS + 0.01)


@pytest.mark.parametrize(("count", "each_us"), [(8, 250), (50, 4)])
def test_few_messages_or_short_ones_are_none(tmp_path: Path, count: int, each_us: int) -> None:
    assert "rank.small_messages" not in advice(tmp_path, 2, lambda rank, _, at: column(rank, at, count, each_us))


@pytest.mark.parametrize("waits", [True, False])
def test_the_verdict_of_ranks_that_wait_has_the_share_of_it(tmp_path: Path, *, waits: bool) -> None:
    steps = {rank: [each for n in range(STEPS) for each in chain(rank, n * STEP, waits=waits)] for rank in range(4)}
    with strobe.open(wait_archives.write(Case("", "", steps, []), tmp_path / "archive")) as trace:
        verdict = summarise(trace).verdict
    # They wait 0, 2.00, 4.02 and 6.04 ms for messages, then 6.06, 4.04, 2.02 and 0 ms for the last: 24.18 of 40 ms.
    assert ("ranks wait 60 % of their steps" in verdict.text) == waits


def ring(rank: int, at: int, took_us: Callable[[int, int], int], *, blocking: bool = True, late: int = 0) -> Step:
    """Of eight ranks, each even one sends the next one 64 KiB ten times, 800 us apart; each receive comes first."""
    parts = work(at, at + 1000, "advance")
    for n in range(10):
        now = at + 1000 + 800 * n
        message = {"peer": rank ^ 1, "sent": 65536}
        if rank % 2 == 0:
            name, when = ("MPI_Send", (now + 10, now + 20)) if blocking else ("MPI_Isend", (now + 10, now + 12))
            parts += call(1000 * when[0], 1000 * when[1], name, send(**message)) if blocking else call(
                1000 * when[0], 1000 * when[1], name, isend(**message, request=n)
            ) + work(now + 12, now + 700, "overlap") + call(
                1000 * (now + 700), 1000 * (now + 710), "MPI_Wait", sent_by(n)
            )  # fmt: skip
        else:
            begin = now + late
            parts += call(1000 * begin, 1000 * (now + 10 + took_us(rank, n)), "MPI_Recv", receive(**message))
    return parts + late_sum(at + 9900)


def test_a_slow_link_is_named_with_its_loss(tmp_path: Path) -> None:
    """Rank 4 to 5: 300 us, the others 40: 260 us more, ten times in a step of 10 ms."""
    found = advice(tmp_path, 8, lambda rank, _, at: ring(rank, at, lambda to, _: 300 if to == 5 else 40))
    slow = found["rank.slow_link"]
    assert "messages of 65.5 kB from rank 4 to rank 5 take 300.0 us, 7.5 times as long per byte" in slow.what
    assert "rank 5 loses 2.60 ms of a step, 26 %" in slow.what
    assert slow.gain_high_ns == pytest.approx(2_600_000, rel=1 / STEPS + 0.01)


@pytest.mark.parametrize(
    ("step", "ranks"),
    [
        # All alike; one a little slower; two kinds of links; one message of many; too few to compare with.
        (lambda rank, at: ring(rank, at, lambda to, n: 40), 8),
        (lambda rank, at: ring(rank, at, lambda to, n: 70 if to == 5 else 40), 8),
        (lambda rank, at: ring(rank, at, lambda to, n: 300 if to in (1, 5) else 40), 8),
        (lambda rank, at: ring(rank, at, lambda to, n: 600 if to == 5 and n % 4 == 0 else 40), 8),
        (lambda rank, at: ring(rank, at, lambda to, n: 300 if to == 5 else 40), 6),
        # The receiver looks only then, and the sender computes meanwhile: neither is the link.
        (lambda rank, at: ring(rank, at, lambda to, n: 300 if to == 5 else 40, late=285 * (rank == 5)), 8),
        (lambda rank, at: ring(rank, at, lambda to, n: 600 if to == 5 else 40, blocking=rank != 4), 8),
    ],
)
def test_other_differences_between_messages_are_no_slow_link(
    tmp_path: Path, step: Callable[[int, int], Step], ranks: int
) -> None:
    assert "rank.slow_link" not in advice(tmp_path, ranks, lambda rank, _, at: step(rank, at))


def test_what_completes_several_messages_does_not_show_which_one_was_slow(tmp_path: Path) -> None:
    """Rank 5 waits in one call for ranks 4 and 6, of which only the later message is slow."""

    def step(rank: int, at: int) -> Step:
        if rank != 5:
            return ring(rank, at, lambda to, n: 40)
        parts = work(at, at + 1000, "advance")
        for n in range(10):
            now = 1000 * (at + 1000 + 800 * n)
            parts += call(now, now + 2, "MPI_Irecv", posted(1)) + call(now + 4, now + 6, "MPI_Isend", isend(6, 2))
            both = received_by(4, 1, sent=65536), sent_by(2)
            parts += call(now + 8, now + 310_000, "MPI_Waitall", *both)
        return parts + late_sum(at + 9900)

    assert "rank.slow_link" not in advice(tmp_path, 8, lambda rank, _, at: step(rank, at))


class OnNode(HandMadeProcess):
    """A rank on a node: 20 steps of 10 ms, in each ten messages of 64 KiB from an even rank to the next one."""

    def __init__(self, rank: int, node: str, took_us: int, error_ns: int | None) -> None:
        spans = []
        for step in range(0, 200_000_000, 10_000_000):
            spans.append(span("advance", step, step + 1_000_000))
            for begin in range(step + 1_000_000, step + 9_000_000, 800_000):
                sent, got = begin + 10_000, begin + 10_000 + 1000 * took_us
                row = {"tag": 0, "communicator": "world", "size_bytes": 65536, "peer_rank": rank ^ 1}
                row |= {"direction": "receive" if rank % 2 else "send"}
                row |= {"time_ns": ZERO_NS + (got if rank % 2 else sent)}
                name, times = ("MPI_Recv", (begin, got)) if rank % 2 else ("MPI_Send", (sent, sent + 10_000))
                spans.append(span(name, *times, paradigm="mpi", role="p2p", tables={"messages": row}))
            spans.append(span("end", step + 9_000_000, step + 9_900_000))
        quality = {} if error_ns is None else {"clock_error_ns": error_ns}
        super().__init__({"main": spans}, pid=100 + rank, main=rank == 0, rank=rank, quality=quality)
        self._node = node
        self.table("messages")  # numbers all texts, which a trace reads once

    def process(self) -> dict[str, object]:
        return {**super().process(), "host": self._node}


def on_nodes(slow: Callable[[int], bool], *, error_ns: int | None = 1000, per_node: int = 2) -> dict[str, Finding]:
    """Findings of eight pairs of ranks, two between the same two nodes; slow ones take 300 us, others 40."""
    ranks = [
        OnNode(rank, f"n{2 * (rank // 2 // per_node) + rank % 2}", 300 if slow(rank // 2) else 40, error_ns)
        for rank in range(16)
    ]
    return {each.rule: each for each in findings(make_trace(*ranks)) if each.rule == "rank.slow_link"}


def test_a_link_between_nodes_is_named_by_its_nodes() -> None:
    (slow,) = on_nodes(lambda pair: pair in (4, 5)).values()
    assert "from node n4 to node n5 take 300.0 us, 7.5 times as long per byte as those of other nodes" in slow.what
    assert slow.gain_high_ns == pytest.approx(2_600_000 * BESIDE, rel=1 / STEPS + 0.01)


def test_one_of_several_pairs_between_nodes_is_named_by_its_ranks() -> None:
    (slow,) = on_nodes(lambda pair: pair == 4, per_node=4).values()
    assert "from rank 8 to rank 9" in slow.what
    assert "between node n2 and node n3" in slow.do


@pytest.mark.parametrize(("error_ns", "known"), [(60_000, True), (66_000, False), (None, False)])
def test_clocks_that_are_too_inexact_show_no_slow_link(error_ns: int | None, *, known: bool) -> None:
    """The difference is 260 us, the error of two clocks twice that of one, which may be 65 us at most."""
    assert bool(on_nodes(lambda pair: pair in (4, 5), error_ns=error_ns)) == known


def test_steps_in_which_a_rank_waits_for_a_late_one_are_not_blamed_on_its_own_calls(tmp_path: Path) -> None:
    """Every tenth of 60 steps takes rank 2 40 ms longer, and the others wait for it in the sum at its end."""

    def begin(n: int) -> int:
        return n * STEP + 4 * STEP * (n // 10)

    def step(rank: int, n: int) -> Step:
        ends = begin(n) + 8000 + 4 * STEP * (n % 10 == 9 and rank == 2)
        return work(begin(n), ends, "advance") + collective(ends, begin(n + 1), "MPI_Allreduce")

    events = {rank: [each for n in range(60) for each in step(rank, n)] for rank in range(3)}
    with strobe.open(wait_archives.write(Case("", "", events, []), tmp_path / "archive")) as trace:
        found = [each for each in findings(trace) if each.rule == "outlier"]
    assert [re.search(r"(\d+) of 60 steps take|every 10th step", each.what) is not None for each in found] == [True]
    assert "it waits 40." in found[0].do
    assert "most for rank 2" in found[0].do
    assert found[0].informative
    assert not found[0].gain_high_ns
