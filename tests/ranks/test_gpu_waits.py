"""Waits of GPUs and what they are due to, computed by hand, and what must hold of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import strobe
from strobe.advice.rank import findings
from strobe.api.imports import opened
from tests.deep.kineto import US, Event, step, write
from tests.deep.test_critical_path import random_run
from tests.ranks.gpu_wait_cases import GPU_CASES, GpuCase, did, launch, ran, reduced, through_two_streams

PARTS = ("wait_ns", "direct_ns", "indirect_ns", "unexplained_ns", "carried_ns")


def opened_job(ranks: Mapping[int, Sequence[Event]], folder: Path) -> strobe.Trace:
    job = folder / "job"
    job.mkdir()
    for rank, events in ranks.items():
        write(job / f"rank{rank}.json", *events, rank=rank, baseTimeNanoseconds=10**18)
    return strobe.open(opened(job, cache=folder / "cache", talk=False))


@pytest.mark.parametrize("case", GPU_CASES, ids=lambda case: case.name)
def test_waits_and_costs_are_those_worked_out_by_hand(case: GpuCase, tmp_path: Path) -> None:
    with opened_job(case.ranks, tmp_path) as trace:
        waited = Counter(
            (row["state"], row["rank"], row["function"], row["awaited_rank"], row["wait_ns"])
            for row in trace.waits(by="wait").to_pylist()
            if row["wait_ns"] and not row["state"].endswith("completion")
        )
        found = Counter(
            (row["state"], row["waiting_rank"], row["rank"], *(row[name] / US for name in PARTS))
            for row in trace.delays(by="wait").to_pylist()
        )
        costs = {
            (row["rank"], row["cause"], row["waiting_rank"], row["state"]): (
                row["direct_ns"] / US, row["long_term_ns"] / US
            )
            for row in trace.delays(by="all").to_pylist()
            if row["cost_ns"] and row["cause"]
        }  # fmt: skip
    assert waited == Counter(
        (each.state, each.rank, each.function, each.awaited, each.wait_us * US) for each in case.waits
    )
    assert found == Counter(
        (each.state, each.rank, each.awaited, each.wait_us, each.direct_us, each.indirect_us, each.unexplained_us,
         each.carried_us)
        for each in case.waits
    )  # fmt: skip
    assert costs == {
        (each.rank, each.cause, each.waiting, each.state): (each.direct_us, each.long_term_us) for each in case.costs
    }


@pytest.mark.parametrize("case", GPU_CASES, ids=lambda case: case.name)
def test_costs_add_up_to_all_waits_and_to_those_of_each_kind(case: GpuCase, tmp_path: Path) -> None:
    with opened_job(case.ranks, tmp_path) as trace:
        for among, of_kind in (
            ("all", case.waits),
            ("ranks", [each for each in case.waits if each.state == "wait_at_nxn"]),
            ("gpus", [each for each in case.waits if each.state != "wait_at_nxn"]),
        ):
            rows = trace.delays(among=among).to_pylist()
            waited = sum(each.wait_us for each in of_kind)
            assert sum(row["cost_ns"] + row["unexplained_ns"] for row in rows) == waited * US


@pytest.mark.parametrize("seed", range(3))
def test_costs_of_random_runs_add_up(tmp_path: Path, seed: int) -> None:
    with opened_job({rank: random_run(seed + rank)[0] for rank in range(2)}, tmp_path) as trace:
        waited = sum(row["wait_ns"] for row in trace.waits().to_pylist())
        for by in ("cause", "waiter", "all"):
            rows = trace.delays(by=by).to_pylist()
            assert sum(row["cost_ns"] + row["unexplained_ns"] for row in rows) == waited > 0
            assert min(row[name] for row in rows for name in ("direct_ns", "indirect_ns", "long_term_ns")) == 0
        for row in trace.delays(by="wait").to_pylist():
            assert row["direct_ns"] + row["indirect_ns"] + row["unexplained_ns"] == row["wait_ns"]


def test_a_wait_passes_through_streams_to_another_rank(tmp_path: Path) -> None:
    """Host of rank 0, stream of add, stream of the collective, rank 1: load there costs both hosts and streams."""
    with opened_job({rank: through_two_streams(rank) for rank in range(2)}, tmp_path) as trace:
        waits = {(row["state"], row["waiting_rank"]): row for row in trace.delays(by="wait").to_pylist()}
        rows = trace.delays(by="all", among="gpus").to_pylist()
    assert {key: row["wait_ns"] / US for key, row in waits.items()} == {
        ("wait_at_nxn", 0): 40,
        ("late_host", 0): 20,
        ("late_host", 1): 60,
        ("late_stream", 0): 66,  # 100 - 34
        ("late_stream", 1): 26,
        ("late_gpu", 0): 114,  # 150 - 36
        ("late_gpu", 1): 74,
    }
    # The stream of the collective since 5, without its waits: 30, of which the stream of add saw 5. D = 25. W = 20 + 40
    # of rank 0, 60 of rank 1. add: 49; the wait before it 66 and 26.
    through, own = 114 * 66 / 115, 66
    stream = 60 / 85
    carried = (through + own) * stream
    assert waits["late_stream", 0]["indirect_ns"] / US == pytest.approx(66 * stream, abs=0.01)
    assert waits["late_stream", 0]["carried_ns"] / US == pytest.approx(through, abs=0.01)
    assert waits["wait_at_nxn", 0]["carried_ns"] / US == pytest.approx(carried * 40 / 60, abs=0.01)
    (load,) = [row for row in rows if (row["cause"], row["state"]) == ("load", "wait_at_nxn")]
    assert (load["rank"], load["direct_ns"]) == (1, 0)
    assert load["long_term_ns"] == waits["wait_at_nxn", 0]["carried_ns"]


def test_the_note_names_what_other_ranks_waited_for(tmp_path: Path) -> None:
    """Though hosts wait longer for their own GPUs; alone, a run has what its GPU waited for."""
    late = next(case for case in GPU_CASES if case.name == "late_rank_of_four")
    with opened_job(late.ranks, tmp_path) as trace:
        assert trace.delays().note.startswith("rank 3, `load`: 120.0 us on 3 others;")
        assert trace.delays(among="gpus").note.startswith("rank 3, `load`: 180.0 us on GPUs and their hosts;")
        waited = trace.waits().note
        assert waited.startswith("ranks waited 120.0 us for one another")
        assert waited.endswith("threads and streams waited 192.0 us for GPUs; GPUs waited 120.0 us for their hosts")


def test_gpus_that_work_on_the_steps_which_hosts_have_left_wait_in_them(tmp_path: Path) -> None:
    """Hosts are done with 10 steps within 2 ms; GPUs take 1 ms a step, of which one computes 0.4 ms, the other 0.9."""
    ranks = dict[int, list[Event]]()
    for rank, computes in enumerate((400, 900)):
        ranks[rank] = []
        for n in range(10):
            at, gpu, number = 10_000 + 200 * n, 10_100 + 1000 * n, 10 * n + 1
            ranks[rank] += [step(n, at, 200), did("aten::mm", at + 9, at + 14), launch(at + 10, number)]
            ranks[rank] += [launch(at + 20, number + 1), ran("gemm", gpu, gpu + computes, number)]
            ranks[rank].append(reduced(gpu + computes, gpu + 1000, number + 1, n))
    with opened_job(ranks, tmp_path) as trace:
        (found,) = (each for each in findings(trace) if each.rule == "rank.waits")
    assert "ranks wait 250.0 us of a step for one another, 25 % of it" in found.what  # 0.5 ms of one of two
    assert "for rank 1, because of `gemm`" in found.what
    assert found.gain_high_ns == 500 * US
