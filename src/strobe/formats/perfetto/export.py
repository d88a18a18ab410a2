"""A trace as Perfetto's protobuf: a sequence of packets a location, with interned texts and times that count on.

A file is read again as it was: side tables are annotations `table.column` of slices, or of instants if their rows have
a time of their own; paradigm and role are the first two categories of a slice; the kind of a row (`stream 7 of GPU 0`)
is the description of its track; and the facts about a process are an attribute of the trace.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

from strobe.formats.reading import protobuf
from strobe.formats.writing.processes import process_facts, readings_of
from strobe.formats.writing.span_rows import SpanRows
from strobe.model.kinds import PARADIGMS, ROLES
from strobe.model.schema import EVENT_TABLES, SPAN_TABLES, TABLES, Column
from strobe.tables.lazy_pyarrow import pa
from strobe.trace.definition_rows import Location, Process, location_rows, process_rows, region_rows
from strobe.trace.trace import Trace

_ZERO = "strobe.zero_ns"
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_BOOT, _REALTIME, _OWN_CLOCK = 6, 1, 64
_CLEARED, _NEEDED = 1, 2  # flags of a packet: its sequence begins anew; it needs earlier interned texts
_COMMON_SEQUENCE = 1  # of packets with absolute times
_EARLIEST_NS = 1 << 40  # times are unsigned: our zero lies there at least
_MOST_FLOWS = 1 << 18  # of a location; further ones are events of their own
_LARGEST_ID = 1 << 31
_SHORT, _MOST_INTERNED = 32, 64 << 20  # texts that are written if they are; bytes that readers need to keep
# Tables that are instants with nothing but annotations.
_ROWS = ("allocations", "memory_blocks", "samples", "messages")
_SHOWN = {
    "allocations": "[memory]",
    "memory_blocks": "block of memory",
    "samples": "sample",
    "messages": "message",
    "marks": "mark",
}
_number, _text = protobuf.number, protobuf.text
_IN_COMMON = _number(10, _COMMON_SEQUENCE) + _number(13, _NEEDED)
_CUT = _text(4, _text(10, "strobe.cut") + _number(2, 1))  # annotation of a span without an end


class Writer:
    """One file in the making. Field numbers are those of protos/perfetto/trace/."""

    def __init__(self, trace: Trace, out: IO[bytes]) -> None:
        self._trace, self._out = trace, out
        self._base_ns = max(trace.zero_ns, _EARLIEST_NS)
        self._regions = region_rows(trace)
        self._locations = location_rows(trace)
        self._pids: list[int] = []  # as the file has them
        self._categories: dict[str, int] = {}
        self._known: set[tuple[int, int]] = set()  # interned in the current sequence
        self._begun: set[int] = set()  # regions that have spans
        self._texts: dict[str, int] = {}  # interned for rows with a time of their own
        self._text_bytes = 0

    def write(self) -> None:
        """Write everything."""
        self._head()
        for process, row in enumerate(process_rows(self._trace)):
            self._process(process, row)
        seen: set[tuple[object, object]] = set()
        for number, place in enumerate(self._locations):
            self._track(number, place, seen)
        for location in range(len(self._locations)):
            flows = _Flows(self._trace, location)
            self._spans(location, flows)
            for end in flows.left():
                self._instant(location, end, end["name"], end["category"], _flow(end, alone=True))
            for table, show in (("marks", self._mark), *((name, self._row) for name in _ROWS)):
                for batch in self._trace.side_batches(table, location):
                    for row in batch.to_pylist():
                        show(location, table, row)
        self._counters()
        self._unused_regions()

    def _instant(
        self,
        location: int,
        row: Mapping[str, Any],
        name: str | None,
        category: str | None,
        more: bytes,
        new: bytes = b"",
    ) -> None:
        """Write an event with `more` fields, for which `new` texts need to be interned."""
        event = _number(9, _INSTANT) + _number(11, _location_uuid(location)) + _text(23, name or "") + more
        event += _text(22, category) if category else b""
        time = _number(8, max(row["time_ns"] + self._base_ns, 0))
        self._packet(time + _IN_COMMON + (_text(12, new) if new else b"") + _text(11, event))

    def _mark(self, location: int, table: str, row: Mapping[str, Any]) -> None:
        if row["name"] is None or row["category"] is None or row["arguments"] == "":
            self._row(location, table, row)
        else:
            self._instant(location, row, row["name"], row["category"], _mark_details(row["arguments"]))

    def _row(self, location: int, table: str, row: Mapping[str, Any]) -> None:
        """Write an instant with all of a row as annotations."""
        event = new = b""
        for column in _row_columns(table):
            value = row[column.name]
            if value is None:
                continue
            if column.type == "string":
                cell, more = self._interned(value)
                new += more
            else:
                cell = _FIELDS[column.type](value)
            event += _text(4, _number(1, _ROW_IDS[f"{table}.{column.name}"]) + cell)
        name = row["direction"] if table == "messages" else row.get("name")
        event = event or _text(4, _number(1, _ROW_IDS[f"{table}."]))
        self._instant(location, row, name or _SHOWN.get(table, table), table, event, new)

    def _interned(self, value: str) -> tuple[bytes, bytes]:
        """Return the field of an annotation's text, and the new texts to intern for it."""
        if len(value) < _SHORT:
            return _text(6, value), b""
        iid = self._texts.get(value)
        if iid is not None:
            return _number(17, iid), b""
        if self._text_bytes + len(value) > _MOST_INTERNED:
            return _text(6, value), b""
        self._text_bytes += len(value)
        iid = self._texts[value] = len(self._texts) + 1
        return _number(17, iid), _text(29, _number(1, iid) + _text(2, value))

    def _packet(self, body: bytes) -> None:
        self._out.write(_text(1, body))

    # What is written once

    def _head(self) -> None:
        clocks = [(_BOOT, self._base_ns)]
        if self._trace.job.started_unix_ns:
            clocks.append((_REALTIME, self._trace.job.started_unix_ns))
        shown = b"".join(_text(1, _number(1, clock) + _number(2, ns)) for clock, ns in clocks)
        clear = _number(10, _COMMON_SEQUENCE) + _number(13, _CLEARED)
        self._packet(clear + _text(6, shown + _number(2, _BOOT)) + _text(12, _names(_ROW_IDS)))
        self._attributes((_ZERO, str(self._base_ns)), ("strobe.command", " ".join(self._trace.info.command)))

    def _attributes(self, *attributes: tuple[str, str]) -> None:
        listed = b"".join(_text(1, _text(1, key) + _text(3, value)) for key, value in attributes)
        self._packet(_number(10, _COMMON_SEQUENCE) + _text(126, listed))

    def _process(self, process: int, row: Process) -> None:
        pids = [each.pid for each in process_rows(self._trace)]
        pid, labels = row.pid, []
        if pid in pids[:process] or not 0 <= pid < _LARGEST_ID:
            labels.append(f"pid {pid}")  # perhaps of another machine: viewers identify processes by their numbers
            pid = _LARGEST_ID - 1 - process
        if row.rank is not None:
            ranks = self._trace.readers[process].process().get("ranks")
            labels.append(f"rank {row.rank} of {ranks}" if ranks is not None else f"rank {row.rank}")
        if row.host:
            labels.append(f"host {row.host}")
        self._pids.append(pid)
        facts = process_facts(self._trace, process, row, self._base_ns)
        self._attributes((f"strobe.process.{pid}", json.dumps(facts, ensure_ascii=False, default=str)))
        described = _number(1, pid) + b"".join(_text(8, label) for label in labels)
        if row.argv:
            described += _text(2, row.argv) + _text(6, row.argv)
        self._packet(
            _number(10, _COMMON_SEQUENCE) + _text(60, _number(1, _process_uuid(process)) + _text(3, described))
        )

    def _track(self, location: int, row: Location, seen: set[tuple[object, object]]) -> None:
        process, thread = row.process, row.thread_id
        track = _number(1, _location_uuid(location))
        known = (process, thread) in seen or row.device is not None
        if row.kind == "thread" and 0 < thread < _LARGEST_ID and not known:
            seen.add((process, thread))
            track += _text(4, _number(1, self._pids[process]) + _number(2, thread) + _text(5, row.name or ""))
        else:
            device = "" if row.device is None else f" of GPU {row.device}"
            nameless = "" if row.name else ", no name"  # viewers take a track without one for that of the process
            track += _number(5, _process_uuid(process)) + _text(2, row.name or " ")
            track += _text(14, f"{row.kind} {thread}{device}{nameless}")
        self._packet(_number(10, _COMMON_SEQUENCE) + _text(60, track))

    def _unused_regions(self) -> None:
        for number, row in enumerate(self._regions):
            if number not in self._begun:
                facts = {**row._asdict(), "paradigm": PARADIGMS.index(row.paradigm), "role": ROLES.index(row.role)}
                self._attributes(("strobe.region", json.dumps(facts, ensure_ascii=False)))

    # Spans and counters

    def _spans(self, location: int, flows: _Flows) -> None:
        sequence = _number(10, location + 2) + _number(13, _NEEDED)
        end = sequence + _text(11, _number(9, _END))
        tables = {name: SpanRows(self._trace, name, location) for name in SPAN_TABLES}
        begins: dict[int, bytes] = {}  # packets of regions without details, without their times
        open_ends: list[int] = []
        before: int | None = None
        for spans in self._trace.span_batches(location):
            details: dict[int, list[bytes]] = {}
            last = dict.fromkeys(tables, -1)
            for name, rows in tables.items():
                for batch in rows.before(int(spans["row"][-1]) + 1):
                    last[name] = _collect(name, batch, details, last[name])
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
        self._known = set()
        head = _number(10, location + 2) + _number(13, _CLEARED)
        return _text(1, head + _text(6, clocks) + _text(59, defaults) + _text(12, _names(_COLUMN_IDS)))

    def _begin(self, region: int) -> tuple[bytes, bytes]:
        """Return the event that begins a region, and a field with the texts that are not interned yet."""
        self._begun.add(region)
        row = self._regions[region]
        words = [word for word in (row.paradigm, row.role, row.module) if word]
        texts = [(2, region + 1, row.name or "")]
        texts += [(1, self._categories.setdefault(word, len(self._categories) + 1), word) for word in words]
        event = _number(9, _BEGIN) + b"".join(_number(10 if field == 2 else 3, iid) for field, iid, _ in texts)
        interned = [_text(f, _number(1, iid) + _text(2, text)) for f, iid, text in texts if (f, iid) not in self._known]
        self._known.update((field, iid) for field, iid, _ in texts)
        if row.file or row.line:
            event += _number(34, region + 1)
            if (4, region) not in self._known:
                self._known.add((4, region))
                where = _number(1, region + 1) + _text(2, row.file or "") + _number(4, row.line)
                interned.append(_text(4, where))
        return event, _text(12, b"".join(interned)) if interned else b""

    def _counters(self) -> None:
        processes = range(len(self._pids))
        metrics = (each for process in processes for each in readings_of(self._trace, process, self._base_ns))
        for uuid, metric in enumerate(metrics, start=_COUNTER_UUIDS + 1):
            location = metric.location
            parent = _process_uuid(metric.process) if location is None else _location_uuid(location)
            track = _number(1, uuid) + _number(5, parent) + _text(2, metric.name)
            track += _text(8, _text(6, metric.unit) if metric.unit else b"")  # empty: a counter still
            self._packet(_number(10, _COMMON_SEQUENCE) + _text(60, track))
            head, event = _number(10, _COMMON_SEQUENCE), _number(9, _COUNTER) + _number(11, uuid)
            for batch in metric.batches():
                for ns, value in batch:
                    self._packet(_number(8, max(ns, 0)) + head + _text(11, event + protobuf.real(44, value)))


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


