"""Perfetto's protobuf traces (.pftrace, .perfetto-trace): what its SDK, Chromium, Android and many converters write.

What is exported is read again as it was: side tables are annotations named `table.column`, paradigm and role the first
two categories of a slice, and the kind of a row (`stream 7 of GPU 0`) the description of its track.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from strobe import native
from strobe.model.kinds import PARADIGMS, ROLES
from strobe.model.plugins import Format, Imported
from strobe.model.schema import SPAN_TABLES, TABLES
from strobe.store import protobuf
from strobe.store.exports import new_file
from strobe.store.import_layouts import layouts

if TYPE_CHECKING:
    import pyarrow as pa

    from strobe.model.plugins import ImportSource, ImportTarget
    from strobe.store.trace import Trace

_ZLIB_PACKETS, _ZSTD_PACKETS = 50, 133
_MOST_UNPACKED = 64 << 20  # of one compressed packet
_SNIFFED_PACKETS = 16
_HEAD_BYTES = 1 << 16
# Fields of TracePacket (protos/perfetto/trace/trace_packet.proto) that are numbers; the others are messages.
_NUMBERS = frozenset((3, 8, 10, 13, 41, 42, 58, 79, 87, 98))
_LAST_FIELD, _TESTING = 135, 900
_FIRST_OF_ITS_OWN = 7  # smaller fields other formats have, too


def sniff(head: bytes) -> bool:
    """Say whether it begins with packets: messages with no field that packets do not have, one at least of their own.

    XPlane begins alike, with messages in field 1: its planes have fields up to 6 only.
    """
    own, packets, cut = False, 0, False
    try:
        for number, kind, body in protobuf.fields(head):
            if number != 1 or kind != protobuf.BYTES:
                return False
            for field, inner, _ in protobuf.fields(body):
                if inner != (protobuf.VARINT if field in _NUMBERS else protobuf.BYTES):
                    return False
                if field > _LAST_FIELD and field != _TESTING:
                    return False
                own |= field >= _FIRST_OF_ITS_OWN
            packets += 1
            if packets >= _SNIFFED_PACKETS:
                break
    except protobuf.CutError:
        cut = True  # a packet that is longer than what we look at
    except ValueError:
        return False
    return own and (packets > 0 or (cut and len(head) >= _HEAD_BYTES))


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file, in pieces as they come."""
    reader = native.PerfettoReader(
        str(target.folder), target.next_number(), target.buffer_bytes, layouts(), PARADIGMS, ROLES, _inflated
    )
    for chunk in source.chunks():
        reader.feed(chunk)
    report = json.loads(reader.finish(source.name).decode("utf-8", "replace"))
    processes, told = report["processes"], report["properties"]
    for _ in processes[1:]:
        target.next_number()
    found = [each for each in processes if each["first_ns"] <= each["last_ns"]]
    first = min((each["first_ns"] for each in found), default=0)
    zero = told["attributes"].get(_ZERO, "")
    return Imported(
        processes=len(processes),
        first_ns=int(zero) if zero.lstrip("-").isdigit() else first,
        last_ns=max((each["last_ns"] for each in found), default=0),
        base_ns=told.get("unix_ns"),
        properties=told,
        counters=report["counters"],
    )


def _inflated(field: int, packed: bytes) -> bytes:
    """Return packets that lay compressed; nothing where they are damaged, or more than any writer packs together."""
    try:
        if field == _ZLIB_PACKETS:
            stream = zlib.decompressobj()
            found = stream.decompress(packed, _MOST_UNPACKED)
            return found if stream.eof else b""
        found, left = native.ZstdStream().decompress(packed, _MOST_UNPACKED)
        return b"" if left else found
    except (zlib.error, ValueError):
        return b""


def write(trace: Trace, path: Path) -> list[str]:
    """Write a trace: a sequence of packets a location, with interned texts and times that count from packet to packet.

    Returns sentences about what the file cannot hold. One batch of spans is in memory at a time, and the flows of one
    location as far as they are few.
    """
    notes = []
    if trace.folded_count:
        notes.append(f"{trace.folded_count} executions are left out that were folded into statistics")
    with new_file(path) as work, work.open("wb") as out:
        _Writer(trace, out).write()
    return notes


