"""Advice about ranks on programs whose times are given by hand: each rule on one that has the problem, and one not.

Times are in µs, of 20 steps of 10 ms. A rank computes until it calls, and a call takes 10 µs beyond its waits.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import strobe
from strobe.advice.rank import findings
from strobe.model.plugins import Finding
from strobe.present.summary import summarise
from tests.ranks import wait_archives
from tests.ranks.wait_case import Case, Event, around, mpi_collective, mpi_recv, mpi_send, of_other, of_root

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
    # Three of four wait 4 ms for rank 2: 3 ms in the mean, which is what even work would save.
    assert "3.00 ms of a step for one another, 30 % of it (mean of 4 ranks)" in found.what
    assert "rank 2, because of `relax`, which takes it longer than the others" in found.what
    assert "rank 2 less of `relax`" in found.do
    assert found.gain_high_ns == pytest.approx(3_000_000, rel=0.01)


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
