"""rocprofv3's files: the same run as a database, as JSON and as CSV, against its records as they were written."""

import csv
import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import strobe
from strobe.api.trace import Trace
from strobe.errors import FormatError
from tests.formats.test_chrome import quality

PID, MAIN, OTHER = 4711, 4711, 4799
KERNEL = "void add<float>(float*, int)"
# correlation, thread, domain, function, start, end
CALLS = [
    (1, MAIN, "HIP_RUNTIME_API", "hipMalloc", 1_000, 1_400),
    (2, MAIN, "HIP_RUNTIME_API", "hipMemcpyAsync", 2_000, 2_300),
    (3, MAIN, "HIP_RUNTIME_API", "hipLaunchKernel", 3_000, 3_200),
    (4, OTHER, "HIP_RUNTIME_API", "hipLaunchKernel", 3_100, 3_250),
    (5, MAIN, "HIP_RUNTIME_API", "hipDeviceSynchronize", 3_300, 9_000),
    (6, MAIN, "HSA_CORE_API", "hsa_signal_wait_scacquire", 3_400, 8_900),
]
# dispatch, correlation, thread, GPU, queue, stream, start, end, blocks
KERNELS = [(1, 3, MAIN, 0, 1, 1, 4_000, 6_500, 16), (2, 4, OTHER, 1, 2, 2, 4_100, 8_000, 3)]
COPY = (2, MAIN, 1, 2_500, 3_900, 4096)  # correlation, thread, stream, start, end, bytes
# correlation, thread, operation, message, start, end
MARKERS = [
    (7, MAIN, "roctxThreadRangeA", 'step, "one"', 900, 9_500),
    (8, MAIN, "roctxMarkA", "here", 950, 950),
    (9, OTHER, "roctxProcessRangeA", "between threads", 3_050, 9_100),
]
# free, address, bytes, start, end
MEMORY = [
    (False, 0x7F00_0000, 4096, 1_100, 1_300),
    (False, 0x7F00_2000, 64, 1_310, 1_320),
    (True, 0x7F00_0000, 0, 9_200, 9_250),
]
MESSAGES = {correlation: message for correlation, _, _, message, _, _ in MARKERS}
# Agents of the node: a processor, and two GPUs behind it.
AGENTS = [(0, "CPU"), (4, "GPU"), (5, "GPU")]
FIRST_GPU = 4

KEY = "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT"
# Schema 3 of rocpd (source/share/rocprofiler-sdk-rocpd/rocpd_tables.sql), without references and defaults.
SCHEMA = {
    "metadata": {"tag": "TEXT", "value": "TEXT"},
    "string": {"guid": "TEXT", "string": "TEXT"},
    "info_node": {"guid": "TEXT", "hostname": "TEXT"},
    "info_process": {"guid": "TEXT", "nid": "INTEGER", "pid": "INTEGER", "command": "TEXT", "environment": "JSONB"},
    "info_thread": {"guid": "TEXT", "nid": "INTEGER", "pid": "INTEGER", "tid": "INTEGER"},
    "info_agent": {"guid": "TEXT", "type": "TEXT", "type_index": "INTEGER", "product_name": "TEXT"},
    "info_kernel_symbol": {
        "kernel_name": "TEXT",
        "display_name": "TEXT",
        **dict.fromkeys(("sgpr_count", "arch_vgpr_count", "accum_vgpr_count"), "INTEGER"),
    },
    "info_pmc": {"name": "TEXT"},
    "track": {"pid": "INTEGER", "tid": "INTEGER", "stream_id": "INTEGER", "queue_id": "INTEGER"},
    "event": {"category_id": "INTEGER", "stack_id": "INTEGER", "correlation_id": "INTEGER", "extdata": "JSONB"},
    "arg": {"event_id": "INTEGER", "name": "TEXT", "value": "TEXT"},
    "pmc_event": {"event_id": "INTEGER", "pmc_id": "INTEGER", "value": "REAL"},
    "region": {
        **dict.fromkeys(("nid", "pid", "tid"), "INTEGER"),
        "start": "BIGINT",
        "end": "BIGINT",
        "name_id": "INTEGER",
        "event_id": "INTEGER",
    },
    "sample": {"track_id": "INTEGER", "timestamp": "BIGINT", "event_id": "INTEGER"},
    "kernel_dispatch": {
        **dict.fromkeys(
            ("nid", "pid", "tid", "agent_id", "kernel_id", "dispatch_id", "queue_id", "stream_id"), "INTEGER"
        ),
        "start": "BIGINT",
        "end": "BIGINT",
        "private_segment_size": "INTEGER",
        "group_segment_size": "INTEGER",
        **{f"{what}_size_{axis}": "INTEGER" for what in ("workgroup", "grid") for axis in "xyz"},
        "event_id": "INTEGER",
    },
    "memory_copy": {
        "nid": "INTEGER",
        "pid": "INTEGER",
        "tid": "INTEGER",
        "start": "BIGINT",
        "end": "BIGINT",
        **dict.fromkeys(
            ("name_id", "dst_agent_id", "src_agent_id", "size", "queue_id", "stream_id", "event_id"), "INTEGER"
        ),
    },
    "memory_allocate": {
        "nid": "INTEGER",
        "pid": "INTEGER",
        "tid": "INTEGER",
        "agent_id": "INTEGER",
        "type": "TEXT",
        "level": "TEXT",
        "start": "BIGINT",
        "end": "BIGINT",
        "address": "INTEGER",
        "size": "INTEGER",
        "event_id": "INTEGER",
    },
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))