_ZERO = "strobe.zero_ns"
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_BOOT, _REALTIME, _OWN_CLOCK = 6, 1, 64
_CLEARED, _NEEDED = 1, 2  # flags of a packet: its sequence begins anew; it needs what was interned before
_COMMON_SEQUENCE = 1  # of what has whole times
_EARLIEST_NS = 1 << 40  # times are unsigned: our zero lies there at least
_MOST_FLOWS = 1 << 18  # of a location; further ones are events of their own
_LARGEST_ID = 1 << 31
_BATCH = 1 << 16
_number, _text = protobuf.number, protobuf.text
_CUT = _text(4, _text(10, "strobe.cut") + _number(2, 1))  # annotation of a span without an end


class _Writer:
    """One file in the making. Field numbers are those of protos/perfetto/trace/."""

    def __init__(self, trace: Trace, out: IO[bytes]) -> None:
        self._trace, self._out = trace, out
        self._base_ns = max(trace.zero_ns, _EARLIEST_NS)
        self._regions: list[dict[str, Any]] = trace.regions.to_pylist()
        self._locations: list[dict[str, Any]] = trace.locations.to_pylist()
        self._pids: list[int] = []  # as the file has them
        self._categories: dict[str, int] = {}
        self._known: set[tuple[int, int]] = set()  # what the sequence that is being written has interned

    def write(self) -> None:
        """Write everything."""
        self._head()
        for process, row in enumerate(self._trace.processes.to_pylist()):
            self._process(process, row)
        seen: set[tuple[object, object]] = set()
        for location, row in enumerate(self._locations):
            self._track(location, row, seen)
        for location in range(len(self._locations)):
            flows = _Flows(self._trace, location)
            self._spans(location, flows)
            for end in flows.left():
                self._instant(location, end, end["name"], end["category"], _flow(end, alone=True))
            for batch in self._trace.side_batches("marks", location):
                for row in batch.to_pylist():
                    self._instant(location, row, row["name"], row["category"], _mark_details(row["arguments"]))
            for batch in self._trace.side_batches("allocations", location):
                for row in batch.to_pylist():
                    self._instant(location, row, "[memory]", "", _allocation_details(row))
        self._counters()

    def _instant(
        self, location: int, row: Mapping[str, Any], name: str | None, category: str | None, more: bytes
    ) -> None:
        event = _number(9, _INSTANT) + _number(11, _location_uuid(location)) + _text(23, name or "") + more
        self._at(row["time_ns"], event + (_text(22, category) if category else b""))

    def _packet(self, body: bytes) -> None:
        self._out.write(_text(1, body))

    def _at(self, time_ns: int, event: bytes) -> None:
        body = _number(8, max(time_ns + self._base_ns, 0)) + _number(10, _COMMON_SEQUENCE) + _text(11, event)
        self._out.write(_text(1, body))

    # What is said once

    def _head(self) -> None:
        clocks = [(_BOOT, self._base_ns)]
        if self._trace.job.started_unix_ns:
            clocks.append((_REALTIME, self._trace.job.started_unix_ns))
        shown = b"".join(_text(1, _number(1, clock) + _number(2, ns)) for clock, ns in clocks)
        self._packet(_number(10, _COMMON_SEQUENCE) + _number(13, _CLEARED) + _text(6, shown + _number(2, _BOOT)))
        attributes = [(_ZERO, str(self._base_ns)), ("strobe.command", " ".join(self._trace.info.command))]
        told = b"".join(_text(1, _text(1, key) + _text(3, value)) for key, value in attributes)
        self._packet(_number(10, _COMMON_SEQUENCE) + _text(126, told))

    def _process(self, process: int, row: Mapping[str, Any]) -> None:
        pids = [each["pid"] for each in self._trace.processes.to_pylist()]
        pid, labels = row["pid"], []
        if pid in pids[:process] or not 0 <= pid < _LARGEST_ID:
            labels.append(f"pid {pid}")  # of another machine, say: viewers know processes by their numbers
            pid = _LARGEST_ID - 1 - process
        if row["rank"] is not None:
            ranks = self._trace.readers[process].process().get("ranks")
            labels.append(f"rank {row['rank']} of {ranks}" if ranks is not None else f"rank {row['rank']}")
        if row["host"]:
            labels.append(f"host {row['host']}")
        self._pids.append(pid)
        told = _number(1, pid) + b"".join(_text(8, label) for label in labels)
        if row["argv"]:
            told += _text(2, row["argv"]) + _text(6, row["argv"])
        self._packet(_number(10, _COMMON_SEQUENCE) + _text(60, _number(1, _process_uuid(process)) + _text(3, told)))

    def _track(self, location: int, row: Mapping[str, Any], seen: set[tuple[object, object]]) -> None:
        process, thread = row["process"], row["thread_id"]
        track = _number(1, _location_uuid(location))
        if row["kind"] == "thread" and 0 < thread < _LARGEST_ID and (process, thread) not in seen:
            seen.add((process, thread))
            told = _number(1, self._pids[process]) + _number(2, thread) + _text(5, row["name"] or "")
            track += _text(4, told)
        else:
            device = "" if row["device"] is None else f" of GPU {row['device']}"
            track += _number(5, _process_uuid(process)) + _text(2, row["name"] or " ")
            track += _text(14, f"{row['kind']} {thread}{device}")
        self._packet(_number(10, _COMMON_SEQUENCE) + _text(60, track))

    # Spans and counters

    def _spans(self, location: int, flows: _Flows) -> None:
        sequence = _number(10, location + 2) + _number(13, _NEEDED)
        end = sequence + _text(11, _number(9, _END))
        tables = {name: _Rows(self._trace.side_batches(name, location)) for name in SPAN_TABLES}
        begins: dict[int, bytes] = {}  # packets of regions without details, without their times
        open_ends: list[int] = []
        before: int | None = None
        for spans in self._trace.span_batches(location):
            details: dict[int, list[bytes]] = {}
            for name, rows in tables.items():
                for batch in rows.before(int(spans["row"][-1]) + 1):
                    _collect(name, batch, details)
            pieces = []
            columns = (
                spans[name].tolist() for name in ("row", "start_ns", "duration_ns", "depth", "region", "complete")
            )
            for row, start, duration, depth, region, complete in zip(*columns, strict=True):
                if before is None:
                    pieces.append(self._begin_sequence(location, start))
                    before = start
                while len(open_ends) > depth:
                    ends = open_ends.pop()
                    pieces.append(_timed(ends - before, end))
                    before = ends
                more = b"".join(details[row]) if row in details else b""
                if not complete:
                    more += _CUT
                if start in flows.at:
                    more += b"".join(_flow(each) for each in flows.at.pop(start))
                if more or region not in begins:
                    event, new = self._begin(region)
                    pieces.append(_timed(start - before, sequence + new + _text(11, event + more)))
                    begins[region] = sequence + _text(11, event)
                else:
                    pieces.append(_timed(start - before, begins[region]))
                before = start
                open_ends.append(start + duration)
            self._out.write(b"".join(pieces))
        for ends in reversed(open_ends):
            assert before is not None
            self._out.write(_timed(ends - before, end))
            before = ends

    def _begin_sequence(self, location: int, start_ns: int) -> bytes:
        now = max(start_ns + self._base_ns, 0)
        own = _number(1, _OWN_CLOCK) + _number(2, now) + _number(3, 1)
        clocks = _text(1, own) + _text(1, _number(1, _BOOT) + _number(2, now))
        defaults = _number(58, _OWN_CLOCK) + _text(11, _number(11, _location_uuid(location)))
        names = b"".join(_text(3, _number(1, iid) + _text(2, name)) for name, iid in _COLUMN_IDS.items())
        self._known = set()
        head = _number(10, location + 2) + _number(13, _CLEARED)
        return _text(1, head + _text(6, clocks) + _text(59, defaults) + _text(12, names))

    def _begin(self, region: int) -> tuple[bytes, bytes]:
        """Return the event that begins a region, and a field with what it refers to that was not interned yet."""
        row = self._regions[region]
        words = [word for word in (row["paradigm"], row["role"], row["module"]) if word]
        texts = [(2, region + 1, row["name"] or "")]
        texts += [(1, self._categories.setdefault(word, len(self._categories) + 1), word) for word in words]
        event = _number(9, _BEGIN) + b"".join(_number(10 if field == 2 else 3, iid) for field, iid, _ in texts)
        interned = [_text(f, _number(1, iid) + _text(2, text)) for f, iid, text in texts if (f, iid) not in self._known]
        self._known.update((field, iid) for field, iid, _ in texts)
        if row["file"] or row["line"]:
            event += _number(34, region + 1)
            if (4, region) not in self._known:
                self._known.add((4, region))
                where = _number(1, region + 1) + _text(2, row["file"] or "") + _number(4, row["line"])
                interned.append(_text(4, where))
        return event, _text(12, b"".join(interned)) if interned else b""

    def _counters(self) -> None:
        number = 0
        for process, reader in enumerate(self._trace.readers):
            shift = self._base_ns - self._trace.zero_of(process)
            for metric in reader.metrics():
                number += 1
                uuid = _COUNTER_UUIDS + number
                location = self._trace.location_of(process, int(str(metric["location"])))
                parent = _process_uuid(process) if location is None else _location_uuid(location)
                track = _number(1, uuid) + _number(5, parent) + _text(2, str(metric["name"]))
                track += _text(8, _text(6, str(metric["unit"])) if metric["unit"] else b"")
                self._packet(_number(10, _COMMON_SEQUENCE) + _text(60, track))
                head = _number(10, _COMMON_SEQUENCE)
                event = _number(9, _COUNTER) + _number(11, uuid)
                times, values = np.asarray(metric["time_ns"]), np.asarray(metric["value"], dtype=np.float64)
                for at in range(0, len(times), _BATCH):
                    pairs = zip(
                        (times[at : at + _BATCH] + shift).tolist(), values[at : at + _BATCH].tolist(), strict=True
                    )
                    self._out.write(
                        b"".join(
                            _text(1, _number(8, max(ns, 0)) + head + _text(11, event + protobuf.real(44, value)))
                            for ns, value in pairs
                        )
                    )


