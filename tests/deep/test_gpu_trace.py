"""The list of what ran on GPUs, and the same figures in nvprof's layout."""

from pathlib import Path

import pytest

import strobe
from strobe.errors import UsageError
from strobe.present import nvprof_layout
from tests.deep.kineto import call, copy, kernel, operator, profile

SHAPE = {"grid": [2, 3, 1], "block": [32, 4, 1], "registers_per_thread": 40, "shared_memory": 16}


def small(tmp_path: Path) -> strobe.Trace:
    return profile(
        tmp_path,
        call(0, 2, correlation=1),
        call(3, 1, "cudaMemcpyAsync", correlation=2),
        call(5, 2, correlation=3),
        call(8, 2, "cudaDeviceSynchronize"),
        kernel("void gemm<float>(int)", 10, 5, correlation=1, context=1, **SHAPE),
        copy("Memcpy HtoD (Pinned -> Device)", 12, 2, stream=9, correlation=2, context=1, bytes=4096),
        kernel("void gemm<float>(int)", 20, 15, correlation=3, context=1, **SHAPE),
        kernel("add", 50, 10, device=1, context=2),
    )


def test_activities_of_all_streams_and_gpus_in_order(tmp_path: Path) -> None:
    found = small(tmp_path).ask("gpu_trace")
    chosen = ("start_ns", "duration_ns", "grid", "block", "registers_per_thread", "shared_memory_bytes",
              "size_bytes", "throughput_gb_s", "source", "destination", "device", "context", "stream", "name",
              "correlation")  # fmt: skip
    gemm = "void gemm<float>(int)"
    first = found.column("start_ns")[0]
    assert [tuple(row[name] for name in chosen) for row in found.to_pylist()] == [
        (first, 5000, "2x3x1", "32x4x1", 40, 16, None, None, None, None, 0, 1, 7, gemm, 1),
        (first + 2000, 2000, None, None, None, None, 4096, 2.048, "Pinned", "Device", 0, 1, 9,
         "Memcpy HtoD (Pinned -> Device)", 2),
        (first + 10_000, 15_000, "2x3x1", "32x4x1", 40, 16, None, None, None, None, 0, 1, 7, gemm, 3),
        (first + 40_000, 10_000, None, None, None, None, None, None, None, None, 1, 2, 7, "add", None),
    ]  # fmt: skip
    assert found.note == ""


def test_the_first_of_each_gpu(tmp_path: Path) -> None:
    found = small(tmp_path).ask("gpu_trace", limit=1)
    assert [row["name"] for row in found.to_pylist()] == ["void gemm<float>(int)", "add"]
    assert "the first 2 of 4" in found.note
    with pytest.raises(UsageError, match="--limit: -3"):
        small(tmp_path).ask("gpu_trace", limit=-3)


def test_the_summary_of_nvprof_and_what_its_reader_makes_of_it(tmp_path: Path) -> None:
    """GPU activities: 20 + 2 + 10 us; calls: 2 + 1 + 2 + 2 us."""
    text = nvprof_layout.summary(small(tmp_path))
    lines = [line.split(maxsplit=8) for line in text.splitlines() if not line.startswith("==")]
    assert lines[0] == ["Type", "Time(%)", "Time", "Calls", "Avg", "Min", "Max", "Name"]
    assert lines[1][:2] == ["GPU", "activities:"]
    assert lines[1][2:] == ["62.50%", "20.000us", "2", "10.000us", "5.0000us", "15.000us", "void gemm<float>(int)"]
    assert text.splitlines()[4].split() == [
        *("31.25%", "10.000us", "1", "10.000us", "10.000us", "10.000us", "add"),
    ]
    assert text.splitlines()[5].split(maxsplit=6) == [
        *("6.25%", "2.0000us", "1", "2.0000us", "2.0000us", "2.0000us", "[CUDA memcpy HtoD]"),
    ]
    (tmp_path / "printed.txt").write_text(text)
    again = strobe.open(tmp_path / "printed.txt")
    read = again.sql("select name, count::bigint, total_ns::bigint from statistics order by 3 desc, 1")
    assert read.rows() == [
        ("void gemm<float>(int)", 2, 20_000),
        ("add", 1, 10_000),
        ("cudaLaunchKernel", 2, 4000),
        ("[CUDA memcpy HtoD]", 1, 2000),
        ("cudaDeviceSynchronize", 1, 2000),
        ("cudaMemcpyAsync", 1, 1000),
    ]


def test_tables_of_kernels_copies_and_calls_have_nvprofs_types(tmp_path: Path) -> None:
    trace = small(tmp_path)
    first = [nvprof_layout.text(trace.ask(name)).splitlines()[1] for name in ("kernels", "copies", "calls")]
    assert first[0].split(maxsplit=8) == [
        *("GPU", "activities:", "66.67%", "20.000us", "2", "10.000us", "5.0000us", "15.000us", "void gemm<float>(int)"),
    ]
    assert first[1].endswith("[CUDA memcpy HtoD]")
    assert first[2].startswith("      API calls:   57.14%  4.0000us         2")
    # What was cut from a table still counts for the percentages.
    assert "57.14%" in nvprof_layout.text(trace.ask("calls").head(1))


def test_a_program_without_gpu_says_so(tmp_path: Path) -> None:
    trace = profile(tmp_path, operator("aten::mm", 0, 20))
    found = trace.ask("gpu_trace")
    assert len(found) == 0
    assert "no GPU" in found.note or "no activit" in found.note, found.note
    with pytest.raises(UsageError, match="neither GPU activities nor calls"):
        nvprof_layout.summary(trace)