class Database:
    """Writes a run as rocpd does: one event for each record, texts by their number."""

    def __init__(self, path: Path, uuid: str = "_0198f", statements: str = "") -> None:
        self.connection, self.uuid = sqlite3.connect(path), uuid
        self.strings: dict[str, int] = {}
        if statements:
            self.connection.executescript(statements)
            return
        for name, columns in SCHEMA.items():
            cells = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
            self.connection.execute(f'CREATE TABLE "rocpd_{name}{uuid}" ("id" {KEY}, {cells})')

    def row(self, table: str, **cells: object) -> int:
        names = ", ".join(f'"{name}"' for name in cells)
        statement = f'INSERT INTO "rocpd_{table}{self.uuid}" ({names}) VALUES ({", ".join("?" * len(cells))})'
        return self.connection.execute(statement, tuple(cells.values())).lastrowid or 0

    def text(self, text: str) -> int:
        if text not in self.strings:
            self.strings[text] = self.row("string", string=text)
        return self.strings[text]

    def event(self, category: str, correlation: int, message: str | None = None) -> int:
        extdata = json.dumps({} if message is None else {"message": message})
        return self.row(
            "event", category_id=self.text(category), stack_id=correlation, correlation_id=0, extdata=extdata
        )

    def run(self, pid: int = PID) -> None:
        place = {"nid": 9, "pid": pid}
        node = {"hash": 1, "machine_id": "m"} if self.full("info_node", "hash") else {}
        self.row("info_node", id=9, hostname="node7", **node)
        self.row("info_process", id=pid, nid=9, pid=pid, command="./train --fast", environment='{"SECRET": "x"}')
        for thread in (MAIN, OTHER):
            self.row("info_thread", id=thread, tid=thread, **place)
        for i, (agent, kind) in enumerate(AGENTS):
            at = place if self.full("info_agent", "nid") else {}
            self.row("info_agent", id=agent, type=kind, type_index=max(i - 1, 0), product_name=f"A{agent}", **at)
        at = {**place, "code_object_id": 1} if self.full("info_kernel_symbol", "nid") else {}
        if at:
            self.row("info_code_object", id=1, **place)
        counts = {"sgpr_count": 16, "arch_vgpr_count": 8, "accum_vgpr_count": 4}
        self.row("info_kernel_symbol", id=3, kernel_name="_Z3addPf.kd", display_name=KERNEL, **counts, **at)
        for correlation, thread, domain, name, start, end in CALLS:
            event = self.event(domain, correlation)
            self.row("region", tid=thread, start=start, end=end, name_id=self.text(name), event_id=event, **place)
        for position, (of_event, name, value) in enumerate(((1, "ptr", "0x1"), (1, "size", "4096"), (7, "a", "b"))):
            argument = {"position": position, "type": "void**"} if self.full("arg", "position") else {}
            self.row("arg", event_id=of_event, name=name, value=value, **argument)
        for correlation, thread, operation, message, start, end in MARKERS:
            event = self.event("MARKER_CORE_RANGE_API", correlation, message)
            if start == end:
                track = self.row("track", tid=thread, **(place if self.full("track", "nid") else {"pid": pid}))
                self.row("sample", track_id=track, timestamp=start, event_id=event)
            else:
                named = {"name_id": self.text(operation), "event_id": event}
                self.row("region", tid=thread, start=start, end=end, **named, **place)
        at = {**place, "symbol": "SQ_WAVES", "description": ""} if self.full("info_pmc", "nid") else {}
        counter = self.row("info_pmc", name="SQ_WAVES", **at)
        for dispatch, correlation, thread, gpu, queue, stream, start, end, blocks in KERNELS:
            event = self.event("KERNEL_DISPATCH", correlation)
            sizes = {"workgroup_size_x": 64, "workgroup_size_y": 1, "workgroup_size_z": 1}
            sizes |= {"grid_size_x": 64 * blocks, "grid_size_y": 2, "grid_size_z": 1}
            sizes |= {"private_segment_size": 24, "group_segment_size": 512}
            where = {"tid": thread, "agent_id": FIRST_GPU + gpu, "queue_id": queue, "stream_id": stream}
            what = {"kernel_id": 3, "dispatch_id": dispatch, "event_id": event}
            self.row("kernel_dispatch", start=start, end=end, **what, **where, **sizes, **place)
            for instance in (0.5, 2):
                self.row("pmc_event", event_id=event, pmc_id=counter, value=blocks * instance)
        correlation, thread, stream, start, end, size = COPY
        self.row(
            "memory_copy", tid=thread, start=start, end=end, name_id=self.text("MEMORY_COPY_HOST_TO_DEVICE"),
            dst_agent_id=FIRST_GPU, src_agent_id=0, size=size, stream_id=stream,
            event_id=self.event("MEMORY_COPY", correlation), **place,
        )  # fmt: skip
        for free, address, size, start, end in MEMORY:
            event = self.event("MEMORY_ALLOCATION", 1)
            kind = {"type": "FREE" if free else "ALLOC", "level": "REAL", "agent_id": None if free else FIRST_GPU}
            where = {"tid": MAIN, "address": address, "size": size, "event_id": event}
            self.row("memory_allocate", start=start, end=end, **kind, **where, **place)

    def full(self, table: str, column: str) -> bool:
        described = self.connection.execute(f'PRAGMA table_info("rocpd_{table}{self.uuid}")').fetchall()
        return column in {name for _, name, *_ in described}

    def close(self) -> None:
        self.connection.commit()
        self.connection.close()


