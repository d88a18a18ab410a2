"""rocprofv3's JSON and CSV files, whose records go through tables of a temporary database, as those of rocpd."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from strobe.formats.reading.csv_input import csv_rows
from strobe.formats.reading.profile_import import read_whole
from strobe.formats.reading.row_tables import Row, row_database
from strobe.formats.rocm.layouts import (
    ALLOCATIONS,
    CALLS,
    COPIES,
    KERNELS,
    LAYOUTS,
    MARKS,
    PROCESS_RANGES,
    RANGES,
    READINGS,
    SAMPLES,
)
from strobe.formats.rocm.records import Records
from strobe.model.losses import RECORDS_LEFT_OUT, RECORDS_UNKNOWN, UNKNOWN
from strobe.model.plugins import Imported, ImportSource, ImportTarget

_NUMBER = re.compile(r"(?:Agent )?(\d{1,19})", re.IGNORECASE)
_HOST, _GPU_AGENT = -1, 2  # the second: ROCPROFILER_AGENT_TYPE_GPU
_API_CALLS = ("hip_api", "hsa_api", "rccl_api", "rocdecode_api", "rocjpeg_api")
FILES = (
    *("kernel_trace", "memory_copy_trace", "memory_allocation_trace", "marker_api_trace"),
    *(f"{name}_trace" for name in (*_API_CALLS, "hip_runtime_api", "hip_compiler_api", "hsa_core_api")),
    *("scratch_memory_trace", "counter_collection", "pc_sampling_host_trap", "pc_sampling_stochastic"),
)


def read_csv(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a CSV file with those beside it that have the same beginning of their names."""
    name = PurePosixPath(source.name.replace(":", "/")).name
    known = next((each for each in FILES if name.endswith(f"{each}.csv")), "")
    prefix = name.removesuffix(f"{known}.csv") if known else ""
    beside = [source.beside(f"{prefix}{each}.csv") for each in FILES if known and each != known]
    files = [source, *(each for each in beside if each is not None)]
    counters: Counter[str] = Counter()
    agents = source.beside(f"{prefix}agent_info.csv") if known else None
    gpus = {} if agents is None else _gpus(csv_rows(agents, lambda: counters.update(unreadable_rows=1)))
    rows = (
        row
        for each in files
        for row in _of_csv(csv_rows(each, lambda: counters.update(unreadable_rows=1)), gpus, counters)
    )
    return _import(source, target, rows, counters, "", {"files": [each.name for each in files]})


def _gpus(rows: Iterable[Mapping[str, str]]) -> dict[int, int]:
    """Return which GPU an agent is: its number among them, -1 for processors."""
    agents = sorted((_whole(row.get("Node_Id")) or 0, row.get("Agent_Type") == "GPU") for row in rows)
    return _numbered(agents)


def _numbered(agents: Iterable[tuple[int, bool]]) -> dict[int, int]:
    found: dict[int, int] = {}
    for agent, is_gpu in agents:
        found[agent] = sum(each != _HOST for each in found.values()) if is_gpu else _HOST
    return found


# Columns of rocprof, versions 1 and 2, by those of rocprofv3. Other columns of theirs are hardware counters, but for
# those that are not kept.
_OLDER = {
    "Dispatch_Id": ("Index", "Dispatch_ID"),
    "Kernel_Name": ("KernelName",),
    "Agent_Id": ("gpu-id", "GPU_ID"),
    "Queue_Id": ("queue-id", "Queue_ID"),
    "Process_Id": ("pid", "PID"),
    "Thread_Id": ("tid", "TID"),
    "Grid_Size": ("grd", "GRD"),
    "Workgroup_Size": ("wgr", "WGR"),
    "LDS_Block_Size": ("lds", "LDS", "LDS_Per_Workgroup"),
    "Scratch_Size": ("scr", "SCR", "Scratch_Per_Workitem"),
    "VGPR_Count": ("vgpr", "arch_vgpr", "Arch_VGPR"),
    "Accum_VGPR_Count": ("accum_vgpr", "Accum_VGPR", "ACCUM_VGPR"),
    "SGPR_Count": ("sgpr", "SGPR"),
    "Start_Timestamp": ("BeginNs",),
    "End_Timestamp": ("EndNs", "Stop_Timestamp"),
    "Correlation_Id": ("Correlation_ID",),
}
_FIRST_OLDER = frozenset(("KernelName", "GPU_ID", "Correlation_ID"))
_NEWER = {old: new for new, olds in _OLDER.items() for old in olds}
_NOT_KEPT = frozenset(
    (
        *("queue-index", "Queue_Index", "fbar", "sig", "SIG", "obj", "OBJ", "wave_size", "Wave_Size"),
        *("DispatchNs", "CompleteNs", "DurationNs"),
    )
)


