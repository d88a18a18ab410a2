"""Who comes late to collectives: by hand, with clocks that differ, and on a public trace by brute force and HTA."""

import gzip
import json

import numpy as np
import pytest

import strobe
from strobe.api.imports import opened
from tests.deep.kineto import US, kernel, operator, profile, write
from tests.public import FOLDER
from tests.unit.hand_made import HandMadeProcess, make_trace, span

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def rows(table):
    return table.to_arrow().to_pylist()


def all_reduce(start_us, end_us, sequence=None, *, group="0", name=ALL_REDUCE, **more):
    named = {"Collective name": "allreduce", "Process Group Name": group, "Process Group Ranks": "[0, 1, 2]"}
    event = kernel(name, start_us, end_us - start_us, stream=20, **more)
    event["args"] |= named if sequence is None else {**named, "Seq": sequence}
    return event


def job(folder, ranks):
    """Open the ranks of a run: a list of events each."""
    folder = folder / f"job{len(list(folder.iterdir()))}"
    folder.mkdir()
    for rank, events in enumerate(ranks):
        write(folder / f"rank{rank}.json", *events, rank=rank, baseTimeNanoseconds=10**18)
    return strobe.open(opened(folder, cache=folder / "cache", talk=False))


# Arrivals of three ranks at three collectives that end everywhere at the same moment, and what follows from them.
ARRIVALS = ((0, 100, 250), (10, 100, 220), (40, 90, 300))
ENDS = (60, 130, 330)


def test_arrival_lateness_delay_and_wait_by_hand(tmp_path):
    trace = job(
        tmp_path,
        [[all_reduce(start, end, k) for k, (start, end) in enumerate(zip(own, ENDS, strict=True))] for own in ARRIVALS],
    )
    # Middle arrivals: 10, 100, 250; last but one: 10, 100, 250.
    expected = {
        0: {"last": 0, "delay": 0, "late": [-10, 0, 0], "wait": 40 + 0 + 50},
        1: {"last": 0, "delay": 0, "late": [0, 0, -30], "wait": 30 + 0 + 80},
        2: {"last": 2, "delay": 30 + 50, "late": [30, -10, 50], "wait": 0 + 10 + 0},
    }
    for row in rows(trace.stragglers()):
        of_rank = expected[row["rank"]]
        assert (row["collectives"], row["unmatched"], row["clock_error_ns"]) == (3, 0, 0)
        assert (row["last"], row["delay_ns"], row["wait_ns"]) == (
            of_rank["last"], of_rank["delay"] * US, of_rank["wait"] * US
        )  # fmt: skip
        assert row["late_mean_ns"] == pytest.approx(np.mean(of_rank["late"]) * US)
        assert row["late_median_ns"] == np.median(of_rank["late"]) * US
        assert row["late_max_ns"] == max(of_rank["late"]) * US
    assert trace.stragglers().note == (
        "rank 2 is late: it came last to 2 of 3 collectives, which could have begun 80.00 us sooner in all;"
        " at the median it comes 30.00 us after the middle rank"
    )
    each = rows(trace.stragglers(by="collective"))
    assert [(row["kind"], row["group"], row["sequence"], row["ranks"]) for row in each] == [
        ("allreduce", "0", k, 3) for k in range(3)
    ]
    assert [(row["start_ns"], row["late_ns"], row["delay_ns"], row["wait_ns"]) for row in each] == [
        (start * US, late * US, delay * US, wait * US)
        for start, late, delay, wait in ((0, 30, 30, 70), (90, 0, 0, 10), (220, 50, 50, 130))
    ]
    assert (each[0]["last_rank"], each[2]["last_rank"]) == (2, 2)
    spans = trace.span_arrays(each[2]["location"])
    assert spans["start_ns"][spans["row"] == each[2]["row"]].tolist() == [300 * US]


