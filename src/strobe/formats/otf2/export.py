"""A trace as an OTF2 archive: locations one after the other, in memory that does not grow with the trace.

Spans, messages and collectives of MPI, readings of metrics and call stacks have records in OTF2. Other cells of side
tables become attributes `table.column` of an event, with which the archive is read again as it was
(native/formats/otf2/otf2_strobe_attributes.h); rows without an event become parameters with such attributes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from strobe import native
from strobe.formats.otf2.communicators import Communicator, Communicators
from strobe.formats.otf2.definitions import EVENT_CHUNK_BYTES, Definitions, GroupType, Type, write_anchor
from strobe.formats.otf2.records import BYTE, U32, U64, Batch, Field, Numbers, Records, Rows, Texts, Whole, carriers
from strobe.formats.writing.processes import readings_of
from strobe.model.schema import SPAN_TABLES
from strobe.trace.definition_rows import Process, location_rows, process_rows, region_rows
from strobe.trace.spans import SpanArrays
from strobe.trace.trace import Trace

# Records of events: OTF2_Events.h of the OTF2 library 3, as native/formats/otf2/otf2_records.h has them.
_SEND, _ISEND, _ISEND_COMPLETE, _IRECEIVE_REQUEST, _RECEIVE, _IRECEIVE = 14, 15, 16, 17, 18, 19
_COLLECTIVE_BEGIN, _COLLECTIVE_END, _COLLECTIVE_REQUEST, _COLLECTIVE_COMPLETE = 22, 23, 85, 86
_METRIC, _SAMPLE = 31, 68
_TRANSFERS = {"put": 46, "get": 47, "atomic": 48}
_TRANSFER_COMPLETE = 49
# Their numbers are those of OTF2_CollectiveOp.
_COLLECTIVES = (
    *("barrier", "broadcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv"),
    *("alltoall", "alltoallv", "alltoallw", "allreduce", "reduce", "reduce_scatter", "scan", "exscan"),
    *("reduce_scatter_block", "create_handle", "destroy_handle", "allocate", "deallocate"),
    *("create_handle_and_allocate", "destroy_handle_and_deallocate"),
)
_UNDEFINED = -1
_LARGEST = 2**32 - 4  # above are numbers with a meaning of their own

# From our paradigms and roles to OTF2_Paradigm and OTF2_RegionRole.
_PARADIGMS = {
    "python": 1,
    "torch": 1,
    "itt": 1,
    "nvtx": 1,
    "user": 1,
    "onednn": 1,
    "compiler": 2,
    "openmp": 3,
    "mpi": 4,
    "cuda": 5,
    "strobe": 6,
    "pthread": 7,
    "shmem": 13,
    "openacc": 18,
    "opencl": 19,
    "hip": 23,
    "kokkos": 24,
}
_FUNCTION, _BARRIER, _POINT_TO_POINT, _ARTIFICIAL, _KERNEL = 1, 15, 28, 31, 40
_ROLES = {
    "function": _FUNCTION,
    "operator": _FUNCTION,
    "data": _FUNCTION,
    "range": 4,
    "loop": 3,
    "kernel": _KERNEL,
    "copy": 30,
    "collective": 26,
    "p2p": _POINT_TO_POINT,
    "sync": 2,
    "wait": 33,
    "idle": _ARTIFICIAL,
}
_PROCESS, _ACCELERATOR = 1, 2
_THREAD, _STREAM, _METRICS = 1, 2, 3
_EARLIEST_TICKS = 1 << 40  # times are unsigned: our zero lies there at least
_MEMORY_BYTES = 32 << 20  # of records that wait to be put in order
_TIMED = ("allocations", "messages", "marks", "flows", "samples")  # in the order in which equal times are written


@dataclass(frozen=True)
class _Recorder:
    """A location that holds the readings of a process: its metrics by number, name, unit, and location measured."""

    location: int
    metrics: list[tuple[int, str, str, int | None]]


class Writer:
    """One archive in the making, in a folder. `version` 2: nothing that readers before OTF2 3 do not know."""

    def __init__(self, trace: Trace, folder: Path, version: int) -> None:
        self._trace, self._folder, self._version = trace, folder, version
        self._definitions = Definitions()
        self._rows = location_rows(trace)
        self._processes = process_rows(trace)
        self._regions = region_rows(trace)
        self._zero = max(trace.zero_ns, _EARLIEST_TICKS)
        self._first, self._last = self._zero, self._zero
        self._group_names = [_process_name(row) for row in self._processes]
        self._communicators = Communicators(trace, self._group_names)
        self._communication = np.array([row.paradigm == "mpi" for row in self._regions], dtype=np.uint8)
        self._texts: dict[int, Texts] = {}
        self._events: dict[int, int] = {}  # by location
        self._metric_count = 0
        self.incomplete = self.attributes_left_out = 0

    @property
    def texts_cut(self) -> int:
        """Texts that were longer than a definition of OTF2 holds."""
        return self._definitions.texts_cut

    def write(self) -> None:
        """Write everything."""
        (self._folder / "traces").mkdir()
        for location in range(len(self._rows)):
            self._location(location)
        metrics = [self._metrics(process) for process in range(len(self._processes))]
        self._define(metrics)
        unix_ns = self._trace.job.started_unix_ns
        definitions = self._definitions.write(
            self._folder / "traces.def",
            self._first,
            self._last - self._first,
            unix_ns - (self._zero - self._first) if unix_ns else None,
            len(self._regions),
        )
        own = {"STROBE::ZERO_NS": str(self._zero - self._first)}
        host = self._trace.info.host
        write_anchor(self._folder / "traces.otf2", self._version, host, len(self._events), definitions, own)

    # Definitions

    def _define(self, recorders: list[_Recorder | None]) -> None:
        define = self._definitions
        define.system_node(0, "machine", "machine", None)
        hosts: dict[str, int] = {}
        for each in self._processes:
            host = each.host or "unknown host"
            if host not in hosts:
                hosts[host] = 1 + len(hosts)
                define.system_node(hosts[host], host, "node", 0)
        nodes = [hosts[each.host or "unknown host"] for each in self._processes]
        for process, (name, node) in enumerate(zip(self._group_names, nodes, strict=True)):
            define.location_group(process, name, _PROCESS, node, None)
        groups = self._accelerators(nodes)
        for location, row in enumerate(self._rows):
            kind = _STREAM if row.kind == "stream" else _THREAD
            define.location(location, row.name, kind, self._events[location], groups[location])
        for process, recorder in enumerate(recorders):
            if recorder is not None:
                define.location(recorder.location, "metrics", _METRICS, self._events[recorder.location], process)
        self._define_regions()
        self._communicators.define(define, len({str(row.module) for row in self._regions}))
        for process, recorder in enumerate(recorders):
            if recorder is not None:
                for number, name, unit, measured in recorder.metrics:
                    define.metric(number, name, unit, recorder.location, measured, process)
        for location, row in enumerate(self._rows):
            define.location_property(location, "STROBE::THREAD_ID", row.thread_id)
            if row.kind == "task":
                define.location_property(location, "STROBE::KIND", "task")
            if row.device is not None:
                define.location_property(location, "STROBE::DEVICE", row.device)
        for process in range(len(self._processes)):
            self._describe(process)

    def _accelerators(self, nodes: list[int]) -> list[int]:
        """Define a group for each GPU of each process; return the group of each location."""
        groups: list[int] = []
        known: dict[tuple[int, object], int] = {}
        for row in self._rows:
            process = row.process
            if row.kind != "stream" or self._version < 3:
                groups.append(process)
                continue
            key = (process, row.device)
            if key not in known:
                known[key] = len(nodes) + len(known)
                device = "GPU" if row.device is None else f"GPU {row.device}"
                name = f"{device} of {self._group_names[process]}"
                self._definitions.location_group(known[key], name, _ACCELERATOR, nodes[process], process)
            groups.append(known[key])
        return groups

    def _define_regions(self) -> None:
        modules: dict[str, list[int]] = {}
        for region, row in enumerate(self._regions):
            paradigm, role = row.paradigm, row.role
            role_there = _ROLES.get(role, 0)
            if paradigm == "mpi" and role in ("sync", "wait"):
                role_there = _BARRIER if role == "sync" else _POINT_TO_POINT
            if role_there == _KERNEL and self._version < 3:
                role_there = _FUNCTION
            about, place = f"{paradigm} {role}", (row.file or "", row.line)
            self._definitions.region(region, row.name, about, *place, role_there, _PARADIGMS.get(paradigm, 0))
            modules.setdefault(str(row.module or ""), []).append(region)
        for group, (module, regions) in enumerate(modules.items()):
            self._definitions.group(group, module, GroupType.REGIONS, 0, regions)

    def _describe(self, process: int) -> None:
        row = self._processes[process]
        start = self._zero - self._first  # the zero of our times
        properties: dict[str, object] = {
            "PID": row.pid,
            "PARENT_PID": row.parent_pid,
            "COMMAND": row.argv or "",
            "MAIN": "yes" if row.main else "no",
            "HOST": row.host or "",
            "PYTHON": row.python or "",
            "STARTED_NS": row.started_ns + start,
            "ENDED_NS": row.ended_ns + start,
            "END_STATE": row.end_state,
            "EXIT_CODE": row.exit_code,
            "RANK": row.rank,
            "RANKS": self._trace.readers[process].process().get("ranks"),
        }
        for name, value in properties.items():
            if isinstance(value, (str, int)):
                self._definitions.group_property(process, f"STROBE::{name}", value)

    # Events

    def _file(self, location: int) -> native.Otf2EventFile:
        definitions = native.Otf2DefinitionFile(str(self._folder / "traces" / f"{location}.def"), 1 << 12)
        definitions.finish()
        path = self._folder / "traces" / f"{location}.evt"
        spill = str(self._folder / f"{location}.spill")
        return native.Otf2EventFile(str(path), EVENT_CHUNK_BYTES, spill, _MEMORY_BYTES, self._communication)

    def _close(self, location: int, out: native.Otf2EventFile) -> None:
        out.finish()
        self._events[location] = int(out.events)
        self.attributes_left_out += int(out.attributes_left_out)
        if out.first_time is not None:
            self._first = min(self._first, int(out.first_time))
            self._last = max(self._last, int(out.last_time))

    def _metrics(self, process: int) -> _Recorder | None:
        """Write the readings of a process, as a location of their own.

        Processes without locations get one, too: else they would not be there.
        """
        metrics = readings_of(self._trace, process, self._zero)
        if not metrics and any(row.process == process for row in self._rows):
            return None
        location = len(self._rows) + process
        out, found = self._file(location), _Recorder(location, [])
        for metric in metrics:
            number, self._metric_count = self._metric_count, self._metric_count + 1
            found.metrics.append((number, metric.name, metric.unit, metric.location))
            bits = np.ascontiguousarray(metric.value, dtype=np.float64).view(np.int64)
            fields: list[Field] = [(U32, 2 * number + 1), (BYTE, 1), (BYTE, int(Type.REAL)), (U64, bits)]
            out.points((_METRIC, np.maximum(metric.time_ns, 0), fields, []))
        self._close(location, out)
        return found

    def _location(self, location: int) -> None:
        process = self._rows[location].process
        if process not in self._texts:
            self._texts[process] = Texts(self._trace, process, self._definitions)
        texts, out = self._texts[process], self._file(location)
        for name in _TIMED:
            for raw in self._trace.raw_side_batches(name, location):
                batch = Batch(name, raw, slice(None))
                if name == "messages":
                    self._messages(out, texts, process, batch)
                elif name == "samples":
                    self._samples(out, texts, process, batch)
                else:
                    self._carry(out, texts, process, batch)
        collectives = _Collectives(self._trace, location, self._communicators, texts, self._version)
        for requests in collectives.requests(self._zero):
            out.points(requests)
        tables = {name: Rows(self._trace, name, location) for name in SPAN_TABLES}
        before = dict.fromkeys(tables, -1)
        for spans in self._trace.span_batches(location):
            self.incomplete += int((~spans["complete"]).sum())
            details: list[Records] = []
            first: list[Records] = []
            last: list[Records] = []
            for name, rows in tables.items():
                for batch in rows.before(int(spans["row"][-1]) + 1):
                    rest = batch
                    if name == "collective_spans":
                        taken = collectives.write(batch, first, last)
                        rest = batch.take(~taken)
                    if name == "arguments":
                        details.append((0, rest.row, [], texts.attributes(rest)))
                    elif len(rest):
                        # An enter has the cells of one row of a table; further ones are inside.
                        again = np.diff(rest.row, prepend=before[name]) == 0
                        before[name] = int(rest.row[-1])
                        once, more = rest.take(~again), rest.take(again)
                        details.append((0, once.row, [], texts.attributes(once)))
                        if len(more):
                            first.append(carriers(texts, self._definitions, more, more.row))
            out.spans(
                np.ascontiguousarray(spans["row"]),
                np.ascontiguousarray(spans["start_ns"] + self._zero),
                np.ascontiguousarray(spans["duration_ns"]),
                np.ascontiguousarray(spans["depth"]),
                np.ascontiguousarray(spans["region"]),
                details,
                first,
                last,
            )
        self._close(location, out)

    def _ticks(self, process: int, batch: Batch) -> Whole:
        times: Whole = np.maximum(batch.get("time_ns")[0] + self._zero - self._trace.zero_of(process), 0)
        return times

    def _carry(self, out: native.Otf2EventFile, texts: Texts, process: int, batch: Batch) -> None:
        if len(batch):
            out.points(carriers(texts, self._definitions, batch, self._ticks(process, batch)))

    def _samples(self, out: native.Otf2EventFile, texts: Texts, process: int, batch: Batch) -> None:
        """Write call stacks as samples; if there are other cells, with all of them as attributes."""
        stacks, known = batch.get("call_stack")
        contexts = texts.contexts(np.where(known, stacks, -1))
        alone = batch.only_has("time_ns", "call_stack")
        for which, with_more in ((contexts >= 0) & alone, False), ((contexts >= 0) & ~alone, True):
            part = batch.take(which)
            fields: list[Field] = [(U32, np.ascontiguousarray(contexts[which])), (U32, _UNDEFINED), (U32, 0)]
            attributes = texts.attributes(part) if with_more else []
            if len(part):
                out.points((_SAMPLE, self._ticks(process, part), fields, attributes))
        self._carry(out, texts, process, batch.take(contexts < 0))

    def _messages(self, out: native.Otf2EventFile, texts: Texts, process: int, batch: Batch) -> None:
        directions, has_direction = batch.get("direction")
        comms, has_comm = batch.get("communicator")
        directions, comms = np.where(has_direction, directions, -1), np.where(has_comm, comms, -1)
        for direction, comm in np.unique(np.stack([directions, comms], axis=1), axis=0).tolist():
            part = batch.take((directions == direction) & (comms == comm))
            known = self._communicators.find(texts.text(comm))
            rest = self._exact_messages(out, texts, process, part, texts.text(direction), known)
            self._other_messages(out, texts, process, rest, texts.text(direction))

    def _exact_messages(
        self,
        out: native.Otf2EventFile,
        texts: Texts,
        process: int,
        batch: Batch,
        direction: str,
        comm: Communicator | None,
    ) -> Batch:
        """Write the messages that OTF2 can hold completely; return the rest."""
        if comm is None or direction not in ("send", "receive", *_TRANSFERS):
            return batch
        (rank, has_rank), (peer, has_peer) = batch.get("communicator_rank"), batch.get("peer_rank")
        (label, has_label), (tag, has_tag) = batch.get("peer"), batch.get("tag")
        (size, has_size), (request, has_request) = batch.get("size_bytes"), batch.get("request")
        pending, has_pending = batch.get("pending_ns")
        inside = has_rank & (rank >= 0) & (rank < len(comm.members))
        of_job = comm.members[np.where(inside, rank, 0)]
        labels = np.array([self._definitions.string(each) for each in self._communicators.labels], dtype=np.int64)
        exact = inside & has_peer & (peer == of_job) & has_size & (size >= 0) & (pending >= 0)
        exact &= has_label & (texts.strings(np.where(has_label, label, -1)) == labels[of_job])
        one_sided = direction in _TRANSFERS
        exact &= ~has_tag & has_request if one_sided else has_tag & (tag >= 0) & (tag <= _LARGEST)
        exact &= has_request | ~has_pending
        time = self._ticks(process, batch)

        def put(record: int, which: npt.NDArray[np.bool_], at: Whole, *fields: tuple[int, Numbers]) -> None:
            if which.any():
                taken = [(kind, each if isinstance(each, int) else each[which]) for kind, each in fields]
                out.points((record, at[which], taken, []))

        ends: tuple[tuple[int, Numbers], ...] = ((U64, request),)
        if one_sided:
            window = self._communicators.window(comm)
            split = ((BYTE, 0), (U64, size), (U64, 0)) if direction == "atomic" else ((U64, size),)
            put(_TRANSFERS[direction], exact, time, (U32, window), (U32, rank), *split, *ends)
            put(_TRANSFER_COMPLETE, exact & has_pending, time + pending, (U32, window), *ends)
            return batch.take(~exact)
        about = ((U32, rank), (U32, comm.number), (U32, tag), (U64, size))
        waited = exact & has_request
        if direction == "send":
            put(_SEND, exact & ~has_request, time, *about)
            put(_ISEND, waited, time, *about, *ends)
            put(_ISEND_COMPLETE, waited & has_pending, time + pending, *ends)
        else:
            put(_RECEIVE, exact & ~has_request, time, *about)
            put(_IRECEIVE_REQUEST, waited & has_pending, np.maximum(time - pending, 0), *ends)
            put(_IRECEIVE, waited, time, *about, *ends)
        return batch.take(~exact)

    def _other_messages(
        self, out: native.Otf2EventFile, texts: Texts, process: int, batch: Batch, direction: str
    ) -> None:
        """Write the other messages: from rank to rank if these are known, with all cells as attributes."""
        peer, known = batch.get("peer_rank")
        size, has_size = batch.get("size_bytes")
        tag, has_tag = batch.get("tag")
        shown = known & (peer >= 0) & (peer < len(self._communicators)) & has_size & (size >= 0)
        shown &= direction in ("send", "receive") and self._communicators.rank_of[process] is not None
        if shown.any():
            part = batch.take(shown)
            tags = np.where(has_tag & (tag >= 0) & (tag <= _LARGEST), tag, 0)[shown]
            fields: list[Field] = [(U32, peer[shown]), (U32, 0), (U32, tags), (U64, size[shown])]
            record = _SEND if direction == "send" else _RECEIVE
            attributes = texts.attributes(part)
            out.points((record, self._ticks(process, part), fields, attributes))
        self._carry(out, texts, process, batch.take(~shown))


class _Collectives:
    """The collectives of a location that are records of MPI; those of NCCL, for example, are attributes of their spans.

    Either all of a location are records alone, or all of them have attributes: rows that were read stay in order.
    """

    def __init__(self, trace: Trace, location: int, communicators: Communicators, texts: Texts, version: int) -> None:
        self._trace, self._location, self._version = trace, location, version
        self._communicators, self._texts = communicators, texts
        self._rank = communicators.rank_of[location_rows(trace)[location].process]
        self._is_mpi = location_rows(trace)[location].kind == "thread" and len(communicators) > 0
        self._exact = self._is_mpi
        if self._is_mpi:
            for raw in trace.raw_side_batches("collective_spans", location):
                batch = Batch("collective_spans", raw, slice(None))
                self._exact = self._exact and bool(self._fits(batch)[1].all())

    def requests(self, zero: int) -> Iterator[Records]:
        """Yield the requests of collectives that did not block: some time before the spans that completed them."""
        if not self._exact or self._version < 3:
            return
        rows = Rows(self._trace, "collective_spans", self._location)
        for each in self._trace.span_batches(self._location):
            for batch in rows.before(int(each["row"][-1]) + 1):
                request, asked = batch.get("request")
                pending, known = batch.get("pending_ns")
                which = asked & known
                if which.any():
                    asked_at = np.maximum(_ends(each, batch.row[which]) + zero - pending[which], 0)
                    yield _COLLECTIVE_REQUEST, asked_at, [(U64, request[which])], []

    def write(self, batch: Batch, first: list[Records], last: list[Records]) -> npt.NDArray[np.bool_]:
        """Write records, which begin and end with their spans, as far as possible. Returns the rows written."""
        if not self._is_mpi:
            return np.zeros(len(batch), dtype=bool)
        fits, _ = self._fits(batch)
        operation, comm = self._operations(batch), self._in_communicator(batch, lambda comm: comm.number)
        root, has_root = batch.get("root")
        request, asked = batch.get("request")
        (sent, has_sent), (received, has_received) = batch.get("sent_bytes"), batch.get("received_bytes")
        asked = asked & self._exact & (self._version >= 3)
        for end, which in (_COLLECTIVE_END, fits & ~asked), (_COLLECTIVE_COMPLETE, fits & asked):
            if not which.any():
                continue
            part = batch.take(which)
            fields: list[Field] = [
                (BYTE, operation[which]),
                (U32, comm[which]),
                (U32, np.where(has_root, root, _UNDEFINED)[which]),
                (U64, np.where(has_sent, sent, _UNDEFINED)[which]),
                (U64, np.where(has_received, received, _UNDEFINED)[which]),
            ]
            if end == _COLLECTIVE_END:
                first.append((_COLLECTIVE_BEGIN, part.row, [], []))
            else:
                fields.append((U64, request[which]))
            last.append((end, part.row, fields, [] if self._exact else self._texts.attributes(part)))
        return fits

    def _looked_up(self, batch: Batch, name: str, what: Callable[[str], int]) -> Whole:
        """Return the number that `what` gives each text of a column, -1 without a text."""
        values, present = batch.get(name)
        distinct, at = np.unique(np.where(present, values, -1), return_inverse=True)
        known = [what(self._texts.text(value)) if value >= 0 else -1 for value in distinct.tolist()]
        found: Whole = np.array(known, dtype=np.int64)[at.reshape(-1)]
        return found

    def _operations(self, batch: Batch) -> Whole:
        numbers = {name: number for number, name in enumerate(_COLLECTIVES)}
        return self._looked_up(batch, "collective", lambda name: numbers.get(name, -1))

    def _in_communicator(self, batch: Batch, what: Callable[[Communicator], int | None]) -> Whole:
        def of(name: str) -> int:
            found = self._communicators.find(name)
            value = what(found) if found is not None else None
            return -1 if value is None else value

        return self._looked_up(batch, "communicator", of)

    def _fits(self, batch: Batch) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return which rows can be records of MPI, and which of these have no other cells."""
        sizes = self._in_communicator(batch, lambda comm: len(comm.members))
        ranks = self._in_communicator(batch, lambda comm: comm.own_rank(self._rank))
        fits = (self._operations(batch) >= 0) & (sizes >= 0) & (ranks >= 0)
        for name, most in ("root", _LARGEST), ("sent_bytes", 2**62), ("received_bytes", 2**62):
            value, present = batch.get(name)
            fits &= ~present | ((value >= 0) & (value <= most))
        (size, has_size), (rank, has_rank) = batch.get("group_size"), batch.get("rank")
        (_, asked), (pending, waited) = batch.get("request"), batch.get("pending_ns")
        exact = fits & has_size & (size == sizes) & has_rank & (rank == ranks) & (asked | ~waited) & (pending >= 0)
        exact &= batch.only_has(
            *("collective", "communicator", "group_size", "rank", "root", "sent_bytes", "received_bytes"),
            *(("request", "pending_ns") if self._version >= 3 else ()),
        )
        return fits, exact


def _ends(spans: SpanArrays, rows: Whole) -> Whole:
    at = np.searchsorted(spans["row"], rows)
    found: Whole = spans["start_ns"][at] + spans["duration_ns"][at]
    return found


def _process_name(row: Process) -> str:
    """Return the name that readers show for a process: that of Score-P if it has a rank."""
    if row.rank is not None:
        return f"MPI Rank {row.rank}"
    program = re.split(r"\s", (row.argv or "").strip())[0].rpartition("/")[2]
    return f"{program or 'process'} (pid {row.pid})"
