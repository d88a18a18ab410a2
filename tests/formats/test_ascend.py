"""Profiles of Ascend NPUs: databases and CSV files as torch_npu and msprof write them, against sums taken by hand."""

import json
import sqlite3
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import strobe
from strobe.api.trace import Trace
from strobe.errors import FormatError
from tests.formats.test_chrome import quality
from tests.formats.test_profiles import by_path

START = 1_736_413_971_558_000_000
PID, TID = 4711, 4712


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))


# docs/en/user_guide/profile_data_file_references_db.md of msprof; without the columns that nothing is said about.
SCHEMA = """
    CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT);
    CREATE TABLE ENUM_API_TYPE (id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE ENUM_HCCL_DATA_TYPE (id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE NPU_INFO (id INTEGER, name TEXT);
    CREATE TABLE HOST_INFO (hostUid TEXT, hostName TEXT);
    CREATE TABLE RANK_DEVICE_MAP (rankId INTEGER, deviceId INTEGER);
    CREATE TABLE TASK (startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER,
        globalPid INTEGER, taskType INTEGER, contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER);
    CREATE TABLE COMPUTE_TASK_INFO (name INTEGER, globalTaskId INTEGER PRIMARY KEY, blockDim INTEGER,
        mixBlockDim INTEGER, taskType INTEGER, opType INTEGER, inputDataTypes INTEGER, inputShapes INTEGER,
        outputShapes INTEGER, opState INTEGER);
    CREATE TABLE COMMUNICATION_OP (opName INTEGER, startNs INTEGER, endNs INTEGER, connectionId INTEGER,
        groupName INTEGER, opId INTEGER PRIMARY KEY, dataType INTEGER, algType INTEGER, count NUMERIC, opType INTEGER,
        deviceId INTEGER);
    CREATE TABLE CANN_API (startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER,
        connectionId INTEGER PRIMARY KEY, name INTEGER);
    CREATE TABLE PYTORCH_API (startNs INTEGER, endNs INTEGER, globalTid INTEGER, connectionId INTEGER, name INTEGER,
        sequenceNumber INTEGER, fwdThreadId INTEGER, inputDtypes INTEGER, inputShapes INTEGER, callchainId INTEGER,
        type INTEGER);
    CREATE TABLE MSTX_EVENTS (startNs INTEGER, endNs INTEGER, eventType INTEGER, message INTEGER, globalTid INTEGER,
        connectionId INTEGER);
    CREATE TABLE STEP_TIME (id INTEGER, startNs INTEGER, endNs INTEGER);
    CREATE TABLE LLC (deviceId INTEGER, timestampNs INTEGER, hitRate NUMERIC);
"""


class Database:
    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path)
        self.connection.executescript(SCHEMA)
        self.strings: dict[str, int] = {}

    def text(self, text: str) -> int:
        if text not in self.strings:
            self.strings[text] = len(self.strings)
            self.row("STRING_IDS", id=self.strings[text], value=text)
        return self.strings[text]

    def row(self, table: str, **cells: object) -> None:
        marks = ", ".join("?" * len(cells))
        self.connection.execute(f"INSERT INTO {table} ({', '.join(cells)}) VALUES ({marks})", tuple(cells.values()))

    def task(self, number: int, start: int, end: int, kind: str, stream: int = 2, connection: int = 0xFFFFFFFF) -> None:
        self.row("TASK", startNs=START + start, endNs=START + end, deviceId=1, connectionId=connection,
                 globalTaskId=number, globalPid=PID, taskType=self.text(kind), streamId=stream)  # fmt: skip


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "ascend_pytorch_profiler_3.db")
    host = {"globalTid": PID << 32 | TID}
    made.row("ENUM_API_TYPE", id=50001, name="op")
    made.row("ENUM_API_TYPE", id=10000, name="node")
    made.row("ENUM_HCCL_DATA_TYPE", id=4, name="FP32")
    made.row("NPU_INFO", id=1, name="Ascend910B")
    made.row("HOST_INFO", hostUid="1", hostName="node7")
    made.row("RANK_DEVICE_MAP", rankId=3, deviceId=1)
    made.row("STEP_TIME", id=19, startNs=START, endNs=START + 900)
    made.row("PYTORCH_API", startNs=START + 10, endNs=START + 90, name=made.text("aten::mm"), sequenceNumber=5,
             inputShapes=made.text("128,64;64,32"), inputDtypes=made.text("float;float"), type=50001,
             **host)  # fmt: skip
    for connection, name, start in ((7, "aclnnMatmul", 20), (8, "AscendCL@aclrtSynchronizeStream", 100)):
        made.row("CANN_API", startNs=START + start, endNs=START + start + 30, type=10000, name=made.text(name),
                 connectionId=connection, **host)  # fmt: skip
    made.task(1, 200, 350, "KERNEL_AICORE", connection=7)
    made.row("COMPUTE_TASK_INFO", name=made.text("aclnnMatmul_MatMulV2"), globalTaskId=1, blockDim=16,
             taskType=made.text("AI_CORE"), opType=made.text("MatMulV2"), inputShapes=made.text("128,64;64,32"),
             inputDataTypes=made.text("FLOAT;FLOAT"))  # fmt: skip
    made.task(2, 360, 380, "MEMCPY_ASYNC")
    made.task(3, 390, 400, "EVENT_WAIT", stream=5)
    made.task(4, 400, 430, "KERNEL_AICPU", stream=5)
    made.row("COMMUNICATION_OP", opName=made.text("hcom_allReduce__428_0_1"), startNs=START + 440, endNs=START + 800,
             groupName=made.text("group0"), opId=1, dataType=4, count=1024, opType=made.text("hcom_allReduce_"),
             deviceId=1)  # fmt: skip
    for message, start, end in (("load", 105, 125), ("here", 195, 195)):
        made.row("MSTX_EVENTS", startNs=START + start, endNs=START + end, message=made.text(message), **host)
    made.row("LLC", deviceId=1, timestampNs=START, hitRate=0.5)
    made.connection.commit()
    yield made
    made.connection.close()


