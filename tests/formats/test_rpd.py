"""Databases of rocmProfileData: schemas 2 and 3, as its tracer writes them (tableSchema.cmd)."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import strobe
from tests.formats.sources import READERS, differences, records
from tests.formats.test_chrome import quality

SCHEMA = """
CREATE TABLE rocpd_metadata (id integer PRIMARY KEY AUTOINCREMENT, tag varchar(4096), value varchar(4096));
CREATE TABLE rocpd_string (id integer PRIMARY KEY AUTOINCREMENT, string varchar(4096) NOT NULL);
CREATE TABLE rocpd_api (id integer PRIMARY KEY AUTOINCREMENT, pid integer, tid integer, start integer, end integer,
    apiName_id bigint, args_id bigint);
CREATE TABLE rocpd_copyapi (api_ptr_id bigint PRIMARY KEY, stream varchar(18), size integer, width integer,
    height integer, kind integer, dst varchar(18), src varchar(18), dstDevice integer, srcDevice integer, sync bool,
    pinned bool);
CREATE TABLE rocpd_kernelapi (api_ptr_id bigint PRIMARY KEY, stream varchar(18), gridX integer, gridY integer,
    gridZ integer, workgroupX integer, workgroupY integer, workgroupZ integer, groupSegmentSize integer,
    privateSegmentSize integer, kernelName_id bigint);
CREATE TABLE rocpd_op (id integer PRIMARY KEY AUTOINCREMENT, gpuId integer, queueId integer, sequenceId integer,
    start integer, end integer, description_id bigint, opType_id bigint);
CREATE TABLE rocpd_api_ops (id integer PRIMARY KEY AUTOINCREMENT, api_id bigint, op_id bigint);
CREATE TABLE rocpd_monitor (id integer PRIMARY KEY AUTOINCREMENT, deviceType varchar(16), deviceId integer,
    monitorType varchar(16), start integer, end integer, value varchar(255));
