"""OTF2 archives for tests: written with the official package, and what its reader says is in them."""

import random
from collections.abc import Callable, Iterable, Iterator
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


def everything(anchor: Path) -> tuple[list[str], list[tuple[object, ...]]]:
    """Return all definitions and events as the official reader shows them."""
    with otf2.reader.open(str(anchor)) as trace:
        registries = [each for each in vars(trace.definitions).values() if isinstance(each, Iterable)]
        definitions = [f"{type(each).__name__} {each}" for registry in registries for each in registry]
        events = [
            (location._ref, type(event).__name__, *(f"{key} {value}" for key, value in _shown(event)))
            for location, event in trace.events
        ]
        return [str(trace.definitions.clock_properties), *definitions], events


def _shown(event: Any) -> list[tuple[object, object]]:
    return [*vars(event).items(), *(event.attributes or {}).items()]


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


def _fields_of(text: str) -> dict[int, str]:
    """Return the fields of each kind of record by its number."""
    return {int(number): fields for number, _, fields in (word.partition(":") for word in text.split())}


# The fields of records, for turning the bytes of each around: n compressed number, b byte, t text, 2, 4 and 8 bytes of
# fixed length, v a value behind its type, [...] as often as the number before says, * the one before it up to the end.
# Records of older versions end earlier. From the writers of OTF2 3.0: OTF2_GlobalDefWriter_inc.c, OTF2_EvtWriter_inc.c.
_DEFINITIONS = _fields_of(
    """
    5:nnnn 6:bnb 7:bbv 8:bnnbnb[bv] 10:nt 11:nnbn 12:nnnn 13:nnbnn 14:nnbnn 15:nnnbnnnnbbn 16:nnnnn 17:nnn
    18:nnbn[n]bbn 19:nnnbbbbnn 20:nb[n]bb 21:nnnbn 22:nnnnn 23:nnb 24:nnnn 25:nn 26:nnnv 27:nb 28:nnnv 29:nnnv
    30:nnnb 31:nnnb[n] 32:nnb[n] 33:nnn 34:nnnn 35:nnv 36:nnbbnn 37:nnv 38:nnn 39:nnn 40:nnnbnnn 41:nbn 42:nnv
    43:nnnnnn
    """
)
_LOCAL_DEFINITIONS = _DEFINITIONS | {5: "bnbn*", 6: "8n8"}
_EVENTS = _fields_of(
    """
    6:n[nv] 10:8 11:b 14:nnnn 15:nnnnn 18:nnnn 19:nnnnn 22: 23:bnnnn 25: 26:nn 27:nn 31:nb[bn] 32:nn 33:nn 34:nn
    35:n 36:n 37: 38:bnnnnn 39:nnn 40:nnnb 41:nnnb 42:nnnb 43:nnn 44:nnb 45:n 46:nnnn 47:nnnn 48:nnbnnn 49:nn
    50:nn 51:nn 52:nn 53:bn 54:b 55:n 56:n 57:bnn 58:bnn 59:nnn 60:nnn 61:nnn 62:nn 63:nn 64:nn 65:nn 66:nn 67:n
    68:nnn 69:nbnn 70:n 71:nnn 72:nnbn 73:nn 74:bn 75:nbnnn 76:nn 77:nn 78:nnn 79:nn 80:nb 81:nb 82:nb 83:nn[n]
    84:n 85:n 86:bnnnnn 87:n 88:n 89:nnnn 90:nn 91:nn 92:nn
    """
)
_SINGLETONS = (12, 13, 16, 17, 20, 21, 24, 28, 29, 30)  # have no length: a number follows
_HEADER_BYTES = 18
_FIXED_VALUES = {1: "b", 2: "2", 5: "b", 6: "2", 9: "4", 10: "8"}  # by type; all others are numbers


def turn_around(folder: Path, to: Path) -> Path:
    """Copy an archive of little endian into one of big endian; return its anchor."""
    (to / "traces").mkdir(parents=True)
    anchor = (folder / "traces.otf2").read_bytes()
    fixed = 2 + 5 + 1 + 1 + 3
    parts = [b"\3#", anchor[2:fixed]]
    chunk_bytes = [int.from_bytes(anchor[at : at + 8], "little") for at in (fixed, fixed + 8)]  # events, definitions
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
        events = path.suffix == ".evt"
        records = _EVENTS if events else _DEFINITIONS if path.name == "traces.def" else _LOCAL_DEFINITIONS
        data = path.read_bytes()
        (to / path.relative_to(folder)).write_bytes(b"".join(_turned(data, records, chunk_bytes[not events], events)))
    return to / "traces.otf2"


def _turned(data: bytes, records: dict[int, str], chunk_bytes: int, events: bool) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        kind = data[at]
        if at % chunk_bytes == 0:
            assert data[at : at + 2] == b"\3B"
            yield b"\3#" + data[at + 2 : at + 10][::-1] + data[at + 10 : at + _HEADER_BYTES][::-1]
            at += _HEADER_BYTES
        elif kind < 5:  # the end of the chunk, or of all
            end = at + chunk_bytes - at % chunk_bytes
            yield data[at:end]
            at = end
        elif events and kind == 5:  # a time
            yield data[at : at + 1] + data[at + 1 : at + 9][::-1]
            at += 9
        elif events and kind in _SINGLETONS:
            piece, end = _field(data, at + 1, "n")
            yield data[at : at + 1] + piece
            at = end
        else:
            length, body = data[at + 1], at + 2
            yield data[at:body]
            if length == 255:
                length, body = int.from_bytes(data[body : body + 8], "little"), body + 8
                yield data[body - 8 : body][::-1]
            at = body + length
            yield from _record(data, body, at, records[kind])


def _record(data: bytes, at: int, end: int, fields: str) -> Iterator[bytes]:
    """Yield the fields of a record that lies from `at` to `end`."""
    number, begin = 0, 0  # the number read last; where the fields begin that are repeated
    left: int | None = None
    i = 0
    while i < len(fields) and at < end:
        each = fields[i]
        i += 1
        if each == "[":
            begin, left = i, number
            i = fields.index("]", i) + 1 if number == 0 else i
        elif each == "]":
            assert left is not None
            left -= 1
            i = begin if left else i
        elif each == "*":
            i -= 2
        else:
            if each == "v":
                yield data[at : at + 1]
                each, at = _FIXED_VALUES.get(data[at], "n"), at + 1
            piece, after = _field(data, at, each)
            number = data[at] if each == "b" else int.from_bytes(data[at + 1 : after], "little")
            yield piece
            at = after
    assert at == end, (fields, at, end)


def _field(data: bytes, at: int, kind: str) -> tuple[bytes, int]:
    """Return a field with its bytes turned around, and where it ends."""
    if kind == "t":
        end = data.index(b"\0", at) + 1
        return data[at:end], end
    if kind != "n":
        end = at + (1 if kind == "b" else int(kind))
        return data[at:end][::-1], end
    size = 0 if data[at] == 255 else data[at]
    return data[at : at + 1] + data[at + 1 : at + 1 + size][::-1], at + 1 + size
