"""Hand-computed wait states as OTF2 archives like those of Score-P, written with the official package."""

from pathlib import Path
from typing import Any

from otf2.enums import CollectiveOp, CollectiveRoot, GroupType, LockType, Paradigm, RegionRole, RmaSyncLevel

from tests.formats import otf2_archives
from tests.formats.otf2_archives import Archive
from tests.ranks.wait_case import Case, Event

_ROLES = {
    **dict.fromkeys(("bcast", "scatter", "scatterv"), RegionRole.COLL_ONE2ALL),
    **dict.fromkeys(("reduce", "gather", "gatherv"), RegionRole.COLL_ALL2ONE),
    **dict.fromkeys(("scan", "exscan"), RegionRole.COLL_OTHER),
    "barrier": RegionRole.BARRIER,
}
_NOT_COLLECTIVE = ("send", "recv", "probe", "start", "wait", "test")


def write(case: Case, folder: Path) -> Path:
    """Write the archive of a case into a folder that does not exist; return its anchor.

    Missing ranks are defined and have no events.
    """
    return otf2_archives.write(folder, lambda archive: _fill(archive, case), ranks=case.job_ranks)


def _fill(archive: Archive, case: Case) -> None:
    of = archive.definitions
    communicators = {"world": archive.world}
    for key, communicator in case.communicators.items():
        if key not in communicators:
            members = [archive.threads[rank] for rank in communicator.ranks]
            group = of.group("", group_type=GroupType.COMM_GROUP, paradigm=Paradigm.MPI, members=members)
            # The package takes two that are equal for one: the later one is a duplicate of the earlier one.
            same = [communicators[each] for each in communicators if case.communicators[each] == communicator]
            parent = same[-1] if same else archive.world
            communicators[key] = of.comm(communicator.name, group=group, parent=parent)
    names = sorted({event.name for events in case.ranks.values() for event in events if event.kind == "enter"})
    regions = {name: _region(of, name) for name in names}
    windows = {key: of.rma_win(f"window of {key}", comm=each) for key, each in communicators.items()}
    for rank, events in case.ranks.items():
        writer = archive.events(archive.threads[rank])
        for event in events:
            if not _write_of_window(writer, event, windows[event.communicator], archive):
                _write(writer, event, communicators[event.communicator], regions)


def _region(of: Any, name: str) -> Any:
    if not name.startswith("MPI_"):
        return of.region(name, region_role=RegionRole.FUNCTION, paradigm=Paradigm.USER)
    kind = name.removeprefix("MPI_").lower()
    role = _ROLES.get(kind) or _ROLES.get(kind.removeprefix("i"))
    if role is None:
        role = RegionRole.POINT2POINT if any(each in kind for each in _NOT_COLLECTIVE) else RegionRole.COLL_ALL2ALL
    return of.region(name, region_role=role, paradigm=Paradigm.MPI)


def _write_of_window(writer: Any, event: Event, window: Any, archive: Archive) -> bool:
    """Write a record of one-sided communication as Score-P does; return whether it is one."""
    now = event.time_ns
    match event.kind:
        case "fence_begin":
            writer.rma_collective_begin(now)
        case "fence_end":
            level = RmaSyncLevel.PROCESS | RmaSyncLevel.MEMORY
            writer.rma_collective_end(now, CollectiveOp.BARRIER, level, window, CollectiveRoot.NONE, 0, 0)
        case "group_sync":
            members = [archive.threads[rank] for rank in event.peers]
            group = archive.definitions.group(
                "", group_type=GroupType.COMM_GROUP, paradigm=Paradigm.MPI, members=members
            )
            writer.rma_group_sync(now, RmaSyncLevel.PROCESS, window, group)
        case "lock":
            kind = LockType.SHARED if event.name == "shared" else LockType.EXCLUSIVE
            writer.rma_request_lock(now, window, event.peer, 0, kind)
        case "unlock":
            writer.rma_release_lock(now, window, event.peer, 0)
        case "put":
            writer.rma_put(now, window, event.peer, event.sent, event.request)
        case "put_complete":
            writer.rma_op_complete_non_blocking(now, window, event.request)
        case _:
            return False
    return True


def _write(writer: Any, event: Event, communicator: Any, regions: dict[str, Any]) -> None:
    now = event.time_ns
    message = event.peer, communicator, event.tag, event.sent
    root = CollectiveRoot.NONE if event.peer is None else event.peer
    match event.kind:
        case "enter" | "leave":
            getattr(writer, event.kind)(now, regions[event.name])
        case "send" | "receive":
            getattr(writer, "mpi_send" if event.kind == "send" else "mpi_recv")(now, *message)
        case "isend" | "irecv_complete":
            getattr(writer, "mpi_isend" if event.kind == "isend" else "mpi_irecv")(now, *message, event.request)
        case "isend_complete" | "irecv_request" | "request_test" | "request_cancelled":
            getattr(writer, f"mpi_{event.kind}")(now, event.request)
        case "probe":
            writer.mpi_probe(now, event.peer, communicator, event.tag, event.request)
        case "mrecv":
            writer.mpi_mrecv(now, event.request, event.sent)
        case "collective_begin":
            writer.mpi_collective_begin(now)
        case "collective_request":
            writer.non_blocking_collective_request(now, event.request)
        case "collective_end" | "collective_complete":
            collective = getattr(CollectiveOp, event.name.upper()), communicator, root, event.sent, event.received
            if event.kind == "collective_end":
                writer.mpi_collective_end(now, *collective)
            else:
                writer.non_blocking_collective_complete(now, *collective, event.request)
        case _:
            raise ValueError(event.kind)
