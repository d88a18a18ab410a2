"""nvprof's files, against sums that decimal arithmetic and plain SQL take straight from them."""

import csv
import json
import re
import sqlite3
import struct
from collections import defaultdict
from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any

import pytest

import strobe
from strobe.api.trace import Trace
from strobe.cli.main import main
from strobe.present import nvprof_layout
from tests.public import FOLDER, needs_public_traces

PRINTED_CSV = FOLDER / "nvprof/cfd-print-gpu-trace.csv"
PRINTED_TEXT = FOLDER / "nvprof/cudastream-print-gpu-trace.txt"
SCALE = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1, "B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))


def rows(trace: Trace, query: str) -> list[tuple[Any, ...]]:
    return [tuple(int(cell) if isinstance(cell, Decimal) else cell for cell in row) for row in trace.sql(query).rows()]


def whole(number: str, unit: str) -> int:
    return int((Decimal(number) * SCALE[unit]).to_integral_value(ROUND_HALF_EVEN))


def of_text(cell: str) -> int:
    found = re.fullmatch(r"([\d.]+)(\w+)", cell)
    assert found
    return whole(found[1], found[2])


def by_name(events: list[tuple[str, int, int]]) -> dict[str, tuple[int, int, int]]:
    sums: dict[str, tuple[int, int, int]] = defaultdict(lambda: (0, 0, 0))
    for name, duration, size in events:
        count, total, sizes = sums[name]
        sums[name] = (count + 1, total + duration, sizes + size)
    return dict(sums)


def summed(trace: Trace) -> dict[str, tuple[int, int, int]]:
    found = rows(
        trace,
        """select s.name, count(*), sum(s.duration_ns), coalesce(sum(size_bytes), 0) from spans s
           left join copy_spans c on c.location = s.location and c.row = s.row group by 1""",
    )
    return {name: (count, total, size) for name, count, total, size in found}


@needs_public_traces
def test_a_printed_csv_keeps_every_digit() -> None:
    lines = [line for line in PRINTED_CSV.read_text().splitlines() if not line.startswith("==")]
    header, units, *printed = csv.reader(lines)
    unit = dict(zip(header, units, strict=True))
    events, moments, starts = [], 0, []
    for cells in printed:
        row = dict(zip(header, cells, strict=True))
        starts.append(whole(row["Start"], unit["Start"]))
        if not row["Duration"]:
            moments += 1
            continue
        size = row["Size"] and whole(row["Size"], "MB")
        if row["Name"].startswith("[Unified Memory Memcpy"):
            size = whole(row["Unified Memory"], "B")
        events.append((row["Name"], whole(row["Duration"], unit["Duration"]), int(size or 0)))
    trace = strobe.open(PRINTED_CSV)
    assert summed(trace) == by_name(events)
    found = rows(trace, "select start_ns from spans union all select time_ns from marks")
    assert sorted(start for (start,) in found) == sorted(starts)
    assert rows(trace, "select count(*) from marks") == [(moments,)]
    assert rows(trace, "select pid, argv from processes") == [
        (308065, "./euler3d_adapt ../../data/cfd/fvcorr.domn.097K")
    ]
    assert rows(
        trace, "select sum(grid_x * block_x), sum(registers_per_thread), sum(correlation) from kernel_spans"
    ) == [
        tuple(
            sum(int(value(dict(zip(header, cells, strict=True)))) for cells in printed if cells[2])
            for value in (
                lambda row: int(row["Grid X"]) * int(row["Block X"]),
                lambda row: row["Registers Per Thread"],
                lambda row: row["Correlation_ID"],
            )
        )
    ]
    assert rows(trace, "select copy_kind, source_kind, destination_kind from copy_spans where correlation = 105") == [
        ("HtoD", "Pageable", "Device")
    ]


@needs_public_traces
def test_a_printed_text_keeps_every_digit() -> None:
    events, shared = [], 0
    for line in PRINTED_TEXT.read_text().splitlines():
        cells = re.split(r"\s{2,}", line.strip(), maxsplit=14)
        if len(cells) < 15 or cells[0] == "Start":
            continue
        name = re.sub(r" \[\d+\]$", "", cells[14])
        events.append((name, of_text(cells[1]), 0 if cells[7] == "-" else of_text(cells[7])))
        shared += 0 if cells[5] == "-" else of_text(cells[5])
    trace = strobe.open(PRINTED_TEXT)
    assert len(events) == 604
    assert summed(trace) == by_name(events)
    assert rows(trace, "select sum(static_shared_bytes) from kernel_spans") == [(shared,)]
    assert rows(trace, "select min(correlation), max(correlation), count(*) from kernel_spans")[0][:1] == (128,)
    (rate,) = rows(trace, "select bandwidth_gb_s from copy_spans where size_bytes = 2048 order by start_ns limit 1")[0]
    assert rate == pytest.approx(1.0644 * 2**30 / 10**9)