def _collect(name: str, batch: pa.Table, details: dict[int, list[bytes]], last: int) -> int:
    """Add annotations of the rows of a table, by the rows of their spans. `last`: the last row of the batch before."""
    rows = batch.column("row").to_pylist()
    if name == "arguments":
        cells = zip(rows, batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True)
        for row, key, value in cells:
            details.setdefault(row, []).append(_argument(key or "", value or ""))
        return last
    own: list[list[bytes]] = []
    further = []  # rows of spans that have several
    for row in rows:
        found = details.setdefault(row, [])
        if row == last:
            found = [_text(4, _number(1, _COLUMN_IDS[f"{name}."]))]
            further.append((row, found))
        own.append(found)
        last = row
    for column in TABLES[name][2:]:
        head = _number(1, _COLUMN_IDS[f"{name}.{column.name}"])
        field = _FIELDS[column.type]
        for found, value in zip(own, batch.column(column.name).to_pylist(), strict=True):
            if value is not None:
                found.append(_text(4, head + field(value)))
    for row, found in further:
        details[row] += found
    return last


def _argument(key: str, value: str) -> bytes:
    """Return an argument as an annotation; under a name of ours if it would be read as something else."""
    if value and not _is_ours(key):
        return _text(4, _text(10, key) + _value(value))
    return _text(4, _text(10, "strobe.argument") + b"".join(_text(12, _text(6, each)) for each in (key, value)))