"""
T0 = 8_306_017_000_000_000
FIRST_ID = 1 << 32  # the numbers of calls and operations begin there


def rpd(path: Path, schema: int = 2) -> Path:
    """Write one step of a program: a copy, two kernels by calls that count differently, a graph, a barrier."""
    with closing(sqlite3.connect(path)) as base:
        base.executescript(SCHEMA)
        if schema == 3:
            base.execute("CREATE TABLE rocpd_ustring (id integer PRIMARY KEY AUTOINCREMENT, string varchar(4096))")
            base.execute("ALTER TABLE rocpd_api ADD COLUMN category_id bigint")
            base.execute("ALTER TABLE rocpd_api ADD COLUMN domain_id bigint")

        def text(string: str, table: str = "rocpd_string") -> int | None:
            return base.execute(f"INSERT INTO {table} (string) VALUES (?)", (string,)).lastrowid

        def call(number: int, start: int, end: int, name: str, arguments: str = "", thread: int = 70) -> int:
            own = "rocpd_ustring" if schema == 3 else "rocpd_string"
            cells = [FIRST_ID + number, 70, thread, T0 + start, T0 + end, text(name), text(arguments, own)]
            cells += [text("hip"), text("hip")] if schema == 3 else []
            base.execute(f"INSERT INTO rocpd_api VALUES ({', '.join('?' * len(cells))})", cells)
            return FIRST_ID + number

        def work(number: int, by: int, start: int, end: int, what: str, name: str = "") -> None:
            cells = (FIRST_ID + number, 2, 5, 0, T0 + start, T0 + end, text(name), text(what))
            base.execute("INSERT INTO rocpd_op VALUES (?, ?, ?, ?, ?, ?, ?, ?)", cells)
            base.execute("INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (?, ?)", (by, FIRST_ID + number))

        text("")
        call(1, 0, 1000, "UserMarker", "step")
        call(2, 10, 90, "UserMarker", "aten::copy_")
        copy = call(3, 20, 80, "hipMemcpyAsync", "kind=1")
        base.execute("INSERT INTO rocpd_copyapi VALUES (?, '0x0', 4096, '', '', 1, '0x1', '0x2', 0, 0, 0, 0)", (copy,))
        work(1, copy, 100, 150, "CopyHostToDevice")
        plain = call(4, 200, 210, "hipLaunchKernel")
        blocks = call(5, 220, 230, "hipExtModuleLaunchKernel")
        for each, size in ((plain, (4, 2, 1)), (blocks, (1000, 6, 1))):
            cells = (each, "0x0", *size, 256, 2, 1, 512, 0, 1)
            base.execute(f"INSERT INTO rocpd_kernelapi VALUES ({', '.join('?' * len(cells))})", cells)
        work(2, plain, 300, 340, "KernelExecution", "void add<float>(float*)")
        work(3, blocks, 350, 450, "KernelExecution", "Cijk_gemm")
        graph = call(6, 400, 410, "hipGraphLaunch")
        work(4, graph, 500, 520, "Task", "void add<float>(float*)")
        work(5, graph, 520, 525, "FillBuffer")
        work(6, graph, 525, 526, "Barrier")
        call(7, 600, 600, "UserMarker", "here", thread=71)
        call(8, 610, 620, "hipFree", thread=71)
        for device, at, value in ((0, 0, "1700"), (0, 500, "800"), (1, 0, "150"), (1, 9, "no")):
            cells = (device, T0 + at, T0 + at + 1, value)
            base.execute("INSERT INTO rocpd_monitor VALUES (NULL, 'gpu', ?, 'sclk', ?, ?, ?)", cells)
        base.execute("INSERT INTO rocpd_metadata (tag, value) VALUES ('schema_version', ?)", (str(schema),))
        base.commit()
    return path


@pytest.mark.parametrize("schema", [2, 3])
def test_what_gpus_and_threads_did(tmp_path: Path, schema: int) -> None:
    path = rpd(tmp_path / "trace.rpd", schema)
    trace = strobe.open(path)
    rows = trace.sql("select name, start_ns, duration_ns, role, paradigm from spans order by start_ns, depth").rows()
    assert [row for row in rows if row[3] in ("kernel", "copy")] == [
        ("Memcpy HtoD", 100, 50, "copy", "hip"),
        ("void add<float>(float*)", 300, 40, "kernel", "hip"),
        ("Cijk_gemm", 350, 100, "kernel", "hip"),
        ("void add<float>(float*)", 500, 20, "kernel", "hip"),
        ("FillBuffer", 520, 5, "kernel", "hip"),
    ]
    assert [row for row in rows if row[3] not in ("kernel", "copy")] == [
        ("step", 0, 1000, "range", "nvtx"),
        ("aten::copy_", 10, 80, "operator", "torch"),
        ("hipMemcpyAsync", 20, 60, "function", "hip"),
        ("hipLaunchKernel", 200, 10, "function", "hip"),
        ("hipExtModuleLaunchKernel", 220, 10, "function", "hip"),
        ("hipGraphLaunch", 400, 10, "function", "hip"),
        ("hipFree", 610, 10, "function", "hip"),
    ]
    assert trace.sql("select time_ns, name from marks").rows() == [(600, "here")]
    sizes = "select grid_x, grid_y, block_x, block_y, shared_memory_bytes, device from kernel_spans order by start_ns"
    assert trace.sql(sizes).rows()[:2] == [(4, 2, 256, 2, 512, 2), (4, 3, 256, 2, 512, 2)]
    copies = trace.sql("select size_bytes, copy_kind, source_device, destination_device from copy_spans").rows()
    assert copies == [(4096, "HtoD", None, 2)]
    assert trace.sql("select value from arguments where key = 'arguments'").rows() == [('"kind=1"',)]
    (operator,) = trace.operators(step="all").to_pylist()
    assert (operator["name"], operator["device_total_ns"], operator["kernels"]) == ("aten::copy_", 50, 1)
    delays = {row["kernel"]: row["launch_delay_avg_ns"] for row in trace.kernels().to_pylist()}
    assert delays == {"add": 100.0, "Cijk_gemm": 130.0, "FillBuffer": 120.0}  # a graph's kernels are its launch's
    readings = [(row["metric"], row["time_ns"], row["value"]) for row in trace.metrics().to_pylist()]
    assert sorted(readings) == [("gpu 0 sclk", 0, 1700.0), ("gpu 0 sclk", 500, 800.0), ("gpu 1 sclk", 0, 150.0)]


def test_every_row_is_accounted_for(tmp_path: Path) -> None:
    path = rpd(tmp_path / "trace.rpd")
    trace = strobe.open(path)
    assert differences(trace, READERS["rocm"](path)) == []
    assert records(trace) == (8 + 5 + 3, 1 + 1, 0)
    assert quality(trace)["unreadable_values"] == 1


def test_tables_may_be_missing(tmp_path: Path) -> None:
    path = rpd(tmp_path / "trace.rpd")
    with closing(sqlite3.connect(path)) as base:
        for table in ("rocpd_copyapi", "rocpd_kernelapi", "rocpd_api_ops", "rocpd_monitor", "rocpd_metadata"):
            base.execute(f"DROP TABLE {table}")
        base.commit()
    trace = strobe.open(path)
    assert {row["kernel"]: row["total_ns"] for row in trace.kernels().to_pylist()} == {
        "add": 60,
        "Cijk_gemm": 100,
        "FillBuffer": 5,
    }