def printed(tmp_path: Path, text: str) -> Trace:
    path = tmp_path / "printed"
    path.write_text(text)
    return strobe.open(path)


def test_calls_of_the_api_trace_and_both_traces_in_one(tmp_path: Path) -> None:
    trace = printed(
        tmp_path,
        """\
the program's own words
==12== NVPROF is profiling process 12, command: ./a.out 1
==12== Warning: this is only a test
==12== Profiling application: ./a.out 1
==12== Profiling result:
  Start  Duration  Grid Size  Block Size  Regs*  SSMem*  DSMem*  Size  Throughput  Device  Context  Stream  Name
100.00ms  1.5000us  -  -  -  -  -  -  -  -  -  -  cudaMalloc [7]
200.00ms  896ns  (2 1 1)  (64 1 1)  10  16B  1.0000KB  -  -  Quadro (1)  1  13  k(int) [9]
1.08898s  1.0000ms  -  -  -  -  -  1.5000KB  1.0000MB/s  Quadro (1)  1  13  [CUDA memset]

Regs: Number of registers used per CUDA thread.
==13== NVPROF is profiling process 13, command: ./b.out
==13== Profiling result:
"Start","Duration","Name","Correlation_ID"
s,us,,
0.100000,2.500000,"cudaDeviceSynchronize",4
0.200000,0.0005,"cudaFree, or not",5
broken
""",
    )
    assert rows(
        trace,
        """select pid, l.name, s.name, role, start_ns, duration_ns
           from spans s join locations l using (location) join processes p on p.process = l.process
           order by pid, start_ns""",
    ) == [
        (12, "calls", "cudaMalloc", "function", 100_000_000, 1500),
        (12, "GPU 1 stream 13", "k(int)", "kernel", 200_000_000, 896),
        (12, "GPU 1 stream 13", "[CUDA memset]", "copy", 1_088_980_000, 1_000_000),
        (13, "calls", "cudaDeviceSynchronize", "sync", 100_000_000, 2500),
        (13, "calls", "cudaFree, or not", "function", 200_000_000, 0),
    ]  # half a nanosecond is even at 0
    assert rows(trace, "select shared_memory_bytes, grid_x, block_x, correlation, device from kernel_spans") == [
        (1040, 2, 64, 9, 1)
    ]
    assert rows(trace, "select size_bytes, copy_kind, bandwidth_gb_s from copy_spans") == [(1536, None, 2**20 / 10**9)]
    counted = dict(rows(trace, "select what, value from quality where value > 0"))
    assert (counted["unreadable_rows"], counted["times_rounded"]) == (1, 1)
    (told,) = json.loads((Path(trace.info.path) / "job.json").read_text())["imported"]["files"]
    names = [{"id": 1, "name": "Quadro"}]
    assert told["properties"] == {"deviceProperties": names, "messages": ["Warning: this is only a test"]}
    (gpu,) = trace.devices().to_pylist()
    assert gpu["name"] == "Quadro"


@pytest.mark.parametrize("form", ["text", "csv"])
def test_a_launch_is_one_function_and_names_its_kernel(tmp_path: Path, form: str) -> None:
    head = "==12== NVPROF is profiling process 12, command: ./a.out\n==12== Profiling result:\n"
    text = """\
   Start  Duration  Name
167.46ms  176.84us  cudaMalloc [100]
243.33ms  9.3530us  cudaLaunchKernel (void add<int>(int*, int) [101])
243.35ms  6.0000us  cudaLaunchKernel (other(int) [102])
"""
    table = """\
"Start","Duration","Name","Correlation_ID"
ms,us,,
167.46,176.84,"cudaMalloc",100
243.33,9.353,"cudaLaunchKernel (void add<int>(int*, int) [101])",101
243.35,6,"cudaLaunchKernel (other(int) [102])",102
"""
    trace = printed(tmp_path, head + (text if form == "text" else table))
    assert [(row["name"], row["calls"], row["total_ns"]) for row in trace.calls().to_pylist()] == [
        ("cudaMalloc", 1, 176_840),
        ("cudaLaunchKernel", 2, 15_353),
    ]
    found = rows(trace, "select start_ns, name, correlation from call_spans order by 1")
    assert found == [
        (167_460_000, "cudaMalloc", 100),
        (243_330_000, "cudaLaunchKernel", 101),
        (243_350_000, "cudaLaunchKernel", 102),
    ]
    kernels = "select value from arguments where key = 'columns' order by value"
    assert [json.loads(value) for (value,) in rows(trace, kernels)] == [
        {"Kernel": "other(int)"},
        {"Kernel": "void add<int>(int*, int)"},
    ]