def _is_ours(key: str) -> bool:
    return key.startswith("strobe.") or key in _COLUMN_IDS or key in _ROW_IDS


@functools.lru_cache(1 << 14)
def _value(json_text: str) -> bytes:
    """Return the value of an annotation from JSON: numbers and texts as such, the rest as JSON."""
    if re.fullmatch(r"0|-?[1-9]\d{0,17}", json_text):
        return _number(4, int(json_text))
    if json_text in ("true", "false"):
        return _number(2, json_text == "true")
    if re.fullmatch(r'"[^"\\\x00-\x1f]*"', json_text):
        return _text(6, json_text[1:-1])
    return _text(9, json_text)


def _mark_details(arguments: str | None) -> bytes:
    """Annotations of a mark: one for each key if that gives the same JSON again, else a single one."""
    if not arguments:
        return b""
    try:
        members = json.loads(arguments)
    except (ValueError, RecursionError):
        members = None
    if (
        isinstance(members, dict)
        and members
        and not any(map(_is_ours, members))
        and json.dumps(members, ensure_ascii=False, separators=(",", ":")) == arguments
    ):
        parts = ((key, json.dumps(value, ensure_ascii=False, separators=(",", ":"))) for key, value in members.items())
        return b"".join(_text(4, _text(10, key) + _value(value)) for key, value in parts)
    return _text(4, _text(10, "strobe.arguments") + _text(9, arguments))