def _of_older(row: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return a row of a file of rocprof with the columns of rocprofv3, and the counters in it."""
    known = {_NEWER.get(column, column): cell for column, cell in row.items()}
    counted = {column: cell for column, cell in row.items() if column not in _NEWER.keys() | _OLDER.keys() | _NOT_KEPT}
    return known, counted


def _of_csv(rows: Iterable[Mapping[str, str]], gpus: Mapping[int, int], counters: Counter[str]) -> Iterator[Row]:
    def gpu(cell: str | None) -> int | None:
        agent = _whole(cell)
        return None if agent is None else gpus.get(agent, agent)

    def blocks(row: Mapping[str, str], axis: str) -> int | None:
        return _blocks(_whole(row.get(f"Grid_Size{axis}")), _whole(row.get(f"Workgroup_Size{axis}")))

    for each in rows:
        row, counted = _of_older(each) if each.keys() & _FIRST_OLDER else (each, {})
        cells: dict[str, object] = {
            "processId": _whole(row.get("Process_Id")),
            "threadId": _whole(row.get("Thread_Id")),
            "start": _whole(row.get("Start_Timestamp")),
            "end": _whole(row.get("End_Timestamp")),
            "correlationId": _whole(row.get("Correlation_Id")),
            "streamId": _whole(row.get("Stream_Id")),
            "queue": _whole(row.get("Queue_Id")),
        }
        if "Kernel_Name" in row and not row.get("Function"):
            cells |= {"name": row["Kernel_Name"], "deviceId": gpu(row.get("Agent_Id"))}
            cells |= {f"grid{axis}": blocks(row, f"_{axis}") for axis in "XYZ"}
            cells |= {f"block{axis}": _whole(row.get(f"Workgroup_Size_{axis}")) for axis in "XYZ"}
            lds, scratch = (row.get(new, row.get(old)) for new, old in _SIZES)
            cells |= {"lds": _whole(lds), "scratch": _whole(scratch), "dispatch": _whole(row.get("Dispatch_Id"))}
            counts = {"vgpr": "VGPR_Count", "agpr": "Accum_VGPR_Count", "sgpr": "SGPR_Count"}
            cells |= {to: _whole(row.get(column)) for to, column in counts.items()}
            if "Grid_Size" in row:  # the sizes of all axes multiplied
                cells |= {"gridX": blocks(row, ""), "blockX": _whole(row.get("Workgroup_Size"))}
            if "Counter_Name" in row:  # a row for each counter
                counted = {row["Counter_Name"]: row.get("Counter_Value", "")}
            elif cells["start"] is not None or not counted:
                yield KERNELS, cells
            for counter, value in counted.items():
                yield READINGS, {**cells, "counter": counter, "value": _real(value)}
        elif "Sample_Timestamp" in row:
            issued, reason = row.get("Wave_Issued_Instruction"), row.get("Stall_Reason")
            yield (
                SAMPLES,
                {
                    "start": _whole(row["Sample_Timestamp"]),
                    "dispatch": _whole(row.get("Dispatch_Id")),
                    "instruction": row.get("Instruction") or None,
                    "comment": row.get("Instruction_Comment"),
                    "state": _state(issued, reason, row.get("Instruction_Type")),
                },
            )
        elif "Direction" in row:
            ends = {"source": gpu(row.get("Source_Agent_Id")), "destination": gpu(row.get("Destination_Agent_Id"))}
            if not gpus:  # the direction says which end is a GPU
                words = row["Direction"].removeprefix("MEMORY_COPY_").split("_TO_")
                ends = {
                    end: _HOST if word == "HOST" else agent
                    for (end, agent), word in zip(ends.items(), (*words, "", "")[:2], strict=True)
                }
            yield COPIES, {**cells, **ends, "direction": row["Direction"]}
        elif "Alloc_Flags" in row:
            yield CALLS, {**cells, "domain": row.get("Kind"), "name": row.get("Operation")}
        elif "Allocation_Size" in row and "Operation" in row:
            yield ALLOCATIONS, {**cells, **_allocation(row["Operation"], row["Allocation_Size"], row.get("Address")),
                                "device": gpu(row.get("Agent_Id"))}  # fmt: skip
        elif "Function" in row:
            marker = row.get("Domain", "").startswith(("MARKER", "ROCTX"))
            moment = cells["start"] == cells["end"]
            table = (MARKS if moment else RANGES) if marker else CALLS
            yield table, {**cells, "domain": row.get("Domain"), "name": row["Function"]}
        else:
            _count_unknown(counters, "row", 1)


def _count_unknown(counters: Counter[str], kind: str, records: int) -> None:
    for what in ("unknown_records", RECORDS_UNKNOWN, UNKNOWN + kind[:_LONGEST_KIND]):
        counters[what] += records


def _state(issued: object, reason: object, instruction: object) -> str | None:
    """Return what a wave was doing in a stochastic sample: what kind of instruction it issued, or why it did not."""
    if issued is None:
        return None
    if str(issued) == "1":
        return "issued " + _END_OF_NAME.sub("", str(instruction)).lower()
    return _END_OF_NAME.sub("", str(reason)).lower()


_END_OF_NAME = re.compile(r"^ROCPROFILER_PC_SAMPLING_INSTRUCTION_(TYPE|NOT_ISSUED_REASON)_")
_LONGEST_KIND = 60
_SIZES = (("LDS_Block_Size", "Group_Segment_Size"), ("Scratch_Size", "Private_Segment_Size"))


def _allocation(operation: str, size: object, address: object) -> dict[str, object]:
    text = str(address)
    known = re.fullmatch(r"0x[0-9a-fA-F]{1,16}", text)
    number = int(text, 16) if known else _whole(address)
    return {
        "bytes": _whole(size),
        "free": int(operation.endswith("FREE")),
        "level": "VIRTUAL" if "VMEM" in operation else "REAL",
        "address": None if number is None or number >= 1 << 63 else number,
    }


def read_json(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a JSON file. Raises ValueError if it is none, or above 512 MiB."""
    try:
        body = json.loads(read_whole(source).decode("utf-8-sig", "replace"), parse_constant=lambda _: None)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    runs = body.get("rocprofiler-sdk-tool") if isinstance(body, dict) else None
    found = [_Run(each) for each in runs if isinstance(each, dict)] if isinstance(runs, list) else []
    if not found:
        raise ValueError("it has no run of rocprofv3")
    counters: Counter[str] = Counter()
    rows = (row for run in found for row in run.rows(counters))
    command = _of(found[0].body, "metadata", "command")
    words = " ".join(map(str, command)) if isinstance(command, list) else ""
    return _import(source, target, rows, counters, words, {"command": words} if words else {})


class _Run:
    """One process in a JSON file."""

    def __init__(self, body: Mapping[str, object]) -> None:
        self.body = body
        self.pid = _whole(_of(body, "metadata", "pid"))
        self._kinds = [
            (str(each.get("kind")), each.get("operations")) for each in _records(body, "strings", "buffer_records")
        ]
        self._messages = {
            _whole(each.get("key")): each.get("value") for each in _records(body, "strings", "marker_api")
        }
        self._symbols = {_whole(each.get("kernel_id")): each for each in _records(body, "kernel_symbols")}
        self._counters = {
            _whole(_of(each, "id", "handle")): str(each.get("name")) for each in _records(body, "counters")
        }
        self._instructions, self._comments = (
            found if isinstance(found := _of(body, "strings", f"pc_sample_{which}"), list) else []
            for which in ("instructions", "comments")
        )
        agents = _records(body, "agents")
        self._gpus = _numbered(
            (_whole(_of(each, "id", "handle")) or 0, each.get("type") == _GPU_AGENT) for each in agents
        )

    def rows(self, counters: Counter[str]) -> Iterator[Row]:
        """Return its records."""
        known = {"kernel_dispatch", "memory_copy", "memory_allocation", "marker_api", "scratch_memory", *_API_CALLS}
        groups = self.body.get("buffer_records")
        for name, records in groups.items() if isinstance(groups, dict) else ():
            found = _records(self.body, "buffer_records", name)
            damaged = len(records) - len(found) if isinstance(records, list) else 0
            for what in ("damaged_records", RECORDS_LEFT_OUT):
                counters[what] += damaged
            if name in ("pc_sample_host_trap", "pc_sample_stochastic"):
                yield from map(self._sample, found)
            elif name in known:
                yield from (self._row(name, each) for each in found)
            else:
                _count_unknown(counters, name, len(found))
        for each in _records(self.body, "callback_records", "counter_collection"):
            yield from self._readings(each)

    def _readings(self, record: Mapping[str, object]) -> Iterator[Row]:
        data = record.get("dispatch_data")
        _, cells = self._row("kernel_dispatch", {**(data if isinstance(data, dict) else {}), **record})
        sums: dict[str, float | None] = {}  # a counter has a record for each of its instances
        for each in _records(record, "records"):
            handle, value = _whole(_of(each, "counter_id", "handle")), _real(each.get("value"))
            name = self._counters.get(handle, f"counter {handle}")
            sums[name] = None if value is None else (sums.get(name) or 0) + value
        for name, value in sums.items():
            yield READINGS, {**cells, "counter": name, "value": value}

    def _sample(self, record: Mapping[str, object]) -> Row:
        sample, number = record.get("record"), _whole(record.get("inst_index"))
        sample = sample if isinstance(sample, dict) else {}
        instruction, comment = (
            str(texts[number]) if number is not None and 0 <= number < len(texts) else None
            for texts in (self._instructions, self._comments)
        )
        reason = _of(sample, "snapshot", "stall_reason")
        return SAMPLES, {
            "processId": self.pid,
            "start": _whole(sample.get("timestamp")),
            "dispatch": _whole(sample.get("dispatch_id")),
            "instruction": instruction,
            "comment": comment,
            "state": _state(sample.get("wave_issued"), reason, sample.get("inst_type")),
        }

    def _row(self, group: str, record: Mapping[str, object]) -> Row:
        kind, operation = self._names(record)
        cells: dict[str, object] = {
            "processId": self.pid,
            "threadId": _whole(record.get("thread_id")),
            "start": _whole(record.get("start_timestamp")),
            "end": _whole(record.get("end_timestamp")),
            "correlationId": _whole(_of(record, "correlation_id", "internal")),
            "streamId": _whole(_of(record, "stream_id", "handle")),
        }
        if group == "kernel_dispatch":
            info = record.get("dispatch_info")
            info = info if isinstance(info, dict) else {}
            symbol = self._symbols.get(_whole(info.get("kernel_id")), {})
            names = (symbol.get(f"{which}kernel_name") for which in ("formatted_", "demangled_", ""))
            cells |= {
                "name": next((name for name in names if name), None),
                "queue": _whole(_of(info, "queue_id", "handle")),
            }
            cells |= {"deviceId": self._gpu(info.get("agent_id")), "dispatch": _whole(info.get("dispatch_id"))}
            for axis in "XYZ":
                block = cells[f"block{axis}"] = _whole(_of(info, "workgroup_size", axis.lower()))
                cells[f"grid{axis}"] = _blocks(_whole(_of(info, "grid_size", axis.lower())), block)
            sizes = {"lds": "group_segment_size", "scratch": "private_segment_size"}
            cells |= {to: _whole(info.get(key)) for to, key in sizes.items()}
            counts = {"vgpr": "arch_vgpr_count", "agpr": "accum_vgpr_count", "sgpr": "sgpr_count"}
            return KERNELS, {**cells, **{to: _whole(symbol.get(key)) for to, key in counts.items()}}
        if group == "memory_copy":
            ends = {
                "source": self._gpu(record.get("src_agent_id")),
                "destination": self._gpu(record.get("dst_agent_id")),
            }
            return COPIES, {**cells, **ends, "bytes": _whole(record.get("bytes")), "direction": operation}
        if group == "memory_allocation":
            address = record.get("address")
            address = address.get("value", address.get("handle")) if isinstance(address, dict) else address
            what = _allocation(operation, record.get("allocation_size"), address)
            return ALLOCATIONS, {**cells, **what, "device": self._gpu(record.get("agent_id"))}
        if group == "marker_api":
            message = self._messages.get(_whole(cells["correlationId"]))
            moment = cells["start"] == cells["end"]
            ranges = PROCESS_RANGES if operation.startswith("roctxProcessRange") else RANGES
            return MARKS if moment else ranges, {**cells, "name": message or operation}
        return CALLS, {**cells, "domain": kind, "name": operation}

    def _names(self, record: Mapping[str, object]) -> tuple[str, str]:
        kind, operation = record.get("kind"), record.get("operation")
        if not isinstance(kind, int) or not 0 <= kind < len(self._kinds):
            return "", f"kind {kind} operation {operation}"
        name, operations = self._kinds[kind]
        if isinstance(operations, list) and isinstance(operation, int) and 0 <= operation < len(operations):
            return name, str(operations[operation])
        return name, f"{name} {operation}"

    def _gpu(self, agent: object) -> int | None:
        number = _whole(agent.get("handle")) if isinstance(agent, dict) else None
        return None if number is None else self._gpus.get(number)


def _import(
    source: ImportSource,
    target: ImportTarget,
    rows: Iterable[Row],
    counters: Counter[str],
    name: str,
    properties: Mapping[str, object],
) -> Imported:
    with row_database(LAYOUTS, rows) as database:
        records = Records(source, target, database)
        records.tables.counters.update(counters)
        return records.read(name, properties)


def _of(body: object, *keys: str) -> object:
    for key in keys:
        body = body.get(key) if isinstance(body, dict) else None
    return body


def _records(body: object, *keys: str) -> list[Mapping[str, object]]:
    found = _of(body, *keys)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _whole(value: object) -> int | None:
    """Return a number of 63 bits, or None for anything else. CSV files name agents `Agent 4`, too."""
    if isinstance(value, str):
        number = _NUMBER.fullmatch(value)
        value = int(number[1]) if number else None
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None


def _real(value: object) -> float | None:
    """Return a finite number, None for anything else."""
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _blocks(items: object, block: object) -> int | None:
    """Return the number of blocks of a number of work-items, which the files count."""
    return -(-items // block) if isinstance(items, int) and isinstance(block, int) and block > 0 else None