SUMMARY_TEXT = """\
==12== NVPROF is profiling process 12, command: ./a.out
==12== Profiling result:
            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:   90.00%  46.6474s    202752  230.07us  124.57us  339.61us  sgemm_largek_lds64
                   10.00%  5.1830us         2  2.5915us     896ns  4.2870us  [CUDA memcpy HtoD]
      API calls:  100.00%  1.5000ms         3  500.00us  100.00us  900.00us  cudaDeviceSynchronize

==12== Unified Memory profiling result:
Device "TITAN Xp (0)"
   Count  Avg Size  Min Size  Max Size  Total Size  Total Time  Name
     160  62.234KB  4.0000KB  996.00KB  9.723633MB  717.9200us  Host To Device
"""
SUMMARY_CSV = """\
==12== NVPROF is profiling process 12, command: ./a.out
==12== Profiling result:
"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"
,%,s,,us,us,us,
"GPU activities",90.00,46.6474,202752,230.07,124.57,339.61,"sgemm_largek_lds64"
"GPU activities",10.00,0.000005183,2,2.5915,0.896,4.287,"[CUDA memcpy HtoD]"
"API calls",100.00,0.0015,3,500.0,100.0,900.0,"cudaDeviceSynchronize"
"""
SUMMARY_BEFORE_CUDA_9 = """\
==12== NVPROF is profiling process 12, command: ./a.out
==12== Profiling result:
Time(%)      Time     Calls       Avg       Min       Max  Name
 90.00%  46.6474s    202752  230.07us  124.57us  339.61us  sgemm_largek_lds64
 10.00%  5.1830us         2  2.5915us     896ns  4.2870us  [CUDA memcpy HtoD]

==12== API calls:
Time(%)      Time     Calls       Avg       Min       Max  Name
100.00%  1.5000ms         3  500.00us  100.00us  900.00us  cudaDeviceSynchronize
"""


def test_a_process_number_that_is_none_is_left_out(tmp_path: Path) -> None:
    trace = printed(tmp_path, SUMMARY_TEXT.replace("==12==", f"=={2**64}=="))
    assert rows(trace, "select pid from processes") == [(0,)]
    assert summed(trace) == summed(printed(tmp_path, SUMMARY_TEXT))


@pytest.mark.parametrize("text", [SUMMARY_TEXT, SUMMARY_CSV, SUMMARY_BEFORE_CUDA_9], ids=["text", "csv", "old text"])
def test_a_summary_becomes_totals(tmp_path: Path, text: str) -> None:
    trace = printed(tmp_path, text)
    assert trace.span_count == 0
    assert rows(
        trace,
        """select l.name, s.name, role, count, total_ns, self_ns, min_ns, max_ns from statistics s
           join locations l using (location) where l.name <> 'unified memory' order by total_ns desc""",
    ) == [
        ("GPU activities", "sgemm_largek_lds64", "kernel", 202752, 46_647_400_000, 46_647_400_000, 124_570, 339_610),
        ("API calls", "cudaDeviceSynchronize", "sync", 3, 1_500_000, 1_500_000, 100_000, 900_000),
        ("GPU activities", "[CUDA memcpy HtoD]", "copy", 2, 5_183, 5_183, 896, 4_287),
    ]
    (kernel,) = trace.kernels().to_pylist()
    (copy,) = trace.copies().to_pylist()
    (call,) = trace.calls().to_pylist()
    names = ("calls", "total_ns", "avg_ns", "min_ns", "max_ns", "median_ns", "stddev_ns")
    assert [kernel[each] for each in names] == [
        *(202752, 46_647_400_000, pytest.approx(230_071.22, abs=0.01), 124_570, 339_610, None, None)
    ]
    assert (kernel["kernel"], copy["kind"], copy["calls"], copy["total_ns"]) == ("sgemm_largek_lds64", "HtoD", 2, 5_183)
    assert (call["name"], call["calls"], call["total_ns"], call["waits"]) == (
        *("cudaDeviceSynchronize", 3, 1_500_000, True),
    )
    if text is SUMMARY_TEXT:  # a table of other columns is kept as it is printed
        (told,) = json.loads((Path(trace.info.path) / "job.json").read_text())["imported"]["files"]
        assert told["properties"]["messages"][-1].split()[:3] == ["160", "62.234KB", "4.0000KB"]