def rocpd(path: Path) -> Path:
    with closing(Database(path)) as database:
        database.run()
    return path


def as_json(path: Path) -> Path:
    """Write the run as `--output-format json` does (source/docs/rocprofv3-schema.json)."""
    kinds = [
        ("NONE", []),
        ("HIP_RUNTIME_API", ["hipMalloc", "hipMemcpyAsync", "hipLaunchKernel", "hipDeviceSynchronize"]),
        ("HSA_CORE_API", ["hsa_signal_wait_scacquire"]),
        ("MARKER_CORE_RANGE_API", ["roctxThreadRangeA", "roctxMarkA", "roctxProcessRangeA"]),
        ("KERNEL_DISPATCH", ["KERNEL_DISPATCH_NONE"]),
        ("MEMORY_COPY", ["MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_DEVICE"]),
        ("MEMORY_ALLOCATION", ["MEMORY_ALLOCATION_NONE", "MEMORY_ALLOCATION_ALLOCATE", "MEMORY_ALLOCATION_FREE"]),
    ]
    number = {name: i for i, (name, _) in enumerate(kinds)}
    handle = {agent: {"handle": 1000 + agent} for agent, _ in AGENTS}

    def record(kind: str, operation: str, correlation: int, thread: int, start: int, end: int) -> dict[str, Any]:
        return {
            "size": 64,
            "kind": number[kind],
            "operation": kinds[number[kind]][1].index(operation),
            "correlation_id": {"internal": correlation, "external": 0},
            "thread_id": thread,
            "start_timestamp": start,
            "end_timestamp": end,
        }

    calls = [(domain, record(domain, name, number_, thread, start, end))
             for number_, thread, domain, name, start, end in CALLS]  # fmt: skip
    kernels = [
        {
            **record("KERNEL_DISPATCH", "KERNEL_DISPATCH_NONE", correlation, thread, start, end),
            "dispatch_info": {
                "agent_id": handle[FIRST_GPU + gpu],
                "queue_id": {"handle": queue},
                "kernel_id": 3,
                "dispatch_id": dispatch,
                "private_segment_size": 24,
                "group_segment_size": 512,
                "workgroup_size": {"x": 64, "y": 1, "z": 1},
                "grid_size": {"x": 64 * blocks, "y": 2, "z": 1},
            },
            "stream_id": {"handle": stream},
        }
        for dispatch, correlation, thread, gpu, queue, stream, start, end, blocks in KERNELS
    ]
    correlation, thread, stream, start, end, size = COPY
    copy = record("MEMORY_COPY", "MEMORY_COPY_HOST_TO_DEVICE", correlation, thread, start, end)
    copy |= {
        "dst_agent_id": handle[FIRST_GPU],
        "src_agent_id": handle[0],
        "bytes": size,
        "stream_id": {"handle": stream},
    }
    memory = [
        {
            **record("MEMORY_ALLOCATION", f"MEMORY_ALLOCATION_{'FREE' if free else 'ALLOCATE'}", 1, MAIN, start, end),
            "agent_id": {"handle": 0} if free else handle[FIRST_GPU],
            "address": address,
            "allocation_size": size,
        }
        for free, address, size, start, end in MEMORY
    ]
    markers = [record("MARKER_CORE_RANGE_API", operation, correlation, thread, start, end)
               for correlation, thread, operation, _, start, end in MARKERS]  # fmt: skip
    run = {
        "metadata": {"pid": PID, "init_time": 1, "fini_time": 10_000, "command": ["./train", "--fast"]},
        "agents": [{"id": handle[agent], "type": 1 if kind == "CPU" else 2} for agent, kind in AGENTS],
        "strings": {
            "buffer_records": [{"kind": name, "operations": operations} for name, operations in kinds],
            "marker_api": [{"key": key, "value": message} for key, message in MESSAGES.items()],
        },
        "kernel_symbols": [
            {"kernel_id": 3, "kernel_name": "_Z3addPf.kd", "formatted_kernel_name": KERNEL, "arch_vgpr_count": 8,
             "accum_vgpr_count": 4, "sgpr_count": 16}
        ],
        "callback_records": {"counter_collection": []},
        "buffer_records": {
            "kernel_dispatch": kernels,
            "hip_api": [each for domain, each in calls if domain.startswith("HIP")],
            "hsa_api": [each for domain, each in calls if domain.startswith("HSA")],
            "marker_api": markers,
            "memory_copy": [copy],
            "memory_allocation": memory,
        },
    }  # fmt: skip
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [run]}, indent=1))
    return path


