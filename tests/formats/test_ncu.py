"""Tables that `ncu --csv` writes, against values that are computed by hand from the printed ones."""

import json
from pathlib import Path
from typing import Any

import pytest

import strobe
from strobe.api.trace import Trace
from strobe.cli.main import main
from strobe.errors import FormatError
from tests.formats.test_profiles import text_file

PLACE = '"4711","python3.11","127.0.0.1","{}","1","7","(256, 1, 1)","(1024, 2, 1)","0","9.0"'
PLACES = (
    '"Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC"'
)
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
GEMM, RELU = (PLACE.format(name) for name in ("void gemm<float, (int)4>(const float *)", "relu(float *)"))
# As `ncu --csv --page raw` writes it, with the words of ncu around it.
RAW = f"""\
==PROF== Connected to process 4711 (/usr/bin/python3.11)
==PROF== Profiling "gemm" - 0: 0%....50%....100% - 2 passes
"the program's own words"
"ID",{PLACES},"dram__bytes_read.sum","gpu__time_duration.sum","{OCCUPANCY}"
"","","","","","","","","","","","Mbyte","us","%"
"0",{GEMM},"1,234.50","12.25","45.5"
"1",{RELU},"2.00","3.00","n/a"
"2",{RELU},"4.00","5.00","50"
==PROF== Disconnected from process 4711
"""
# The same with --print-units base.
BASE = f"""\
"ID",{PLACES},"dram__bytes_read.sum","gpu__time_duration.sum","{OCCUPANCY}"
"","","","","","","","","","","","byte","ns","%"
"0",{GEMM},"1234500000","12250","45.5"
"1",{RELU},"2000000","3000","n/a"
"2",{RELU},"4000000","5000","50"
"""
ADVICE = '"","","","",""'


def details(number: int, place: str, section: str, name: str, unit: str, value: str) -> str:
    return f'"{number}",{place},"{section}","{name}","{unit}","{value}",{ADVICE}'


LIGHT = "GPU Speed Of Light Throughput"
DETAILS_HEAD = (
    f'"ID",{PLACES},"Section Name","Metric Name","Metric Unit","Metric Value",'
    '"Rule Name","Rule Type","Rule Description","Estimated Speedup Type","Estimated Speedup"'
)
DETAILS = "\n".join(
    (
        "==PROF== Connected to process 4711 (/usr/bin/python3.11)",
        DETAILS_HEAD,
        details(0, GEMM, LIGHT, "Memory Throughput", "%", "79.40"),
        details(0, GEMM, LIGHT, "Duration", "us", "12.25"),
        f'"0",{GEMM},"{LIGHT}","","","","Bottleneck","OPT","Memory is more heavily utilized","",""',
        details(0, GEMM, "Memory Workload Analysis", "Memory Throughput", "Gbyte/s", "1,234.50"),
        details(0, GEMM, "Occupancy", "Achieved Occupancy", "%", "45.50"),
        details(1, RELU, LIGHT, "Duration", "us", "3"),
        details(2, RELU, LIGHT, "Duration", "us", "5"),
        "",
    )
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))


def opened(tmp_path: Path, text: str) -> Trace:
    path = tmp_path / "ncu.log"
    path.write_text(text, encoding="utf-8")
    return strobe.open(path)


def kernels(trace: Trace) -> dict[str, dict[str, Any]]:
    return {row["kernel"]: row for row in trace.kernels().to_pylist()}


def quality(trace: Trace) -> dict[str, int]:
    return {
        str(what): int(value) for what, value in trace.sql("select what, value from quality where value > 0").rows()
    }