def _flow(row: Mapping[str, Any], alone: bool = False) -> bytes:
    """Return an end of a flow as part of an event, `alone` if the event exists only for it.

    Perfetto's flows have nothing but a number, the same for all kinds of flows: it is made of kind and number.
    """
    cells = [row["phase"], row["flow"], row["flow_name"], row["name"], row["category"]]
    texts = ["" if each is None else str(each) for each in cells]  # empty cells have no value
    digest = hashlib.blake2b("\0".join(texts[1:]).encode("utf-8", "surrogateescape"), digest_size=8).digest()
    parts = b"".join(_text(12, b"" if each is None else _text(6, str(each))) for each in cells)
    parts += _text(12, _text(6, "alone")) if alone else b""
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


def _row_columns(table: str) -> list[Column]:
    without = ("location", "row", "time_ns", "call_path")  # the last one is a number that only the trace itself knows
    return [column for column in TABLES[table] if column.name not in without]


def _numbered(tables: Sequence[str]) -> dict[str, int]:
    """Number the annotations that are columns of tables, and those that begin another row of one."""
    names = (f"{name}.{column}" for name in tables for column in ("", *(c.name for c in _row_columns(name))))
    return {name: iid for iid, name in enumerate(names, start=1)}


def _names(ids: Mapping[str, int]) -> bytes:
    return b"".join(_text(3, _number(1, iid) + _text(2, name)) for name, iid in ids.items())


_COLUMN_IDS = _numbered([name for name in SPAN_TABLES if name != "arguments"])
_ROW_IDS = _numbered(EVENT_TABLES)
# How values of columns are written.
_FIELDS: Mapping[str, Callable[[Any], bytes]] = {
    "int64": lambda value: _number(4, value),
    "float64": lambda value: protobuf.real(5, value),
    "string": lambda value: _text(6, value),
}
