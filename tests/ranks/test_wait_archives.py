"""The hand-computed wait states are sound, and so are their archives: for the official reader and for strobe."""

from collections import Counter
from pathlib import Path

import pytest

import strobe

pytest.importorskip("otf2", reason="the official otf2 package is not installed (there is no wheel after Python 3.11)")

import otf2

from tests.formats.otf2_archives import oracle
from tests.ranks import wait_archives
from tests.ranks.wait_case import Case
from tests.ranks.wait_cases import CASES
from tests.ranks.wait_cases_aside import CASES_ASIDE
from tests.ranks.wait_cases_of_collectives import CASES_OF_COLLECTIVES
from tests.ranks.wait_cases_of_windows import CASES_OF_WINDOWS

OPEN = CASES + CASES_OF_COLLECTIVES + CASES_OF_WINDOWS
ALL = OPEN + CASES_ASIDE
NAMES = [*(case.name for case in OPEN), *(f"aside {number}" for number in range(len(CASES_ASIDE)))]


def first_ns(case: Case) -> int:
    return min(event.time_ns for events in case.ranks.values() for event in events)


def spans(case: Case) -> Counter[tuple[int, str, int, int]]:
    """Return rank, function, start and duration of each call; times count from the first event, as in OTF2."""
    found: Counter[tuple[int, str, int, int]] = Counter()
    for rank, events in case.ranks.items():
        stack: list[tuple[str, int]] = []
        for event in events:
            if event.kind == "enter":
                stack.append((event.name, event.time_ns))
            elif event.kind == "leave":
                name, start = stack.pop()
                assert name == event.name
                found[rank, name, start - first_ns(case), event.time_ns - start] += 1
        assert not stack
    return found


def test_names_are_unique() -> None:
    assert len({case.name for case in ALL}) == len(ALL)


@pytest.mark.parametrize("case", ALL, ids=NAMES)
def test_events_are_in_order_and_waits_inside_their_calls(case: Case) -> None:
    for events in case.ranks.values():
        times = [event.time_ns for event in events]
        assert times == sorted(times)
    waiting: Counter[tuple[int, str]] = Counter()
    for wait in case.waits:
        place = wait.rank, wait.function
        calls = [lasts for rank, name, _, lasts in spans(case).elements() if (rank, name) == place]
        assert 0 < wait.count <= len(calls)
        waiting[place] += wait.wait_ns * (wait.state not in ("wrong_order", "late_complete"))  # parts of others
        assert 0 < waiting[place] <= sum(calls)


@pytest.mark.parametrize("case", ALL, ids=NAMES)
def test_the_official_reader_finds_the_events(tmp_path: Path, case: Case) -> None:
    anchor = wait_archives.write(case, tmp_path / "a")
    told = oracle(anchor)
    ranks = {3 * rank: rank for rank in case.ranks}  # each has three locations
    events = [(rank, event) for rank, events in case.ranks.items() for event in events]
    names = {key: each.name for key, each in case.communicators.items()}
    messages = [
        Counter(
            (rank, each.time_ns - first_ns(case), each.peer, each.tag, names[each.communicator], each.sent, request)
            for rank, each in events
            if each.kind in kinds
            for request in [None if each.request < 0 else each.request]
        )
        for kinds in (("send", "isend"), ("receive", "irecv_complete"))
    ]
    collectives = Counter(
        (each.name.replace("bcast", "broadcast"), names[each.communicator], each.peer, each.sent, each.received)
        for _, each in events
        if each.kind in ("collective_end", "collective_complete")
    )
    assert told.events == len(events)
    assert Counter((ranks[where], *rest) for where, *rest in told.spans) == spans(case)
    assert [Counter((ranks[row[0]], *row[1:]) for row in rows) for rows in (told.sends, told.receives)] == messages
    assert Counter(told.collectives) == collectives
    with otf2.reader.open(str(anchor)) as archive:
        groups = [
            (each.name, tuple(place._ref // 3 for place in each.group.members)) for each in archive.definitions.comms
        ]
    for communicator in case.communicators.values():
        assert (communicator.name, communicator.ranks) in groups


@pytest.mark.parametrize("case", OPEN[::10], ids=lambda case: case.name)
def test_strobe_opens_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))
    trace = strobe.open(wait_archives.write(case, tmp_path / "a"))
    calls = trace.sql(
        f"select rank, spans.name, start_ns + {trace.zero_ns}, duration_ns from spans join processes using (process)"
    )
    assert Counter(tuple(row) for row in calls.rows()) == spans(case)
    total_ns: Counter[str] = Counter()
    for _, name, _, lasts in spans(case).elements():
        total_ns[name] += lasts
    assert {row["name"]: row["total_ns"] for row in trace.profile().to_pylist()} == total_ns


# Scalasca's names (MPI.pattern, MPI_RMA.pattern); what it does not know has ours.
SCALASCA = {
    "late_sender": "mpi_latesender", "wrong_order": "mpi_latesender_wo", "late_receiver": "mpi_latereceiver",
    "wait_at_barrier": "mpi_barrier_wait", "barrier_completion": "mpi_barrier_completion",
    "wait_at_nxn": "mpi_wait_nxn", "nxn_completion": "mpi_nxn_completion", "late_broadcast": "mpi_latebroadcast",
    "early_reduce": "mpi_earlyreduce", "early_scan": "mpi_earlyscan", "late_collective": "late_collective",
    "wait_at_fence": "mpi_rma_wait_at_fence", "early_wait": "mpi_rma_early_wait",
    "late_complete": "mpi_rma_late_complete", "lock_contention": "mpi_rma_sync_lock_competition",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", OPEN, ids=[case.name for case in OPEN])
def test_a_cube4_profile_has_the_waits_under_scalascas_names(case: Case, tmp_path: Path) -> None:
    pycubexr = pytest.importorskip("pycubexr")
    trace = strobe.open(wait_archives.write(case, tmp_path / "archive"))
    trace.export(tmp_path / "waits.cubex")
    expected: Counter[tuple[str, int, str]] = Counter()
    for wait in case.waits:
        name = SCALASCA.get(wait.state)
        if name is None:
            name = f"mpi_rma_{'sync' if wait.function.startswith('MPI_Win_') else 'comm'}_{wait.state}"
        expected[name, wait.rank, wait.function] += wait.wait_ns
    found: Counter[tuple[str, int, str]] = Counter()
    with pycubexr.CubexParser(tmp_path / "waits.cubex") as cube:
        (machine,) = cube._anchor_result.system_tree_nodes
        hosts = machine._system_tree_node_children
        groups = [group for host in hosts for group in host.all_location_groups()]
        ranks = [int(group.rank) for group in groups for _ in group.all_locations()]
        for metric in cube.all_metrics():
            if metric.name in ("visits", "time") or metric.name.startswith("delay_"):
                continue
            assert metric.units == "sec"
            values = cube.get_metric_values(metric)
            for node in cube.all_cnodes():
                for rank, value in zip(ranks, values.cnode_values(node).tolist(), strict=True):
                    found[metric.name, rank, cube.get_region(node).name] += round(value * 1e9)
    assert +found == +expected