@pytest.mark.parametrize("text", [RAW, BASE, DETAILS], ids=["raw", "base units", "details"])
def test_kernels_have_their_durations_and_metrics(tmp_path: Path, text: str) -> None:
    trace = opened(tmp_path, text)
    found = kernels(trace)
    assert {name: [row[each] for each in ("calls", "total_ns", "min_ns", "max_ns")] for name, row in found.items()} == {
        "gemm": [1, 12_250, 12_250, 12_250],
        "relu": [2, 8_000, 3_000, 5_000],
    }
    assert found["gemm"]["share"] == pytest.approx(12_250 / 20_250)
    assert found["gemm"]["measured_achieved_occupancy"] == pytest.approx(0.455)
    assert found["relu"]["measured_duration"] == 4_000
    if text == DETAILS:  # advice is no metric, and a name in two sections is two metrics
        assert found["gemm"]["measured_Memory_Throughput"] == 79.4
        assert found["gemm"]["measured_Memory_Throughput_Memory_Workload_Analysis"] == 1_234_500_000_000
    else:
        assert found["relu"]["measured_dram_read_bytes"] == 3_000_000
        assert found["relu"]["measured_achieved_occupancy"] == 0.5
    assert (found["gemm"]["device"], found["gemm"]["name"]) == (0, "void gemm<float, (int)4>(const float *)")
    assert trace.sql("select pid, argv from processes").rows() == [(4711, "python3.11")]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1.234,50", 1_234_500_000_000),  # German
        ("1\u202f234,5", 1_234_500_000_000),  # French
        ("1\u2019234.5", 1_234_500_000_000),  # Swiss
        ("1,234", 1_234_000_000_000),
    ],
)
def test_numbers_are_those_of_the_users_language(tmp_path: Path, written: str, expected: int) -> None:
    comma = "," in written and written != "1,234"
    other = "12,25" if comma else "12.25"
    text = DETAILS.replace('"1,234.50"', f'"{written}"').replace('"12.25"', f'"{other}"')
    text = text.replace('"45.50"', '"45,50"').replace('"79.40"', '"79,40"') if comma else text
    gemm = kernels(opened(tmp_path, text))["gemm"]
    assert gemm["measured_Memory_Throughput_Memory_Workload_Analysis"] == expected
    assert gemm["total_ns"] == 12_250


def test_a_table_may_lack_most_columns(tmp_path: Path) -> None:
    text = '"ID","Kernel Name","gpu__time_duration.sum"\n"","","ns"\n"0","reduce","44,000"\n"1","reduce","46,000"\n'
    (kernel,) = opened(tmp_path, text).kernels().to_pylist()
    assert (kernel["name"], kernel["calls"], kernel["total_ns"]) == ("reduce", 2, 90_000)


def test_several_points_are_those_of_thousands(tmp_path: Path) -> None:
    text = DETAILS.replace('"12.25"', '"117.344"').replace('"1,234.50"', '"27.595.520"')
    gemm = kernels(opened(tmp_path, text.replace('"79.40"', '"79"').replace('"45.50"', '"45"')))["gemm"]
    assert gemm["total_ns"] == 117_344_000
    assert gemm["measured_Memory_Throughput_Memory_Workload_Analysis"] == 27_595_520 * 10**9


SUMMARY = f"""\
"Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"Invocations","Section Name","Metric Name","Metric Unit","Minimum","Maximum","Average"
{RELU},"2","{LIGHT}","Duration","us","3.00","5.00","4.00"
{RELU},"2","{LIGHT}","DRAM Throughput","%","10","30","20"
{GEMM},"1","{LIGHT}","DRAM Throughput","%","5","5","5"
"""


