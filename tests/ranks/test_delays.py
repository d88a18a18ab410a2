"""Delay costs of cases computed by hand, and what must hold of those of any program."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strobe
from strobe.api.imports import opened
from tests.deep.kineto import kernel, operator, write
from tests.ranks import wait_archives
from tests.ranks.delay_case import Delay, DelayCase
from tests.ranks.delay_cases import DELAY_CASES
from tests.ranks.delay_cases_aside import DELAY_CASES_ASIDE
from tests.ranks.wait_case import (
    Case,
    Event,
    around,
    call,
    mpi_collective,
    mpi_recv,
    mpi_send,
    of_other,
    of_root,
    send,
)

COSTS = ("direct_ns", "indirect_ns", "long_term_ns")
Key = tuple[int, str | None, int, str]
Rows = Sequence[Mapping[str, object]]


def by_cause(rows: Rows) -> dict[Key, list[int]]:
    """Rank that was late, call path, waiting rank and state: direct, indirect and long-term cost."""
    found: dict[Key, list[int]] = {}
    for row in rows:
        key = (row["rank"], row["call_path"], row["waiting_rank"], row["state"])
        found[key] = [a + row[name] for a, name in zip(found.get(key, [0, 0, 0]), COSTS, strict=True)]
    return {key: costs for key, costs in found.items() if any(costs)}


def key_of(delay: Delay) -> Key:
    return delay.delayer, " < ".join(reversed(delay.path)), delay.waiter, delay.state


@pytest.mark.parametrize("case", [*DELAY_CASES, *DELAY_CASES_ASIDE], ids=lambda case: case.name)
def test_costs_are_those_worked_out_by_hand(case: DelayCase, tmp_path: Path) -> None:
    """By cause and waiting rank, and of each wait with what it carries."""
    first_ns = min(event.time_ns for events in case.ranks.values() for event in events)
    with strobe.open(wait_archives.write(case.program(), tmp_path / "archive")) as trace:
        found = by_cause(trace.delays(by="all").to_pylist())
        waits = {
            (row["waiting_rank"], row["start_ns"] + first_ns, row["state"], row["rank"]): [
                row[name] for name in ("wait_ns", "direct_ns", "indirect_ns", "unexplained_ns", "carried_ns")
            ]
            for row in trace.delays(by="wait").to_pylist()
        }
    assert found == {key_of(each): [getattr(each, name) for name in COSTS] for each in case.delays}
    assert waits == {
        (each.waiter, each.enter_ns, each.state, each.delayer): [
            each.wait_ns, each.direct_ns, each.indirect_ns, each.unexplained_ns, each.carried_ns
        ]
        for each in case.waits
    }  # fmt: skip


def of_messages() -> Case:
    """Rank 0 computes 10 ms longer than the others before it sends to 1, which sends to 2."""
    short, long = 10_000_000, 20_000_000
    return Case("", "", {
        0: around(0, long, "load_batch") + mpi_send(long, long + 10, 1),
        1: around(0, short, "load_batch") + mpi_recv(short, long, 0) + mpi_send(long, long + 10, 2),
        2: around(0, short, "load_batch") + mpi_recv(short, long + 10, 1),
    }, [])  # fmt: skip


def test_a_late_rank_costs_what_waits_for_it_and_what_waits_for_that(tmp_path: Path) -> None:
    """10 ms on rank 1, and through that 10 on rank 2: all answers have it, and the note."""
    with strobe.open(wait_archives.write(of_messages(), tmp_path / "archive")) as trace:
        ms = 1_000_000
        table = trace.delays()
        (load,) = [row for row in table.to_pylist() if row["cost_ns"]]
        assert (load["rank"], load["cause"], load["class"]) == (0, "load_batch", "computation")
        assert (load["direct_ns"], load["long_term_ns"], load["waiting_ranks"]) == (10 * ms, 10 * ms, 1)
        assert table.note == (
            "rank 0, `load_batch`: 20.00 ms on 1 other and those that wait for them (10.00 ms direct, 10.00 ms on)"
        )
        assert {row["waiting_rank"]: row["indirect_ns"] for row in trace.delays(by="waiter").to_pylist()} == {
            1: 0,
            2: 10 * ms,
        }
        for by in ("cause", "rank", "waiter", "step", "class", "all"):
            rows = trace.delays(by=by).to_pylist()
            assert sum(row["cost_ns"] + row["unexplained_ns"] for row in rows) == 20 * ms


def test_nobody_waits_for_a_rank_in_time(tmp_path: Path) -> None:
    ranks = {rank: around(0, 100, "load") + mpi_collective(100, 200, "MPI_Allreduce") for rank in range(3)}
    with strobe.open(wait_archives.write(Case("", "", ranks, []), tmp_path / "archive")) as trace:
        table = trace.delays()
        assert len(table) == 0
        assert "no rank is known to have waited" in table.note


def test_time_without_a_function_is_that_before_a_call(tmp_path: Path) -> None:
    """A program whose computation has no spans: the cause has the name of the call that comes late."""
    ranks = {
        0: mpi_collective(0, 10, "MPI_Barrier") + mpi_collective(900, 1000, "MPI_Allreduce"),
        1: mpi_collective(0, 10, "MPI_Barrier") + mpi_collective(110, 1000, "MPI_Allreduce"),
    }
    with strobe.open(wait_archives.write(Case("", "", ranks, []), tmp_path / "archive")) as trace:
        (row,) = trace.delays().to_pylist()
        assert (row["cause"], row["class"]) == ("computation before MPI_Allreduce", "computation")
        assert (row["rank"], row["cost_ns"]) == (0, 790)


def test_a_stream_is_late_because_of_other_streams_or_the_host(tmp_path: Path) -> None:
    """Kernels of NCCL spin until the last rank comes: its host loaded 40 us longer, its GPU computed 60 us longer."""
    about = {"Collective name": "allreduce", "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}
    job = tmp_path / "job"
    job.mkdir()
    for rank, (loaded, computed) in enumerate([(10, 30), (50, 90)]):
        second = 60 + loaded + computed
        kernels = [kernel("ncclDevKernel_AllReduce_Sum_f32", start, end - start, stream=20) for start, end in (
            (0, 60), (second, 210))]  # fmt: skip
        for number, each in enumerate(kernels):
            each["args"] |= {**about, "Seq": number}
        computing = [
            operator("load", 60, loaded),
            operator("launch", 60 + loaded, 20),
            kernel("gemm", 60 + loaded, computed),
        ]
        write(job / f"rank{rank}.json", *kernels, *computing, rank=rank, baseTimeNanoseconds=10**18)
    with strobe.open(opened(job, cache=tmp_path / "cache", talk=False)) as trace:
        found = {row["cause"]: row for row in trace.delays().to_pylist()}
        assert {cause: row["direct_ns"] for cause, row in found.items()} == {"load": 40_000, "gemm": 60_000}
        assert {row["rank"] for row in found.values()} == {1}
        assert trace.delays().note == "rank 1, `gemm`: 60.00 us on 1 other"


Operation = tuple[str, int, int]  # what, and two ranks: sender and receiver, or the root
PROGRAMS = st.integers(2, 5).flatmap(
    lambda ranks: st.tuples(
        st.just(ranks),
        st.lists(
            st.tuples(
                st.sampled_from(("send", "ssend", "MPI_Barrier", "MPI_Allreduce", "MPI_Bcast")),
                st.integers(0, ranks - 1),
                st.integers(1, ranks - 1),
            ),
            min_size=1,
            max_size=12,
        ),
        st.integers(0, 1000),
    )
)


def program(ranks: int, operations: Sequence[Operation], seed: int, times: int, number: Sequence[int]) -> Case:
    """Let ranks compute for random times before each operation. times: factor of all times; number: of each rank."""
    chance = random.Random(seed)
    clock, events = [0] * ranks, {number[rank]: list[Event]() for rank in range(ranks)}

    def add(rank: int, leave: int, made: list[Event]) -> None:
        events[number[rank]] += made
        clock[rank] = leave

    for what, one, step in operations:
        other = (one + step) % ranks
        for rank in range(ranks):
            name, until = chance.choice(("load", "solve")), clock[rank] + times * chance.randrange(1000, 500_000)
            if chance.random() < 0.9:
                add(rank, until, around(clock[rank], until, name))
        (enter, other_enter), moment = (clock[one], clock[other]), 100 * times
        if what in ("send", "ssend"):
            leave = enter + moment if what == "send" else max(enter, other_enter) + moment
            add(one, leave, call(enter, leave, f"MPI_{what.title()}", send(number[other])))
            leave = max(enter, other_enter) + 2 * moment
            add(other, leave, mpi_recv(other_enter, leave, number[one]))
            continue
        last = max(clock)
        for rank in range(ranks):
            enter = clock[rank]
            if what == "MPI_Bcast":
                leave = max(enter, clock[one] if rank != one else 0) + moment * (1 + rank)
                root = number[one]
                made = of_root(enter, leave, what, root, ranks) if rank == one else of_other(enter, leave, what, root)
            else:
                leave, made = last + moment, mpi_collective(enter, last + moment, what)
            add(rank, leave, made)
    return Case("", "", dict(sorted(events.items())), [])


def answers(case: Case) -> tuple[Rows, Rows, int]:
    """Rows by cause and by wait; and the sum of all waits for another, as strobe waits has it."""
    with TemporaryDirectory() as folder, strobe.open(wait_archives.write(case, Path(folder) / "archive")) as trace:
        waited = [row for row in trace.waits().to_pylist() if not row["state"].endswith(("order", "completion"))]
        rows, waits = (trace.delays(by=by).to_pylist() for by in ("all", "wait"))
        return rows, waits, sum(row["wait_ns"] for row in waited)


@settings(max_examples=15, deadline=None)
@given(PROGRAMS, st.randoms(use_true_random=False))
def test_costs_add_up_scale_and_know_no_order_of_ranks(
    of: tuple[int, list[Operation], int], chance: random.Random
) -> None:
    ranks, operations, seed = of
    rows, waits, waited = answers(program(ranks, operations, seed, 1, range(ranks)))
    for wait in waits:
        assert wait["direct_ns"] + wait["indirect_ns"] + wait["unexplained_ns"] == wait["wait_ns"]
    assert sum(row["cost_ns"] + row["unexplained_ns"] for row in rows) == waited
    assert min([0, *(row[name] for row in rows for name in COSTS)]) == 0
    new = list(range(ranks))
    chance.shuffle(new)
    costs = by_cause(rows)
    renamed = {(new[key[0]], key[1], new[key[2]], key[3]): value for key, value in costs.items()}
    rounding = 2 + 2 * len(waits)  # ns: each part of a wait is a whole number
    for factor, number, expected in ((7, list(range(ranks)), costs), (1, new, renamed)):
        found = by_cause(answers(program(ranks, operations, seed, factor, number))[0])
        for key in {*found, *expected}:
            wanted = [factor * each for each in expected.get(key, [0, 0, 0])]
            assert found.get(key, [0, 0, 0]) == pytest.approx(wanted, abs=factor * rounding)
