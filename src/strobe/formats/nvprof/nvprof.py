"""nvprof: the SQLite files of --export-profile."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from contextlib import closing

import numpy as np

from strobe.formats.reading.cupti_tables import CACHE_CONFIGS, COPY_KINDS, OF_COPY, OF_GPU, OF_KERNEL, SYNC_KINDS
from strobe.formats.reading.database_tables import TIMES, Naming, Region, SpanTable, TableImport, named_by
from strobe.formats.reading.inputs import SQLITE_MAGIC
from strobe.formats.reading.sqlite_input import NONE, Batch, SqliteInput, Texts, Whole
from strobe.model.cupti_calls import DRIVER_CALLS, RUNTIME_CALLS
from strobe.model.kinds import role_of_cuda_call
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget


def sniff(head: bytes) -> bool:
    """Return whether it is a SQLite file with nvprof's table of texts and CUPTI's records."""
    return head.startswith(SQLITE_MAGIC) and b"StringTable" in head and b"CUPTI_ACTIVITY_KIND_" in head


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import every table. Times are the file's own, in nanoseconds. Raises ValueError if the database is damaged."""
    with closing(SqliteInput(source.local_path())) as database:
        return _Database(source, target, database).read()


_MEMORY_KINDS = dict(
    enumerate(("Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static"))
)
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
_OF_CALL = {"correlationId": "correlation", "cbid": "callback_id", "returnValue": "return_value"}
_OF_KERNEL = {**OF_KERNEL, "queued": "queued_ns"}
_COPY_WORDS = {"copyKind": dict(enumerate(COPY_KINDS)), "srcKind": _MEMORY_KINDS, "dstKind": _MEMORY_KINDS}


def _call_of(names: Mapping[int, str], module: str) -> Naming:
    def naming(values: Mapping[str, object]) -> Region:
        number = values.get("cbid")
        name = names.get(number, f"call {number}") if isinstance(number, int) else "<unnamed call>"
        return name, "cuda", role_of_cuda_call(name), module

    return naming


def _constant(title: str) -> Naming:
    paradigm = next((each for each in ("openacc", "openmp") if title.startswith(each)), "other")
    return lambda _: (title, paradigm, "other", "nvprof")


def _range(values: Mapping[str, object]) -> Region:
    return str(values.get("name") or "<unnamed range>"), "nvtx", "range", str(values.get("domain") or "")


def _unified(values: Mapping[str, object]) -> Region:
    kind = str(values.get("counterKind") or "Unknown")
    moved = kind in ("HtoD", "DtoH", "DtoD")
    return f"[Unified Memory {'Memcpy ' if moved else ''}{kind}]", "cuda", "copy" if moved else "other", ""


def _device(row: Mapping[str, object]) -> dict[str, object]:
    """Return the properties of a GPU under the names of Kineto."""
    known = {to: row[column] for column, to in _OF_DEVICE.items() if column in row}
    warps, width = (row.get(column) for column in ("maxWarpsPerMultiprocessor", "numThreadsPerWarp"))
    if isinstance(warps, int) and isinstance(width, int):
        known["maxThreadsPerMultiprocessor"] = warps * width
    return known


_DEVICES = "CUPTI_ACTIVITY_KIND_DEVICE"
_OF_DEVICE = {
    "id": "id",
    "name": "name",
    "computeCapabilityMajor": "computeMajor",
    "computeCapabilityMinor": "computeMinor",
    "numMultiprocessors": "numSms",
    "globalMemorySize": "totalGlobalMem",
    "maxRegistersPerMultiprocessor": "regsPerMultiprocessor",
    "maxSharedMemoryPerMultiprocessor": "sharedMemPerMultiprocessor",
    "maxBlocksPerMultiprocessor": "maxBlocksPerMultiprocessor",
}
_KERNEL_WORDS = {"launchType": _LAUNCH_TYPES, "cacheConfig": CACHE_CONFIGS}
# Tables that are made of CUPTI_ACTIVITY_KIND_MARKER.
_MARKERS = "CUPTI_ACTIVITY_KIND_MARKER"
_RANGES, _INSTANTS = "strobe ranges", "strobe instants"
_UNIFIED = "CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER"
_KINDS = (
    SpanTable(
        "CUPTI_ACTIVITY_KIND_RUNTIME", ("cbid",), _call_of(RUNTIME_CALLS, "CUDA runtime"), "call_spans", _OF_CALL
    ),
    SpanTable("CUPTI_ACTIVITY_KIND_DRIVER", ("cbid",), _call_of(DRIVER_CALLS, "CUDA driver"), "call_spans", _OF_CALL),
    *(
        SpanTable(
            f"CUPTI_ACTIVITY_KIND_{name}",
            ("name",),
            named_by("name", "cuda", "kernel", unnamed="<unnamed kernel>"),
            "kernel_spans",
            _OF_KERNEL,
            _KERNEL_WORDS,
            repeats={"completed": "end"},
        )
        for name in ("CONCURRENT_KERNEL", "KERNEL", "CDP_KERNEL")
    ),
    *(
        SpanTable(
            f"CUPTI_ACTIVITY_KIND_{name}",
            ("copyKind",),
            lambda values: (f"[CUDA memcpy {values.get('copyKind') or 'Unknown'}]", "cuda", "copy", ""),
            "copy_spans",
            OF_COPY,
            _COPY_WORDS,
        )
        for name in ("MEMCPY", "MEMCPY2")
    ),
    SpanTable(
        "CUPTI_ACTIVITY_KIND_MEMSET",
        (),
        lambda _: ("[CUDA memset]", "cuda", "copy", ""),
        "copy_spans",
        {**OF_GPU, "bytes": "size_bytes", "value": "set_value", "memoryKind": "destination_kind"},
        {"memoryKind": _MEMORY_KINDS},
    ),
    SpanTable(
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        ("type",),
        named_by("type", "cuda", "sync"),
        "sync_spans",
        {**OF_GPU, "type": "sync_kind", "cudaEventId": "wait_on_event"},
        {"type": SYNC_KINDS},
        row="waits",
    ),
    SpanTable(
        "CUPTI_ACTIVITY_KIND_OVERHEAD",
        ("overheadKind",),
        named_by("overheadKind", "strobe", "other", "nvprof"),
        words={"overheadKind": _OVERHEADS},
        row="profiler",
    ),
    SpanTable(_UNIFIED, ("counterKind",), _unified, words={"counterKind": _COUNTERS}, row="unified memory"),
    SpanTable(_RANGES, ("name", "domain"), _range),
)


