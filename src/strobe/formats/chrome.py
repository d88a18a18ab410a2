"""Chrome's trace event JSON: Kineto (PyTorch's profiler), VizTracer, and whatever else writes it."""

from __future__ import annotations

import functools
import gzip
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from strobe import native
from strobe.model.kinds import LOCATION_KINDS, PARADIGMS, ROLES
from strobe.model.plugins import Format, Imported
from strobe.model.schema import EVENT_TABLES, SPAN_TABLES, TABLES
from strobe.store.exports import new_file

if TYPE_CHECKING:
    from pathlib import Path

    from strobe.model.plugins import ImportSource, ImportTarget
    from strobe.store.trace import Trace


def sniff(head: bytes) -> bool:
    """Say whether it is an object with traceEvents, or a list of objects with a phase."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"{"):
        return b'"traceEvents"' in text or (b'"schemaVersion"' in text and b'"deviceProperties"' in text)
    return text.startswith(b"[") and b'"ph"' in text


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file, in pieces as they come."""
    reader = native.ChromeReader(str(target.folder), target.next_number(), target.buffer_bytes)
    for chunk in source.chunks():
        reader.feed(chunk)
    report = json.loads(reader.finish(source.name).decode("utf-8", "replace"))
    processes = report["processes"]
    for _ in processes[1:]:
        target.next_number()  # the reader numbered them on from the first
    told: Mapping[str, object] = report["properties"]
    distributed = told.get("distributedInfo")
    rank = distributed.get("rank") if isinstance(distributed, dict) else None
    ranks = distributed.get("world_size") if isinstance(distributed, dict) else None
    base = told.get("baseTimeNanoseconds")
    own = told.get("strobe")
    zero = own.get("zero_ns") if isinstance(own, dict) else None
    first = min((each["first_ns"] for each in processes), default=0)
    return Imported(
        processes=len(processes),
        first_ns=min(first, zero) if isinstance(zero, int) else first,
        last_ns=max((each["last_ns"] for each in processes), default=0),
        base_ns=base if isinstance(base, int) else None,
        rank=rank if isinstance(rank, int) else None,
        ranks=ranks if isinstance(ranks, int) else None,
        host=str(told.get("host_name", "")),
        properties=told,
        counters=report["counters"],
    )


# --- writing ---------------------------------------------------------------------------------------------------------

_BATCH = 1 << 16  # spans that are held at a time