# From the end of a training of 12 epochs. The other activities are left out, but for their sum.
TRAINING = """\
==12== NVPROF is profiling process 12, command: python mnist_cnn.py
==12== Profiling result:
            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:   59.06%  76.4415s     10000  7.6441ms  1.0000us  1.2132ms  [CUDA memcpy HtoD]
                   36.04%  46.6474s    202752  230.07us  124.57us  339.61us  void sgemm_largek_lds64<bool=0>(int*, int)
                    4.90%  6.34396s      5642  1.1244ms  52.928us  1.2132ms  fermiPlusCgemmLDS128_batched
      API calls:   47.93%  42.3065s      6891  6.1394ms  4.2120us  8.8403ms  cuCtxSynchronize
                   26.73%  23.5916s   2092524  11.274us  4.8920us  40.285ms  cudaLaunchKernel
                   25.34%  22.3660s         8  2.79575s  1.9750us  4.74054s  cudaStreamCreateWithFlags
"""


@pytest.mark.parametrize("tabs", [False, True], ids=["spaces", "tabs"])
def test_a_summary_is_shown_as_nvprof_printed_it(tmp_path: Path, tabs: bool) -> None:
    given = re.sub(r"(?<=\S)  +(?=\S)", "\t", TRAINING) if tabs else TRAINING
    assert nvprof_layout.summary(printed(tmp_path, given)) == TRAINING


class Export:
    """A database like those of nvprof."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = sqlite3.connect(path)
        self.database.execute("CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL)")

    def string(self, text: str) -> int:
        found = self.database.execute("INSERT INTO StringTable (value) VALUES (?)", (text,)).lastrowid
        assert found is not None
        return found

    def table(self, name: str, *given: Mapping[str, object]) -> None:
        columns = list(dict.fromkeys(column for row in given for column in row))
        declared = ", ".join(f'"{each}" {"BLOB" if each == "objectId" else "INT"}' for each in columns)
        full = f"CUPTI_ACTIVITY_KIND_{name}"
        self.database.execute(f"CREATE TABLE {full} (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, {declared})")
        self.database.executemany(
            f"INSERT INTO {full} VALUES (NULL, {', '.join('?' * len(columns))})",
            [[row.get(column) for column in columns] for row in given],
        )

    def open(self) -> Trace:
        self.database.commit()
        self.database.close()
        return strobe.open(self.path)


@pytest.fixture
def export(tmp_path: Path) -> Export:
    return Export(tmp_path / "profile.nvvp")


def test_a_database_has_calls_kernels_copies_and_ranges(export: Export) -> None:
    base = 1_500_000_000_000_000_000
    thread = {"objectKind": 2, "objectId": struct.pack("<III", 77, 5, 0)}
    stream = {"deviceId": 0, "contextId": 1, "streamId": 7}
    call = {"processId": 77, "threadId": 5, "returnValue": 0}
    export.table(
        "RUNTIME",
        {**call, "cbid": 211, "start": base + 10, "end": base + 20, "correlationId": 3},
        {**call, "cbid": 165, "start": base + 30, "end": base + 90, "correlationId": 4},
        {**call, "cbid": 99999, "start": base + 95, "end": base + 96, "correlationId": 5},
    )
    export.table("DRIVER", {**call, "cbid": 307, "start": base + 12, "end": base + 18, "correlationId": 3})
    export.table(
        "CONCURRENT_KERNEL",
        {**stream, "name": export.string("k<int>"), "start": base + 40, "end": base + 60, "correlationId": 3,
         "gridX": 4, "gridY": 1, "gridZ": 1, "blockX": 32, "blockY": 1, "blockZ": 1, "registersPerThread": 9,
         "staticSharedMemory": 8, "dynamicSharedMemory": 16, "launchType": 0, "completed": base + 60},
    )  # fmt: skip
    export.table(
        "MEMCPY",
        {**stream, "copyKind": 1, "srcKind": 1, "dstKind": 3, "bytes": 64, "start": base + 61, "end": base + 65},
    )
    export.table("MEMSET", {**stream, "value": 7, "bytes": 128, "start": base + 66, "end": base + 67})
    name, end = export.string("a range"), base + 99
    export.table(
        "MARKER",
        {**thread, "flags": 2, "id": 1, "timestamp": base, "name": name, "domain": 0},
        {**thread, "flags": 2, "id": 2, "timestamp": base + 5, "name": export.string("never ends"), "domain": 0},
        {**thread, "flags": 4, "id": 1, "timestamp": end, "name": 0, "domain": 0},
        {**thread, "flags": 1, "id": 3, "timestamp": base + 50, "name": export.string("here"), "domain": 0},
    )
    export.table("DEVICE", {"id": 0, "globalMemoryBandwidth": 547_000_000, "name": export.string("TITAN Xp")})
    trace = export.open()
    assert rows(
        trace,
        """select l.name, s.name, role, start_ns, duration_ns, depth from spans s join locations l using (location)
           order by start_ns""",
    ) == [
        ("thread 5", "a range", "range", 0, 99, 0),
        ("thread 5", "never ends", "range", 5, 0, 1),
        ("thread 5", "cudaLaunchKernel", "function", 10, 10, 1),
        ("thread 5", "cuLaunchKernel", "function", 12, 6, 2),
        ("thread 5", "cudaDeviceSynchronize", "sync", 30, 60, 1),
        ("GPU 0 stream 7", "k<int>", "kernel", 40, 20, 0),
        ("GPU 0 stream 7", "[CUDA memcpy HtoD]", "copy", 61, 4, 0),
        ("GPU 0 stream 7", "[CUDA memset]", "copy", 66, 1, 0),
        ("thread 5", "call 99999", "function", 95, 1, 1),
    ]
    assert rows(trace, "select shared_memory_bytes, grid_x, launch_type, correlation from kernel_spans") == [
        (24, 4, "Regular", 3)
    ]
    assert rows(trace, "select count(*) from arguments where name = 'k<int>'") == [(0,)]
    assert rows(trace, "select source_kind, destination_kind, size_bytes, set_value from copy_spans order by 3") == [
        ("Pageable", "Device", 64, None),
        (None, None, 128, 7),
    ]
    assert rows(trace, "select name, time_ns, category from marks") == [("here", 50, "nvtx")]
    assert rows(trace, "select pid from processes") == [(77,)]
    assert dict(rows(trace, "select what, value from quality where value > 0"))["spans_without_end"] == 1
    (told,) = json.loads((Path(trace.info.path) / "job.json").read_text())["imported"]["files"]
    assert told["properties"]["CUPTI_ACTIVITY_KIND_DEVICE"][0]["name"] == "TITAN Xp"
    assert [row["name"] for row in trace.devices().to_pylist()] == ["TITAN Xp"]


def test_sums_of_a_database_are_those_of_plain_sql(export: Export) -> None:
    names = [export.string(f"kernel {i}") for i in range(7)]
    export.table(
        "CONCURRENT_KERNEL",
        *(
            {"deviceId": i % 2, "contextId": 1, "streamId": i % 3, "name": names[i % 7], "start": 1000 * i,
             "end": 1000 * i + 17 * (i % 53), "correlationId": i}
            for i in range(40_000)
        ),
    )  # fmt: skip
    expected = export.database.execute(
        """SELECT value, deviceId, streamId, count(*), sum(end - start), sum(correlationId)
           FROM CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL k JOIN StringTable s ON s._id_ = name
           GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""
    ).fetchall()
    assert (
        rows(
            export.open(),
            """select name, device, stream, count(*), sum(duration_ns), sum(correlation) from kernel_spans
               group by all order by 1, 2, 3""",
        )
        == expected
    )


