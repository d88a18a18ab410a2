"""OTF2 archives for tests: written with the official package, and what its reader says is in them."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import _otf2
import otf2
from otf2.enums import (
    CollectiveOp,
    GroupType,
    LocationGroupType,
    LocationType,
    MappingType,
    MeasurementMode,
    MetricMode,
    MetricOccurrence,
    Paradigm,
    ParameterType,
    RegionRole,
    Type,
)

UNSIGNED, SIGNED, TEXT = ParameterType.UINT64, ParameterType.INT64, ParameterType.STRING
MEASUREMENT_ON, MEASUREMENT_OFF = MeasurementMode.ON, MeasurementMode.OFF
_COLLECTIVES = ("BARRIER", "BCAST", "GATHER", "SCATTERV", "ALLTOALL", "ALLREDUCE", "REDUCE_SCATTER", "EXSCAN")


def nanoseconds(ticks: int, clock: Any) -> int:
    """Ticks since the archive's first moment, to the nearest nanosecond; what lies between goes away from zero."""
    since = Fraction(abs(ticks - clock.global_offset) * 10**9, clock.timer_resolution)
    whole = int(since + Fraction(1, 2))
    return whole if ticks >= clock.global_offset else -whole


@dataclass
class Told:
    """What the official reader says: rows with the location's number first, times in nanoseconds."""

    spans: list[tuple[int, str, int, int]] = field(default_factory=list)  # location, region, start, duration
    metrics: list[tuple[str, int, float]] = field(default_factory=list)  # name, time, value
    sends: list[tuple[Any, ...]] = field(
        default_factory=list
    )  # location, time, rank, tag, communicator, bytes, request
    receives: list[tuple[Any, ...]] = field(default_factory=list)
    collectives: list[tuple[Any, ...]] = field(default_factory=list)  # name, communicator, root, sent, received
    events: int = 0


def oracle(anchor: Path) -> Told:
    told = Told()
    stacks: dict[int, list[tuple[str, int]]] = {}
    with otf2.reader.open(str(anchor)) as trace:
        clock = trace.definitions.clock_properties
        for location, event in trace.events:
            told.events += 1
            here, now, what = location._ref, nanoseconds(event.time, clock), type(event).__name__
            stack = stacks.setdefault(here, [])
            if what in ("Enter", "ProgramBegin"):
                stack.append((event.region.name if what == "Enter" else event.program_name, now))
            elif what in ("Leave", "ProgramEnd"):
                name, start = stack.pop()
                told.spans.append((here, name, start, now - start))
            elif what == "CallingContextEnter":
                stack.append((event.calling_context.region.name, now))
            elif what == "CallingContextLeave":
                name, start = stack.pop()
                told.spans.append((here, name, start, now - start))
            elif what == "Metric":
                members = getattr(event.metric, "members", None) or event.metric.metric_class.members
                for member, value in zip(members, event.values, strict=True):
                    told.metrics.append((member.name, now, float(value)))
            elif what in ("MpiSend", "MpiIsend"):
                request = getattr(event, "request_id", None)
                comm = event.communicator.name
                told.sends.append((here, now, event.receiver, event.msg_tag, comm, event.msg_length, request))
            elif what in ("MpiRecv", "MpiIrecv"):
                request = getattr(event, "request_id", None)
                comm = event.communicator.name
                told.receives.append((here, now, event.sender, event.msg_tag, comm, event.msg_length, request))
            elif what in ("MpiCollectiveEnd", "NonBlockingCollectiveComplete"):
                root = None if event.root >= 2**32 - 3 else event.root
                name = str(event.collective_op).partition(".")[2].lower().replace("bcast", "broadcast")
                told.collectives.append((name, event.communicator.name, root, event.size_sent, event.size_received))
    return told


@dataclass
class Archive:
    """An archive that is being written: a job of some ranks, each with a thread and a stream of a GPU."""

    writer: Any
    threads: list[Any]
    streams: list[Any]
    metric_locations: list[Any]
    world: Any
    window: Any
    processes: list[Any]
    system_node: Any

    @property
    def definitions(self) -> Any:
        return self.writer.definitions

    def events(self, location: Any) -> Any:
        return self.writer.event_writer_from_location(location)