# Columns of side tables, and what Kineto calls them.
_GPU_KEYS = {
    "correlation": "correlation",
    "external_id": "External id",
    "device": "device",
    "context": "context",
    "stream": "stream",
}
_KEYS: Mapping[str, Mapping[str, str]] = {
    "kernel_spans": {
        **_GPU_KEYS,
        "registers_per_thread": "registers per thread",
        "shared_memory_bytes": "shared memory",
        "queued_ns": "queued",
        "blocks_per_sm": "blocks per SM",
        "warps_per_sm": "warps per SM",
        "occupancy_percent": "est. achieved occupancy %",
        "graph": "graph id",
        "graph_node": "graph node id",
        "priority": "priority",
    },
    "copy_spans": {
        **_GPU_KEYS,
        "size_bytes": "bytes",
        "bandwidth_gb_s": "memory bandwidth (GB/s)",
        "graph": "graph id",
        "graph_node": "graph node id",
    },
    "sync_spans": {
        **_GPU_KEYS,
        "sync_kind": "cuda_sync_kind",
        "wait_on_stream": "wait_on_stream",
        "wait_on_correlation": "wait_on_cuda_event_record_corr_id",
        "wait_on_event": "wait_on_cuda_event_id",
    },
    "call_spans": {"correlation": "correlation", "external_id": "External id", "callback_id": "cbid"},
    "operator_spans": {
        "external_id": "External id",
        "record_function_id": "Record function id",
        "event_index": "Ev Idx",
        "sequence_number": "Sequence number",
        "forward_thread": "Fwd thread id",
        "shapes": "Input Dims",
        "types": "Input type",
        "strides": "Input Strides",
        "concrete_inputs": "Concrete Inputs",
        "module_hierarchy": "Module Hierarchy",
        "call_stack": "Call stack",
    },
    "python_spans": {
        "python_id": "Python id",
        "python_parent_id": "Python parent id",
        "python_module_id": "Python module id",
    },
    "collective_spans": {
        "collective": "Collective name",
        "dtype": "dtype",
        "in_elements": "In msg nelems",
        "out_elements": "Out msg nelems",
        "group_size": "Group size",
        "group": "Process Group Name",
        "group_description": "Process Group Description",
        "group_ranks": "Process Group Ranks",
        "in_split": "In split size",
        "out_split": "Out split size",
        "rank": "Rank",
        "first_rank": "Global rank start",
        "rank_stride": "Global rank stride",
        "sequence": "Seq",
        "communicator": "Comms Id",
        "source_rank": "Src Rank",
        "destination_rank": "Dst Rank",
    },
}
_ALLOCATION_KEYS = {
    "address": "Addr",
    "size_bytes": "Bytes",
    "total_allocated_bytes": "Total Allocated",
    "total_reserved_bytes": "Total Reserved",
    "device_type": "Device Type",
    "device": "Device Id",
    "event_index": "Ev Idx",
}
# The category that a row of a table asks for, in order, and the tables that categories are read into.
_CATEGORY_OF_TABLE = {
    "kernel_spans": "kernel",
    "copy_spans": "gpu_memcpy",
    "sync_spans": "cuda_sync",
    "call_spans": "cuda_runtime",
    "operator_spans": "cpu_op",
    "python_spans": "python_function",
}
_TABLE_OF_CATEGORY = {
    **{category: table for table, category in _CATEGORY_OF_TABLE.items()},
    "gpu_memset": "copy_spans",
    "cuda_driver": "call_spans",
    "overhead": "call_spans",
    "user_annotation": "operator_spans",
    "gpu_user_annotation": "operator_spans",
}


def write(trace: Trace, path: Path) -> list[str]:
    """Write a trace as Kineto does: its categories, names of arguments and metadata, and exact times.

    Metadata events `strobe_process`, `strobe_region`, `strobe_row` and `strobe_metric` hold what Chrome's format has no
    place for; viewers skip them, and strobe reads with them what it wrote. Steps that were folded into statistics have
    no events, and are left out.
    """
    notes = []
    if trace.folded_count:
        steps = "steps that were folded into statistics"
        notes.append(f"{trace.folded_count} executions of {steps} are left out: Chrome's format has no place for sums")
    for name in EVENT_TABLES:
        rows = sum(reader.tables().get(name, 0) for reader in trace.readers)
        if rows and name not in ("allocations", "marks", "flows"):
            notes.append(f"{rows} rows of the table {name} are left out: Chrome's format has no place for them")
    with new_file(path) as work, _opened(work, path.name) as out:
        _Writer(trace, out, notes).write()
    return notes


def _opened(path: Path, name: str) -> IO[bytes]:
    if name.endswith(".gz"):
        return cast("IO[bytes]", gzip.GzipFile("", "wb", 5, path.open("wb"), mtime=0))
    if name.endswith(".zst"):
        return cast("IO[bytes]", pa.CompressedOutputStream(str(path), "zstd"))
    return path.open("wb")