def rows(trace: Trace, query: str) -> list[tuple[Any, ...]]:
    return trace.sql(query).rows()


def test_tables_of_a_database_are_spans_on_threads_and_streams(database: Database, tmp_path: Path) -> None:
    trace = strobe.open(tmp_path / "ascend_pytorch_profiler_3.db")
    found = rows(
        trace,
        """select l.name, s.name, paradigm, role, start_ns, duration_ns from spans s join locations l using (location)
           order by start_ns""",
    )
    assert found == [
        ("steps", "ProfilerStep#19", "torch", "range", 0, 900),
        (f"thread {TID}", "aten::mm", "torch", "operator", 10, 80),
        (f"thread {TID}", "aclnnMatmul", "accelerator", "function", 20, 30),
        (f"thread {TID}", "AscendCL@aclrtSynchronizeStream", "accelerator", "sync", 100, 30),
        (f"thread {TID}", "load", "nvtx", "range", 105, 20),
        ("GPU 1 stream 2", "aclnnMatmul_MatMulV2", "accelerator", "kernel", 200, 150),
        ("GPU 1 stream 2", "MEMCPY_ASYNC", "accelerator", "copy", 360, 20),
        ("GPU 1 stream 5", "EVENT_WAIT", "accelerator", "sync", 390, 10),
        ("GPU 1 stream 5", "KERNEL_AICPU", "accelerator", "kernel", 400, 30),
        ("GPU 1", "hcom_allReduce__428_0_1", "accelerator", "kernel", 440, 360),
    ]
    assert trace.zero_ns == START
    assert rows(trace, "select name, time_ns from marks") == [("here", 195)]
    assert rows(trace, "select pid, rank from processes") == [(PID, 3)]
    assert rows(trace, "select metric, value from metrics") == [("LLC hitRate (device 1)", 0.5)]
    assert quality(trace)["records_taken"] == 12, "1 step, operator, collective and reading, 2 calls, 4 tasks, 2 ranges"


def test_kernels_have_their_type_launch_and_shapes(database: Database, tmp_path: Path) -> None:
    trace = strobe.open(tmp_path / "ascend_pytorch_profiler_3.db")
    kernels = rows(
        trace, "select short_name, correlation, device, stream, grid_x, launch from kernel_spans order by launch"
    )
    assert kernels[0] == ("MatMulV2", 7, 1, 2, 16, 1)
    assert kernels[1] == (None, None, 1, 2, None, 2), "a connection that is none is none"
    told = dict(rows(trace, "select key, value from arguments where name = 'aclnnMatmul_MatMulV2'"))
    assert told["shapes"] == '"128,64;64,32"'
    operators = rows(trace, "select sequence_number, shapes, types from operator_spans")
    assert operators == [(5, "[[128, 64], [64, 32]]", '["float", "float"]')]
    collectives = rows(trace, 'select collective, "group", dtype, in_elements from collective_spans')
    assert collectives == [("hcom_allReduce_", "group0", "FP32", 1024)]
    busiest = trace.kernels().to_arrow().to_pylist()
    assert {each["name"]: each["total_ns"] for each in busiest} == {
        "aclnnMatmul_MatMulV2": 150,
        "KERNEL_AICPU": 30,
        "hcom_allReduce__428_0_1": 360,
    }
    groups = dict(rows(trace, "select name, \"group\" from regions where role in ('kernel', 'collective')"))
    assert groups["hcom_allReduce__428_0_1"] == "communication"
    assert rows(trace, "select count(*) from links where kind = 'launch'") == [(1,)]