class _Flows:
    """The flows of a location, by their time: those that begin with a span go with it."""

    def __init__(self, trace: Trace, location: int) -> None:
        self._batches = trace.side_batches("flows", location)
        self.at: dict[int, list[Mapping[str, Any]]] = {}
        taken = 0
        for batch in self._batches:
            for row in batch.to_pylist():
                self.at.setdefault(row["time_ns"], []).append(row)
            taken += batch.num_rows
            if taken >= _MOST_FLOWS:
                break

    def left(self) -> Iterator[Mapping[str, Any]]:
        """Yield the flows that no span began with."""
        for rows in self.at.values():
            yield from rows
        for batch in self._batches:
            yield from batch.to_pylist()


class _Rows:
    """Rows of a side table in order of their spans, taken as far as the spans are."""

    def __init__(self, batches: Iterator[pa.Table]) -> None:
        self._batches, self._left = batches, next(batches, None)

    def before(self, row: int) -> Iterator[pa.Table]:
        """Yield the rows that were not taken yet, of spans before `row`."""
        while self._left is not None:
            taken = int(np.searchsorted(self._left.column("row").to_numpy(), row))
            if taken:
                yield self._left.slice(0, taken)
            if taken < self._left.num_rows:
                self._left = self._left.slice(taken)
                return
            self._left = next(self._batches, None)