class _Writer:
    """One file in the making."""

    def __init__(self, trace: Trace, out: IO[bytes], notes: list[str]) -> None:
        self._trace, self._out, self._notes = trace, out, notes
        self._first = True
        self._zero_ns = trace.zero_ns
        self._regions = trace.regions.to_pylist()
        self._locations = trace.locations.to_pylist()
        self._process_ids = _distinct([int(str(each["pid"])) for each in trace.processes.to_pylist()])
        self._rows = self._name_rows()
        self._heads: dict[tuple[int, str, bool], str] = {}
        self._incomplete = 0
        self._as_arguments: set[str] = set()  # columns that Kineto has no name for

    def write(self) -> None:
        """Write everything."""
        self._out.write(b"{" + self._properties().encode() + b'"traceEvents": [\n')
        self._definitions()
        for location in range(len(self._locations)):
            self._spans(location)
            for name, write in (("allocations", self._allocation), ("marks", self._mark), ("flows", self._flow)):
                for batch in self._trace.side_batches(name, location):
                    pid, tid = self._rows[location]
                    self._events(write(pid, tid, row) for row in batch.to_pylist())
        self._counters()
        self._out.write(b"\n]")
        if self._incomplete:
            self._notes.append(f"{self._incomplete} spans that were cut off look like whole ones in other viewers")
        if self._as_arguments:
            columns = ", ".join(sorted(self._as_arguments))
            self._notes.append(f"{columns} are no columns any more when this file is read: they are in `arguments`")
        if self._notes:
            self._out.write(f',\n"strobe_left_out": {_json(self._notes)}'.encode())
        self._out.write(b"\n}\n")

    def _events(self, events: Iterable[str]) -> None:
        text = ",\n".join(events)
        if text:
            self._out.write((text if self._first else ",\n" + text).encode("utf-8", "replace"))
            self._first = False

    # What is said once

    def _properties(self) -> str:
        """What the imported file said beside its events, and what we add."""
        imported = self._trace.job.imported.get("files")
        files = imported if isinstance(imported, list) else []
        told = dict(files[0].get("properties") or {}) if files else {"schemaVersion": 1}
        for key in ("traceEvents", "strobe", "strobe_left_out", "too_long"):
            told.pop(key, None)
        if len(files) > 1:  # what is said of one rank holds for it only
            for key in ("distributedInfo", "traceName"):
                told.pop(key, None)
        ranks = [each["rank"] for each in self._trace.processes.to_pylist() if each["rank"] is not None]
        if len(ranks) == 1 and "distributedInfo" not in told:
            world = self._trace.readers[0].process().get("ranks")
            told["distributedInfo"] = {"rank": ranks[0], **({"world_size": world} if world is not None else {})}
        if self._trace.job.started_unix_ns:
            told["baseTimeNanoseconds"] = self._trace.job.started_unix_ns - self._zero_ns
        told["strobe"] = {"version": 1, "zero_ns": self._zero_ns}
        return "".join(f"{_json(key)}: {_json(value)},\n" for key, value in told.items())

    def _definitions(self) -> None:
        """Name processes and rows, for viewers and for ourselves."""
        processes = self._trace.processes.to_pylist()
        self._events(self._process(i, row) for i, row in enumerate(processes))
        self._events(
            _meta(
                "strobe_region",
                0,
                0,
                id=i,
                name=row["name"],
                paradigm=PARADIGMS.index(str(row["paradigm"])),
                role=ROLES.index(str(row["role"])),
                file=row["file"],
                line=row["line"],
                module=row["module"],
            )
            for i, row in enumerate(self._regions)
        )
        seen: dict[tuple[str, str], int] = {}
        for location, (pid, tid) in zip(self._locations, self._rows, strict=True):
            if (pid, tid) in seen:
                continue
            seen[pid, tid] = len(seen)
            device = location["device"]
            own = {"process": location["process"], "name": location["name"], "thread_id": location["thread_id"]}
            kind = LOCATION_KINDS.index(str(location["kind"]))
            events = [_meta("strobe_row", pid, tid, **own, kind=kind, device=-1 if device is None else device)]
            name = f"stream {location['thread_id']}" if location["kind"] == "stream" else location["name"]
            events.append(_meta("thread_name", pid, tid, name=name))
            self._events(events)
        devices = {
            pid for location, (pid, _) in zip(self._locations, self._rows, strict=True) if location["kind"] == "stream"
        }
        for number, row in zip(self._process_ids, processes, strict=True):
            rank = "" if row["rank"] is None else f" rank {row['rank']}"
            self._events([_meta("process_name", number, 0, name=f"{row['argv'] or 'process'}{rank}")])
        for device in sorted(devices - {str(each) for each in self._process_ids}):
            shown = [
                _meta("process_name", device, 0, name="GPU"),
                _meta("process_labels", device, 0, labels=f"GPU {device}"),
            ]
            self._events(shown)
        self._row_numbers = seen

    def _process(self, number: int, row: Mapping[str, object]) -> str:
        facts = self._trace.readers[number].process()
        description = {"argv": facts["argv"], "host": row["host"], "python": row["python"], "main": row["main"]}
        note = {
            key: value for key, value in (("rank", row["rank"]), ("ranks", facts.get("ranks"))) if value is not None
        }
        return _meta(
            "strobe_process",
            self._process_ids[number],
            0,
            pid=row["pid"],
            parent_pid=row["parent_pid"],
            description=description,
            **({"note": note} if note else {}),
            started_ns=int(str(row["started_ns"])) + self._zero_ns,
            ended_ns=int(str(row["ended_ns"])) + self._zero_ns,
            end_state=row["end_state"],
            exit_code=-1 if row["exit_code"] is None else row["exit_code"],
        )

    def _name_rows(self) -> list[tuple[str, str]]:
        """Return pid and tid of every location, as JSON. Lanes of a row share its numbers, as they did in the file."""
        used: set[tuple[object, object]] = set()
        rows: list[tuple[str, str]] = []
        of: dict[tuple[object, ...], int] = {}
        for number, location in enumerate(self._locations):
            process, name, kind = int(str(location["process"])), str(location["name"]), location["kind"]
            same = (process, location["thread_id"], kind, location["device"])
            lane = re.fullmatch(r"(.*) \(lane \d+\)", name)
            if lane and (*same, lane[1]) in of:
                rows.append(rows[of[*same, lane[1]]])
                continue
            of[*same, name] = number
            pid: Any
            tid: Any
            if kind == "stream":
                pid, tid = location["device"] or 0, location["thread_id"]
                while (pid, tid) in used:
                    pid += 1_000_000  # the GPU of another process
            elif kind == "task":
                pid, tid = "Spans", name
                while (pid, tid) in used:
                    pid += "+"
            else:
                pid, tid = self._process_ids[process], location["thread_id"]
                while (pid, tid) in used:
                    tid = f"{tid} {name}"
            used.add((pid, tid))
            rows.append((_json(pid), _json(tid)))
        return rows

    # Events

    def _spans(self, location: int) -> None:
        pid, tid = self._rows[location]
        gpu = self._locations[location]["kind"] == "stream"
        tables = {name: _Rows(self._trace.side_batches(name, location)) for name in SPAN_TABLES}
        for spans in self._trace.span_batches(location):
            until = int(spans["row"][-1]) + 1
            args: dict[int, list[str]] = {}
            asked: dict[int, str] = {}
            for name, rows in tables.items():
                for batch in rows.before(until):
                    self._as_arguments |= _collect(name, batch, args)
                    if name in _CATEGORY_OF_TABLE:
                        for row in batch.column("row").to_pylist():
                            asked.setdefault(row, name)
            self._incomplete += int((~spans["complete"]).sum())
            starts = (spans["start_ns"] + self._zero_ns).tolist()
            events = []
            columns = (spans[name].tolist() for name in ("row", "duration_ns", "region", "complete"))
            for start, row, duration, region, complete in zip(starts, *columns, strict=True):
                head = self._head(region, asked.get(row, ""), gpu)
                found = args.get(row)
                tail = f', "args": {{{", ".join(found)}}}}}' if found else "}"
                cut = "" if complete else ', "cut": 1'
                times = f'"ts": {_us(start)}, "dur": {_us(duration)}'
                events.append(f'{head}, "pid": {pid}, "tid": {tid}, {times}{cut}{tail}')
            self._events(events)

    def _head(self, region: int, table: str, gpu: bool) -> str:
        known = self._heads.get((region, table, gpu))
        if known is None:
            row = self._regions[region]
            category = _category(row, gpu)
            if table and _TABLE_OF_CATEGORY.get(category) != table:
                category = _CATEGORY_OF_TABLE[table]
            name = str(row["name"])
            if category == "python_function" and row["file"]:
                name = f"{row['file']}({row['line']}): {name}"
            known = f'{{"ph": "X", "cat": {_json(category)}, "name": {_json(name)}, "reg": {region}'
            self._heads[region, table, gpu] = known
        return known

    def _at(self, row: Mapping[str, object]) -> str:
        return _us(int(str(row["time_ns"])) + self._zero_ns)

    def _allocation(self, pid: str, tid: str, row: Mapping[str, object]) -> str:
        cells = ((key, row[column]) for column, key in _ALLOCATION_KEYS.items())
        args = ", ".join(f'"{key}": {value}' for key, value in cells if value is not None)
        head = '{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]"'
        return f'{head}, "pid": {pid}, "tid": {tid}, "ts": {self._at(row)}, "args": {{{args}}}}}'

    def _mark(self, pid: str, tid: str, row: Mapping[str, object]) -> str:
        head = f'{{"ph": "i", "s": "t", "cat": {_json(row["category"] or "")}, "name": {_json(row["name"] or "")}'
        args = "" if row["arguments"] is None else f', "args": {_as_json(str(row["arguments"]))}'
        return f'{head}, "pid": {pid}, "tid": {tid}, "ts": {self._at(row)}{args}}}'

    def _flow(self, pid: str, tid: str, row: Mapping[str, object]) -> str:
        number = row["flow"] if row["flow"] is not None else row["flow_name"]
        id = "" if number is None else f', "id": {_json(number)}'
        binds = ', "bp": "e"' if row["phase"] == "f" else ""
        head = f'{{"ph": {_json(row["phase"] or "s")}{id}, "cat": {_json(row["category"] or "")}'
        name = _json(row["name"] or "")
        return f'{head}, "name": {name}, "pid": {pid}, "tid": {tid}, "ts": {self._at(row)}{binds}}}'

    def _counters(self) -> None:
        number = 0
        for process, reader in enumerate(self._trace.readers):
            pid = _json(self._process_ids[process])
            shift = self._zero_ns - self._trace.zero_of(process)
            for metric in reader.metrics():
                location = self._trace.location_of(process, int(str(metric["location"])))
                row = -1 if location is None else self._row_numbers[self._rows[location]]
                own = {"id": number, "process": process, "name": metric["name"], "unit": metric["unit"], "row": row}
                self._events([_meta("strobe_metric", 0, 0, **own)])
                where = "" if location is None else f" ({self._locations[location]['name']})"
                name = _json(str(metric["name"]) + where)
                head = f'{{"ph": "C", "name": {name}, "met": {number}, "pid": {pid}, "tid": 0'
                times, values = np.asarray(metric["time_ns"]), np.asarray(metric["value"])
                for at in range(0, len(times), _BATCH):
                    pairs = zip(
                        (times[at : at + _BATCH] + shift).tolist(), values[at : at + _BATCH].tolist(), strict=True
                    )
                    self._events(f'{head}, "ts": {_us(ns)}, "args": {{"value": {_real(v)}}}}}' for ns, v in pairs)
                number += 1