def test_clocks_that_differ_do_not_make_a_rank_late(tmp_path):
    ahead = (0, 5000, -700)
    ranks = [
        [all_reduce(start + off, end + off, k) for k, (start, end) in enumerate(zip(own, ENDS, strict=True))]
        for own, off in zip(ARRIVALS, ahead, strict=True)
    ]
    found = rows(job(tmp_path, ranks).stragglers(by="collective"))
    assert [(row["late_ns"], row["delay_ns"], row["wait_ns"]) for row in found] == [
        (30 * US, 30 * US, 70 * US), (0, 0, 10 * US), (50 * US, 50 * US, 130 * US)
    ]  # fmt: skip


def test_what_the_clocks_may_be_wrong_by_does_not_count(tmp_path):
    # Ends differ by 40, 50 and 60 us: after the middle of these is taken off, the clock is known within 10 us.
    def ranks(late):
        first = [all_reduce(100 * k, 100 * k + 50, k) for k in range(3)]
        return [first, [all_reduce(100 * k + 50 + late, 100 * k + 90 + 10 * k, k) for k in range(3)]]

    trace = job(tmp_path, ranks(9))
    assert [row["clock_error_ns"] for row in rows(trace.stragglers())] == [0, 10 * US]
    assert [(row["last"], row["delay_ns"]) for row in rows(trace.stragglers())] == [(0, 0), (0, 0)]
    assert trace.stragglers().note == "no rank is later than the error of the clocks allows: up to 10.00 us"
    late = job(tmp_path, ranks(11))
    assert [(row["last"], row["delay_ns"]) for row in rows(late.stragglers())] == [(0, 0), (3, 33 * US)]
    assert late.stragglers().note.startswith("rank 1 is late: it came last to 3 of 3")


@pytest.mark.parametrize(
    ("late", "note"),
    [
        ((0, 1, 2) * 3, "no single rank is late: of 180.0 us that collectives waited for their last rank alone, rank"),
        ((0, 1, 2, 1, 1), "rank 1 is late: it came last to 3 of 5 collectives"),
        (
            (0, 1, 1, 0, 1),
            "no single rank is late: of 100.0 us that collectives waited for their last rank alone, rank",
        ),
        ((0, 1, 1, 1, 1), "rank 1 is late: it came last to 4 of 5 collectives"),
    ],
)
def test_who_causes_most_delays_is_named(tmp_path, late, note):
    ranks = [
        [all_reduce(100 * k + (20 if rank == of else 0), 100 * k + 50, k) for k, of in enumerate(late)]
        for rank in range(max(late) + 1)
    ]
    assert job(tmp_path, ranks).stragglers().note.startswith(note)


def random_job(*, numbered, lost):
    """Two groups on three ranks that all run all in the same order; some of a rank's collectives may be missing."""
    random = np.random.default_rng(7)
    free, ranks, sequence = np.zeros(3), [[], [], []], {"0": 0, "1": 0}
    for number in range(60):
        group = "01"[random.integers(2)]
        arrival = free + random.integers(1, 40, 3)
        end = arrival.max() + random.integers(3, 30)
        free = end + random.integers(0, 3, 3)
        for rank in range(3):
            if not lost or number % (5 + rank):
                told = sequence[group] if numbered else None
                ranks[rank].append(all_reduce(int(arrival[rank]), int(free[rank]), told, group=group))
        sequence[group] += 1
    return ranks


@pytest.mark.parametrize("lost", [False, True])
def test_without_numbers_the_same_ranks_meet(tmp_path, lost):
    jobs = [job(tmp_path, random_job(numbered=numbered, lost=lost)) for numbered in (True, False)]
    tables = [rows(each.stragglers(by="collective")) for each in jobs]
    numbered, unnumbered = ([{**row, "sequence": None} for row in table] for table in tables)
    assert len(numbered) > 40
    assert unnumbered == numbered