def test_a_folder_with_a_database_is_that_database(database: Database, tmp_path: Path) -> None:
    (tmp_path / "kernel_details.csv").write_text(KERNELS)
    (tmp_path / "op_statistic.csv").write_text(STATISTIC)
    (tmp_path / "trace_view.json").write_text('[{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]')
    trace = strobe.open(tmp_path)
    assert rows(trace, "select pid from processes") == [(PID,)]


KERNELS = """\
Step Id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim,Input Shapes,Input Data Types,Output Shapes,aicore_time(us)
19,4294967295,61653,2,aclnnMatmul_MatMulV2,MatMulV2,dynamic,AI_CORE,"1736413971558972.912\t",185.504,1.087,16,\"""81920,4096;8192,512""\",DT_BF16;DT_BF16,\"""4096,512""\",183.87
19,4294967295,61669,2,aclnnMatmul_MatMulV2,MatMulV2,dynamic,AI_CORE,"1736413971560588.764\t",501.17,2.2,20,\"""81920,1536;8192,4096""\",DT_BF16;DT_BF16,\"""1536,4096""\",478.701
19,4294967295,N/A,N/A,hcom_broadcast__445_0_1,hcom_broadcast_,N/A,HCCL,1736413971561000,3.0005,0,0,N/A,N/A,N/A,N/A
19,4294967295,7,3,ArgMax,ArgMax,static,AI_CPU,1736413971562000.5,2,0,1,N/A,N/A,N/A,N/A
19,4294967295,8,3,broken
19,4294967295,9,3,no time,X,static,AI_CORE,soon,2,0,1,N/A,N/A,N/A,N/A
"""  # noqa: E501
OP_SUMMARY = """\
Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us),Block Dim
5,100,1,2,MatMul_1,MatMul,static,AI_CORE,"1000.25\t",12.5,0.1,8
"""  # noqa: E501
STATISTIC = """\
Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)
0,MatMulV2,AI_CORE,2,686.674,185.504,343.337,501.17,99.1
0,hcom_broadcast_,HCCL,1,3.0005,3.0005,3.0005,3.0005,0.4
0,ArgMax,AI_CPU,many,2,2,2,2,0.5
"""


def test_kernels_of_a_csv_file_are_exact(tmp_path: Path) -> None:
    (tmp_path / "kernel_details.csv").write_text(KERNELS)
    trace = strobe.open(tmp_path / "kernel_details.csv")
    found = rows(
        trace,
        """select l.name, s.name, role, start_ns, duration_ns from spans s join locations l using (location)
           order by start_ns""",
    )
    zero = 1_736_413_971_558_972_912
    assert trace.zero_ns == zero
    assert found == [
        ("GPU 0 stream 2", "aclnnMatmul_MatMulV2", "kernel", 0, 185_504),
        ("GPU 0 stream 2", "aclnnMatmul_MatMulV2", "kernel", 1_736_413_971_560_588_764 - zero, 501_170),
        ("GPU 0", "hcom_broadcast__445_0_1", "kernel", 1_736_413_971_561_000_000 - zero, 3_000),
        ("GPU 0 stream 3", "ArgMax", "kernel", 1_736_413_971_562_000_500 - zero, 2_000),
    ]
    counted = quality(trace)
    assert (counted["unreadable_rows"], counted["events_without_time"], counted["times_rounded"]) == (1, 1, 1)
    assert counted["columns_not_kept"] == 4
    assert rows(trace, "select distinct module from regions order by 1") == [("AI_CORE",), ("AI_CPU",), ("HCCL",)]


PYTHON, CANN, NPU, LINKS, SUMS = PID, PID * 100 + 2, 800, 900, 1000


def layer(pid: int, name: str, labels: str = "CPU") -> list[dict[str, object]]:
    return [
        {"ph": "M", "name": f"process_{what}", "pid": pid, "tid": 0, "args": {key: value}}
        for what, key, value in (("name", "name", name), ("labels", "labels", labels), ("sort_index", "sort_index", 7))
    ]


def event(
    pid: int, tid: int, name: str, start_ns: int, duration_ns: int, category: str = "", **arguments: object
) -> dict[str, object]:
    """Return an event as torch_npu writes it: microseconds, as a text and as a number."""
    at = START + start_ns
    cells = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": f"{at // 1000}.{at % 1000:03}",
             "dur": duration_ns / 1000}  # fmt: skip
    return cells | ({"cat": category} if category else {}) | ({"args": arguments} if arguments else {})