class _Rows:
    """Rows of a side table in order of their spans, taken as far as the spans are."""

    def __init__(self, batches: Iterator[pa.Table]) -> None:
        self._batches, self._left = batches, cast("pa.Table | None", None)

    def before(self, row: int) -> Iterator[pa.Table]:
        """Return the rows that were not taken yet, of spans before `row`."""
        while True:
            if self._left is None:
                self._left = next(self._batches, None)
            if self._left is None:
                return
            taken = int(np.searchsorted(self._left.column("row").to_numpy(), row))
            if taken:
                yield self._left.slice(0, taken)
            if taken < self._left.num_rows:
                self._left = self._left.slice(taken)
                return
            self._left = None


def _collect(name: str, batch: pa.Table, args: dict[int, list[str]]) -> set[str]:
    """Add the arguments that rows of a table are, as JSON, by the row of their spans.

    Return the columns with values that Kineto has no name for.
    """
    rows = batch.column("row").to_pylist()
    if name == "arguments":
        for row, key, value in zip(
            rows, batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True
        ):
            args.setdefault(row, []).append(f"{_json(key or '')}: {_as_json(value or 'null')}")
        return set()
    unknown = set()
    own: list[list[str]] = [args.setdefault(row, []) for row in rows]
    for column, key in _keys(name).items():
        values = batch.column(column)
        if values.null_count == len(values):
            continue
        if key == f"{name}.{column}":
            unknown.add(key)
        head, shown = f'"{key}": ', _shown(values.type, lists=name != "collective_spans")
        for cells, value in zip(own, values.to_pylist(), strict=True):
            if value is not None:
                cells.append(head + shown(value))
    for side in ("grid", "block") if name == "kernel_spans" else ():
        sides = [batch.column(f"{side}_{axis}").to_pylist() for axis in "xyz"]
        for cells, *three in zip(own, *sides, strict=True):
            if None not in three:
                cells.append(f'"{side}": [{three[0]}, {three[1]}, {three[2]}]')
    return unknown