def test_kinds_groups_and_what_has_no_partner(tmp_path):
    def other(name, start, **named):
        event = kernel(name, start, 5, stream=20)
        event["args"] |= {key.replace("_", " "): value for key, value in named.items()}
        return event

    def rank(late):
        return [
            all_reduce(late, 50, 0), all_reduce(100, 120, 0, group="1"), all_reduce(100, 120, 1, group="1"),
            other("ncclDevKernel_AllGather_RING_LL(x)", 200 + late), other("ncclDevKernel_Broadcast_RING_LL(x)", 300),
            other("ncclDevKernel_SendRecv(x)", 400, Collective_name="send"), kernel("gemm", 500, 9),
        ]  # fmt: skip

    found = job(tmp_path, [rank(0), [*rank(2), all_reduce(600, 620, 9)]]).stragglers(by="kind")
    assert [(row["rank"], row["kind"], row["group"], row["collectives"], row["unmatched"]) for row in rows(found)] == [
        (0, "allreduce", "0", 1, 0), (0, "allreduce", "1", 2, 0), (0, "allgather", None, 1, 0),
        (1, "allreduce", "0", 1, 1), (1, "allreduce", "1", 2, 0), (1, "allgather", None, 1, 0),
    ]  # fmt: skip


def test_calls_of_mpi(tmp_path):
    def rank(number, *spans):
        threads = {"main": [span(name, *at, paradigm="mpi", role=role) for name, at, role in spans]}
        return HandMadeProcess(threads, pid=100 + number, main=number == 0, rank=number)

    trace = make_trace(
        rank(0, ("MPI_Allreduce", (0, 50), "collective"), ("MPI_Barrier", (60, 90), "sync"),
             ("MPI_Iallreduce", (91, 92), "collective"), ("MPI_Bcast", (92, 93), "collective")),
        rank(1, ("MPI_Allreduce", (40, 52), "collective"), ("MPI_Send", (53, 54), "p2p"),
             ("MPI_Barrier", (55, 90), "sync")),
    )  # fmt: skip
    assert [(row["kind"], row["last_rank"], row["delay_ns"]) for row in rows(trace.stragglers(by="collective"))] == [
        ("allreduce", 1, 40), ("barrier", 0, 5)
    ]  # fmt: skip
    assert [row["wait_ns"] for row in rows(trace.stragglers())] == [40, 5]
    assert trace.stragglers().note.startswith("rank 1 is late: it came last to 1 of 2")


def test_what_is_missing_is_said(tmp_path):
    assert "this trace has one rank" in profile(tmp_path, all_reduce(0, 5, 0), rank=0).stragglers().note
    trace = job(tmp_path, [[kernel("gemm", 0, 5)], [operator("aten::mm", 0, 5)]])
    assert "no collective in this trace has two ranks" in trace.stragglers().note
    assert all(not len(trace.stragglers(by=by)) for by in ("rank", "kind", "collective"))


def test_two_ranks_of_a_public_trace_are_those_of_brute_force(public):
    kernels = []
    for rank in range(2):
        with gzip.open(FOLDER / f"kineto/two_ranks/sampled_rank-{rank}.json.gz") as file:
            events = [e for e in json.load(file)["traceEvents"] if "nccl" in e["name"] and e.get("cat") == "kernel"]
        kernels.append([(e["ts"] * US, (e["ts"] + int(e["dur"])) * US) for e in events])
    # Much of these files was taken out: what overlaps on both ranks is the same collective.
    pairs = [(a, b) for a in kernels[0] for b in kernels[1] if a[0] < b[1] and b[0] < a[1]]
    assert len(pairs) == 5
    trace = public("kineto/two_ranks")
    first, second = rows(trace.stragglers())
    waits = [max(0, b[0] - a[0]) for a, b in pairs], [max(0, a[0] - b[0]) for a, b in pairs]
    assert (first["wait_ns"], second["wait_ns"]) == tuple(map(sum, waits))
    assert [row["delay_ns"] for row in rows(trace.stragglers(by="collective"))] == sorted(
        (abs(b[0] - a[0]) for a, b in pairs), key=[abs(b[0] - a[0]) for a, b in sorted(pairs)].index
    )
    told = json.loads((FOLDER / "two_ranks.hta.json").read_text())["analyses"]["stragglers"]["out"]
    assert [f"rank {rank} is late" in trace.stragglers().note for rank in told] == [True]