# Names of layers come behind the events that lie in them.
TIMELINE = [
    event(PYTHON, TID, "ProfilerStep#19", 0, 900_000, "user_annotation"),
    event(PYTHON, TID, "aten::mm", 1_000, 80_000, "cpu_op",
          **{"Sequence number": 5, "Fwd thread id": 0, "Input Dims": "128,64;64,32", "Input type": "float;float"}),
    event(PYTHON, TID, "Enqueue", 2_000, 500, "enqueue", correlation_id=3),
    event(CANN, TID, "aclnnMatmul", 3_000, 30_000, level="node", connection_id=7, Mode="launch"),
    event(CANN, TID, "AscendCL@aclrtSynchronizeStream", 100_000, 5_000, level="acl", connection_id=8),
    event(NPU, 2, "aclnnMatmul_MatMulV2", 972_912, 185_504,
          **{"Model Id": 4294967295, "Task Type": "AI_CORE", "Stream Id": 2, "Task Id": 61653, "connection_id": 7}),
    event(NPU, 2, "MEMCPY_ASYNC", 1_500_000, 20_000,
          **{"Task Type": "MEMCPY_ASYNC", "Stream Id": 2, "Task Id": 9, "connection_id": 4294967295}),
    event(LINKS, 5, "hcom_broadcast__445_0_1", 3_000_000, 3_000),
    event(LINKS, 6, "Notify_Wait", 3_000_100, 40, **{"stream id": 40, "task type": "Notify Wait"}),
    event(SUMS, 0, "Computing", 972_912, 185_504),
    {"ph": "s", "bp": "e", "name": "torch_to_npu", "id": "77", "pid": PYTHON, "tid": TID, "cat": "async_npu",
     "ts": f"{START // 1000 + 1}.000"},
    {"ph": "C", "name": "AI Core Freq", "pid": 950, "tid": 0, "ts": f"{START // 1000}.500", "args": {"MHz": 1850}},
    *layer(PYTHON, "Python"), *layer(CANN, "CANN"), *layer(NPU, "Ascend Hardware", "NPU 4"),
    *layer(LINKS, "Communication", "NPU 4"), *layer(SUMS, "Overlap Analysis", "NPU 4"),
    {"ph": "M", "name": "thread_name", "pid": LINKS, "tid": 5, "args": {"name": "Group 0 Communication"}},
    {"ph": "M", "name": "thread_name", "pid": LINKS, "tid": 6, "args": {"name": "Plane 0"}},
]  # fmt: skip


def pytorch_folder(folder: Path, rank: int = 3) -> Path:
    """Write what `tensorboard_trace_handler` of torch_npu leaves behind."""
    run = folder / f"node7_{PID + rank}_20250109171251558_ascend_pt"
    output, recorded = run / "ASCEND_PROFILER_OUTPUT", run / "PROF_000001_20250109171251558_ABC"
    for each in (output, recorded / "device_4", recorded / "mindstudio_profiler_output", run / "FRAMEWORK"):
        each.mkdir(parents=True)
    (output / "trace_view.json").write_text(json.dumps(TIMELINE))
    (output / "kernel_details.csv").write_text(KERNELS)
    (output / "op_statistic.csv").write_text(STATISTIC)
    (run / f"profiler_info_{rank}.json").write_text("{}")
    (recorded / "mindstudio_profiler_output" / "op_summary_20250109.csv").write_text(OP_SUMMARY)
    (recorded / "mindstudio_profiler_output" / "msprof_20250109.json").write_text(json.dumps(TIMELINE))
    return run