@needs_public_traces
def test_the_list_of_activities_is_printed_as_nvprof_printed_it() -> None:
    """Cell by cell; but for the start, which counts from another moment."""

    def cells(text: str) -> list[list[str]]:
        found = [re.split(r"\s{2,}", line.strip(), maxsplit=14) for line in text.splitlines()]
        return [row[1:] for row in found if len(row) == 15]

    ours = cells(nvprof_layout.text(strobe.open(PRINTED_TEXT).ask("gpu_trace")))
    theirs = cells(PRINTED_TEXT.read_text())
    assert len(ours) == 605
    assert ours == theirs


METRICS_TEXT = """\
==7== NVPROF is profiling process 7, command: ./a.out
==7== Some kernel(s) will be replayed on device 0 in order to collect all events/metrics.
==7== Replaying kernel "sum(double*, int)" (done)
==7== Profiling application: ./a.out
==7== Profiling result:
==7== Event result:
Invocations                                Event Name         Min         Max         Avg       Total
Device "GeForce GTX 1070 (0)"
    Kernel: sum(double*, int)
          3                            warps_launched          12          15          13          39

==7== Metric result:
Invocations                               Metric Name                        Metric Description         Min         Max         Avg
Device "GeForce GTX 1070 (0)"
    Kernel: sum(double*, int)
          3                         branch_efficiency                         Branch Efficiency      90.00%     100.00%      96.00%
          3                        shared_utilization                 Shared Memory Utilization    Idle (0)     Low (2)     Low (1)
          3                      dram_read_throughput             Device Memory Read Throughput  512.00MB/s  1.5000GB/s  1.0000GB/s
          3                                       ipc                              Executed IPC    1.250000  <OVERFLOW>    1.500000
Device "GeForce GTX 1070 (1)"
    Kernel: sum(double*, int)
          1                         branch_efficiency                         Branch Efficiency      80.00%      80.00%      80.00%
    Kernel: void other<int>(int, float*)
          2                             inst_executed                     Instructions Executed  5025811640  5025811660  5025811650
          2                                    broken
"""  # noqa: E501
METRICS_CSV = """\
==7== NVPROF is profiling process 7, command: ./a.out
==7== Profiling result:
==7== Event result:
"Device","Kernel","Invocations","Event Name","Min","Max","Avg","Total"
"GeForce GTX 1070 (0)","sum(double*, int)",3,"warps_launched",12,15,13,39

==7== Metric result:
"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"
"GeForce GTX 1070 (0)","sum(double*, int)",3,"branch_efficiency","Branch Efficiency",90.000000%,100.000000%,96.000000%
"GeForce GTX 1070 (0)","sum(double*, int)",3,"shared_utilization","Shared Memory Utilization","Idle (0)","Low (2)","Low (1)"
"GeForce GTX 1070 (0)","sum(double*, int)",3,"dram_read_throughput","Read",512.000000MB/s,1.500000GB/s,1.000000GB/s
"GeForce GTX 1070 (0)","sum(double*, int)",3,"ipc","Executed IPC",1.250000,<OVERFLOW>,1.500000
"GeForce GTX 1070 (1)","sum(double*, int)",1,"branch_efficiency","Branch Efficiency",80.000000%,80.000000%,80.000000%
"GeForce GTX 1070 (0)","void other<int>(int, float*)",2,"inst_executed","Executed",5025811640,5025811660,5025811650
"GeForce GTX 1070 (0)","broken",2,"inst_executed"
"""  # noqa: E501
# Of four launches on two GPUs the mean branch efficiency is (3 * 96 + 80) / 4 = 92; GB are of 2^30 bytes.
METRICS = [
    ("sum", "warps_launched", 3, 13.0, 12.0, 15.0, ""),
    ("sum", "branch_efficiency", 4, 92.0, 80.0, 100.0, "%"),
    ("sum", "shared_utilization", 3, 1.0, 0.0, 2.0, "of 10"),
    ("sum", "dram_read_throughput", 3, 2.0**30, 2.0**29, 1.5 * 2**30, "byte/s"),
    ("sum", "ipc", 3, 1.5, 1.25, None, ""),
    ("other", "inst_executed", 2, 5025811650.0, 5025811640.0, 5025811660.0, ""),
]