def test_a_summary_by_kernel_has_means(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = opened(tmp_path, SUMMARY)
    found = kernels(trace)
    assert [found["relu"][each] for each in ("calls", "total_ns", "min_ns", "max_ns")] == [2, 8_000, 3_000, 5_000]
    assert (found["relu"]["measured_DRAM_Throughput"], found["gemm"]["measured_DRAM_Throughput"]) == (20, 5)
    assert quality(trace)["kernels_without_time"] == 1
    assert main(["metrics", "--from", str(tmp_path / "ncu.log"), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["kernel"], row["metric"], row["launches"], row["avg"], row["min"], row["max"]) for row in shown] == [
        ("relu", "gpu__time_duration.sum", 2, 4_000, 3_000, 5_000),
        ("relu", "DRAM Throughput", 2, 20, 10, 30),
        ("gemm", "DRAM Throughput", 1, 5, 5, 5),
    ]


def test_torn_lines_are_counted_and_the_rest_is_kept(tmp_path: Path) -> None:
    trace = opened(tmp_path, "\ufeff" + BASE + '"3","4711"\n')
    assert kernels(trace)["relu"]["calls"] == 2
    assert quality(trace)["unreadable_rows"] == 1


def test_absurd_numbers_are_left_out(tmp_path: Path) -> None:
    place = PLACE.format("k").replace("256", "9" * 5000).replace('"0","9.0"', f'"{"9" * 30}","9.0"')
    absurd = f'"3",{place},"1e308","1e300","1e999"\n'
    trace = opened(tmp_path, BASE + absurd)
    assert kernels(trace)["relu"]["total_ns"] == 8_000
    assert kernels(trace)["k"]["total_ns"] == 0
    assert quality(trace)["weights_out_of_range"] == 1


def test_a_table_without_kernels_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(strobe.errors.FormatError, match="it has no kernel"):
        opened(tmp_path, BASE[: BASE.index('"0"')])


def test_a_report_is_printed_by_ncu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report, tools = tmp_path / "profile.ncu-rep", tmp_path / "tools"
    report.write_bytes(b"NVR\0\x02\0\0\0\x08\x07")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(strobe.errors.FormatError) as told:
        strobe.open(report)
    assert "it needs ncu, which is not installed here" in str(told.value)
    by_hand = f"ncu --import {report} --csv --page raw --print-units base > {report}.csv"
    assert by_hand in str(told.value)
    assert main(["metrics", "--from", str(report)]) == 4
    assert by_hand in capsys.readouterr().err
    tools.mkdir()
    (tools / "table").write_text(BASE)
    words = f"--import {report} --csv --page raw --print-units base"
    (tools / "ncu").write_text(
        f'#!/bin/sh\n[ "$*" = "{words}" ] && while read -r l; do echo "$l"; done < {tools}/table'
    )
    (tools / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    assert kernels(strobe.open(report))["relu"]["total_ns"] == 8_000
    assert main(["metrics", "--from", str(report), "--by", "launch", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["rows"]
    of_time = [row for row in shown if row["metric"] == "duration"]
    assert [row["value"] for row in of_time] == [12_250, 3_000, 5_000]


# As versions 2023 and 2020 printed it, beside the output of the program.
PRINTED = """\
M=1024, N=1024, K=1024
==PROF== Connected to process 828 (/tmp/cuda_exec.out)
==PROF== Profiling "sgemm" - 0: 0%....50%....100% - 8 passes
==PROF== Disconnected from process 828
[828] cuda_exec.out@127.0.0.1
  sgemm(int, const float *, float *) (32, 32, 1)x(32, 32, 1), Context 1, Stream 7, Device 0, CC 7.5
    Section: GPU Speed Of Light Throughput
    ----------------------- ------------- -------------
    Metric Name               Metric Unit  Metric Value
    ----------------------- ------------- -------------
    DRAM Frequency          cycle/nsecond          5.00
    Elapsed Cycles                  cycle    56,344,784
    Memory Throughput                   %         49.23
    Duration                      msecond         96.32
    SM Active Cycles                cycle 55,313,213.62
    ----------------------- ------------- -------------

    OPT   This kernel's throughput is fine, Context and all.

    Section: Memory Workload Analysis
    ----------------------- ------------ ------------
    Metric Name              Metric Unit Metric Value
    ----------------------- ------------ ------------
    Memory Throughput       Gbyte/second        83.38
    ----------------------- ------------ ------------

  sgemm(int, const float *, float *) (32, 32, 1)x(32, 32, 1), Context 1, Stream 7, Device 0, CC 7.5
    Section: GPU Speed Of Light Throughput
    ----------------------- ------------- -------------
    Metric Name               Metric Unit  Metric Value
    ----------------------- ------------- -------------
    Duration                      msecond        100.00
    ----------------------- ------------- -------------
  void reduce<int>(int*), 2020-Sep-08 15:37:12, Context 1, Stream 13
    Section: Command line profiler metrics
    ------------------------------------------------------------ --------------- ------------------------------
    dram__bytes_read.sum                                                   Mbyte                           2.50
    gpu__time_duration.sum                                               usecond                           7.25
    ------------------------------------------------------------ --------------- ------------------------------
"""


def test_what_ncu_prints_is_a_profile(tmp_path: Path) -> None:
    trace = strobe.open(text_file(tmp_path / "log.txt", PRINTED))
    rows = {row["kernel"]: row for row in trace.kernels().to_pylist()}
    gemm, reduce = rows["sgemm"], rows["reduce"]
    assert (gemm["calls"], gemm["total_ns"], gemm["min_ns"], gemm["max_ns"]) == (
        2,
        196_320_000,
        96_320_000,
        100_000_000,
    )
    assert gemm["measured_Elapsed_Cycles"] == 56_344_784.0
    assert gemm["measured_SM_Active_Cycles"] == 55_313_213.62
    assert gemm["measured_Memory_Throughput"] == 49.23
    assert gemm["measured_Memory_Throughput_Memory_Workload_Analysis"] == 83.38e9
    assert (reduce["calls"], reduce["total_ns"]) == (1, 7250)
    streams = trace.sql("select name from locations order by 1").rows()
    assert streams == [("GPU 0 stream 7",), ("GPU stream 13",)]
    assert trace.sql("select pid, argv from processes").rows() == [(828, "cuda_exec.out")]


def test_a_line_with_such_words_is_no_kernel(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="not in a known format"):
        strobe.open(text_file(tmp_path / "x.txt", "it ran in a loop, Context 1, Stream 7\nand then\n Section: next\n"))