def write(
    folder: Path, fill: Callable[[Archive], None], ranks: int = 2, resolution: int = 10**9, chunk_bytes: int = 1 << 20
) -> Path:
    """Write an archive; return its anchor."""
    with otf2.writer.open(str(folder), timer_resolution=resolution, chunk_size_events=chunk_bytes) as writer:
        all_of = writer.definitions
        machine = all_of.system_tree_node("cluster", class_name="machine")
        node = all_of.system_tree_node("node07", class_name="node", parent=machine)
        threads, streams, metric_locations, processes = [], [], [], []
        for rank in range(ranks):
            process = all_of.location_group(
                f"MPI Rank {rank}",
                location_group_type=LocationGroupType.PROCESS,
                system_tree_parent=node,
                creating_location_group=None,
            )
            context = all_of.location_group(
                f"CUDA Context {rank + 1}",
                location_group_type=LocationGroupType.ACCELERATOR,
                system_tree_parent=node,
                creating_location_group=process,
            )
            processes.append(process)
            threads.append(all_of.location("Master thread", type=LocationType.CPU_THREAD, group=process))
            streams.append(all_of.location(f"CUDA[{rank}:7]", type=LocationType.ACCELERATOR_STREAM, group=context))
            metric_locations.append(all_of.location("", type=LocationType.METRIC, group=process))
        all_of.group("", group_type=GroupType.COMM_LOCATIONS, paradigm=Paradigm.MPI, members=threads)
        world_group = all_of.group("", group_type=GroupType.COMM_GROUP, paradigm=Paradigm.MPI, members=threads)
        world = all_of.comm("MPI_COMM_WORLD", group=world_group, parent=None)
        everything = [each for pair in zip(threads, streams, strict=True) for each in pair]
        all_of.group("", group_type=GroupType.COMM_LOCATIONS, paradigm=Paradigm.CUDA, members=everything)
        cuda_group = all_of.group("", group_type=GroupType.COMM_GROUP, paradigm=Paradigm.CUDA, members=everything)
        cuda = all_of.comm("CUDA", group=cuda_group, parent=None)
        window = all_of.rma_win("CUDA_WINDOW", comm=cuda)
        fill(Archive(writer, threads, streams, metric_locations, world, window, processes, node))
    return folder / "traces.otf2"


def random_job(seed: int) -> Callable[[Archive], None]:
    """Nested regions, messages, collectives and metrics in any order, at times that are often equal."""

    def fill(archive: Archive) -> None:
        chance = random.Random(seed)
        of = archive.definitions
        regions = [of.region(f"work {i}", region_role=RegionRole.FUNCTION, paradigm=Paradigm.USER) for i in range(9)]
        send = of.region("MPI_Send", region_role=RegionRole.POINT2POINT, paradigm=Paradigm.MPI)
        reduce = of.region("MPI_Allreduce", region_role=RegionRole.COLL_ALL2ALL, paradigm=Paradigm.MPI)
        members = [
            of.metric_member("cycles", metric_mode=MetricMode.ACCUMULATED_START, value_type=Type.UINT64, unit="#"),
            of.metric_member("heat", metric_mode=MetricMode.ABSOLUTE_POINT, value_type=Type.DOUBLE, unit="K"),
            of.metric_member("balance", metric_mode=MetricMode.RELATIVE_LAST, value_type=Type.INT64, unit="#"),
        ]
        counters = of.metric_class(members, occurrence=MetricOccurrence.SYNCHRONOUS_STRICT)
        for rank, location in enumerate(archive.threads):
            events = archive.events(location)
            now = 10**15 + chance.randrange(10**6)
            stack: list[Any] = []
            for request in range(400):
                now += chance.choice((0, 0, 1, chance.randrange(1000), chance.randrange(10**9)))
                peer = chance.randrange(len(archive.threads))
                match chance.randrange(8):
                    case 0 | 1 | 2:
                        stack.append(chance.choice(regions))
                        events.enter(now, stack[-1])
                    case 3 | 4 if stack:
                        events.leave(now, stack.pop())
                    case 5:
                        events.metric(now, counters, [request << 40, chance.random(), -chance.randrange(1 << 40)])
                    case 6:
                        events.enter(now, send)
                        tag, size = chance.randrange(1 << 31), chance.randrange(1 << 50)
                        events.mpi_send(now, peer, archive.world, tag, size)
                        events.mpi_isend(now, peer, archive.world, tag, size, request)
                        events.mpi_irecv_request(now + 1, request + 1000)
                        events.mpi_recv(now + 2, peer, archive.world, tag, size)
                        now += 4
                        events.leave(now, send)
                        events.mpi_isend_complete(now, request)
                        events.mpi_irecv(now, peer, archive.world, tag, size + 1, request + 1000)
                    case 7:
                        events.enter(now, reduce)
                        events.mpi_collective_begin(now)
                        now += 3
                        operation = getattr(CollectiveOp, chance.choice(_COLLECTIVES))
                        root = chance.choice((0, rank, 2**32 - 1))
                        events.mpi_collective_end(now, operation, archive.world, root, request, request * 3)
                        events.leave(now, reduce)
            while stack:
                now += 1
                events.leave(now, stack.pop())

    return fill