@functools.cache
def _keys(name: str) -> dict[str, str]:
    """Columns and their arguments; those that Kineto has not (`kernel_spans.x`) are read again as `arguments`."""
    own = [column.name for column in TABLES[name] if column.name not in ("location", "row")]
    sides = ("grid_", "block_") if name == "kernel_spans" else ()
    known = _KEYS.get(name, {})
    return {each: known.get(each, f"{name}.{each}") for each in own if not (sides and each[:-1] in sides)}


def _shown(kind: pa.DataType, *, lists: bool) -> Callable[[Any], str]:
    if pa.types.is_string(kind):
        return _text_or_json if lists else _json  # Kineto writes the lists of collectives as texts
    return _real if pa.types.is_floating(kind) else str


def _category(region: Mapping[str, object], gpu: bool) -> str:
    """Return Kineto's category of a region (on a `gpu`); a name of our own where Kineto knows no such thing."""
    name, paradigm, role = (str(region[key]) for key in ("name", "paradigm", "role"))
    if paradigm in ("cuda", "hip"):
        if role == "kernel":
            return "kernel"
        if role == "copy":
            return "gpu_memset" if name.lower().startswith("memset") else "gpu_memcpy"
        return "cuda_driver" if re.match(r"cu[A-Z]", name) else "cuda_runtime"
    if paradigm == "torch":
        if gpu:
            return "gpu_user_annotation"
        own = ("Optimizer.", "ProfilerStep#", "enumerate(DataLoader)#", "nccl:", "gloo:")
        return "user_annotation" if name.startswith(own) else "cpu_op"
    if paradigm == "other":
        return str(region["module"] or "")
    return {"user": "user_annotation", "python": "python_function", "strobe": "overhead"}.get(paradigm, paradigm)