@pytest.mark.parametrize("text", [METRICS_TEXT, METRICS_CSV], ids=["text", "csv"])
def test_metrics_and_events_are_shown_and_stand_beside_their_kernels(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "metrics.log"
    path.write_text(text)
    assert main(["metrics", "--from", str(path), "--json"]) == 0
    names = ("kernel", "metric", "launches", "avg", "min", "max", "unit")
    assert [tuple(row[name] for name in names) for row in json.loads(capsys.readouterr().out)["rows"]] == METRICS
    assert main(["metrics", "--from", str(path), "--metrics", "no_such"]) != 0
    assert "nothing was measured for 'no_such'" in capsys.readouterr().err
    trace = strobe.open(path)
    kernels = {row["kernel"]: row for row in trace.kernels().to_pylist()}
    assert {(kernel, metric): kernels[kernel][f"measured_{metric}"] for kernel, metric, *_ in METRICS} == {
        (kernel, metric): mean for kernel, metric, _, mean, *_ in METRICS
    }
    assert (kernels["sum"]["calls"], kernels["sum"]["total_ns"], kernels["other"]["calls"]) == (4, 0, 2)
    counted = dict(rows(trace, "select what, value from quality where value > 0"))
    assert (counted["kernels_without_time"], counted["unreadable_rows"]) == (2, 1)


PER_LAUNCH_TEXT = """\
==7== NVPROF is profiling process 7, command: ./a.out
==7== Profiling result:
                Device          Context           Stream                    Kernel  Executed IPC  Branch Efficiency
  GeForce GTX 1070 (0)                1                7        sum(double*, int)       1.250000            90.00%
  GeForce GTX 1070 (0)                1                7        sum(double*, int)       1.750000           100.00%
"""
PER_LAUNCH_CSV = """\
==7== NVPROF is profiling process 7, command: ./a.out
==7== Profiling result:
"Device","Context","Stream","Kernel","Correlation_ID","Executed IPC","Branch Efficiency"
"GeForce GTX 1070 (0)","1","7","sum(double*, int)",12,1.250000,90.000000%
"GeForce GTX 1070 (0)","1","7","sum(double*, int)",13,1.750000,100.000000%
"""


@pytest.mark.parametrize("text", [PER_LAUNCH_TEXT, PER_LAUNCH_CSV], ids=["text", "csv"])
def test_metrics_of_launches_become_those_of_their_kernel(tmp_path: Path, text: str) -> None:
    trace = printed(tmp_path, text)
    (kernel,) = trace.kernels().to_pylist()
    assert (kernel["name"], kernel["calls"]) == ("sum(double*, int)", 2)
    assert (kernel["measured_Executed_IPC"], kernel["measured_Branch_Efficiency"]) == (1.5, 95.0)
    assert "unreadable_rows" not in dict(rows(trace, "select what, value from quality where value > 0"))


def test_kernels_of_a_summary_keep_their_time_beside_metrics(tmp_path: Path) -> None:
    trace = printed(
        tmp_path, SUMMARY_TEXT.replace("sgemm_largek_lds64", "sum(double*, int)") + METRICS_TEXT.replace("=7=", "=12=")
    )
    kernels = {row["kernel"]: row for row in trace.kernels().to_pylist()}
    assert (kernels["sum"]["calls"], kernels["sum"]["total_ns"], kernels["sum"]["measured_ipc"]) == (
        *(202752, 46_647_400_000, 1.5),
    )


TOP_DOWN = """\
Rows: 8120601, nnz: 218535025

======== CPU profiling result (top down):
Time(%)      Time  Name
 79.56%  26.7635s  main
 74.58%  25.0876s  | matvec(matrix const &, vector const &)
  0.09%  30.105ms  | free_matrix(matrix&)
  0.09%  30.105ms  |   munmap
 15.96%  5.36875s  waxpby(double, vector const &)
 15.96%  5.36870s    munmap
...

======== Data collected at 100Hz frequency
"""
# By path: own and total time; what the rows below do not have is a row's own.
TOP_DOWN_PATHS = [
    (("main",), 1_645_795_000, 26_763_500_000),
    (("main", "free_matrix(matrix&)"), 0, 30_105_000),
    (("main", "free_matrix(matrix&)", "munmap"), 30_105_000, 30_105_000),
    (("main", "matvec(matrix const &, vector const &)"), 25_087_600_000, 25_087_600_000),
    (("waxpby(double, vector const &)",), 50_000, 5_368_750_000),
    (("waxpby(double, vector const &)", "munmap"), 5_368_700_000, 5_368_700_000),
]
# A row below is a caller: of 3.73007 s in cuStreamSynchronize 0.5 s have no caller in the table.
BOTTOM_UP = """\
======== CPU profiling result (bottom up):
Time(%)      Time  Name
 59.09%  8.55785s  cudbgGetAPIVersion
 59.09%  8.55785s  | start_thread
 59.09%  8.55785s  |   clone
 25.75%  3.73007s  cuStreamSynchronize
 22.30%  3.23007s  | wait

======== Data collected at 100Hz frequency
"""
BOTTOM_UP_PATHS = [
    (("clone",), 0, 8_557_850_000),
    (("clone", "start_thread"), 0, 8_557_850_000),
    (("clone", "start_thread", "cudbgGetAPIVersion"), 8_557_850_000, 8_557_850_000),
    (("cuStreamSynchronize",), 500_000_000, 500_000_000),
    (("wait",), 0, 3_230_070_000),
    (("wait", "cuStreamSynchronize"), 3_230_070_000, 3_230_070_000),
]
FLAT = """\
======== CPU profiling result (flat):
Time(%)      Time  Name
 59.09%  8.55785s  cudbgGetAPIVersion
  0.06%  150.01ms  __c_mzero4

======== Data collected at 100Hz frequency
"""
FLAT_PATHS = [(("__c_mzero4",), 150_010_000, 150_010_000), (("cudbgGetAPIVersion",), 8_557_850_000, 8_557_850_000)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [(TOP_DOWN, TOP_DOWN_PATHS), (BOTTOM_UP, BOTTOM_UP_PATHS), (FLAT, FLAT_PATHS)],
    ids=["top down", "bottom up", "flat"],
)
def test_samples_of_the_host_are_a_profile(tmp_path: Path, text: str, expected: list[tuple[Any, ...]]) -> None:
    trace = printed(tmp_path, text)
    found: list[tuple[Any, ...]] = []
    path: list[str] = []
    for row in trace.profile(form="tree").to_pylist():
        path = [*path[: row["depth"]], row["name"]]
        found.append((tuple(path), row["self_ns"], row["total_ns"]))
    assert sorted(found) == expected
    counted = dict(rows(trace, "select what, value from quality where value > 0"))
    assert counted.get("unreadable_rows", 0) == text.count("\n...")


def test_rounded_rows_do_not_make_a_function_longer(tmp_path: Path) -> None:
    head, *_ = BOTTOM_UP.partition(" 25.75%")
    trace = printed(tmp_path, f"{head}  0.18%  20.043ms  f\n  0.09%  10.022ms  | g\n  0.09%  10.022ms  | h\n")
    assert rows(trace, "select sum(self_ns) from statistics") == [(8_557_850_000 + 20_043_000,)]
    assert rows(trace, "select name, self_ns from statistics where name in ('g', 'h') or name = 'f' order by 1, 2") == [
        *(("f", 10_021_000), ("f", 10_022_000), ("g", 0), ("h", 0)),
    ]


def test_samples_of_old_versions_have_shares_only(tmp_path: Path) -> None:
    trace = printed(
        tmp_path,
        """\
======== CPU profiling result (top down):
99.87% main
| 81.12% matvec(matrix const &)
| 0.03% free_matrix(matrix&)
|   0.03% munmap
0.13% __c_mset8

======== Data collected at 100Hz frequency
""",
    )
    assert rows(trace, "select metric, unit, self_value, total_value from path_metrics order by total_value desc") == [
        ("samples", "percent", 18.72, 99.87),
        ("samples", "percent", 81.12, 81.12),
        ("samples", "percent", 0.13, 0.13),
        ("samples", "percent", 0.0, 0.03),
        ("samples", "percent", 0.03, 0.03),
    ]
    assert dict(rows(trace, "select what, value from quality"))["weights_are_no_time"] == 4


def test_the_host_and_the_gpu_of_one_process_are_one(tmp_path: Path) -> None:
    trace = printed(tmp_path, SUMMARY_TEXT + TOP_DOWN)
    assert rows(trace, "select pid from processes") == [(12,)]
    assert rows(trace, "select count(distinct location) from statistics") == [(4,)]


UNIFIED = """\
==7== NVPROF is profiling process 7, command: ./a.out
==7== Profiling result:
            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:  100.00%  3.9680us         2  1.9840us     704ns  1.0560us  [CUDA memcpy HtoD]

==7== Unified Memory profiling result:
Device "TITAN Xp (0)"
   Count  Avg Size  Min Size  Max Size  Total Size  Total Time  Name
     169  38.201KB  4.0000KB  608.00KB  6.304688MB  725.1520us  Host To Device
      24  21.000KB  4.0000KB  188.00KB  504.0000KB  57.31200us  Device To Host
      18         -         -         -           -  2.988352ms  Gpu page fault groups
      32  4.0000KB  4.0000KB  4.0000KB  128.0000KB           -  Memory thrashes
Total CPU Page faults: 49
"""


def test_the_summary_of_unified_memory_has_its_counts_times_and_sizes(tmp_path: Path) -> None:
    trace = printed(tmp_path, UNIFIED)
    query = "select name, count, total_ns from statistics where name like '[Unified%' order by name"
    assert rows(trace, query) == [
        ("[Unified Memory CPU page faults]", 49, 0),
        ("[Unified Memory GPU page faults]", 18, 2_988_352),
        ("[Unified Memory Memcpy DtoH]", 24, 57_312),
        ("[Unified Memory Memcpy HtoD]", 169, 725_152),
        ("[Unified Memory Memory thrashes]", 32, 0),
    ]
    # 6.304688 MB are 6 610 945 bytes, rounded.
    assert rows(trace, "select total_value from path_metrics order by 1") == [(131_072,), (516_096,), (6_610_945,)]
    assert rows(trace, "select value from quality where what = 'records_taken'") == [(5,)]


def test_a_row_of_unified_memory_without_its_count_is_left_out(tmp_path: Path) -> None:
    """nvprof writes such rows in CSV: the count stands among the sizes."""
    text = """\
==7== NVPROF is profiling process 7, command: ./a.out
==7== Unified Memory profiling result:
"Device","Count","Avg Size","Min Size","Max Size","Total Size","Total Time",""
"TITAN Xp (0)",149,43.328125KB,4.000000KB,576.000000KB,6.304688MB,0.000000,"Host To Device"
"TITAN Xp (0)",,,,,19B,0.000000,"Gpu page fault groups"
"""
    trace = printed(tmp_path, text)
    assert rows(trace, "select what, value from quality where what like 'records%' and value > 0 order by 1") == [
        ("records_left_out", 1),
        ("records_taken", 1),
    ]


def test_page_faults_on_the_host_are_marks_that_can_be_asked_for(tmp_path: Path) -> None:
    text = """\
"Start","Duration","Unified Memory","Virtual Address","Name"
ms,us,,,
1.5,,"PC 0x403503","0x7f8cc0080000","[Unified Memory CPU page faults]"
"""
    query = "select time_ns, name, arguments->>'Virtual Address', arguments->>'Unified Memory' from marks"
    assert rows(printed(tmp_path, text), query) == [
        (1_500_000, "[Unified Memory CPU page faults]", "0x7f8cc0080000", "PC 0x403503")
    ]