def test_a_timeline_is_what_happened_and_its_csv_file_what_the_kernels_were(tmp_path: Path) -> None:
    trace = strobe.open(pytorch_folder(tmp_path))
    zero = trace.zero_ns - START
    found = rows(
        trace,
        """select l.name, s.name, paradigm, role, start_ns, duration_ns from spans s join locations l using (location)
           order by start_ns""",
    )
    assert [(*row[:4], row[4] + zero, row[5]) for row in found] == [
        (f"thread {TID}", "ProfilerStep#19", "torch", "range", 0, 900_000),
        (f"thread {TID}", "aten::mm", "torch", "operator", 1_000, 80_000),
        (f"thread {TID}", "Enqueue", "torch", "function", 2_000, 500),
        (f"thread {TID}", "aclnnMatmul", "accelerator", "function", 3_000, 30_000),
        (f"thread {TID}", "AscendCL@aclrtSynchronizeStream", "accelerator", "sync", 100_000, 5_000),
        ("GPU 4 stream 2", "aclnnMatmul_MatMulV2", "accelerator", "kernel", 972_912, 185_504),
        ("GPU 4 stream 2", "MEMCPY_ASYNC", "accelerator", "copy", 1_500_000, 20_000),
        ("GPU 4 stream 2", "aclnnMatmul_MatMulV2", "accelerator", "kernel", 2_588_764, 501_170),
        ("GPU 4", "hcom_broadcast__445_0_1", "accelerator", "kernel", 3_000_000, 3_000),
        ("GPU 4 stream 40 plane", "Notify_Wait", "accelerator", "other", 3_000_100, 40),
        ("GPU 4 stream 3", "ArgMax", "accelerator", "kernel", 4_000_500, 2_000),
    ], "tasks that the timeline lacks come from the CSV file"
    columns = "short_name, correlation, grid_x, launch"
    kernels = rows(trace, f"select {columns} from kernel_spans where device = 4 and role = 'kernel' order by start_ns")
    assert kernels[0] == ("MatMulV2", 7, 16, 61653)
    told = dict(
        rows(trace, "select key, value from arguments where name = 'aclnnMatmul_MatMulV2' order by start_ns desc")
    )
    assert told["shapes"] == json.dumps("81920,4096;8192,512"), "of the first one"
    assert rows(trace, "select sequence_number, shapes, types from operator_spans where name = 'aten::mm'") == [
        (5, "[[128, 64], [64, 32]]", '["float", "float"]')
    ]
    assert rows(trace, "select collective from collective_spans") == [("hcom_broadcast_",)]
    assert rows(trace, "select count(*) from links where kind = 'launch'") == [(1,)]
    assert rows(trace, "select phase, category, flow from flows") == [("s", "async_npu", 77)]
    assert rows(trace, "select metric, value from metrics") == [("AI Core Freq MHz", 1850.0)]
    assert rows(trace, "select pid, rank from processes") == [(PID, 3)]


def test_every_record_of_a_timeline_is_accounted_for(tmp_path: Path) -> None:
    told = quality(strobe.open(pytorch_folder(tmp_path)))
    # Rows of the CSV file that can be read: 5, of which one has no time.
    total = len(TIMELINE) + 5
    assert told["records_taken"] + told["records_left_out"] == total
    assert told["left_out: Overlap Analysis"] == 1
    assert told["left_out: process_sort_index"] == 5
    assert told["records_left_out"] == 1 + 5 + 1


def test_ranks_come_from_the_names_of_their_files(tmp_path: Path) -> None:
    for rank in (5, 1):
        pytorch_folder(tmp_path, rank)
    assert sorted(rows(strobe.open(tmp_path), "select rank from processes")) == [(1,), (5,)]


def test_what_msprof_exported_is_opened_once(tmp_path: Path) -> None:
    folder = tmp_path / "PROF_000001_20250109171251558_ABC" / "mindstudio_profiler_output"
    folder.mkdir(parents=True)
    (folder / "op_summary_20250109171252.csv").write_text(KERNELS)
    (folder / "op_statistic_20250109171252.csv").write_text(STATISTIC)
    (folder / "msprof_20250109171252.json").write_text(json.dumps(TIMELINE))
    trace = strobe.open(tmp_path)
    assert rows(trace, "select pid from processes") == [(PID,)]
    assert rows(trace, "select short_name, device from kernel_spans where correlation = 7") == [("MatMulV2", 4)]
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
        for each in folder.iterdir():
            archive.write(each, f"PROF_1/mindstudio_profiler_output/{each.name}")
    assert rows(strobe.open(tmp_path / "run.zip"), "select pid from processes") == [(PID,)]


def test_exports_of_several_recordings_are_kept_apart(tmp_path: Path) -> None:
    for when in ("20250109171252", "20250109181252"):
        (tmp_path / f"op_summary_{when}.csv").write_text(KERNELS)
        (tmp_path / f"msprof_{when}.json").write_text(json.dumps(TIMELINE))
    assert rows(strobe.open(tmp_path), "select pid from processes") == [(PID,), (PID,)]
    (tmp_path / "msprof_20250109181252.json").unlink()
    (tmp_path / "op_summary_20250109191252.csv").write_text(OP_SUMMARY)
    trace = strobe.open(tmp_path)
    assert sorted(rows(trace, "select pid from processes")) == [(0,), (0,), (PID,)], "the others have no timeline"


