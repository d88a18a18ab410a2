"""Nsight Systems SQLite, against sums that plain SQL takes straight from the files."""

import json
import os
import re
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

import strobe
from strobe.api.trace import Trace
from strobe.errors import FormatError

FILES = ("perlmutter-cloverleaf-cuda", "saxpy-mpi-cuda_nsys_perlmutter0")
# A global id is VM, process, thread.
VM = 1 << 48


def global_pid(pid: int) -> int:
    return VM | pid << 24


def global_tid(pid: int, tid: int) -> int:
    return global_pid(pid) | tid


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def rows(trace: Trace, query: str) -> list[tuple[Any, ...]]:
    return [
        tuple(int(cell) if type(cell).__name__ == "Decimal" else cell for cell in row)
        for row in trace.sql(query).rows()
    ]


def one(trace: Trace, query: str) -> int:
    return int(rows(trace, query)[0][0] or 0)


def said_of_itself(trace: Trace) -> dict[str, Any]:
    """What the import kept of one file beside its events."""
    job = json.loads((Path(trace.info.path) / "job.json").read_text())
    (told,) = job["imported"]["files"]
    return dict(told)


class Export:
    """A file like those of nsys, put together table by table; columns are those of the rows that are given."""

    def __init__(self, path: Path, strings: Sequence[str] = ()) -> None:
        self.path = path
        self.database = sqlite3.connect(path)
        self.database.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
        self.strings: dict[str, int] = {}
        for text in strings:
            self.string(text)

    def string(self, text: str) -> int:
        if text not in self.strings:
            self.strings[text] = len(self.strings)
            self.database.execute("INSERT INTO StringIds VALUES (?, ?)", (self.strings[text], text))
        return self.strings[text]

    def table(self, name: str, *given: Mapping[str, object], types: Mapping[str, str] | None = None) -> None:
        columns = list(dict.fromkeys(column for row in given for column in row))
        declared = ", ".join(f'"{column}" {(types or {}).get(column, "INTEGER")}' for column in columns)
        self.database.execute(f"CREATE TABLE {name} ({declared})")
        marks = ", ".join("?" * len(columns))
        self.database.executemany(
            f"INSERT INTO {name} VALUES ({marks})", [[row.get(column) for column in columns] for row in given]
        )

    def kernel(self, name: str, start: int | None, end: int | None, pid: int = 7, **more: object) -> dict[str, object]:
        number = self.string(name)
        cells = {"start": start, "end": end, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 1}
        return {**cells, "globalPid": global_pid(pid), "demangledName": number, "shortName": number, **more}

    def call(self, name: str, start: int, end: int, pid: int = 7, tid: int = 8, **more: object) -> dict[str, object]:
        cells = {"start": start, "end": end, "eventClass": 0, "globalTid": global_tid(pid, tid), "correlationId": 1}
        return {**cells, "nameId": self.string(name), "returnValue": 0, **more}

    def open(self) -> Trace:
        self.database.commit()
        self.database.close()
        return strobe.open(self.path)


@pytest.fixture
def export(tmp_path: Path) -> Export:
    return Export(tmp_path / "export.sqlite")


