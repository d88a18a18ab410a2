"""nvprof: its SQLite files (--export-profile), and what it prints: traces of the GPU and of the API, and summaries."""

from __future__ import annotations

import csv
import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from strobe.model.cupti_calls import DRIVER_CALLS, RUNTIME_CALLS
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget
from strobe.store.import_process import Cells, ImportProcess, present
from strobe.store.import_tables import Naming, Region, TableImport, TableKind, as_json_text
from strobe.store.sqlite_input import BATCH_ROWS, MAGIC, NONE, Batch, SqliteInput, Texts, Whole, factor


def sniff(head: bytes) -> bool:
    """Say whether it is nvprof's database, or has nvprof's banner or the head of one of its tables."""
    if head.startswith(MAGIC):
        return b"StringTable" in head and b"CUPTI_ACTIVITY_KIND_" in head
    return _BANNER_BYTES.search(head) is not None or _HEADER_BYTES.search(head) is not None


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a database, or a printed trace or summary.

    A summary has no times: it becomes totals, and no spans; its percentages follow from them.

    Times are the file's own, exact to what it has: a database's to the nanosecond, a printed duration to its digits.
    Sizes are integers: nvprof prints KB of 1024 bytes, rounded; where that is no whole number of bytes the nearest is
    taken, and counted. Raises ValueError where it is neither.
    """
    start = next(iter(source.chunks()), b"")
    if not start.startswith(MAGIC):
        return _Printed(source, target).read()
    database = SqliteInput(source.local_path())
    try:
        return _Database(source, target, database).read()
    finally:
        database.close()


# The database. Its tables hold CUPTI's activity records: https://docs.nvidia.com/cupti, structs CUpti_Activity*.

_COPY_KINDS = dict(
    enumerate(("Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"))
)
_MEMORY_KINDS = dict(
    enumerate(("Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static"))
)
_SYNC_KINDS = {0: "Unknown", 1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
_OVERHEADS = {
    0: "Unknown",
    1: "driver compiler",
    1 << 16: "buffer flush",
    2 << 16: "instrumentation",
    3 << 16: "resource",
}
_COUNTERS = dict(
    enumerate(
        ("Unknown", "HtoD", "DtoH", "CPU page faults", "GPU page faults", "thrashing", "throttling", "remote map")
    )
)
_LAUNCH_TYPES = {0: "Regular", 1: "Coop Single Device", 2: "Coop Multi Device"}
_CACHE_CONFIGS = {0: "None", 1: "Shared", 2: "L1", 3: "Equal"}
_OF_GPU = {"correlationId": "correlation", "deviceId": "device", "contextId": "context", "streamId": "stream"}
_OF_CALL = {"correlationId": "correlation", "cbid": "callback_id", "returnValue": "return_value"}
_OF_KERNEL = {
    **_OF_GPU,
    **{f"{what}{axis}": f"{what}_{axis.lower()}" for what in ("grid", "block") for axis in "XYZ"},
    "registersPerThread": "registers_per_thread",
    "staticSharedMemory": "static_shared_bytes",
    "dynamicSharedMemory": "dynamic_shared_bytes",
    "sharedMemoryExecuted": "executed_shared_bytes",
    "localMemoryPerThread": "local_bytes_per_thread",
    "localMemoryTotal": "local_bytes",
    "gridId": "launch",
    "launchType": "launch_type",
    "cacheConfig": "cache_config",
    "queued": "queued_ns",
}
_OF_COPY = {
    **_OF_GPU,
    "bytes": "size_bytes",
    "copyKind": "copy_kind",
    "srcKind": "source_kind",
    "dstKind": "destination_kind",
    "srcDeviceId": "source_device",
    "srcContextId": "source_context",
    "dstDeviceId": "destination_device",
    "dstContextId": "destination_context",
}
_COPY_WORDS = {"copyKind": _COPY_KINDS, "srcKind": _MEMORY_KINDS, "dstKind": _MEMORY_KINDS}


def _role_of_call(name: str) -> str:
    return "sync" if "Synchronize" in name or "EventQuery" in name else "function"


def _call_of(names: Mapping[int, str], module: str) -> Naming:
    def naming(values: Mapping[str, object]) -> Region:
        number = values.get("cbid")
        name = names.get(number, f"call {number}") if isinstance(number, int) else "<unnamed call>"
        return name, "cuda", _role_of_call(name), module

    return naming


def _kernel(values: Mapping[str, object]) -> Region:
    return str(values.get("name") or "<unnamed kernel>"), "cuda", "kernel", ""


def _copy(values: Mapping[str, object]) -> Region:
    return f"[CUDA memcpy {values.get('copyKind') or 'Unknown'}]", "cuda", "copy", ""


def _sync(values: Mapping[str, object]) -> Region:
    return str(values.get("type") or "Unknown"), "cuda", "sync", ""


def _range(values: Mapping[str, object]) -> Region:
    return str(values.get("name") or "<unnamed range>"), "nvtx", "range", str(values.get("domain") or "")


def _overhead(values: Mapping[str, object]) -> Region:
    return str(values.get("overheadKind") or "Unknown"), "strobe", "other", "nvprof"


def _unified(values: Mapping[str, object]) -> Region:
    kind = str(values.get("counterKind") or "Unknown")
    moved = kind in ("HtoD", "DtoH", "DtoD")
    return f"[Unified Memory {'Memcpy ' if moved else ''}{kind}]", "cuda", "copy" if moved else "other", ""


_KERNEL_WORDS = {"launchType": _LAUNCH_TYPES, "cacheConfig": _CACHE_CONFIGS}
# Tables that are made of CUPTI_ACTIVITY_KIND_MARKER.
_RANGES, _INSTANTS = "strobe ranges", "strobe instants"
_UNIFIED = "CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER"
_KINDS = (
    TableKind(
        "CUPTI_ACTIVITY_KIND_RUNTIME", ("cbid",), _call_of(RUNTIME_CALLS, "CUDA runtime"), "call_spans", _OF_CALL
    ),
    TableKind("CUPTI_ACTIVITY_KIND_DRIVER", ("cbid",), _call_of(DRIVER_CALLS, "CUDA driver"), "call_spans", _OF_CALL),
    *(
        TableKind(
            f"CUPTI_ACTIVITY_KIND_{name}",
            ("name",),
            _kernel,
            "kernel_spans",
            _OF_KERNEL,
            _KERNEL_WORDS,
            repeats={"completed": "end"},
        )
        for name in ("CONCURRENT_KERNEL", "KERNEL", "CDP_KERNEL")
    ),
    *(
        TableKind(f"CUPTI_ACTIVITY_KIND_{name}", ("copyKind",), _copy, "copy_spans", _OF_COPY, _COPY_WORDS)
        for name in ("MEMCPY", "MEMCPY2")
    ),
    TableKind(
        "CUPTI_ACTIVITY_KIND_MEMSET",
        (),
        lambda _: ("[CUDA memset]", "cuda", "copy", ""),
        "copy_spans",
        {**_OF_GPU, "bytes": "size_bytes", "value": "set_value", "memoryKind": "destination_kind"},
        {"memoryKind": _MEMORY_KINDS},
    ),
    TableKind(
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        ("type",),
        _sync,
        "sync_spans",
        {**_OF_GPU, "type": "sync_kind", "cudaEventId": "wait_on_event"},
        {"type": _SYNC_KINDS},
        row="waits",
    ),
    TableKind(
        "CUPTI_ACTIVITY_KIND_OVERHEAD",
        ("overheadKind",),
        _overhead,
        words={"overheadKind": _OVERHEADS},
        row="profiler",
    ),
    TableKind(_UNIFIED, ("counterKind",), _unified, words={"counterKind": _COUNTERS}, row="unified memory"),
    TableKind(_RANGES, ("name", "domain"), _range),
)


class _Database:
    """One database: what its tables mean. It is the dialect of its TableImport."""

    placing = frozenset(("_id_", "start", "end", "timestamp", "processId", "threadId", "objectKind", "objectId"))

    def __init__(self, source: ImportSource, target: ImportTarget, database: SqliteInput) -> None:
        self._database = database
        self._tables = TableImport(source, target, database, Texts(database, "StringTable", "_id_", "value"), self)
        self._pair_markers()
        for table in ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER", _RANGES):
            for batch in database.batches(table, ("processId", "objectKind", "objectId"), rows=64):
                keys = self.process_keys(batch)
                self._tables.default_key = self._tables.default_key or next((int(k) for k in keys if k != NONE), 0)
                break

    def read(self) -> Imported:
        handled = {"StringTable", "CUPTI_ACTIVITY_KIND_MARKER", _INSTANTS}
        for kind in _KINDS:
            self._tables.spans(kind)
            handled.add(kind.table)
        properties: dict[str, object] = {}
        for name, table in list(self._database.tables.items()):
            if name in handled:
                continue
            title = name.removeprefix("CUPTI_ACTIVITY_KIND_").lower().replace("_", " ")
            if {"start", "end"} <= table.columns.keys():
                self._tables.spans(TableKind(name, (), _constant(title), row=title))
            elif "timestamp" in table.columns or "start" in table.columns:
                self._marks(name, "timestamp" if "timestamp" in table.columns else "start", title)
            else:
                self._tables.property(properties, name)
        self._marks(_INSTANTS, "timestamp", "nvtx")
        return self._tables.finish(lambda key: f"process {key}", properties=properties)

    def process_keys(self, batch: Batch) -> Whole:
        """Return the process of each row: its column, or the object that it is about."""
        process = batch.integers("processId")
        if process is not None:
            return process
        return self._objects(batch, 0)

    def pid(self, key: int) -> int:
        """Return the process's number, which is its key."""
        return key

    def locations(self, process: ImportProcess, part: Batch, row: str) -> npt.NDArray[np.uint32]:
        """Return the stream of what ran on a GPU, else the thread, else a location of the table's own."""
        on_stream = process.streams(part, row)
        if on_stream is not None:
            return on_stream
        thread = part.integers("threadId")
        thread = self._objects(part, 1) if thread is None else thread
        threads, codes = factor(thread)
        made = []
        for each in threads.tolist():
            if each == NONE:
                made.append(process.location(("row", row), row or "unknown thread", 0, "task"))
            else:
                name = f"thread {each} {row}".rstrip()
                made.append(process.location(("thread", each, row), name, each, "task" if row else "thread"))
        return np.array(made, dtype=np.uint32)[codes]

    def said(self, table: str, column: str, numbers: list[int]) -> Mapping[int, object] | None:
        """Return texts by their number: names and domains."""
        return self._tables.texts.of(numbers) if column in ("name", "domain", "fileName") else None

    def _objects(self, batch: Batch, place: int) -> Whole:
        """Return the process (place 0) or thread (1) that rows are about: CUpti_ActivityObjectKindId, two uint32."""
        kinds, codes = batch.integers("objectKind"), batch.coded.get("objectId")
        if kinds is None or codes is None:
            return np.full(batch.count, NONE, dtype=np.int64)
        found = [
            struct.unpack_from("<I", value, 4 * place)[0]
            if isinstance(value, bytes) and len(value) >= 4 * place + 4
            else NONE
            for value in batch.words["objectId"]
        ]
        of_code = np.array(found or [NONE], dtype=np.int64)
        known = (codes != NONE) & (kinds >= 1) & (kinds <= 2 if place == 0 else kinds == 2)  # 1 process, 2 thread
        return np.where(known, of_code[np.maximum(codes, 0)], NONE)

    def _pair_markers(self) -> None:
        """Make ranges of markers: a start has a name, its end has the same id and none."""
        name = "CUPTI_ACTIVITY_KIND_MARKER"
        table = self._database.tables.get(name)
        if table is None or not {"id", "timestamp", "name"} <= table.columns.keys():
            return
        also = [each for each in ("domain", "objectKind", "objectId", "flags") if each in table.columns]
        instant = "s.flags & 1" if "flags" in also else "0"  # CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS
        copied = ", ".join(f"s.{each}" for each in also if each != "flags")
        of_both = {"name": "INTEGER"} | {each: "INTEGER" for each in also if each != "flags"}
        if "objectId" in of_both:
            of_both["objectId"] = "BLOB"
        self._database.derive(
            "strobe ends",
            f"SELECT id, min(timestamp) FROM {name} WHERE name IS NULL OR name = 0 GROUP BY id",
            {"id": "INTEGER PRIMARY KEY", "end": "INTEGER"},
        )
        self._database.derive(
            _RANGES,
            f"SELECT s.name{', ' if copied else ''}{copied}, s.timestamp, e.end FROM {name} s "
            f'LEFT JOIN "strobe ends" e ON e.id = s.id WHERE s.name <> 0 AND NOT ({instant})',
            {**of_both, "start": "INTEGER", "end": "INTEGER"},
        )
        self._database.derive(
            _INSTANTS,
            f"SELECT s.name{', ' if copied else ''}{copied}, s.timestamp FROM {name} s "
            f"WHERE s.name <> 0 AND ({instant})",
            {**of_both, "timestamp": "INTEGER"},
        )
        del self._database.tables["strobe ends"]  # no events of their own

    def _marks(self, table: str, time: str, category: str) -> None:
        names = ("name",) if "name" in (known.columns if (known := self._database.tables.get(table)) else ()) else ()
        for batch in self._tables.batches(table):
            for process, part in self._tables.by_process(batch):
                row = "" if category == "nvtx" else category
                self._tables.instants(process, part, table, time, names, category, row)