class _Database:
    """One database: the meaning of its tables. It is the dialect of its TableImport."""

    placing = frozenset(("_id_", "start", "end", "timestamp", "processId", "threadId", "objectKind", "objectId"))

    def __init__(self, source: ImportSource, target: ImportTarget, database: SqliteInput) -> None:
        self._database = database
        self._tables = TableImport(source, target, database, Texts(database, "StringTable", "_id_", "value"), self)
        self._paired = False
        self._pair_markers()
        first = ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER", _RANGES)
        self._tables.choose_default_key(first, ("processId", "objectKind", "objectId"))

    def read(self) -> Imported:
        for kind in _KINDS:
            self._tables.spans(kind)
        handled = {"StringTable", _MARKERS, _INSTANTS, *(kind.table for kind in _KINDS)}
        properties: dict[str, object] = {}
        for name, table in list(self._database.tables.items()):
            if name in handled:
                continue
            title = name.removeprefix("CUPTI_ACTIVITY_KIND_").lower().replace("_", " ")
            if TIMES & table.columns.keys() and not name.startswith("CUPTI_ACTIVITY_KIND_"):
                self._tables.kept_unknown(name)
            if {"start", "end"} <= table.columns.keys():
                self._tables.spans(SpanTable(name, (), _constant(title), row=title))
            elif "timestamp" in table.columns or "start" in table.columns:
                time = "timestamp" if "timestamp" in table.columns else "start"
                self._tables.marks(name, time, ("name",), title, title)
            else:
                self._tables.property(properties, name)
        self._tables.marks(_INSTANTS, "timestamp", ("name",), "nvtx")
        devices = properties.get(_DEVICES)
        properties["deviceProperties"] = [_device(row) for row in devices] if isinstance(devices, list) else []
        # A range is made of two markers, or of one that has no end.
        ended = next(self._database.query(f'SELECT count("end") FROM temp."{_RANGES}"'), (0,))[0] if self._paired else 0
        taken = self._tables.taken
        taken[_MARKERS] = taken[_RANGES] + taken[_INSTANTS] + (ended if isinstance(ended, int) else 0)
        return self._tables.finish(lambda key: f"process {key}", properties=properties)

    def process_keys(self, batch: Batch) -> Whole:
        """Return the process of each row: its column, or the object that it is about."""
        process = batch.integers("processId")
        if process is not None:
            return process
        return self._objects(batch, 0)

    def pid(self, key: int) -> int:
        return key

    def threads(self, part: Batch) -> Whole:
        """Return the thread of each row: its column, or the object that it is about."""
        thread = part.integers("threadId")
        return self._objects(part, 1) if thread is None else thread

    def thread_name(self, thread: int) -> tuple[str, int]:
        return f"thread {thread}", thread

    def referenced(self, table: str, column: str, numbers: list[int]) -> Mapping[int, object] | None:
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
        """Make ranges of markers: a start has a name, its end has the same id without a name."""
        name = _MARKERS
        table = self._database.tables.get(name)
        if table is None or not {"id", "timestamp", "name"} <= table.columns.keys():
            return
        self._paired = True
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


FORMAT = Format(
    "nvprof", "nvprof SQLite (--export-profile)", suffixes=(".nvvp", ".nvprof", ".sqlite"), sniff=sniff, read=read
)