def table(path: Path, header: str, rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", newline="") as out:
        csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n").writerows([header.split(), *rows])


def as_csv(folder: Path) -> Path:
    """Write the run as `--output-format csv` does: a file for each kind of record."""
    folder.mkdir()
    api = "Domain Function Process_Id Thread_Id Correlation_Id Start_Timestamp End_Timestamp"
    for which in ("HIP", "HSA"):
        rows = [(domain, name, PID, thread, number, start, end)
                for number, thread, domain, name, start, end in CALLS if domain.startswith(which)]  # fmt: skip
        table(folder / f"{PID}_{which.lower()}_api_trace.csv", api, rows)
    marks = [("MARKER_CORE_RANGE_API", message, PID, thread, number, start, end)
             for number, thread, _, message, start, end in MARKERS]  # fmt: skip
    table(folder / f"{PID}_marker_api_trace.csv", api, marks)
    header = (
        "Kind Agent_Id Queue_Id Stream_Id Thread_Id Dispatch_Id Kernel_Id Kernel_Name Correlation_Id Start_Timestamp "
        "End_Timestamp LDS_Block_Size Scratch_Size VGPR_Count Accum_VGPR_Count SGPR_Count Workgroup_Size_X "
        "Workgroup_Size_Y Workgroup_Size_Z Grid_Size_X Grid_Size_Y Grid_Size_Z"
    )
    kernels = [
        ("KERNEL_DISPATCH", f"Agent {FIRST_GPU + gpu}", queue, stream, thread, dispatch, 3, KERNEL, number, start, end,
         512, 24, 8, 4, 16, 64, 1, 1, 64 * blocks, 2, 1)
        for dispatch, number, thread, gpu, queue, stream, start, end, blocks in KERNELS
    ]  # fmt: skip
    table(folder / f"{PID}_kernel_trace.csv", header, kernels)
    number, _, stream, start, end, _ = COPY
    header = (
        "Kind Direction Stream_Id Source_Agent_Id Destination_Agent_Id Correlation_Id Start_Timestamp End_Timestamp"
    )
    copy = ("MEMORY_COPY", "MEMORY_COPY_HOST_TO_DEVICE", stream, "Agent 0", f"Agent {FIRST_GPU}", number, start, end)
    table(folder / f"{PID}_memory_copy_trace.csv", header, [copy])
    header = "Kind Operation Agent_Id Allocation_Size Address Correlation_Id Start_Timestamp End_Timestamp"
    memory = [
        ("MEMORY_ALLOCATION", f"MEMORY_ALLOCATION_{'FREE' if free else 'ALLOCATE'}",
         "" if free else f"Agent {FIRST_GPU}", size, f"0x{address:016x}", 1, start, end)
        for free, address, size, start, end in MEMORY
    ]  # fmt: skip
    table(folder / f"{PID}_memory_allocation_trace.csv", header, memory)
    table(folder / f"{PID}_agent_info.csv", "Node_Id Logical_Node_Id Agent_Type", [(a, a, kind) for a, kind in AGENTS])
    return folder


WRITERS = {
    "rocpd": lambda folder: rocpd(folder / "1_results.db"),
    "json": lambda folder: as_json(folder / "1_results.json"),
    "csv": lambda folder: as_csv(folder / "out"),
}


@pytest.fixture(params=WRITERS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def trace(form: str, tmp_path: Path) -> Trace:
    return strobe.open(WRITERS[form](tmp_path))


def test_records_are_spans_on_threads_and_streams(trace: Trace) -> None:
    found = trace.sql(
        "select l.name, s.name, role, paradigm, start_ns, duration_ns from spans s join locations l using (location)"
    ).rows()
    zero = trace.zero_ns
    expected = [
        *(
            (f"thread {thread}", name, role, "hip", start, end - start)
            for (_, thread, _, name, start, end), role in zip(
                CALLS, ("function", "function", "function", "function", "sync", "sync"), strict=True
            )
        ),
        *(
            (f"GPU {gpu} stream {stream}", KERNEL, "kernel", "hip", start, end - start)
            for _, _, _, gpu, _, stream, start, end, _ in KERNELS
        ),
        ("GPU 0 stream 1", "Memcpy HtoD", "copy", "hip", COPY[3], COPY[4] - COPY[3]),
        (f"thread {MAIN}", 'step, "one"', "range", "nvtx", 900, 8_600),
    ]
    plain = [row for row in found if row[1] != "between threads"]
    assert sorted((*row[:4], row[4] + zero, row[5]) for row in plain) == sorted(expected)
    (between,) = (row for row in found if row[1] == "between threads")
    assert (between[4] + zero, between[5]) == (3_050, 6_050)
    assert trace.sql("select name, time_ns from marks").rows() == [("here", 950 - zero)]
    assert trace.sql("select pid from processes").rows() == [(PID,)]


def test_what_a_kernel_was_launched_with_is_kept(trace: Trace, form: str) -> None:
    columns = "launch, correlation, device, stream, grid_x, grid_y, block_x, registers_per_thread, shared_memory_bytes"
    found = trace.sql(f"select {columns}, local_bytes_per_thread from kernel_spans order by launch").rows()
    assert found == [
        (dispatch, correlation, gpu, stream, blocks, 2, 64, 8, 512, 24)
        for dispatch, correlation, _, gpu, _, stream, _, _, blocks in KERNELS
    ]
    copies = trace.sql(
        "select correlation, device, copy_kind, size_bytes, source_device, destination_device from copy_spans"
    )
    assert copies.rows() == [(2, 0, "HtoD", None if form == "csv" else COPY[5], None, 0)]
    queues = trace.sql("select value from arguments where key = 'queue' and name like 'void%' order by value").rows()
    assert queues == [("1",), ("2",)], "streams are the places, and queues are told beside them"


def test_answers_know_launches_calls_and_memory(trace: Trace) -> None:
    kernels = trace.kernels().to_arrow().to_pylist()
    assert {(each["name"], each["device"], each["total_ns"]) for each in kernels} == {
        (KERNEL, 0, 2_500),
        (KERNEL, 1, 3_900),
    }
    calls = {each["name"]: (each["library"], each["waits"]) for each in trace.calls().to_arrow().to_pylist()}
    assert calls["hsa_signal_wait_scacquire"] == ("HSA", True)
    assert calls["hipLaunchKernel"] == ("HIP", False)
    assert calls["hipDeviceSynchronize"] == ("HIP", True)
    assert trace.sql("select count(*) from links where kind = 'launch'").rows() == [(3,)]
    memory = trace.sql(
        "select time_ns, address, size_bytes, device_type, device, memory_kind from allocations order by 1"
    )
    assert [(time + trace.zero_ns, *rest) for time, *rest in memory.rows()] == [
        (1_300, 0x7F00_0000, 4096, 1, 0, "Device"),
        (1_320, 0x7F00_2000, 64, 1, 0, "Device"),
        (9_200, 0x7F00_0000, -4096, 1, 0, "Device"),
    ]
    (row,) = trace.memory().to_arrow().to_pylist()
    assert (row["memory"], row["device"], row["peak_bytes"], row["last_bytes"]) == ("Device", 0, 4160, 64)


COUNTED = "select metric, value from metrics where metric = 'SQ_WAVES' order by time_ns"


def test_a_database_has_counters_and_arguments_but_no_secrets(tmp_path: Path) -> None:
    trace = strobe.open(rocpd(tmp_path / "t.db"))
    assert trace.sql(COUNTED).rows() == [("SQ_WAVES", 40.0), ("SQ_WAVES", 7.5)]
    arguments = "select name, key, value from arguments where key in ('ptr', 'size') order by key"
    assert trace.sql(arguments).rows() == [("hipMalloc", "ptr", '"0x1"'), ("hipMalloc", "size", '"4096"')]
    assert quality(trace)["call_arguments_not_kept"] == 1, "that of a marker"
    told = (Path(trace.info.path) / "job.json").read_text()
    assert "SECRET" not in told, "the environment of a run is nobody's business"
    assert json.loads(told)["host"] == "node7"
    assert json.loads(told)["imported"]["files"][0]["properties"]["command"] == "./train --fast"


@pytest.fixture
def counted(form: str, tmp_path: Path) -> Path:
    """A run with counters, and without a kernel trace unless it is a database."""
    if form == "rocpd":
        return rocpd(tmp_path / "1_results.db")
    if form == "json":
        path = as_json(tmp_path / "1_results.json")
        body = json.loads(path.read_text())
        (run,) = body["rocprofiler-sdk-tool"]
        dispatches = run["buffer_records"].pop("kernel_dispatch")
        run["counters"] = [{"id": {"handle": 77}, "name": "SQ_WAVES"}]
        keys = ("correlation_id", "start_timestamp", "end_timestamp", "dispatch_info")
        run["callback_records"]["counter_collection"] = [
            {
                "thread_id": each["thread_id"],
                "dispatch_data": {key: each[key] for key in keys},
                "records": [{"counter_id": {"handle": 77}, "value": blocks * part} for part in (0.5, 2.0)],
            }
            for each, (*_, blocks) in zip(dispatches, KERNELS, strict=True)
        ]
        path.write_text(json.dumps(body))
        return path
    folder = as_csv(tmp_path / "out")
    (folder / f"{PID}_kernel_trace.csv").unlink()
    table(folder / f"{PID}_counter_collection.csv", COUNTERS, counter_rows())
    return folder


COUNTERS = (
    "Correlation_Id Dispatch_Id Agent_Id Queue_Id Process_Id Thread_Id Grid_Size Kernel_Id Kernel_Name "
    "Workgroup_Size LDS_Block_Size Scratch_Size VGPR_Count Accum_VGPR_Count SGPR_Count Counter_Name Counter_Value "
    "Start_Timestamp End_Timestamp"
)


def counter_rows() -> list[tuple[object, ...]]:
    return [
        (number, dispatch, f"Agent {FIRST_GPU + gpu}", queue, PID, thread, 128 * blocks, 3, KERNEL, 64, 512, 24, 8, 4,
         16, "SQ_WAVES", blocks * 2.5, start, end)
        for dispatch, number, thread, gpu, queue, _, start, end, blocks in KERNELS
    ]  # fmt: skip


def test_counters_are_readings_and_means_of_kernels(counted: Path) -> None:
    trace = strobe.open(counted)
    assert trace.sql(COUNTED).rows() == [("SQ_WAVES", 40.0), ("SQ_WAVES", 7.5)]
    kernels = trace.kernels().to_arrow().to_pylist()
    assert {(each["name"], each["device"], each["total_ns"], each["measured_SQ_WAVES"]) for each in kernels} == {
        (KERNEL, 0, 2_500, (40.0 + 7.5) / 2),
        (KERNEL, 1, 3_900, (40.0 + 7.5) / 2),
    }
    assert trace.sql("select launch, correlation, registers_per_thread from kernel_spans order by 1").rows() == [
        (dispatch, correlation, 8) for dispatch, correlation, *_ in KERNELS
    ]


def test_counters_beside_a_kernel_trace_make_no_second_kernels(tmp_path: Path) -> None:
    folder = as_csv(tmp_path / "out")
    table(folder / f"{PID}_counter_collection.csv", COUNTERS, counter_rows())
    trace = strobe.open(folder)
    assert trace.sql("select launch, grid_x, grid_y from kernel_spans order by 1").rows() == [(1, 16, 2), (2, 3, 2)]
    assert trace.sql(COUNTED).rows() == [("SQ_WAVES", 40.0), ("SQ_WAVES", 7.5)]
    assert trace.sql("select count(*) from processes").rows() == [(1,)]


def test_passes_of_one_command_add_their_counters(tmp_path: Path) -> None:
    for number, name in enumerate(("SQ_WAVES", "GRBM_COUNT")):
        (tmp_path / f"pass_{number}").mkdir()
        rows = [tuple(name if cell == "SQ_WAVES" else cell for cell in row) for row in counter_rows()]
        table(tmp_path / f"pass_{number}" / "counter_collection.csv", COUNTERS, rows)
    (kernel, *_) = strobe.open(tmp_path).kernels().to_arrow().to_pylist()
    assert (kernel["measured_SQ_WAVES"], kernel["measured_GRBM_COUNT"]) == (23.75, 23.75)


def test_counters_of_rocm_6_2_have_kernels_without_times(tmp_path: Path) -> None:
    header = COUNTERS.removesuffix(" Start_Timestamp End_Timestamp")
    rows = [row[:-2] for row in counter_rows()]
    table(tmp_path / "counter_collection.csv", header, [*rows, (*rows[0][:-2], "GRBM_COUNT", 3), (*rows[0][:-1], "x")])
    trace = strobe.open(tmp_path / "counter_collection.csv")
    assert trace.sql("select sum(count) from statistics").rows() == [(2,)]
    assert {each["measured_GRBM_COUNT"] for each in trace.kernels().to_arrow().to_pylist()} == {3.0}
    told = quality(trace)
    assert (told["kernels_without_time"], told["records_taken"], told["records_left_out"]) == (2, 3, 1)


# Dispatch, instruction, comment, whether it was issued, type, reason.
SAMPLES = [
    (1, "s_waitcnt vmcnt(0)", "/src/add.cpp:12", 0, "NO_INST", "WAITCNT"),
    (1, "v_add_f32 v0, v1, v2", "/src/add.cpp:12 -> /src/main.cpp:99", 1, "VALU", "OTHER_WAIT"),
    (2, "s_waitcnt vmcnt(0)", "/src/add.cpp:12", 0, "NO_INST", "WAITCNT"),
    (3, "", "Unrecognized code object id, physical virtual address of PC:77", 0, "NO_INST", "WAITCNT"),
]


def sampled(form: str, folder: Path, method: str) -> Path:
    kind, why = (f"ROCPROFILER_PC_SAMPLING_INSTRUCTION_{each}_" for each in ("TYPE", "NOT_ISSUED_REASON"))
    if form == "csv":
        out = as_csv(folder / "out")
        header = "Sample_Timestamp Exec_Mask Dispatch_Id Instruction Instruction_Comment Correlation_Id"
        rows: list[tuple[object, ...]] = [
            (5_000 + at, (1 << 64) - 1, dispatch, instruction, comment, dispatch, issued, kind + of, why + reason, 4)
            for at, (dispatch, instruction, comment, issued, of, reason) in enumerate(SAMPLES)
        ]
        if method == "host_trap":
            rows = [row[:6] for row in rows]
        else:
            header += " Wave_Issued_Instruction Instruction_Type Stall_Reason Wave_Count"
        table(out / f"{PID}_pc_sampling_{method}.csv", header, rows)
        return out
    path = as_json(folder / "1_results.json")
    body = json.loads(path.read_text())
    (run,) = body["rocprofiler-sdk-tool"]
    run["strings"] |= {f"pc_sample_{name}": [row[at] for row in SAMPLES if row[1]]
                       for at, name in ((1, "instructions"), (2, "comments"))}  # fmt: skip
    run["buffer_records"][f"pc_sample_{method}"] = [
        {
            "record": {
                "timestamp": 5_000 + at,
                "exec_mask": (1 << 64) - 1,
                "dispatch_id": dispatch,
                "corr_id": {"internal": dispatch, "external": 0},
                **(
                    {"wave_issued": issued, "inst_type": kind + of, "snapshot": {"stall_reason": why + reason}}
                    if method == "stochastic"
                    else {}
                ),
            },
            "inst_index": at if instruction else -1,
        }
        for at, (dispatch, instruction, _, issued, of, reason) in enumerate(SAMPLES)
    ]
    path.write_text(json.dumps(body))
    return path


@pytest.mark.parametrize("method", ["host_trap", "stochastic"])
@pytest.mark.parametrize("form", ["json", "csv"])
def test_samples_of_program_counters_lie_in_their_kernel(tmp_path: Path, form: str, method: str) -> None:
    trace = strobe.open(sampled(form, tmp_path, method))
    found = trace.sql("select time_ns, call_stack, state from samples order by 1").rows()
    assert [(time + trace.zero_ns, stack) for time, stack, _ in found] == [
        (5_000, f"{KERNEL}\ns_waitcnt vmcnt(0) (/src/add.cpp:12)"),
        (5_001, f"{KERNEL}\nv_add_f32 v0, v1, v2 (/src/add.cpp:12)"),
        (5_002, f"{KERNEL}\ns_waitcnt vmcnt(0) (/src/add.cpp:12)"),
        (5_003, "<unnamed kernel>\n<unknown instruction>"),
    ]
    states = ["waitcnt", "issued valu", "waitcnt", "waitcnt"] if method == "stochastic" else [None] * 4
    assert [state for *_, state in found] == states
    lines = trace.sql("select l.name, line, hits from lines join locations l using (location) order by 1").rows()
    assert lines == [("GPU 0 stream 1 instructions", 12, 2), ("GPU 1 stream 2 instructions", 12, 1)]
    assert quality(trace)["records_taken"] == RECORDS + len(SAMPLES)


RECORDS = len(CALLS) + len(KERNELS) + 1 + len(MARKERS) + len(MEMORY)


def test_every_record_is_taken(trace: Trace) -> None:
    told = quality(trace)
    assert (told["records_taken"], told.get("records_left_out", 0), told.get("records_unknown", 0)) == (RECORDS, 0, 0)


def test_scratch_memory_is_work_of_its_thread(tmp_path: Path) -> None:
    header = "Kind Operation Agent_Id Queue_Id Thread_Id Alloc_Flags Start_Timestamp End_Timestamp"
    row = ("SCRATCH_MEMORY", "SCRATCH_MEMORY_ALLOC", "Agent 4", 1, 113, 0, 1_000, 1_500)
    table(tmp_path / "scratch_memory_trace.csv", header, [row])
    trace = strobe.open(tmp_path / "scratch_memory_trace.csv")
    spans = trace.sql("select l.name, s.name, duration_ns from spans s join locations l using (location)").rows()
    assert spans == [("thread 113", "SCRATCH_MEMORY_ALLOC", 500)]


def test_records_of_unknown_kinds_are_counted_by_kind(tmp_path: Path) -> None:
    path = as_json(tmp_path / "t.json")
    body = json.loads(path.read_text())
    body["rocprofiler-sdk-tool"][0]["buffer_records"]["teleport"] = [{"start_timestamp": 1}, {}]
    path.write_text(json.dumps(body))
    told = quality(strobe.open(path))
    assert (told["records_unknown"], told["unknown: teleport"], told["records_taken"]) == (2, 2, RECORDS)


def test_two_runs_of_a_merged_database_are_two_processes(tmp_path: Path) -> None:
    for uuid, pid in (("_a", 1), ("_b", 2)):
        with closing(Database(tmp_path / "t.db", uuid)) as database:
            database.run(pid)
    trace = strobe.open(tmp_path / "t.db")
    assert sorted(trace.sql("select pid from processes").rows()) == [(1,), (2,)]
    assert trace.sql("select count(*) from kernel_spans").rows() == [(4,)]


def test_times_and_places_may_lie_in_tables_of_their_own(tmp_path: Path) -> None:
    """The schema in which rows refer to a track and to timestamps."""
    whole = "id INTEGER PRIMARY KEY"
    connection = sqlite3.connect(tmp_path / "t.db")
    connection.executescript(f"""
        CREATE TABLE rocpd_string_1 ({whole}, string TEXT);
        CREATE TABLE rocpd_info_process_1 ({whole}, pid INTEGER, command TEXT);
        CREATE TABLE rocpd_info_thread_1 ({whole}, tid INTEGER);
        CREATE TABLE rocpd_info_agent_1 ({whole}, type TEXT, type_index INTEGER, product_name TEXT);
        CREATE TABLE rocpd_info_kernel_symbol_1 ({whole}, kernel_name TEXT, display_name TEXT, arch_vgpr_count INTEGER,
            accum_vgpr_count INTEGER, sgpr_count INTEGER);
        CREATE TABLE rocpd_track_1 ({whole}, pid INTEGER, tid INTEGER, agent_id INTEGER, queue_id INTEGER,
            stream_id INTEGER);
        CREATE TABLE rocpd_timestamp_1 ({whole}, value BIGINT, phase INTEGER);
        CREATE TABLE rocpd_event_1 ({whole}, category_id INTEGER, stack_id INTEGER, extdata JSONB);
        CREATE TABLE rocpd_region_1 ({whole}, track_id INTEGER, name_id INTEGER, start_id INTEGER, end_id INTEGER,
            event_id INTEGER);
        CREATE TABLE rocpd_kernel_dispatch_1 ({whole}, track_id INTEGER, kernel_id INTEGER, dispatch_id INTEGER,
            start_id INTEGER, end_id INTEGER, private_segment_size INTEGER, group_segment_size INTEGER,
            workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER, grid_size_x INTEGER,
            grid_size_y INTEGER, grid_size_z INTEGER, event_id INTEGER);
        INSERT INTO rocpd_string_1 VALUES (1, 'HIP_RUNTIME_API'), (2, 'hipLaunchKernel'), (3, 'KERNEL_DISPATCH');
        INSERT INTO rocpd_info_process_1 VALUES (7, 4711, './train');
        INSERT INTO rocpd_info_thread_1 VALUES (8, 4712);
        INSERT INTO rocpd_info_agent_1 VALUES (4, 'GPU', 0, 'MI300');
        INSERT INTO rocpd_info_kernel_symbol_1 VALUES (3, 'k.kd', 'k(int)', 8, 0, 16);
        INSERT INTO rocpd_track_1 VALUES (1, 7, 8, NULL, NULL, NULL), (2, 7, 8, 4, 5, 6);
        INSERT INTO rocpd_timestamp_1 VALUES (1, 100, 1), (2, 130, 2), (3, 150, 1), (4, 400, 2);
        INSERT INTO rocpd_event_1 VALUES (1, 1, 42, '{{}}'), (2, 3, 42, '{{}}');
        INSERT INTO rocpd_region_1 VALUES (1, 1, 2, 1, 2, 1);
        INSERT INTO rocpd_kernel_dispatch_1 VALUES (1, 2, 3, 9, 3, 4, 0, 64, 32, 1, 1, 96, 1, 1, 2);
    """)
    connection.close()
    trace = strobe.open(tmp_path / "t.db")
    spans = "select l.name, s.name, start_ns, duration_ns from spans s join locations l using (location) order by 3"
    assert trace.sql(spans).rows() == [
        ("thread 4712", "hipLaunchKernel", 0, 30),
        ("GPU 0 stream 6", "k(int)", 50, 250),
    ]
    assert trace.sql("select grid_x, launch, correlation from kernel_spans").rows() == [(3, 9, 42)]
    assert trace.sql("select pid from processes").rows() == [(4711,)]


def test_any_csv_file_of_a_run_opens_all_of_them(tmp_path: Path) -> None:
    folder = as_csv(tmp_path / "out")
    for name in ("kernel_trace", "hip_api_trace", "memory_copy_trace"):
        trace = strobe.open(folder / f"{PID}_{name}.csv")
        assert trace.span_count == len(CALLS) + len(KERNELS) + 1 + 2
    as_csv(tmp_path / "out2").rename(folder / "second")
    assert strobe.open(folder).sql("select count(*) from processes").rows() == [(2,)]


def test_all_files_of_one_run_are_its_database(tmp_path: Path) -> None:
    folder = as_csv(tmp_path / "out")
    as_json(folder / f"{PID}_results.json")
    trace = strobe.open(folder)
    assert trace.sql("select count(*) from processes").rows() == [(1,)]
    assert trace.sql("select size_bytes from copy_spans").rows() == [(COPY[5],)], "JSON has sizes"
    rocpd(folder / f"{PID}_results.db")
    for path in (folder, folder / f"{PID}_kernel_trace.csv", folder / f"{PID}_results.json"):
        trace = strobe.open(path)
        assert trace.sql("select count(*) from processes").rows() == [(1,)]
        assert trace.sql("select count(*) from metrics where metric = 'SQ_WAVES'").rows() == [(2,)], "the database"


def test_files_of_rocm_6_2_have_queues_and_plain_agents(tmp_path: Path) -> None:
    path = tmp_path / "kernel_trace.csv"
    header = (
        "Kind Agent_Id Queue_Id Thread_Id Dispatch_Id Kernel_Id Kernel_Name Correlation_Id Start_Timestamp "
        "End_Timestamp Private_Segment_Size Group_Segment_Size Workgroup_Size_X Workgroup_Size_Y Workgroup_Size_Z "
        "Grid_Size_X Grid_Size_Y Grid_Size_Z"
    )
    table(path, header, [("KERNEL_DISPATCH", 1, 3, 69, 1, 16, "k(int)", 1451, 8819330200067564, 8819330200116308,
                          8, 96, 64, 1, 1, 1000, 1024, 1)])  # fmt: skip
    trace = strobe.open(path)
    assert trace.sql("select l.name, s.name, duration_ns from spans s join locations l using (location)").rows() == [
        ("GPU 1 stream 3", "k(int)", 48_744)
    ]
    assert trace.sql("select grid_x, shared_memory_bytes, local_bytes_per_thread from kernel_spans").rows() == [
        (16, 96, 8)
    ]


def test_broken_rows_are_counted(tmp_path: Path) -> None:
    folder = as_csv(tmp_path / "out")
    with (folder / f"{PID}_hip_api_trace.csv").open("a") as out:
        out.write('"HIP_RUNTIME_API","hipFree"\n')
        out.write(f'"HIP_RUNTIME_API","hipFree",1,1,99,{10**30},soon\n')
    counted = quality(strobe.open(folder))
    assert (counted["unreadable_rows"], counted["events_without_time"]) == (1, 1)


@pytest.mark.parametrize(
    "text", ['{"rocprofiler-sdk-tool": 3}', '{"rocprofiler-sdk-tool": [', "{" * 9 + '"rocprofiler-sdk-tool"']
)
def test_json_without_a_run_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(FormatError, match=r"rocprofv3"):
        strobe.open(tmp_path / "t.json")


def test_wrong_types_in_json_are_no_traceback(tmp_path: Path) -> None:
    body: Mapping[str, Any] = json.loads(as_json(tmp_path / "t.json").read_text())
    run = body["rocprofiler-sdk-tool"][0]
    run["buffer_records"]["kernel_dispatch"] += [{}, 7, {"start_timestamp": "x", "dispatch_info": []}]
    run["buffer_records"]["hip_api"][0]["operation"] = 10**40
    run["buffer_records"]["pc_sample_host_trap"] = [{}, {"record": 3, "inst_index": 10**30}]
    run["callback_records"] = {"counter_collection": [{}, 3, {"records": [{"value": "x"}]}]}
    run["agents"] = {"a": 1}
    (tmp_path / "t.json").write_text(json.dumps(body))
    counted = quality(strobe.open(tmp_path / "t.json"))
    assert (counted["events_without_time"], counted["damaged_records"]) == (4, 1)