def test_a_database_that_msprof_exported_is_all_of_it(database: Database, tmp_path: Path) -> None:
    recorded = tmp_path / "PROF_1"
    (recorded / "mindstudio_profiler_output").mkdir(parents=True)
    (recorded / "mindstudio_profiler_output" / "op_summary_20250109171252.csv").write_text(OP_SUMMARY)
    (tmp_path / "ascend_pytorch_profiler_3.db").rename(recorded / "msprof_20250109171252.db")
    assert rows(strobe.open(tmp_path), "select count(*) from kernel_spans where role = 'kernel'") == [(2,)]


def test_iterations_that_older_versions_exported_are_opened_once(tmp_path: Path) -> None:
    for folder, names in (("timeline", ("msprof", "task_time", "hccl")), ("summary", ("op_summary",))):
        (tmp_path / folder).mkdir()
        for name in names:
            path = tmp_path / folder / f"{name}_0_2_1.{'csv' if folder == 'summary' else 'json'}"
            path.write_text(OP_SUMMARY if folder == "summary" else json.dumps(TIMELINE))
    trace = strobe.open(tmp_path)
    assert rows(trace, "select count(*) from kernel_spans where name = 'aclnnMatmul_MatMulV2'") == [(1,)]


def test_a_timeline_may_be_broken(tmp_path: Path) -> None:
    run = pytorch_folder(tmp_path)
    path = run / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"
    broken = [{"ph": "Q"}, 7, {"ph": "X", "ts": [], "pid": {}, "args": 3}, {"ph": "C", "args": {"a": "b"}},
              {"ph": "M", "name": 3, "args": []},
              {"ph": "X", "name": "late", "ts": 10**40, "dur": -1, "pid": 10**30}]  # fmt: skip
    path.write_text(json.dumps([*TIMELINE, *broken]))
    told = quality(strobe.open(run))
    assert told["unknown: phase Q"] == 1
    assert told["events_without_time"] == 1 + 2 + 0
    path.write_text(json.dumps(TIMELINE)[:-400])
    assert quality(strobe.open(run))["truncated"] == 1
    path.write_text('{"a": 1}')
    with pytest.raises(FormatError, match="it is not a list"):
        strobe.open(run)


def test_recordings_that_nobody_exported_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "PROF_000001_20250109171251558_ABC" / "device_0"
    folder.mkdir(parents=True)
    (folder / "info.json.0").write_text(
        '{"jobInfo":"NA","version":"1.0","mac":"0","hwtype":"","DeviceInfo":[{"id":0}]}'
    )
    with pytest.raises(FormatError, match="recording of msprof") as caught:
        strobe.open(tmp_path)
    assert caught.value.do == f"Export it: cd {folder} && msprof --export=on --output=.."


def test_op_analyse_sums_kernels_by_type_and_shapes(tmp_path: Path) -> None:
    from strobe.compat.mindspore import Profiler

    (tmp_path / "kernel_details.csv").write_text(KERNELS)
    found = json.loads(Profiler(start_profile=False, output_path=str(tmp_path)).op_analyse(["matmulv2", "ArgMax"], 0))
    assert [(each["op_side"], each["input_shape"], each["op_total_time(us)"]) for each in found["matmulv2"]] == [
        ("gpu", "[81920, 1536],[8192, 4096]", 501.17),
        ("gpu", "[81920, 4096],[8192, 512]", 185.504),
    ]
    assert found["ArgMax"] == [
        {"op_side": "gpu", "input_shape": "", "op_occurrences": 1, "op_total_time(us)": 2.0, "op_avg_time(us)": 2.0}
    ]
    with pytest.raises(RuntimeError, match="Softmax"):
        strobe.open(tmp_path / "kernel_details.csv").op_analyse("Softmax")


@pytest.mark.parametrize("start", ["1736413971561000115", "9223372036854775.000"])
def test_a_kernel_with_a_time_beyond_64_bits_is_left_out(tmp_path: Path, start: str) -> None:
    path = tmp_path / "op_summary_1.csv"
    head, row, *_ = OP_SUMMARY.splitlines(keepends=True)
    path.write_text(head + row + row.replace("1000.25", start).replace("12.5", "9999999.5"))
    trace = strobe.open(path)
    assert trace.span_count == 1
    assert quality(trace)["records_left_out"] == 1


def test_an_op_summary_of_msprof_has_its_device(tmp_path: Path) -> None:
    (tmp_path / "op_summary_20250101.csv").write_text(OP_SUMMARY)
    trace = strobe.open(tmp_path / "op_summary_20250101.csv")
    assert rows(trace, "select device, stream, launch, grid_x, short_name from kernel_spans") == [
        (5, 2, 1, 8, "MatMul")
    ]
    assert rows(trace, "select duration_ns from spans") == [(12_500,)]
    assert trace.zero_ns == 1_000_250