def _constant(title: str) -> Naming:
    return lambda _: (title, "other", "other", "nvprof")


# What nvprof prints. As CSV the units have a row of their own; as text they stand behind each number.

_BANNER_BYTES = re.compile(rb"^==(?:\d+|=*)== NVPROF is profiling", re.MULTILINE)
_HEADER_BYTES = re.compile(
    rb'^(?:"?Start"?,"?Duration"?,.*"?Name"?|\s*Start\s{2,}Duration\s{2,}.*Name\s*$|'
    rb'\s*(?:"?Type"?[,\s]+)?"?Time\(%\)"?[,\s]+"?Time"?[,\s]+"?Calls)',
    re.MULTILINE,
)
_BANNER = re.compile(r"==(\d+|=*)== ?(.*)")
_PROFILING = re.compile(r"NVPROF is profiling process (\d+), command: (.*)")
_NUMBER = re.compile(r"(-?)(\d{1,30})(?:\.(\d{1,30}))?(?:[eE]([+-]?\d{1,2}))?\s*([A-Za-z]+(?:/s)?)?")
_TIMES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_SIZES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_COPY = re.compile(r"\[(CUDA|Unified Memory) [Mm]em(cpy|set)\s*(\w*)\]")
_WITH_CORRELATION = re.compile(r"(.*\S) \[(\d{1,18})\]")
_UNITS = {"", "%", *_TIMES, *_SIZES, *(f"{unit}/s" for unit in _SIZES)}
_LONGEST_LINE = 1 << 20
_MOST_MESSAGES = 100
_SAME = {
    "Regs": "Registers Per Thread",
    "SSMem": "Static SMem",
    "DSMem": "Dynamic SMem",
    "Correlation ID": "Correlation_ID",
}
_WHOLE_COLUMNS = {
    **{f"{what} {axis}": f"{what.lower()}_{axis.lower()}" for what in ("Grid", "Block") for axis in "XYZ"},
    "Registers Per Thread": "registers_per_thread",
    "Context": "context",
    "Stream": "stream",
    "Correlation_ID": "correlation",
}
_SIZE_COLUMNS = {"Static SMem": "static_shared_bytes", "Dynamic SMem": "dynamic_shared_bytes", "Size": "size_bytes"}
_KERNEL_COLUMNS = (
    *("correlation", "device", "context", "stream", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
    *("registers_per_thread", "static_shared_bytes", "dynamic_shared_bytes", "shared_memory_bytes"),
)
_COPY_COLUMNS = (
    *("correlation", "device", "context", "stream", "size_bytes", "bandwidth_gb_s", "copy_kind"),
    *("source_kind", "destination_kind", "address"),
)
_COLUMNS_OF = {"kernel_spans": _KERNEL_COLUMNS, "copy_spans": _COPY_COLUMNS, "call_spans": ("correlation",), "": ()}


class _Rows:
    """Spans of one process that wait until they are a batch."""

    def __init__(self, process: ImportProcess, command: str) -> None:
        self.process, self.command = process, command
        self._tables: dict[str, list[tuple[int, int, int, int, dict[str, int], str]]] = {}
        self._marks: list[tuple[int, int, str, str]] = []

    def span(
        self, table: str, location: int, start: int, duration: int, region: int, cells: dict[str, int], rest: str
    ) -> None:
        rows = self._tables.setdefault(table, [])
        rows.append((location, start, start + duration, region, cells, rest))
        if len(rows) >= BATCH_ROWS:
            self._write(table, self._tables.pop(table))

    def mark(self, location: int, time: int, name: str, said: str) -> None:
        self._marks.append((location, time, name, said))
        if len(self._marks) >= BATCH_ROWS:
            self._write_marks()

    def flush(self) -> None:
        for table, rows in self._tables.items():
            self._write(table, rows)
        self._tables.clear()
        self._write_marks()

    def _write(self, table: str, rows: list[tuple[int, int, int, int, dict[str, int], str]]) -> None:
        location, start, end, region, cells, rest = zip(*rows, strict=True)
        side: dict[str, Cells] = {
            column: present(np.array([each.get(column, NONE) for each in cells], dtype=np.int64))
            for column in _COLUMNS_OF[table]
        }
        said = np.array([self.process.text(text) if text else NONE for text in rest], dtype=np.int64)
        self.process.spans(
            np.array(location, dtype=np.uint32),
            np.array(start, dtype=np.int64),
            np.array(end, dtype=np.int64),
            np.array(region, dtype=np.uint32),
            {table: side} if side else {},
            [("columns", present(said))] if (said != NONE).any() else [],
        )

    def _write_marks(self) -> None:
        if not self._marks:
            return
        location, time, name, said = zip(*self._marks, strict=True)
        category = self.process.text("nvprof")
        cells: dict[str, Cells] = {
            "time_ns": (np.array(time, dtype=np.int64), None),
            "name": (np.array([self.process.text(text) for text in name], dtype=np.int64), None),
            "category": (np.full(len(time), category, dtype=np.int64), None),
            "arguments": (np.array([self.process.text(text) for text in said], dtype=np.int64), None),
        }
        self.process.rows("marks", np.array(location, dtype=np.uint32), cells)
        self._marks.clear()


class _Printed:
    """A printed trace, read line by line."""

    def __init__(self, source: ImportSource, target: ImportTarget) -> None:
        self._source, self._target = source, target
        self._counters: Counter[str] = Counter()
        self._rows: dict[int, _Rows] = {}
        self._commands: dict[int, str] = {}
        self._pid = 0
        self._columns: list[str] | None = None
        self._units: list[str] = []
        self._as_csv = self._units_follow = False
        self._type = ""  # of the rows of a summary
        self._noting = False
        self._devices: dict[str, str] = {}
        self._messages: list[str] = []

    def read(self) -> Imported:
        for line in self._lines():
            self._line(line)
        if not self._rows:
            self._of_process()
        for rows in self._rows.values():
            rows.flush()
        counted = {what: n for what, n in self._counters.items() if n}
        first = next(iter(self._rows.values()))
        for what, n in counted.items():
            first.process.count(what, n)
        for rows in self._rows.values():
            rows.process.finish(rows.command, self._source.name, main=rows is first)
        used = [rows.process for rows in self._rows.values() if rows.process.used]
        return Imported(
            processes=len(self._rows),
            first_ns=min((process.first_ns for process in used), default=0),
            last_ns=max((process.last_ns for process in used), default=0),
            properties={"devices": self._devices, "messages": self._messages},
            counters=counted,
        )

    def _lines(self) -> Iterator[str]:
        left = b""
        for chunk in self._source.chunks():
            *lines, left = (left + chunk).split(b"\n")
            yield from map(self._decoded, lines)
            if len(left) > _LONGEST_LINE:
                raise ValueError("a line is longer than 1 MiB")
        if left:
            yield self._decoded(left)

    def _decoded(self, line: bytes) -> str:
        try:
            return line.decode("utf-8").rstrip("\r")
        except UnicodeDecodeError:
            self._counters["texts_not_utf8"] += 1
            return line.decode("utf-8", "replace").rstrip("\r")

    def _line(self, line: str) -> None:
        banner = _BANNER.match(line)
        if banner:
            self._banner(int(banner[1]) if banner[1].isdigit() else 0, banner[2])
        elif _header(line):
            self._as_csv = "," in line
            cells = _csv_cells(line) if self._as_csv else re.split(r"\s{2,}", line.strip())
            self._columns = [_SAME.get(cell.rstrip("*"), cell.rstrip("*")) for cell in cells]
            self._units, self._units_follow = [], self._as_csv
            self._noting = False
        elif not line.strip():
            self._columns = self._columns if self._as_csv else None  # notes about the columns follow
            self._noting = False
        elif self._columns is not None:
            self._row(line, self._columns)
        elif self._noting:
            self._note(line)

    def _banner(self, pid: int, text: str) -> None:
        self._pid = pid
        profiling = _PROFILING.match(text)
        if profiling:
            self._commands[int(profiling[1])] = profiling[2]
        elif text.startswith("API calls"):  # of nvprof before CUDA 9, whose summaries have no column for that
            self._type = "API calls"
        elif text.startswith("Profiling result"):
            self._type = "GPU activities"
        elif not text.startswith(("Profiling application", "Generated")):
            self._note(text)
            self._columns = None
            self._noting = text.endswith(":")  # a table that is none of a time or a duration: kept as it is

    def _note(self, text: str) -> None:
        if len(self._messages) < _MOST_MESSAGES:
            self._messages.append(text[: _LONGEST_LINE >> 10])
        else:
            self._counters["rows_left_out"] += 1

    def _row(self, line: str, columns: list[str]) -> None:
        cells = _csv_cells(line) if self._as_csv else _text_cells(line, columns)
        if self._units_follow:
            self._units_follow = False
            if _UNITS.issuperset(cells):
                self._units = cells
                return
        if len(cells) != len(columns):
            self._counters["unreadable_rows"] += 1
            return
        said = {column: cell for column, cell in zip(columns, cells, strict=True) if cell not in ("", "-")}
        units = dict(zip(columns, self._units, strict=False))
        if "Calls" in columns:
            self._total(said, units)
            return
        start = self._scaled(said, units, "Start", _TIMES)
        if start is None or "Name" not in said:
            self._counters["unreadable_rows"] += 1
            return
        self._event(said, units, start)

    def _total(self, said: Mapping[str, str], units: Mapping[str, str]) -> None:
        total, calls = self._scaled(said, units, "Time", _TIMES), said.get("Calls", "")
        if total is None or "Name" not in said or not re.fullmatch(r"\d{1,18}", calls):
            self._counters["unreadable_rows"] += 1
            return
        self._type = said.get("Type", self._type).rstrip(":")
        process, name = self._of_process().process, said["Name"]
        if self._type == "GPU activities":
            role = "copy" if _COPY.fullmatch(name) else "kernel"
        else:
            role = _role_of_call(name) if self._type == "API calls" else "other"
        location = process.location(self._type, self._type, 0, "task")
        least, most = (self._scaled(said, units, column, _TIMES) for column in ("Min", "Max"))
        process.total(location, process.region(name, "cuda", role), int(calls), total, least, most)

    def _event(self, said: dict[str, str], units: Mapping[str, str], start: int) -> None:
        rows = self._of_process()
        process, name = rows.process, said["Name"]
        duration = self._scaled(said, units, "Duration", _TIMES)
        cells: dict[str, int] = {}
        of: dict[str, str] = {}  # column of a side table -> column of nvprof's that it is from
        with_correlation = _WITH_CORRELATION.fullmatch(name)
        if with_correlation and "Correlation_ID" not in said:
            name, cells["correlation"] = with_correlation[1], int(with_correlation[2])
        for what in ("grid", "block"):
            column = f"{what.capitalize()} Size"
            sides = re.fullmatch(r"\((\d{1,18}) (\d{1,18}) (\d{1,18})\)", said.get(column, ""))
            for axis, side in zip("xyz", sides.groups() if sides else (), strict=False):
                cells[f"{what}_{axis}"], of[f"{what}_{axis}"] = int(side), column
        for column, to in _WHOLE_COLUMNS.items():
            if re.fullmatch(r"\d{1,18}", said.get(column, "")):
                cells[to], of[to] = int(said[column]), column
        for column, to in _SIZE_COLUMNS.items():
            size = self._scaled(said, units, column, _SIZES)
            if size is not None:
                cells[to], of[to] = size, column
        device = re.fullmatch(r"(.*) \((\d{1,9})\)", said.get("Device", ""))
        if device:
            cells["device"], of["device"] = int(device[2]), "Device"
            self._devices.setdefault(device[2], device[1])
        copy = _COPY.fullmatch(name)
        if copy:
            self._copy(process, copy, said, units, cells, of)
            table, role = "copy_spans", "copy"
        elif "grid_x" in cells:
            if {"static_shared_bytes", "dynamic_shared_bytes"} <= cells.keys():
                cells["shared_memory_bytes"] = cells["static_shared_bytes"] + cells["dynamic_shared_bytes"]
            table, role = "kernel_spans", "kernel"
        elif "Device" in said or name.startswith("["):
            table, role = "", "other"
        else:
            table, role = "call_spans", _role_of_call(name)
        placed = {"Start", "Duration", "Name", *(of[to] for to in of if to in _COLUMNS_OF[table])}
        rest = {column: cell for column, cell in said.items() if column not in placed}
        location = self._location(process, cells, name)
        if duration is None:  # page faults on the host happen at a moment
            rows.mark(location, start, name, as_json_text(rest))
        else:
            region = process.region(name, "cuda", role)
            rows.span(table, location, start, duration, region, cells, as_json_text(rest) if rest else "")

    def _copy(
        self,
        process: ImportProcess,
        copy: re.Match[str],
        said: Mapping[str, str],
        units: Mapping[str, str],
        cells: dict[str, int],
        of: dict[str, str],
    ) -> None:
        unified = copy[1] == "Unified Memory"
        if copy[2] == "cpy":
            cells["copy_kind"] = process.text(f"{'Unified ' if unified else ''}{copy[3]}")
        if unified and "size_bytes" not in cells:
            size = self._scaled(said, units, "Unified Memory", _SIZES)
            if size is not None:
                cells["size_bytes"], of["size_bytes"] = size, "Unified Memory"
        address = re.fullmatch(r"0x([0-9a-f]{1,15})", said.get("Virtual Address", ""))
        if address:
            cells["address"], of["address"] = int(address[1], 16), "Virtual Address"
        for column, to in (("SrcMemType", "source_kind"), ("DstMemType", "destination_kind")):
            if column in said:
                cells[to], of[to] = process.text(said[column]), column
        # GB of 2^30 bytes, as everywhere in nvprof; the column's are of 10^9.
        rate = self._number(said, units, "Throughput", {f"{unit}/s": scale for unit, scale in _SIZES.items()})
        if rate is not None:
            above, below = rate
            bits = struct.unpack("<q", struct.pack("<d", above / (below * 10**9)))[0]
            cells["bandwidth_gb_s"], of["bandwidth_gb_s"] = bits, "Throughput"

    def _location(self, process: ImportProcess, cells: Mapping[str, int], name: str) -> int:
        device = cells.get("device", NONE)
        if "stream" in cells:
            return process.stream(device, cells["stream"], cells.get("context", NONE))
        if device != NONE:
            return process.location(("memory", device), f"GPU {device} unified memory", 0, "task", device)
        if name.startswith("[Unified"):
            return process.location("memory", "unified memory", 0, "task")
        return process.location("calls", "calls", 0, "thread")  # of which thread is not told

    def _of_process(self) -> _Rows:
        if self._pid not in self._rows:
            command = self._commands.get(self._pid, f"process {self._pid}")
            self._rows[self._pid] = _Rows(ImportProcess(self._target, self._pid), command)
        return self._rows[self._pid]

    def _number(
        self, said: Mapping[str, str], units: Mapping[str, str], column: str, scales: Mapping[str, int]
    ) -> tuple[int, int] | None:
        """Return a cell in the unit whose scale is 1, as an exact fraction; None where it has none."""
        found = _NUMBER.fullmatch(said.get(column, ""))
        if not found:
            return None
        sign, whole, part, exponent, unit = found.groups()
        scale = scales.get(unit or units.get(column, ""))
        if scale is None:
            return None
        above, below = int(whole + (part or "")) * scale, 10 ** len(part or "")
        power = int(exponent or 0)
        above, below = (above * 10**power, below) if power >= 0 else (above, below * 10**-power)
        return (-above if sign else above), below

    def _scaled(
        self, said: Mapping[str, str], units: Mapping[str, str], column: str, scales: Mapping[str, int]
    ) -> int | None:
        """Return a cell as an integer in the unit whose scale is 1; what is none is rounded to even and counted."""
        number = self._number(said, units, column, scales)
        if number is None:
            return None
        above, below = number
        value, left = divmod(above, below)
        if left:
            self._counters["sizes_rounded" if scales is _SIZES else "times_rounded"] += 1
            value += 2 * left > below or (2 * left == below and value % 2 == 1)
        return value if abs(value) < 2**62 else None


def _header(line: str) -> bool:
    return bool(_HEADER_BYTES.match(line.encode("utf-8", "replace")))


def _text_cells(line: str, columns: list[str]) -> list[str]:
    """Return the cells of a line, which two spaces or more part; only the last, a name, may hold some itself."""
    cells = re.split(r"\s{2,}", line.strip(), maxsplit=len(columns) - 1)
    if columns[0] == "Type" and re.fullmatch(r"[\d.]+%", cells[0]):  # the same type as above
        return ["", *re.split(r"\s{2,}", line.strip(), maxsplit=len(columns) - 2)]
    return cells


def _csv_cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


FORMAT = Format(
    "nvprof",
    "nvprof: SQLite, and printed traces and summaries as CSV and text",
    suffixes=(".nvvp", ".nvprof", ".sqlite", ".csv", ".txt"),
    sniff=sniff,
    read=read,
)