def _distinct(numbers: Sequence[int]) -> list[int]:
    """The same numbers, those that come again made others: processes of several machines share numbers."""
    found: list[int] = []
    for number in numbers:
        while number in found:
            number += 10_000_000
        found.append(number)
    return found


def _meta(what: str, pid: object, tid: object, /, **args: object) -> str:
    ids = (each if isinstance(each, str) else _json(each) for each in (pid, tid))
    return '{{"ph": "M", "name": "{}", "pid": {}, "tid": {}, "ts": 0, "args": {}}}'.format(what, *ids, _json(args))


def _us(ns: int) -> str:
    """Nanoseconds as microseconds, exactly."""
    return f"{ns // 1000}.{ns % 1000:03}" if ns >= 0 else f"-{-ns // 1000}.{-ns % 1000:03}"


def _real(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'"{value}"'


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)


@functools.lru_cache(1 << 14)
def _as_json(text: str) -> str:
    """Text that says it is JSON: as it is, if it is."""
    return text if _is_json(text) else _json(text)


@functools.lru_cache(1 << 14)
def _text_or_json(text: str) -> str:
    """A list as it is, if it is written as the importer writes it; everything else as a text."""
    compact = text[:1] in ("[", "{") and "\\" not in text and not re.search(r"\s", re.sub('"[^"]*"', "", text))
    return text if compact and _is_json(text) else _json(text)


def _is_json(text: str) -> bool:
    def refuse(constant: str) -> None:  # NaN, Infinity: not what browsers read
        raise ValueError(constant)

    try:
        json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return False
    return True


FORMAT = Format(
    "chrome",
    "Chrome trace event JSON: PyTorch profiler (Kineto), VizTracer, ...",
    suffixes=(".json", ".json.gz", ".json.zst"),
    sniff=sniff,
    read=read,
    write=write,
)