def _collect(name: str, batch: pa.Table, details: dict[int, list[bytes]]) -> None:
    """Add annotations of the rows of a table, by the rows of their spans."""
    rows = batch.column("row").to_pylist()
    if name == "arguments":
        cells = zip(rows, batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True)
        for row, key, value in cells:
            details.setdefault(row, []).append(_text(4, _text(10, key or "") + _value(value or "null")))
        return
    own = [details.setdefault(row, []) for row in rows]
    for column in TABLES[name][2:]:
        head = _number(1, _COLUMN_IDS[f"{name}.{column.name}"])
        field = _FIELDS[column.type]
        for found, value in zip(own, batch.column(column.name).to_pylist(), strict=True):
            if value is not None:
                found.append(_text(4, head + field(value)))


@functools.lru_cache(1 << 14)
def _value(said: str) -> bytes:
    """Return the value of an annotation from JSON: numbers and texts as such, the rest as JSON."""
    if re.fullmatch(r"0|-?[1-9]\d{0,17}", said):
        return _number(4, int(said))
    if said in ("true", "false"):
        return _number(2, said == "true")
    if said.startswith('"') and "\\" not in said[1:-1] and '"' not in said[1:-1] and len(said) > 1:
        return _text(6, said[1:-1])
    return _text(9, said)