def test_sums_by_type_are_a_profile(tmp_path: Path) -> None:
    (tmp_path / "op_statistic.csv").write_text(STATISTIC)
    trace = strobe.open(tmp_path / "op_statistic.csv")
    assert by_path(trace, "count, total_ns, self_ns") == {
        "MatMulV2": [2, 686_674, 686_674],
        "hcom_broadcast_": [1, 3_000, 3_000],
    }
    assert quality(trace)["unreadable_rows"] == 1


def test_parts_of_steps_add_up(tmp_path: Path) -> None:
    (tmp_path / "step_trace_time.csv").write_text(
        "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,Preparing\n"
        "0,19,100.5,20.25,5,25.25,30,150.75,0,7\n0,20,x,1,1,1,1,1,1,1\n"
    )
    trace = strobe.open(tmp_path / "step_trace_time.csv")
    assert by_path(trace, "total_ns, self_ns") == {
        "step 19": [150_750, 0],
        "step 19;Computing": [100_500, 100_500],
        "step 19;Communication(Not Overlapped)": [20_250, 20_250],
        "step 19;Free": [30_000, 30_000],
    }
    others = dict(rows(trace, "select metric, total_value from path_metrics"))
    assert others == {"Overlapped": 5000.0, "Communication": 25_250.0, "Stage": 150_750.0, "Preparing": 7000.0}
    assert quality(trace)["unreadable_rows"] == 1


def test_a_database_without_events_is_refused(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "msprof_1.db")
    connection.executescript(
        "CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT); CREATE TABLE ENUM_API_TYPE (id INTEGER, n TEXT)"
    )
    connection.close()
    with pytest.raises(FormatError, match="no table with events"):
        strobe.open(tmp_path / "msprof_1.db")


# As MindSpore 1 writes them: mindinsight's tests/utils/resource/run_2, shortened.
OPERANDS = {"input_0": {"format": "NCHW", "shape": [32, 1, 28]}, "input_1": {"shape": "6"}, "output_0": {"shape": 9}}
OF_DEVICE = {
    "output_timeline_data_1.txt": """\
op_name, stream_id, start_time(ms), duration(ms)
Default/AssignAdd-op142,519,154907895.95956,0.0031
Default/network-LeNet5/conv1-Conv2d/Conv2D-op9,519,154907896.00001,0.04664
""",
    "framework_raw_1.csv": """\
task_id,stream_id,block_dim,full_kernel_name,op_name,kernel_name,kernel_type,subgraph,op_info
2,519,8,Default/network-LeNet5/conv1-Conv2d/Conv2D-op9,x,x,Conv2D,Default,"{OPERANDS}"
""",
    "aicore_intermediate_1_detail.csv": """\
full_kernel_name,execution_time,execution_frequency
Default/AssignAdd-op142,0.0031,1
Default/network-LeNet5/conv1-Conv2d/Conv2D-op9,0.016093333333333334,3
Default/broken,x,1
""",
    "aicore_intermediate_1_type.csv": """\
kernel_type,total_time,execution_frequency,percent
AssignAdd,0.0031,1,6.03
Conv2D,0.04828,3,93.97
""",
    "aicpu_intermediate_1.csv": """\
serial_number,kernel_type,total_time,dispatch_time,execution_time,run_start,run_end
1,GetNext,0.888,0.132,0.22,154907895189,154907895707
""",
    "step_trace_raw_1_detail_time.csv": """\
step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail,stream_48_0_AllReduce-op6_start_point,stream_48_0_AllReduce-op6_end_point,stream_48_0_AllReduce-op6
1,15490789518900,15490790000000,481100,15490789518900,15490789900000,0,381100,100000,15490789800000,15490789850000,50000
2,15490790000000,15490790500000,500000,15490790100000,15490790400000,100000,300000,100000,15490790300000,15490790350000,50000
-,15490789759450,15490790250000,490550,15490789809450,15490790150000,50000,340550,100000,15490790050000,15490790100000,50000
""",
    "minddata_pipeline_raw_1.csv": """\
op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,output_queue_usage_rate,sample_interval,parent_id,children_id
0,Batch,4,,,,0,10,,[1]
1,Shuffle,1,"[10, 20, 30]",20.0,64,0.3125,10,0,"[2, 3]"
""",
    "pipeline_profiling_1.json": json.dumps({
        "op_info": [
            {"metrics": {"output_queue": {"length": 64, "size": [10, 20, 30]}}, "op_id": 1, "op_type": "Shuffle"},
            {"metrics": None, "op_id": 0, "op_type": "Batch"},
        ],
        "sampling_interval": 10,
    }),
    "timeline_display_1.json": '[{"name": "AssignAdd", "ph": "X", "tid": "519", "ts": 0.1, "dur": 3.1, "pid": 1}]',
}  # fmt: skip


