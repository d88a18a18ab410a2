"""Meshes of small programs whose times are given by hand: dimensions, bubbles by cause, experts.

Times are in ms. Messages and collectives take 1 us beyond waiting, so that shares are those of the work.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import strobe
from strobe.present.summary import summarise
from strobe.ranks.mesh.dimensions import kind_by_name
from strobe.ranks.mesh.experts import imbalance
from strobe.ranks.mesh.intervals import Intervals
from strobe.ranks.mesh.pipelines import pipelines
from tests.ranks import wait_archives
from tests.ranks.wait_case import Case, Event, around, mpi_collective, mpi_recv, mpi_send

MS = 1_000_000  # archives have ns
CALL = 1_000  # of a call beyond its wait, ns
STEPS = 12


class Job:
    """Plays what ranks do in turn: each rank's clock, and what was sent but not received."""

    def __init__(self, ranks: int) -> None:
        self.now = [0] * ranks
        self.events: dict[int, list[Event]] = {rank: [] for rank in range(ranks)}
        self.sent: dict[tuple[int, int], list[int]] = {}

    def compute(self, rank: int, ms: int, name: str) -> None:
        self.events[rank] += around(self.now[rank], self.now[rank] + ms * MS, name)
        self.now[rank] += ms * MS

    def send(self, rank: int, peer: int) -> None:
        self.events[rank] += mpi_send(self.now[rank], self.now[rank] + CALL, peer)
        self.sent.setdefault((rank, peer), []).append(self.now[rank])
        self.now[rank] += CALL

    def receive(self, rank: int, peer: int) -> None:
        end = max(self.now[rank], self.sent[peer, rank].pop(0)) + CALL
        self.events[rank] += mpi_recv(self.now[rank], end, peer)
        self.now[rank] = end

    def reduce(self) -> None:
        last = max(self.now) + CALL
        for rank in self.events:
            self.events[rank] += mpi_collective(self.now[rank], last, "MPI_Allreduce")
            self.now[rank] = last


def gpipe(forward: list[int], microbatches: int) -> Job:
    """GPipe: all forward passes, then all backward passes, which take twice as long; then all reduce a loss."""
    stages, job = len(forward), Job(len(forward))
    for _ in range(STEPS):
        for stage, ms in enumerate(forward):
            for _ in range(microbatches):
                if stage:
                    job.receive(stage, stage - 1)
                job.compute(stage, ms, "forward")
                if stage < stages - 1:
                    job.send(stage, stage + 1)
        for stage, ms in reversed([*enumerate(forward)]):
            for _ in range(microbatches):
                if stage < stages - 1:
                    job.receive(stage, stage + 1)
                job.compute(stage, 2 * ms, "backward")
                if stage:
                    job.send(stage, stage - 1)
        job.reduce()
    return job


def opened(job: Job, folder: Path) -> strobe.Trace:
    return strobe.open(wait_archives.write(Case("", "", job.events, []), folder / "archive"))


def shares(trace: strobe.Trace, by: str = "stage") -> list[dict[str, float]]:
    """By stage, the part of a step that each of its times takes."""
    rows = trace.mesh(by=by).to_arrow().to_pylist()
    names = ("computing", "communicating", "fill", "between", "drain", "sync")
    return [{name: row[f"{name}_ns"] / row["step_ns"] for name in names} for row in rows]


def test_bubbles_of_an_even_pipeline_are_those_of_its_schedule(tmp_path):
    """4 stages of 10 ms forward, 20 backward, 8 microbatches: a step of (8 + 3) * 30 ms, a bubble of 3 / 11."""
    with opened(gpipe([10] * 4, 8), tmp_path) as trace:
        found = shares(trace)
        for stage, own in enumerate(found):
            assert own["computing"] == pytest.approx(8 / 11, abs=0.005)
            assert own["fill"] == pytest.approx(stage * 10 / 330, abs=0.005)
            assert own["drain"] == pytest.approx(stage * 20 / 330, abs=0.005)
            assert own["between"] == pytest.approx((3 - stage) * 30 / 330, abs=0.005)
            assert sum(own.values()) == pytest.approx(1, abs=1e-12)
        (one,) = pipelines(trace)
        assert (one.ranks, one.microbatches, one.chunks) == ((0, 1, 2, 3), 8, 1)
        whole = 4 * one.duration_ns[one.steady].sum()
        assert one.schedule_ns[one.steady].sum() / whole == pytest.approx(3 / 11, abs=0.005)
        assert one.imbalance_ns[one.steady].sum() / whole < 0.002


def test_a_pipeline_with_few_microbatches_is_limited_by_its_bubble(tmp_path):
    """4 stages and 2 microbatches: 3 of 5 parts of a step are bubble."""
    with opened(gpipe([10] * 4, 2), tmp_path) as trace:
        verdict = summarise(trace).verdict
        assert (verdict.kind, verdict.share) == ("communication-bound", pytest.approx(3 / 5, abs=0.01))
        schedule = "60 % because of the schedule (4 stages, 2 microbatches)"
        assert verdict.text.startswith(f"communication-bound: 60 % of the ranks' time is bubble: {schedule}")