def _mark_details(arguments: str | None) -> bytes:
    """Annotations of a mark: one a key where that gives the same JSON again, else one that holds all of it."""
    if not arguments:
        return b""
    try:
        told = json.loads(arguments)
    except (ValueError, RecursionError):
        told = None
    if isinstance(told, dict) and json.dumps(told, ensure_ascii=False, separators=(",", ":")) == arguments:
        parts = ((key, json.dumps(value, ensure_ascii=False, separators=(",", ":"))) for key, value in told.items())
        return b"".join(_text(4, _text(10, key) + _value(value)) for key, value in parts)
    return _text(4, _text(10, "strobe.arguments") + _text(9, arguments))


def _allocation_details(row: Mapping[str, Any]) -> bytes:
    cells = ((column.name, row[column.name]) for column in TABLES["allocations"][2:])
    return b"".join(
        _text(4, _text(10, f"allocations.{name}") + _number(4, value)) for name, value in cells if value is not None
    )


def _flow(row: Mapping[str, Any], alone: bool = False) -> bytes:
    """Return an end of a flow as part of an event, `alone` where the event is there for it only.

    Perfetto's flows have nothing but a number, the same for all kinds of flows: it is made of kind and number.
    """
    said = [row["phase"], row["flow"], row["flow_name"], row["name"], row["category"]]
    texts = ["" if each is None else str(each) for each in said]
    digest = hashlib.blake2b("\0".join(texts[1:]).encode("utf-8", "surrogateescape"), digest_size=8).digest()
    parts = b"".join(_text(12, _text(6, each)) for each in [*texts, *(["alone"] if alone else [])])
    end = protobuf.fixed64(48 if row["phase"] == "f" else 47, int.from_bytes(digest, "little"))
    return end + _text(4, _text(10, "strobe.flow") + parts)


def _timed(after_ns: int, packet: bytes) -> bytes:
    time = b"\x40" + protobuf.varint(after_ns)  # field 8
    return b"\n" + protobuf.varint(len(time) + len(packet)) + time + packet


def _process_uuid(process: int) -> int:
    return (1 << 48) + process


def _location_uuid(location: int) -> int:
    return (2 << 48) + location


_COUNTER_UUIDS = 3 << 48
# Numbers of annotations that are columns of side tables, and how their values are written.
_COLUMN_IDS = {
    f"{name}.{column.name}": iid
    for iid, (name, column) in enumerate(
        ((name, column) for name in SPAN_TABLES if name != "arguments" for column in TABLES[name][2:]), start=1
    )
}
_FIELDS: Mapping[str, Callable[[Any], bytes]] = {
    "int64": lambda value: _number(4, value),
    "float64": lambda value: protobuf.real(5, value),
    "string": lambda value: _text(6, value),
}

FORMAT = Format(
    "perfetto",
    "Perfetto protobuf trace",
    suffixes=(".pftrace", ".perfetto-trace"),
    sniff=sniff,
    read=read,
    write=write,
)