def of_device(folder: Path, *names: str) -> Path:
    for name in names or OF_DEVICE:
        (folder / name).write_text(OF_DEVICE[name].replace("{OPERANDS}", json.dumps(OPERANDS).replace('"', '""')))
    return folder


def test_all_that_older_mindspore_wrote_for_a_device_is_one_process(tmp_path: Path) -> None:
    trace = strobe.open(of_device(tmp_path))
    assert rows(trace, "select count(*) from processes") == [(1,)]
    found = rows(
        trace,
        """select l.name, s.name, role, start_ns, duration_ns from spans s join locations l using (location)
           order by start_ns, duration_ns desc""",
    )
    conv = "Default/network-LeNet5/conv1-Conv2d/Conv2D-op9"
    zero = trace.zero_ns
    assert zero == 154_907_895_189_000
    assert [(*row[:3], row[3] + zero, row[4]) for row in found] == [
        ("steps", "step 1", "range", 154_907_895_189_000, 4_811_000),
        ("steps", "fp_and_bp", "range", 154_907_895_189_000, 3_811_000),
        ("GPU 1", "GetNext", "kernel", 154_907_895_189_000, 518_000),
        ("GPU 1 stream 519", "Default/AssignAdd-op142", "kernel", 154_907_895_959_560, 3_100),
        ("GPU 1 stream 519", conv, "kernel", 154_907_896_000_010, 46_640),
        ("GPU 1 stream 48", "0_AllReduce-op6", "kernel", 154_907_898_000_000, 500_000),
        ("steps", "tail", "range", 154_907_899_000_000, 1_000_000),
        ("steps", "step 2", "range", 154_907_900_000_000, 5_000_000),
        ("steps", "iteration_interval", "range", 154_907_900_000_000, 1_000_000),
        ("steps", "fp_and_bp", "range", 154_907_901_000_000, 3_000_000),
        ("GPU 1 stream 48", "0_AllReduce-op6", "kernel", 154_907_903_000_000, 500_000),
        ("steps", "tail", "range", 154_907_904_000_000, 1_000_000),
    ]
    assert rows(trace, f"select short_name, grid_x from kernel_spans where name = '{conv}'") == [("Conv2D", 8)]
    assert rows(trace, f"select value from arguments where name = '{conv}' and key = 'shapes'") == [('"32,1,28;6"',)]
    queue = rows(trace, "select time_ns, value from metrics where metric = 'queue of Shuffle 1' order by 1")
    assert queue == [(0, 10), (10_000_000, 20), (20_000_000, 30)]


def test_without_times_older_mindspore_has_sums_of_kernels(tmp_path: Path) -> None:
    trace = strobe.open(of_device(tmp_path, "aicore_intermediate_1_detail.csv", "aicore_intermediate_1_type.csv"))
    conv = "Default/network-LeNet5/conv1-Conv2d/Conv2D-op9"
    assert by_path(trace, "count, total_ns") == {"Default/AssignAdd-op142": [1, 3_100], conv: [3, 48_280]}
    told = quality(trace)
    assert (told["records_taken"], told["records_left_out"], told["unreadable_rows"]) == (2, 1, 1)
    (tmp_path / "aicore_intermediate_1_detail.csv").unlink()
    assert by_path(strobe.open(tmp_path), "count, total_ns") == {"AssignAdd": [1, 3_100], "Conv2D": [3, 48_280]}


def test_files_that_are_not_what_their_names_have_them_for_are_left_alone(tmp_path: Path) -> None:
    of_device(tmp_path, "aicore_intermediate_1_detail.csv")
    (tmp_path / "step_trace_raw_1_detail_time.csv").write_text("step_num,start_point\n1,2\n")
    (tmp_path / "output_timeline_data_1.txt").write_text("nothing\n")
    assert rows(strobe.open(tmp_path), "select sum(count) from statistics") == [(4,)]


def test_queues_of_the_data_pipeline_alone_have_readings(tmp_path: Path) -> None:
    trace = strobe.open(of_device(tmp_path, "pipeline_profiling_1.json"))
    assert rows(trace, "select time_ns, value from metrics order by 1") == [(0, 10), (10_000_000, 20), (20_000_000, 30)]
    assert quality(trace)["left_out: operators without a queue"] == 1
    (tmp_path / "pipeline_profiling_1.json").write_text('{"op_info": [{"metrics": {"output_queue": 3}}, 7, {"a')
    with pytest.raises(FormatError, match="cannot be read as Ascend"):
        strobe.open(tmp_path)