def with_own_numbers(archive: Archive, location: Any, kind: MappingType, numbers: dict[int, int]) -> None:
    """Let the events of a location use numbers of their own."""
    table = _otf2.IdMap_Create(_otf2.ID_MAP_SPARSE, len(numbers))
    for local, general in numbers.items():
        _otf2.IdMap_AddIdPair(table, local, general)
    _otf2.DefWriter_WriteMappingTable(archive.events(location)._def_handle, kind, table)
    _otf2.IdMap_Free(table)


def with_clock_offset(archive: Archive, location: Any, ticks: int, offset: int) -> None:
    _otf2.DefWriter_WriteClockOffset(archive.events(location)._def_handle, ticks, offset, 0.0)


# The fields of records, for turning the bytes of each around: n compressed number, b byte, t text, 8 fixed.
_DEFINITION_FIELDS = {
    5: "nnnn",
    10: "nt",
    11: "nnbn",
    12: "nnnn",
    13: "nnbnn",
    14: "nnbnn",
    15: "nnnbnnnnbbn",
    19: "nnnbbbbnn",
    21: "nnnbn",
    22: "nnnnn",
    24: "nnnn",
}
_EVENT_FIELDS = {14: "nnnn", 15: "nnnnn", 18: "nnnn", 19: "nnnnn", 22: "", 23: "bnnnn"}
_SINGLETONS = (12, 13, 16, 17)


def turn_around(folder: Path, to: Path) -> Path:
    """Copy an archive of little endian into one of big endian; return its anchor."""
    (to / "traces").mkdir(parents=True)
    anchor = (folder / "traces.otf2").read_bytes()
    fixed = 2 + 5 + 1 + 1 + 3
    parts = [b"\3#", anchor[2:fixed]]
    for size in (8, 8, 1, 1, 8, 8):
        parts.append(anchor[fixed : fixed + size][::-1])
        fixed += size
    for _ in range(3):
        end = anchor.index(b"\0", fixed) + 1
        parts.append(anchor[fixed:end])
        fixed = end
    parts.append(anchor[fixed : fixed + 4][::-1])
    count, fixed = int.from_bytes(anchor[fixed : fixed + 4], "little"), fixed + 4
    for _ in range(2 * count):
        end = anchor.index(b"\0", fixed) + 1
        parts.append(anchor[fixed:end])
        fixed = end
    for size in (8, 4, 4):
        parts.append(anchor[fixed : fixed + size][::-1])
        fixed += size
    (to / "traces.otf2").write_bytes(b"".join(parts) + anchor[fixed:])
    for path in (folder / "traces.def", *(folder / "traces").iterdir()):
        target = to / path.relative_to(folder)
        target.write_bytes(b"".join(_turned(path.read_bytes(), path.suffix == ".evt")))
    return to / "traces.otf2"


def _turned(data: bytes, events: bool) -> Iterator[bytes]:
    assert data[:2] == b"\3B"
    yield b"\3#" + data[2:10][::-1] + data[10:18][::-1]
    at = 18
    while at < len(data):
        kind = data[at]
        if kind < 5:
            yield data[at:]
            return
        if events and kind == 5:
            yield data[at : at + 1] + data[at + 1 : at + 9][::-1]
            at += 9
        elif events and kind in _SINGLETONS:
            piece, end = _field(data, at + 1, "n")
            yield data[at : at + 1] + piece
            at = end
        else:
            length, body = data[at + 1], at + 2
            assert length != 255
            yield data[at:body]
            end = body + length
            if events and kind == 31:
                fields = "nb" + "bn" * data[_skip(data, body, "n")]
            elif not events and kind == 18:
                fields = "nnb" + "n" + "n" * data[_skip(data, body, "nnb") + 1] if length else ""
                fields += "bbn"
            elif not events and kind == 20:
                fields = "nb" + "n" * data[_skip(data, body, "n")] + "bb"
            else:
                fields = (_EVENT_FIELDS if events else _DEFINITION_FIELDS)[kind]
            for each in fields:
                piece, body = _field(data, body, each)
                yield piece
            assert body == end, (kind, body, end)
            at = end


def _skip(data: bytes, at: int, fields: str) -> int:
    for each in fields:
        at = _field(data, at, each)[1]
    return at


def _field(data: bytes, at: int, kind: str) -> tuple[bytes, int]:
    if kind == "b":
        return data[at : at + 1], at + 1
    if kind == "t":
        end = data.index(b"\0", at) + 1
        return data[at:end], end
    size = 0 if data[at] == 255 else data[at]
    return data[at : at + 1] + data[at + 1 : at + 1 + size][::-1], at + 1 + size