def test_a_slow_stage_is_named_and_its_cost_is_not_the_schedules(tmp_path):
    """Stages of 25, 25, 40 and 25 ms: a step of 1185 ms.

    By hand, of stage 3: fill 25 + 25 + 40 = 90; between 7 * (40 - 25) = 105; 8 * 75 of work; the rest, 390, is drain.
    """
    with opened(gpipe([25, 25, 40, 25], 8), tmp_path) as trace:
        found = shares(trace)
        assert [round(own["computing"], 3) for own in found] == pytest.approx([0.506, 0.506, 0.810, 0.506], abs=0.004)
        assert [own["fill"] for own in found] == pytest.approx([0, 25 / 1185, 50 / 1185, 90 / 1185], abs=0.004)
        assert [own["between"] for own in found] == pytest.approx(
            [585 / 1185, 510 / 1185, 75 / 1185, 105 / 1185], abs=0.004
        )
        assert [own["drain"] for own in found] == pytest.approx([0, 50 / 1185, 100 / 1185, 390 / 1185], abs=0.004)
        note = trace.mesh(by="stage").note
        assert "42 % of the ranks' time is bubble" in note
        assert "stage 2 (rank 2) is the slowest: it computes 39 % longer than the mean stage" in note
        (one,) = pipelines(trace)
        (schedule, imbalance) = (each[one.steady].sum() / one.duration_ns[one.steady].sum() / 4
                                 for each in (one.schedule_ns, one.imbalance_ns))  # fmt: skip
        # With even stages of 28.75 ms a step takes 11 * 3 * 28.75 = 948.75 ms, of which 3 / 11 is bubble.
        assert schedule == pytest.approx(3 / 11 * 948.75 / 1185, abs=0.005)
        assert imbalance == pytest.approx((1185 - 948.75) / 1185, abs=0.005)


def test_every_step_of_every_stage_adds_up(tmp_path):
    with opened(gpipe([10, 20, 10], 4), tmp_path) as trace:
        rows = trace.mesh(by="step").to_arrow().to_pylist()
        (one,) = pipelines(trace)
        assert len(rows) == 3 * len(one.step)
        of_step = dict(zip(one.step.tolist(), one.duration_ns.tolist(), strict=True))
        assert all(row["step_ns"] == of_step[row["step"]] for row in rows)


def test_an_exchange_of_halos_is_not_a_pipeline(tmp_path):
    job = Job(3)
    for _ in range(STEPS):
        for rank in range(3):
            job.compute(rank, 10, "work")
            for peer in (rank - 1, rank + 1):
                if 0 <= peer < 3:
                    job.send(rank, peer)
        for rank in range(3):
            for peer in (rank - 1, rank + 1):
                if 0 <= peer < 3:
                    job.receive(rank, peer)
    with opened(job, tmp_path) as trace:
        (row,) = trace.mesh().to_arrow().to_pylist()
        assert row["kind"] is None
        assert row["ranks"] == "[[0, 1, 2]]"
        assert not trace.mesh(by="stage").to_arrow().num_rows


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("tp", "tensor"), ("TENSOR_MODEL_PARALLEL_GROUP", "tensor"), ("pp", "pipeline"), ("dp_shard", "sharded")),
        *(
            ("PIPELINE_MODEL_PARALLEL_GROUP", "pipeline"),
            ("dp_replicate", "data"),
            ("ep", "expert"),
            ("cp", "sequence"),
        ),
        *(("EXPERT_MODEL_PARALLEL_GROUP", "expert"), ("loss", ""), ("step", ""), ("", "")),
    ],
)
def test_names_of_dimensions(name, kind):
    assert kind_by_name(name) == kind


def test_intervals_are_sets_of_moments():
    one = Intervals.of(np.array([5, 0, 20]), np.array([10, 6, 30]))
    other = Intervals.of(np.array([8]), np.array([25]))
    assert [one.begin_ns.tolist(), one.end_ns.tolist()] == [[0, 20], [10, 30]]
    assert [(one & other).begin_ns.tolist(), (one & other).end_ns.tolist()] == [[8, 20], [10, 25]]
    assert [(one - other).begin_ns.tolist(), (one - other).end_ns.tolist()] == [[0, 25], [8, 30]]
    assert one.within(np.array([4, 12, 9]), np.array([22, 15, 9])).tolist() == [8, 0, 0]


def test_imbalance_is_what_most_ranks_wait():
    tokens = np.array([[48] * 7 + [176]]).T
    assert imbalance(tokens) == pytest.approx([1 - 64 / 176])
    assert imbalance(np.zeros((3, 1))) == pytest.approx([0])
