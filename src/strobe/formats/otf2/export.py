"""A trace as an OTF2 archive: locations one after the other, in memory that does not grow with the trace.

Spans, messages and collectives of MPI, I/O, threads, metrics and call stacks have records in OTF2. Other
cells of side tables become attributes `table.column` of an event, with which the archive is read again as it was
(native/formats/otf2/otf2_strobe_attributes.h); rows without an event become parameters with such attributes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from strobe import native
from strobe.formats.otf2.communicators import Communicators
from strobe.formats.otf2.definitions import EVENT_CHUNK_BYTES, Definitions, GroupType, Type, write_anchor
from strobe.formats.otf2.export_collectives import CollectiveWriter
from strobe.formats.otf2.export_io import IoWriter
from strobe.formats.otf2.export_messages import MessageWriter, requests_of_marks
from strobe.formats.otf2.export_teams import Teams
from strobe.formats.otf2.export_threads import Threads
from strobe.formats.otf2.exported_time import exported_time
from strobe.formats.otf2.side_table_rows import (
    BYTE,
    U32,
    U64,
    UNDEFINED,
    Batch,
    Field,
    Records,
    Rows,
    Texts,
    Whole,
    carriers,
)
from strobe.formats.writing.processes import process_name, readings_of
from strobe.model.schema import SPAN_TABLES
from strobe.trace.definition_rows import location_rows, process_rows, region_rows
from strobe.trace.trace import Trace

# Records of events: OTF2_Events.h of the OTF2 library 3, as native/formats/otf2/otf2_records.h has them.
_METRIC, _SAMPLE = 31, 68

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
    "io": 27,
    "idle": _ARTIFICIAL,
}
_PROCESS, _ACCELERATOR = 1, 2
_THREAD, _STREAM, _METRICS = 1, 2, 3
_EARLIEST_TICKS = 1 << 40  # times are unsigned: our zero lies there at least
_MEMORY_BYTES = 32 << 20  # of records that wait to be put in order
# In the order in which equal times are written.
_TIMED = ("allocations", "memory_blocks", "messages", "marks", "flows", "samples")


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
        self._group_names = [process_name(row) for row in self._processes]
        self._communicators = Communicators(trace, self._group_names)
        self._teams = Teams(trace, self._communicators.count)
        self._threads = Threads(trace, self._communicators.count + self._teams.count, self._zero)
        self._communication = np.array([row.paradigm == "mpi" for row in self._regions], dtype=np.uint8)
        self._texts: dict[int, Texts] = {}
        self._events: dict[int, int] = {}  # by location
        self._metric_count = 0
        self.incomplete = self.attributes_left_out = 0
        self.lacking: Counter[str] = Counter()  # see MessageWriter

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
        location_groups = self._accelerators(nodes)
        for location, row in enumerate(self._rows):
            kind = _STREAM if row.kind == "stream" else _THREAD
            define.location(location, row.name, kind, self._events[location], location_groups[location])
        for process, recorder in enumerate(recorders):
            if recorder is not None:
                define.location(recorder.location, "metrics", _METRICS, self._events[recorder.location], process)
        self._define_regions()
        groups = len({str(row.module or "") for row in self._regions})
        self._communicators.define(define, groups)
        first_group = groups + 1 + self._communicators.count
        self._teams.define(define, first_group)
        self._threads.define(define, first_group + 1 + self._teams.count)
        define.io(nodes)
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
            if row.of_ranks and role in ("sync", "wait"):
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
        ticks = partial(self._ticks, process)
        time = exported_time(self._trace, process, self._zero)
        about = (self._definitions, self._communicators, ticks, time, self.lacking)
        messages = MessageWriter(out, texts, process, *about)
        for name in _TIMED:
            for raw in self._trace.raw_side_batches(name, location):
                batch = Batch(name, raw, slice(None))
                if name == "messages":
                    messages.write(batch)
                elif name == "samples":
                    self._samples(out, texts, process, batch)
                else:
                    if name == "marks":
                        batch = self._requests(out, texts, process, batch)
                    self._carry(out, texts, process, batch)
        collectives = CollectiveWriter(
            self._trace, location, self._communicators, texts, self._version, time, self.lacking
        )
        for requests in collectives.requests():
            out.points(requests, late_ns=collectives.late_ns)
        for records in self._threads.records(location):
            out.points(records)
        files = IoWriter(texts, self._definitions, process, location, len(self._rows))
        tables = {name: Rows(self._trace, name, location) for name in SPAN_TABLES}
        before = dict.fromkeys(tables, -1)
        for spans in self._trace.span_batches(location):
            self.incomplete += int((~spans["complete"]).sum())
            details: list[Records] = []
            first: list[Records] = []
            last: list[Records] = []
            self._teams.write(location, spans, first, last)
            for name, rows in tables.items():
                for batch in rows.before(int(spans["row"][-1]) + 1):
                    rest = batch
                    if name == "collective_spans":
                        taken = collectives.write(batch, spans, first, last)
                        rest = batch.take(~taken)
                    if name == "io_spans":
                        files.write(batch, first, last)
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

    def _requests(self, out: native.Otf2EventFile, texts: Texts, process: int, batch: Batch) -> Batch:
        """Write the marks that are events of requests; return the others."""
        rest = np.ones(len(batch), dtype=bool)
        for which, records in requests_of_marks(batch, texts, self._ticks(process, batch)):
            out.points(records)
            rest &= ~which
        return batch.take(rest)

    def _samples(self, out: native.Otf2EventFile, texts: Texts, process: int, batch: Batch) -> None:
        """Write call stacks as samples; if there are other cells, with all of them as attributes."""
        stacks, known = batch.get("call_stack")
        contexts = texts.contexts(np.where(known, stacks, -1))
        alone = batch.only_has("time_ns", "call_stack")
        for which, with_more in ((contexts >= 0) & alone, False), ((contexts >= 0) & ~alone, True):
            part = batch.take(which)
            fields: list[Field] = [(U32, np.ascontiguousarray(contexts[which])), (U32, UNDEFINED), (U32, 0)]
            attributes = texts.attributes(part) if with_more else []
            if len(part):
                out.points((_SAMPLE, self._ticks(process, part), fields, attributes))
        self._carry(out, texts, process, batch.take(contexts < 0))
