"""OTF2 archives of ours as the official reader sees them: what was in an archive of MPI is in the one made of it."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import strobe

pytest.importorskip("otf2", reason="the official otf2 package is not installed (there is no wheel after Python 3.11)")
import otf2
from otf2.enums import LocationGroupType, LocationType, Paradigm, RegionRole

from tests.formats import otf2_archives as archives
from tests.formats.otf2_archives import Archive, Told, oracle
from tests.formats.test_export_otf2 import assert_equal, chrome, everything, exported


def told_of(told: Told) -> dict[str, Counter[tuple[Any, ...]]]:
    """Rows without numbers of locations, with times from the first span on."""
    zero = min(start for _, _, start, _ in told.spans)
    return {
        "spans": Counter((name, start - zero, duration) for _, name, start, duration in told.spans),
        "metrics": Counter((name, now - zero, value) for name, now, value in told.metrics),
        "sends": Counter((now - zero, *rest) for _, now, *rest in told.sends),
        "receives": Counter((now - zero, *rest) for _, now, *rest in told.receives),
        "collectives": Counter(map(tuple, told.collectives)),
    }


def non_blocking_job(archive: Archive) -> None:
    of = archive.definitions
    pair = of.group("", group_type=archives.GroupType.COMM_GROUP, paradigm=Paradigm.MPI, members=archive.threads[1:])
    others = of.comm("others", group=pair, parent=archive.world)
    iallreduce = of.region("MPI_Iallreduce", region_role=RegionRole.COLL_ALL2ALL, paradigm=Paradigm.MPI)
    wait = of.region("MPI_Wait", region_role=RegionRole.POINT2POINT, paradigm=Paradigm.MPI)
    window = of.rma_win("win", comm=archive.world)
    for rank, thread in enumerate(archive.threads):
        events = archive.events(thread)
        events.enter(50, wait)
        events.mpi_collective_begin(51)
        events.mpi_collective_end(52, archives.CollectiveOp.BARRIER, archive.world, 2**32 - 1, 0, 0)
        events.leave(53, wait)
        if rank == 0:
            continue
        other = 2 - rank
        events.mpi_isend(100, other, others, 5, 64, 1)
        events.mpi_irecv_request(110, 2)
        events.mpi_isend(120, 0, archive.world, 6, 32, 3)
        events.mpi_isend_complete(150, 3)
        events.mpi_isend_complete(170, 1)
        events.mpi_irecv(180, other, others, 7, 128, 2)
        events.mpi_isend(190, other, others, 8, 1, 9)
        events.rma_put(191, window, 0, 4096, 77)
        events.rma_op_complete_blocking(199, window, 77)
        events.enter(200, iallreduce)
        events.non_blocking_collective_request(205, 11)
        events.leave(210, iallreduce)
        events.enter(300, wait)
        events.non_blocking_collective_complete(360, archives.CollectiveOp.ALLREDUCE, others, 2**32 - 1, 8, 16, 11)
        events.leave(360, wait)


def self_job(archive: Archive) -> None:
    """Communicators that have the same name and are others."""
    of = archive.definitions
    work = of.region("MPI_Barrier", region_role=RegionRole.BARRIER, paradigm=Paradigm.MPI)
    for thread in archive.threads:
        group = of.group("", group_type=archives.GroupType.COMM_GROUP, paradigm=Paradigm.MPI, members=[thread])
        alone = of.comm("half", group=group, parent=archive.world)
        events = archive.events(thread)
        events.enter(10, work)
        events.mpi_collective_begin(10)
        events.mpi_send(12, 0, alone, 3, 8)
        events.mpi_collective_end(20, archives.CollectiveOp.BARRIER, alone, 2**32 - 1, 0, 0)
        events.leave(20, work)


@pytest.mark.parametrize("fill", [archives.random_job(1), archives.random_job(2), non_blocking_job])
def test_what_was_in_an_archive_is_in_the_one_made_of_it(fill: Any, tmp_path: Path) -> None:
    anchor = archives.write(tmp_path / "first", fill, ranks=3)
    trace = strobe.open(anchor)
    again = exported(trace, tmp_path / "again")
    assert_equal(trace, again)
    expected, got = told_of(oracle(anchor)), told_of(oracle(tmp_path / "again" / "traces.otf2"))
    assert got == expected
    assert all(expected[name] for name in ("spans", "sends", "collectives"))


def test_requests_that_were_tested_in_vain_or_cancelled_are_so_again(tmp_path: Path) -> None:
    def fill(archive: Archive) -> None:
        for thread in archive.threads:
            events = archive.events(thread)
            events.enter(9, archive.definitions.region("MPI_Test", paradigm=Paradigm.MPI))
            events.mpi_irecv_request(10, 1)
            events.mpi_isend(10, 0, archive.world, 6, 32, 2)
            events.mpi_request_test(11, 1)
            events.mpi_request_test(12, 1)
            events.mpi_request_cancelled(13, 2)
            events.mpi_irecv(14, 0, archive.world, 7, 128, 1)
            events.leave(15, archive.definitions.region("MPI_Test", paradigm=Paradigm.MPI))

    trace = strobe.open(archives.write(tmp_path / "first", fill, ranks=2))
    assert_equal(trace, exported(trace, tmp_path / "again"))
    with otf2.reader.open(str(tmp_path / "again" / "traces.otf2")) as archive:
        events = [event for _, event in archive.events if hasattr(event, "request_id")]
        found = [(type(event).__name__, event.request_id) for event in events]
    expected = [("MpiIrecvRequest", 1), ("MpiIsend", 2), ("MpiRequestTest", 1), ("MpiRequestTest", 1)]
    assert sorted(found) == sorted([*expected, ("MpiRequestCancelled", 2), ("MpiIrecv", 1)] * 2)


def kinds(folder: Path) -> tuple[Counter[str], set[Any], set[Any]]:
    """Names of events, roles of regions, types of location groups."""
    with otf2.reader.open(str(folder / "traces.otf2")) as trace:
        events = Counter(type(event).__name__ for _, event in trace.events)
        roles = {region.region_role for region in trace.definitions.regions}
        return events, roles, {group.location_group_type for group in trace.definitions.location_groups}


def test_old_readers_get_nothing_that_they_do_not_know(tmp_path: Path) -> None:
    trace = strobe.open(archives.write(tmp_path / "first", non_blocking_job, ranks=3))
    assert kinds_of(trace, tmp_path / "new", 3)[0]["NonBlockingCollectiveComplete"] == 2
    events, _, _ = kinds_of(trace, tmp_path / "old", 2)
    assert not {name for name in events if name.startswith("NonBlocking")}
    assert events["MpiCollectiveEnd"] == 5
    gpu = chrome(tmp_path / "t.json", everything())
    _, roles, groups = kinds_of(gpu, tmp_path / "new gpu", 3)
    assert RegionRole.KERNEL in roles
    assert LocationGroupType.ACCELERATOR in groups
    _, roles, groups = kinds_of(gpu, tmp_path / "old gpu", 2)
    assert RegionRole.KERNEL not in roles
    assert groups == {LocationGroupType.PROCESS}
    assert (tmp_path / "old" / "traces.otf2").read_bytes()[9:12] == b"\2\3\0"


def kinds_of(trace: strobe.Trace, folder: Path, version: int) -> tuple[Counter[str], set[Any], set[Any]]:
    assert_equal(trace, exported(trace, folder, otf2_version=version))
    return kinds(folder)


def test_communicators_of_one_name_stay_apart(tmp_path: Path) -> None:
    trace = strobe.open(archives.write(tmp_path / "first", self_job, ranks=2))
    again = exported(trace, tmp_path / "again")
    assert_equal(trace, again)
    rows = again.sql("select communicator, tag, peer_rank, communicator_rank from messages").rows()
    assert rows == [("half [2]", 3, 0, 0), ("half [3]", 3, 1, 0)]
    sends = oracle(tmp_path / "again" / "traces.otf2").sends
    assert sorted((name, receiver, tag) for _, _, receiver, tag, name, *_ in sends) == [
        ("half [2]", 0, 3),
        ("half [3]", 0, 3),
    ]


def test_all_of_a_trace_is_where_users_of_otf2_look_for_it(tmp_path: Path) -> None:
    trace = chrome(tmp_path / "t.json", everything())
    exported(trace, tmp_path / "again")
    told = oracle(tmp_path / "again" / "traces.otf2")
    clock_of_spans = trace.sql("select name, start_ns, duration_ns from spans").rows()
    zero = min(start for _, _, start, _ in told.spans)
    first = min(int(str(start)) for _, start, _ in clock_of_spans)
    assert Counter((name, start - zero + first, duration) for _, name, start, duration in told.spans) == Counter(
        map(tuple, clock_of_spans)
    )
    with otf2.reader.open(str(tmp_path / "again" / "traces.otf2")) as archive:
        streams = [each for each in archive.definitions.locations if each.type == LocationType.ACCELERATOR_STREAM]
        assert [each.group.creating_location_group.location_group_type for each in streams] == [
            LocationGroupType.PROCESS
        ]
        attributes: dict[str, dict[str, Any]] = {}
        parameters = []
        for _, event in archive.events:
            said = {attribute.name: value for attribute, value in (event.attributes or {}).items()}
            if type(event).__name__ == "Enter" and said:
                attributes.setdefault(event.region.name, said)
            if type(event).__name__ == "ParameterString":
                parameters.append((event.parameter.name, event.string))
        clock = archive.definitions.clock_properties
        assert clock.timer_resolution == 10**9
    assert attributes["k<int>"]["kernel_spans.grid_x"] == 4
    assert attributes["no length"] | {"n": -5, "t": "plain é", "arguments.x": '[1,"y"]'} == attributes["no length"]
    assert ("strobe.marks", "mark") in parameters
    assert ("strobe.flows", "ac2g") in parameters


def test_names_that_are_no_text_are_shown(tmp_path: Path) -> None:
    anchor = archives.write(tmp_path / "first", archives.random_job(1), ranks=1)
    definitions = anchor.with_suffix(".def")
    data = definitions.read_bytes()
    assert data.count(b"node07") == 1
    definitions.write_bytes(data.replace(b"node07", b"node\xff7"))
    trace = strobe.open(anchor)
    assert trace.processes.column("host") == ["node\\xff7"]
    assert_equal(trace, exported(trace, tmp_path / "again"))