class Truth:
    """What plain SQL says of a file."""

    def __init__(self, path: Path) -> None:
        self.database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        self.tables = {name for (name,) in self.database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.database.execute(query).fetchall()

    def has(self, table: str) -> bool:
        return table in self.tables and self.rows(f"SELECT count(*) FROM {table}")[0][0] > 0


@pytest.fixture(params=FILES)
def real(public_folder: Path, request: pytest.FixtureRequest) -> tuple[Trace, Truth]:
    path = public_folder / "nsys" / f"{request.param}.sqlite"
    return strobe.open(path), Truth(path)


def test_kernels_are_those_of_the_file_by_name_and_stream(real: tuple[Trace, Truth]) -> None:
    trace, truth = real
    assert rows(
        trace,
        """select k.name, device, context, stream, count(*), sum(duration_ns), min(correlation), sum(grid_x * block_x),
           sum(registers_per_thread), sum(static_shared_bytes + dynamic_shared_bytes), sum(shared_memory_bytes),
           sum(local_bytes), min(launch_type), min(short_name), min(mangled_name)
           from kernel_spans k group by all order by 1, 2, 3, 4""",
    ) == truth.rows(
        """SELECT d.value, deviceId, contextId, streamId, count(*), sum(end - start), min(correlationId),
           sum(gridX * blockX), sum(registersPerThread), sum(staticSharedMemory + dynamicSharedMemory),
           sum(staticSharedMemory + dynamicSharedMemory), sum(localMemoryTotal),
           min(CASE launchType WHEN 1 THEN 'Regular' END), min(s.value), min(m.value)
           FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds d ON d.id = demangledName
           JOIN StringIds s ON s.id = shortName LEFT JOIN StringIds m ON m.id = mangledName
           GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"""
    )


def test_every_kernel_has_its_time(real: tuple[Trace, Truth]) -> None:
    trace, truth = real
    zero = trace.zero_ns
    assert rows(trace, f"select start_ns + {zero}, duration_ns from kernel_spans order by 1, 2") == truth.rows(
        "SELECT start, end - start FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY 1, 2"
    )


def test_copies_have_their_bytes_and_directions(real: tuple[Trace, Truth]) -> None:
    trace, truth = real
    assert rows(
        trace,
        """select copy_kind, source_kind, destination_kind, count(*), sum(duration_ns), sum(size_bytes)
           from copy_spans where copy_kind is not null group by all order by 1, 2, 3""",
    ) == truth.rows(
        """SELECT CASE copyKind WHEN 1 THEN 'HtoD' WHEN 2 THEN 'DtoH' WHEN 8 THEN 'DtoD' END kind,
           CASE srcKind WHEN 0 THEN 'Pageable' WHEN 1 THEN 'Pinned' WHEN 2 THEN 'Device' END,
           CASE dstKind WHEN 0 THEN 'Pageable' WHEN 1 THEN 'Pinned' WHEN 2 THEN 'Device' END,
           count(*), sum(end - start), sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""
    )


def test_calls_are_those_of_the_file_by_name_and_thread(real: tuple[Trace, Truth]) -> None:
    trace, truth = real
    counted: Counter[tuple[str, int]] = Counter()
    lasted: Counter[tuple[str, int]] = Counter()
    for name, thread, count, total in truth.rows(
        """SELECT value, globalTid % 0x1000000, count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_RUNTIME
           JOIN StringIds ON id = nameId WHERE eventClass <> 67 GROUP BY 1, 2"""
    ):
        stripped = re.sub(r"_v\d{4,}$", "", name)
        counted[stripped, thread] += count
        lasted[stripped, thread] += total
    found = rows(
        trace,
        """select c.name, thread_id, count(*), sum(duration_ns) from call_spans c join locations using (location)
           where paradigm = 'cuda' group by all""",
    )
    assert {(name, thread): (count, total) for name, thread, count, total in found} == {
        key: (counted[key], lasted[key]) for key in counted
    }


def test_calls_and_kernels_meet_by_correlation(real: tuple[Trace, Truth]) -> None:
    trace, truth = real
    found = one(
        trace,
        """select count(*) from kernel_spans k join locations using (location) join call_spans c using (correlation)
           join locations l on l.location = c.location and l.process = locations.process where c.paradigm = 'cuda'""",
    )
    assert (
        found
        == truth.rows(
            """SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
           ON r.correlationId = k.correlationId AND r.globalTid / 0x1000000 = k.globalPid / 0x1000000
           WHERE r.eventClass <> 67"""
        )[0][0]
    )


def test_backtraces_are_the_stacks_of_calls_not_calls(public_folder: Path) -> None:
    """`sqlite3 FILE` counts 15 calls of class 0, and as many of class 67 that surround them."""
    trace = strobe.open(public_folder / "nsys" / f"{FILES[1]}.sqlite")
    assert rows(
        trace,
        """select count(*), sum(duration_ns), count(call_stack), min(module) from call_spans
           join regions using (region) where call_spans.name = 'cudaMemcpy'""",
    ) == [(15, 374_336_827, 15, "CUDA runtime")]
    (called,) = (row for row in trace.calls().to_pylist() if row["name"] == "cudaMemcpy")
    assert (called["calls"], called["total_ns"]) == (15, 374_336_827)


def test_the_number_of_backtraces_is_that_of_the_file(export: Export) -> None:
    export.table(
        "ENUM_NSYS_EVENT_CLASS",
        {"id": 0, "name": "TRACE_PROCESS_EVENT_CUDA_RUNTIME", "label": "CUDA runtime"},
        {"id": 91, "name": "TRACE_PROCESS_EVENT_NEW", "label": "a new class"},
        {"id": 90, "name": "TRACE_PROCESS_EVENT_CUDABACKTRACE", "label": "CUDA backtrace"},
        types={"name": "TEXT", "label": "TEXT"},
    )
    frames = [{"id": 3, "symbol": export.string(name), "module": export.string("a.out")} for name in ("f", "main")]
    export.table("CUDA_CALLCHAINS", *({**frame, "stackDepth": depth} for depth, frame in enumerate(frames)))
    made = [
        export.call("cudaFree_v3020", 10, 20, callchainId=None),
        export.call("cudaFree", 9, 21, eventClass=90, callchainId=3),
        export.call("cudaFree_v3020", 30, 40, correlationId=2, callchainId=0),
        export.call("cudaFree", 9, 22, tid=9, eventClass=90, callchainId=3),  # of a call that is not there
        export.call("cuNew", 50, 60, correlationId=3, eventClass=91, callchainId=0),
    ]
    declared = {"eventClass": "INTEGER REFERENCES ENUM_NSYS_EVENT_CLASS(id)"}
    export.database.execute(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME ("
        + ",\n".join(f"{column} {declared.get(column, 'INTEGER')}" for column in made[0])
        + ")"
    )
    export.database.executemany(
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [tuple(row.values()) for row in made],
    )
    assert rows(
        export.open(),
        """select c.name, module, start_ns, duration_ns, call_stack from call_spans c
           join regions using (region) order by start_ns, duration_ns desc""",
    ) == [
        ("cudaFree", "CUDA backtrace", 0, 13, "main (a.out)\nf (a.out)"),
        ("cudaFree", "CUDA runtime", 1, 10, "main (a.out)\nf (a.out)"),
        ("cudaFree", "CUDA runtime", 21, 10, None),
        ("cuNew", "a new class", 41, 10, None),
    ]


def ranks(trace: Trace) -> list[tuple[Any, ...]]:
    return rows(trace, "select pid, rank from processes order by pid")


@pytest.mark.parametrize("column", ["globalPid", "globalTid"])
def test_ranks_are_those_of_mpi(export: Export, column: str) -> None:
    export.table("CUPTI_ACTIVITY_KIND_KERNEL", *(export.kernel("k", 0, 9, pid, deviceId=0) for pid in (100, 200)))
    # Since 2021 the table has threads: https://docs.nvidia.com/nsight-systems, SQLite schema.
    number = global_pid if column == "globalPid" else lambda pid: global_tid(pid, pid)
    export.table("MPI_RANKS", *({column: number(pid), "rank": rank} for pid, rank in ((100, 5), (200, 4))))
    assert ranks(export.open()) == [(100, 5), (200, 4)]


def test_ranks_are_in_the_names_of_threads(export: Export) -> None:
    export.table("CUPTI_ACTIVITY_KIND_KERNEL", *(export.kernel("k", 0, 9, pid, deviceId=0) for pid in (100, 200)))
    export.table(
        "ThreadNames",
        {"globalTid": global_tid(100, 100), "nameId": export.string("MPI Rank 1")},
        {"globalTid": global_tid(100, 101), "nameId": export.string("MPI Rank x")},
        {"globalTid": global_tid(200, 200), "nameId": export.string("MPI Rank 0")},
    )
    assert ranks(export.open()) == [(100, 1), (200, 0)]


def environment(export: Export, *variables: str) -> None:
    name = "PROCESS_0:ENVIRONMENT_VARIABLE"
    kept = [{"name": name, "value": variable} for variable in variables]
    export.table("META_DATA_CAPTURE", *kept, types={"name": "TEXT", "value": "TEXT"})


def test_a_rank_is_in_the_environment_of_the_only_program(export: Export) -> None:
    export.table("CUPTI_ACTIVITY_KIND_KERNEL", export.kernel("k", 0, 9, 100))
    environment(export, 'PATH="/bin"', 'SLURM_PROCID="0"', 'PMI_RANK="3"', 'OMPI_COMM_WORLD_RANK="x"')
    assert ranks(export.open()) == [(100, 3)]


@pytest.mark.parametrize("how", ["own GPUs", "one GPU", "MPI"])
def test_several_programs_are_ranks_in_their_order(export: Export, how: str) -> None:
    devices = {"own GPUs": (1, 0), "one GPU": (0, 0), "MPI": (0, 0)}[how]
    made = zip((100, 200), devices, strict=True)
    export.table("CUPTI_ACTIVITY_KIND_KERNEL", *(export.kernel("k", 0, 9, pid, deviceId=gpu) for pid, gpu in made))
    environment(export, 'SLURM_PROCID="0"')  # of the one nsys that started both
    if how == "MPI":
        calls = [
            {"start": 20 + pid, "end": 500, "globalTid": global_tid(pid, pid), "textId": export.string("MPI_Allreduce")}
            for pid in (100, 200)
        ]
        export.table("MPI_COLLECTIVES_EVENTS", *({**call, "commHandle": 1} for call in calls))
    trace = export.open()
    expected = {"own GPUs": (1, 0), "one GPU": (None, None), "MPI": (0, 1)}[how]
    assert ranks(trace) == list(zip((100, 200), expected, strict=True))
    chosen = dict(rows(trace, "select what, sum(value) from quality group by 1")).get("ranks_by_order", 0)
    assert chosen == (0 if how == "one GPU" else 2)
    if how == "MPI":  # the one that comes 100 ns later
        late = [row for row in trace.stragglers().to_pylist() if row["last"]]
        assert [row["rank"] for row in late] == [1]


def test_synchronisation_and_the_operating_system_are_there(real: tuple[Trace, Truth]) -> None:
    trace, truth = real
    if truth.has("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"):
        kinds = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
        expected = truth.rows(
            """SELECT syncType, streamId, count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION
               GROUP BY 1, 2 ORDER BY 1, 2"""
        )
        found = rows(
            trace, "select sync_kind, stream, count(*), sum(duration_ns) from sync_spans group by all order by 1, 2"
        )
        assert found == [(kinds[kind], *rest) for kind, *rest in expected]
    if truth.has("OSRT_API"):
        assert rows(
            trace,
            """select name, count(*), sum(duration_ns), count(call_stack) from call_spans
               where region in (select region from regions where module like 'OS runtime%') group by all order by 1""",
        ) == truth.rows(
            """SELECT value, count(*), sum(end - start), count(nullif(callchainId, 0)) FROM OSRT_API
               JOIN StringIds ON id = nameId GROUP BY 1 ORDER BY 1"""
        )
    if truth.has("PROFILER_OVERHEAD"):
        assert rows(
            trace, "select name, count(*), sum(duration_ns) from spans where paradigm = 'strobe' group by 1 order by 1"
        ) == truth.rows(
            """SELECT value, count(*), sum(end - start) FROM PROFILER_OVERHEAD JOIN StringIds ON id = nameId
               GROUP BY 1 ORDER BY 1"""
        )


def test_nvtx_ranges_have_their_times(real: tuple[Trace, Truth]) -> None:
    trace, truth = real
    if not truth.has("NVTX_EVENTS"):
        pytest.skip("no NVTX in this file")
    zero = trace.zero_ns
    assert rows(
        trace,
        f"""select name, start_ns + {zero}, duration_ns from spans where paradigm in ('nvtx', 'mpi')
            and name not like '%kernel%' order by 2""",
    ) == truth.rows(
        """SELECT coalesce(text, value), start, end - start FROM NVTX_EVENTS LEFT JOIN StringIds ON id = textId
           WHERE eventType IN (59, 60) ORDER BY 2"""
    )
    # The MPI domain is what nsys itself makes of MPI calls.
    assert {
        name for name, role in rows(trace, "select name, role from regions where paradigm = 'mpi' and role = 'p2p'")
    } == {
        "MPI_Send",
        "MPI_Recv",
    }


def test_threads_are_on_processors_as_the_switches_say(real: tuple[Trace, Truth]) -> None:
    trace, truth = real
    count, total = 0, 0
    events = truth.rows("SELECT globalTid, start, isSchedIn FROM SCHED_EVENTS ORDER BY globalTid, start, rowid")
    for _, of_thread in groupby(events, key=lambda row: row[0]):
        since = None
        for _, time, switched_in in of_thread:
            if switched_in:
                since = time
            elif since is not None:
                count, total, since = count + 1, total + time - since, None
    found = rows(trace, "select count(*), sum(duration_ns) from spans where name = 'on a processor'")
    assert found == [(count, total)]
    assert 2 * count + one(trace, "select count(*) from marks where category = 'scheduling'") == len(events)


def test_samples_have_their_call_stacks(real: tuple[Trace, Truth]) -> None:
    trace, truth = real
    frames = truth.rows(
        """SELECT e.start, e.id, s.value, m.value FROM COMPOSITE_EVENTS e JOIN SAMPLING_CALLCHAINS c ON c.id = e.id
           JOIN StringIds s ON s.id = symbol JOIN StringIds m ON m.id = module
           ORDER BY e.start, e.id, stackDepth DESC"""
    )
    expected = [
        (start, "\n".join(f"{symbol or '<unknown>'} ({module})" for _, _, symbol, module in chain))
        for (start, _), chain in groupby(frames, key=lambda row: row[:2])
    ]
    found = rows(trace, f"select time_ns + {trace.zero_ns}, call_stack from samples order by 1")
    assert len(found) == truth.rows("SELECT count(*) FROM COMPOSITE_EVENTS")[0][0]
    assert sorted(found) == sorted(expected)


def test_what_the_file_says_of_itself_is_kept(real: tuple[Trace, Truth]) -> None:
    trace, truth = real
    told = said_of_itself(trace)
    assert told["base_ns"] == truth.rows("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME")[0][0]
    (gpu,) = truth.rows("SELECT name, smCount, totalMemory FROM TARGET_INFO_GPU LIMIT 1")
    first = told["properties"]["TARGET_INFO_GPU"][0]
    assert (first["name"], first["smCount"], first["totalMemory"]) == gpu
    assert told["properties"]["ANALYSIS_DETAILS"][0]["duration"] > 0
    pid, name = truth.rows(
        "SELECT pid, name FROM PROCESSES WHERE globalPid = (SELECT min(globalPid) FROM CUPTI_ACTIVITY_KIND_KERNEL)"
    )[0]
    assert rows(trace, "select pid, argv from processes") == [(pid, name)]


# Files that tests make: versions, gaps, and damage


def test_a_file_with_texts_only_opens_empty(export: Export) -> None:
    export.string("nothing else")
    trace = export.open()
    assert trace.span_count == 0
    assert rows(trace, "select count(*) from processes") == [(1,)]


def test_columns_may_be_missing(export: Export) -> None:
    export.table("CUPTI_ACTIVITY_KIND_KERNEL", {"start": 10, "end": 30, "shortName": export.string("k")})
    export.table("CUPTI_ACTIVITY_KIND_MEMCPY", {"start": 40, "end": 50, "bytes": 8})
    export.table("NVTX_EVENTS", {"start": 5, "end": 60, "eventType": 59, "text": "r"}, types={"text": "TEXT"})
    trace = export.open()
    assert rows(trace, "select name, start_ns, duration_ns from spans order by 2") == [
        ("r", 0, 55),
        ("k", 5, 20),
        ("Memcpy Unknown", 35, 10),
    ]


def test_spans_without_a_sound_end_are_kept_and_counted(export: Export) -> None:
    export.table(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        export.kernel("whole", 100, 150),
        export.kernel("open", 200, None),
        export.kernel("backwards", 300, 290),
        export.kernel("never", None, 400),
        export.kernel("absurd", 2**62 + 1, 2**62 + 2),
    )
    trace = export.open()
    assert rows(trace, "select name, start_ns, duration_ns from spans order by 2") == [
        ("whole", 0, 50),
        ("open", 100, 0),
        ("backwards", 200, 0),
    ]
    counted = dict(rows(trace, "select what, value from quality where value > 0"))
    assert counted["spans_without_end"] == 1
    assert counted["negative_durations"] == 1
    assert counted["events_without_time"] == 1
    assert counted["times_out_of_range"] == 1


def test_processes_and_devices_stay_apart(export: Export) -> None:
    export.table(
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        *(export.call("cudaLaunchKernel_v7000", 0, 5, pid=pid, tid=pid + 1, correlationId=1) for pid in (100, 200)),
    )
    export.table(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        *(
            export.kernel(f"k{pid}", 10 + device, 20 + pid, pid, deviceId=device, streamId=13)
            for pid in (100, 200)
            for device in (0, 1)
        ),
        export.kernel("other context", 500, 501, 100, contextId=2, streamId=13),
        export.kernel("orphan", 600, 601, 100, streamId=13, correlationId=99),
    )
    export.table("PROCESSES", {"globalPid": global_pid(200), "pid": 200, "name": "b"}, types={"name": "TEXT"})
    export.table("MPI_RANKS", *({"globalPid": global_pid(pid), "rank": pid // 100 - 1} for pid in (100, 200)))
    trace = export.open()
    assert rows(trace, "select pid, rank, argv from processes order by pid") == [
        (100, 0, "process 100"),
        (200, 1, "b"),
    ]
    assert rows(
        trace,
        """select pid, l.device, l.name, k.name, sum(duration_ns) from kernel_spans k join locations l using (location)
           join processes p on p.process = l.process group by all order by 1, 2, 3, 4""",
    ) == [
        (100, 0, "GPU 0 stream 13", "k100", 110),
        (100, 0, "GPU 0 stream 13", "orphan", 1),
        (100, 0, "GPU 0 stream 13 context 2", "other context", 1),
        (100, 1, "GPU 1 stream 13", "k100", 109),
        (200, 0, "GPU 0 stream 13", "k200", 210),
        (200, 1, "GPU 1 stream 13", "k200", 209),
    ]
    assert rows(trace, "select name, count(*) from call_spans group by 1") == [("cudaLaunchKernel", 2)]


def test_nvtx_says_all_that_the_program_did(export: Export) -> None:
    thread, text = global_tid(7, 8), {"text": "TEXT", "jsonText": "TEXT", "doubleValue": "REAL"}
    known = {"globalTid": thread, "domainId": 3}
    export.table(
        "NVTX_EVENTS",
        {**known, "start": 0, "eventType": 75, "text": "training"},
        {**known, "start": 0, "eventType": 33, "category": 5, "text": "input"},
        {"start": 0, "eventType": 39, "globalTid": thread, "text": "the trainer"},
        {**known, "start": 10, "end": 90, "eventType": 59, "text": "step", "category": 5, "color": 0xFF00FF00},
        {**known, "start": 20, "end": 95, "eventType": 60, "textId": export.string("across"), "rangeId": 4,
         "endGlobalTid": global_tid(7, 9)},
        {**known, "start": 30, "end": 40, "eventType": 59, "text": "a", "uint64Value": -1},
        {**known, "start": 50, "end": 60, "eventType": 59, "text": "b", "doubleValue": 0.1, "jsonText": '{"x": 1}'},
        {**known, "start": 70, "eventType": 34, "text": "here", "int64Value": -5},
        {"globalTid": thread, "start": 75, "end": 80, "eventType": 59,
         "text": "aten::mm, seq = 12, op_id = 34, sizes = [[2, 3], [3, 4]], input_op_ids = [(1,0), (2,0)]"},
        types=text,
    )  # fmt: skip
    trace = export.open()
    assert rows(
        trace,
        """select r.name, regions.module, category, color, payload, payload_type, json, range_id, end_thread_id, kind
           from range_spans r join regions using (region) join locations using (location) order by start_ns""",
    ) == [
        ("step", "training", "input", 0xFF00FF00, None, None, None, None, None, "thread"),
        ("across", "training", None, None, None, None, None, 4, 9, "task"),
        ("a", "training", None, None, str(2**64 - 1), "uint64", None, None, None, "thread"),
        ("b", "training", None, None, "0.1", "double", '{"x": 1}', None, None, "thread"),
    ]
    assert rows(
        trace, "select name, sequence_number, record_function_id, shapes, role, paradigm from operator_spans"
    ) == [("aten::mm", 12, 34, "[[2, 3], [3, 4]]", "operator", "torch")]
    ((name, category, said),) = rows(trace, "select name, category, arguments from marks")
    assert (name, category, json.loads(said)["int64Value"]) == ("here", "nvtx", -5)
    assert rows(trace, "select name from locations where kind = 'thread'") == [("the trainer",)]
    assert rows(trace, "select depth from spans where name = 'a'") == [(1,)]


def test_mpi_calls_have_their_roles_and_arguments(export: Export) -> None:
    def call(name: str, start: int, **more: int) -> dict[str, object]:
        return {"start": start, "end": start + 5, "globalTid": global_tid(7, 7), "textId": export.string(name), **more}

    export.table(
        "MPI_P2P_EVENTS",
        call("MPI_Isend", 0, commHandle=1, tag=9, remoteRank=3, size=1024),
        call("MPI_Recv", 2, commHandle=1, tag=5, remoteRank=2, size=64),
        call("MPI_Irecv", 8, commHandle=1, tag=6, remoteRank=1, size=32),
    )
    export.table("MPI_COLLECTIVES_EVENTS", call("MPI_Allreduce", 10, commHandle=1, rootRank=0, size=8, recvSize=8))
    export.table("MPI_START_WAIT_EVENTS", call("MPI_Waitall", 20), call("MPI_Start", 25))
    export.table("MPI_OTHER_EVENTS", call("MPI_Barrier", 30), call("MPI_Comm_rank", 40))
    trace = export.open()
    assert rows(trace, "select name, role, paradigm from spans order by start_ns") == [
        ("MPI_Isend", "p2p", "mpi"),
        ("MPI_Recv", "p2p", "mpi"),
        ("MPI_Irecv", "p2p", "mpi"),
        ("MPI_Allreduce", "collective", "mpi"),
        ("MPI_Waitall", "wait", "mpi"),
        ("MPI_Start", "p2p", "mpi"),
        ("MPI_Barrier", "sync", "mpi"),
        ("MPI_Comm_rank", "other", "mpi"),
    ]
    said = dict(rows(trace, "select key, value from arguments where name = 'MPI_Isend'"))
    assert said == {"commHandle": "1", "tag": "9", "remoteRank": "3", "size": "1024"}
    assert rows(trace, "select collective, communicator, root, sent_bytes, received_bytes from collective_spans") == [
        ("MPI_Allreduce", "1", 0, 8, 8)
    ]
    assert rows(
        trace,
        """select time_ns, direction, communicator_rank, tag, communicator, size_bytes from messages
           order by time_ns""",
    ) == [(0, "send", 3, 9, "1", 1024), (7, "receive", 2, 5, "1", 64)]


def test_gpu_metrics_become_metrics(export: Export) -> None:
    export.table(
        "TARGET_INFO_GPU_METRICS",
        {"typeId": 0x10001, "metricId": 2, "metricName": "SMs Active [Throughput %]"},
        {"typeId": 0x10001, "metricId": 3, "metricName": "GR Active"},
        types={"metricName": "TEXT"},
    )
    export.table(
        "GPU_METRICS",
        *(
            {"timestamp": 1000 * i, "typeId": 0x10001, "metricId": m, "value": 10 * i + m}
            for i in range(4)
            for m in (2, 3)
        ),
    )
    trace = export.open()
    assert rows(trace, "select metric, unit, time_ns, value from metrics order by 1, 3") == [
        (f"GPU 1: {name}", unit, 1000 * i, 10 * i + m)
        for name, unit, m in (("GR Active", "", 3), ("SMs Active", "Throughput %", 2))
        for i in range(4)
    ]


def test_attributes_from_several_tables_come_in_order_of_their_spans(export: Export) -> None:
    calls = [export.call("cudaLaunchKernel_v7000", 100 * k, 100 * k + 10, correlationId=k + 1) for k in range(3)]
    export.table("CUPTI_ACTIVITY_KIND_RUNTIME", *calls)
    waits = [{"start": 100 * k + 50, "end": 100 * k + 60, "globalTid": calls[0]["globalTid"]} for k in range(3)]
    export.table("OSRT_API", *({**wait, "nameId": export.string("poll"), "returnValue": 7} for wait in waits))
    (batch,) = export.open().side_batches("call_spans", 0)
    assert batch.column("row").to_pylist() == list(range(6))
    assert batch.column("correlation").to_pylist() == [1, None, 2, None, 3, None]
    assert batch.column("return_value").to_pylist() == [0, 7] * 3


def test_many_readings_come_in_order(export: Export) -> None:
    count = 20_000
    export.table(  # every two are the wrong way round
        "GPU_METRICS",
        *({"timestamp": 1000 * (i ^ 1), "typeId": 1, "metricId": 2, "value": i ^ 1} for i in range(count)),
    )
    trace = export.open()
    assert rows(trace, "select time_ns, value from metrics") == [(1000 * i, i) for i in range(count)]


def test_gpu_memory_is_allocated_and_freed(export: Export) -> None:
    known = {"globalPid": global_pid(7), "deviceId": 2, "contextId": 1, "address": 4096, "memKind": 2}
    export.table(
        "CUDA_GPU_MEMORY_USAGE_EVENTS",
        {**known, "start": 10, "bytes": 512, "memoryOperationType": 0},
        {**known, "start": 20, "bytes": 512, "memoryOperationType": 1},
    )
    trace = export.open()
    assert rows(trace, "select time_ns, size_bytes, address, device, memory_kind from allocations order by 1") == [
        (10, 512, 4096, 2, "Device"),
        (20, -512, 4096, 2, "Device"),
    ]
    (device,) = trace.memory().to_pylist()
    assert (device["memory"], device["device"], device["peak_bytes"], device["last_bytes"]) == ("Device", 2, 512, 0)


def test_graphs_and_tables_that_nobody_knows_are_kept(export: Export) -> None:
    export.table(
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        {"start": 5, "end": 15, "deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": global_pid(7), "graphId": 3},
    )
    export.table("FUTURE_EVENTS", {"start": 20, "end": 30, "globalTid": global_tid(7, 8), "answer": 42})
    export.table("FUTURE_MOMENTS", {"timestamp": 25, "globalPid": global_pid(7), "what": "x"}, types={"what": "TEXT"})
    export.table("FUTURE_FACTS", {"name": "a", "value": "b"}, types={"name": "TEXT", "value": "TEXT"})
    trace = export.open()
    assert rows(trace, "select name, graph from kernel_spans") == [("CUDA graph 3", 3)]
    assert rows(trace, "select name, key, value from arguments") == [("future events", "answer", "42")]
    assert rows(trace, "select name, arguments from marks") == [("future moments", '{"what": "x"}')]
    told = said_of_itself(trace)
    assert told["properties"]["FUTURE_FACTS"] == {"a": "b"}


def test_texts_without_an_index_are_found(tmp_path: Path) -> None:
    export = Export(tmp_path / "plain.sqlite")
    export.database.execute("DROP TABLE StringIds")
    export.database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
    export.database.executemany("INSERT INTO StringIds VALUES (?, ?)", [(i, f"kernel {i}") for i in range(2000)])
    export.strings = {f"kernel {i}": i for i in range(2000)}
    export.table("CUPTI_ACTIVITY_KIND_KERNEL", *(export.kernel(f"kernel {i}", i, i + 1) for i in range(2000)))
    assert one(export.open(), "select count(distinct name) from kernel_spans") == 2000


def test_values_of_other_types_are_counted_not_believed(export: Export) -> None:
    export.table("CUPTI_ACTIVITY_KIND_KERNEL", export.kernel("k", 10, 20), export.kernel("k", 30, 40))
    export.database.execute(
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET streamId = 'no number', correlationId = x'00' WHERE start = 30"
    )
    export.database.execute("INSERT INTO StringIds VALUES (9, CAST(x'ff41' AS TEXT))")
    export.database.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET demangledName = 9 WHERE start = 30")
    trace = export.open()
    assert rows(trace, "select start_ns, duration_ns, name from spans order by 1") == [
        (0, 10, "k"),
        (20, 10, "\ufffdA"),
    ]
    counted = dict(rows(trace, "select what, value from quality where value > 0"))
    assert counted["unreadable_values"] == 2
    assert counted["texts_not_utf8"] == 1


def test_code_in_the_schema_is_not_run(export: Export) -> None:
    export.database.execute("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1 AS start, 2 AS end")
    export.database.execute("CREATE VIRTUAL TABLE OSRT_API USING fts5(start, end)")
    assert export.open().span_count == 0


def test_a_torn_file_keeps_what_is_sound(tmp_path: Path) -> None:
    export = Export(tmp_path / "whole.sqlite")
    export.table("CUPTI_ACTIVITY_KIND_KERNEL", *(export.kernel("k", i, i + 1) for i in range(20000)))
    export.database.commit()
    whole = (tmp_path / "whole.sqlite").read_bytes()
    torn = tmp_path / "torn.sqlite"
    torn.write_bytes(whole[: len(whole) // 8192 * 4096])
    trace = strobe.open(torn)
    assert 0 < trace.span_count < 20000
    assert one(trace, "select value from quality where what = 'damaged_tables'") >= 1


def test_bytes_that_only_begin_like_a_database_are_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "broken.sqlite"
    path.write_bytes(b"SQLite format 3\0 StringIds" + b"\xa5" * 5000)
    with pytest.raises(FormatError, match="damaged"):
        strobe.open(path)


REPORT = b"NVIDIA Tegra Profiler Report 2024@4@1@61-244134315967v0.\n\x0bLocal (CLI)"
STREAM = b"U3w[END]NVIDIA Nsight Systems Stream 2025.3.1.90-253135822126v0!"


def script(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize("head", [REPORT, STREAM], ids=["report", "stream"])
def test_a_report_is_exported_by_nsys(
    export: Export, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: bytes
) -> None:
    export.table("CUPTI_ACTIVITY_KIND_KERNEL", export.kernel("k", 10, 19))
    export.database.commit()
    tools = tmp_path / "tools"
    # nsys takes reports only; the importer is handed a stream, and writes a report.
    report = '[ "$(head -c 28 "$8")" = "NVIDIA Tegra Profiler Report" ] || exit 1\n'
    words = '[ "$1 $2 $3 $4 $6 $7" = "export --type sqlite --output --force-overwrite true" ] || exit 1\n'
    script(tools, "nsys", f'{words}{report}cp "{export.path}" "$5"')
    script(tools, "QdstrmImporter", f'[ "$1 $3" = "-i -o" ] || exit 1\nprintf "{REPORT[:29].decode()}" > "$4"')
    monkeypatch.setenv("PATH", str(tools), prepend=os.pathsep)
    path = tmp_path / "report1.nsys-rep"
    path.write_bytes(head)
    trace = strobe.open(path)
    assert rows(trace, "select name, duration_ns from kernel_spans") == [("k", 9)]


def test_without_nsys_the_command_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "report1.qdrep"
    path.write_bytes(REPORT)
    with pytest.raises(FormatError) as told:
        strobe.open(path)
    assert "it needs nsys, which is not installed here" in str(told.value)
    words = f"nsys export --type sqlite --output {path}.sqlite --force-overwrite true {path}"
    assert words in str(told.value)
