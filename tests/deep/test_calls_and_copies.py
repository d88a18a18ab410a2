"""Calls of CUDA, and copies: by hand, and against plain SQL of nsys files and the JSON of PyTorch's profiler."""

import gzip
import json
import sqlite3
import statistics
from collections import defaultdict

import pytest

from tests.deep.kineto import US, call, copy, kernel, operator, profile
from tests.public import FOLDER

NSYS = ("nsys/perlmutter-cloverleaf-cuda.sqlite", "nsys/saxpy-mpi-cuda_nsys_perlmutter0.sqlite")


def rows(table):
    return table.to_arrow().to_pylist()


def summed(values):
    """Return the columns of a summary from its values."""
    exact = (sum(values), len(values), statistics.median(values), min(values), max(values))
    return (
        *exact,
        pytest.approx(sum(values) / len(values)),
        pytest.approx(statistics.stdev(values) if values[1:] else 0),
    )


def summary(row, unit="ns"):
    exact = (row[f"{key}_{unit}"] for key in ("median", "min", "max", "avg", "stddev"))
    return row["size_bytes" if unit == "size_bytes" else "total_ns"], row["calls"], *exact


def test_calls_by_name_and_thread(tmp_path):
    trace = profile(
        tmp_path,
        call(0, 4), call(10, 8), call(30, 2, thread=2), call(40, 6, "cudaDeviceSynchronize"),
        operator("aten::mm", 0, 100), kernel("gemm", 20, 5), rank=1,
    )  # fmt: skip
    launch, wait = rows(trace.calls())
    assert (launch["rank"], launch["name"], launch["waits"], launch["share"]) == (1, "cudaLaunchKernel", False, 0.7)
    assert summary(launch) == summed([4 * US, 8 * US, 2 * US])
    assert (wait["name"], wait["waits"], wait["total_ns"]) == ("cudaDeviceSynchronize", True, 6 * US)
    assert sorted((row["name"], row["total_ns"]) for row in rows(trace.calls(by="thread"))) == [
        ("cudaDeviceSynchronize", 6 * US), ("cudaLaunchKernel", 2 * US), ("cudaLaunchKernel", 12 * US)
    ]  # fmt: skip


def test_copies_by_direction_and_memory(tmp_path):
    trace = profile(
        tmp_path,
        copy("Memcpy HtoD (Pageable -> Device)", 0, 10, bytes=40_000),
        copy("Memcpy HtoD (Pageable -> Device)", 20, 5, bytes=80_000),
        copy("Memcpy DtoH (Device -> Pinned)", 30, 4, bytes=1000, device=1),
        copy("Memset (Device)", 40, 1, bytes=500),
        kernel("gemm", 50, 100),
    )
    up, down, fill = rows(trace.copies())
    assert (up["kind"], up["source"], up["destination"], up["pageable"]) == ("HtoD", "Pageable", "Device", True)
    assert summary(up) == summed([10 * US, 5 * US])
    assert summary(up, "size_bytes") == summed([40_000, 80_000])
    assert (up["bandwidth_gb_s"], up["peak_gb_s"], up["share"]) == (8, 16, 15 / 16)
    assert (down["device"], down["kind"], down["destination"], down["pageable"]) == (1, "DtoH", "Pinned", False)
    assert (fill["kind"], fill["source"], fill["destination"], fill["size_bytes"]) == ("set", None, "Device", 500)


def test_what_is_missing_is_said(tmp_path):
    trace = profile(tmp_path, operator("aten::mm", 0, 5))
    assert "no calls of CUDA, HIP, OpenCL or OpenACC" in trace.calls().note
    assert "no GPU did anything" in trace.copies().note
    assert "no GPU copied" in profile(tmp_path, kernel("gemm", 0, 5)).copies().note


@pytest.mark.parametrize("name", NSYS)
def test_nsys_calls_and_copies_are_those_of_plain_sql(public, name):
    with sqlite3.connect(f"file:{FOLDER / name}?mode=ro", uri=True) as database:
        calls = database.execute(
            """select value, eventClass, end - start from CUPTI_ACTIVITY_KIND_RUNTIME join StringIds on id = nameId
               where eventClass <> 67"""  # backtraces, which repeat their calls
        ).fetchall()
        copies = database.execute(
            "select copyKind, srcKind, dstKind, end - start, bytes from CUPTI_ACTIVITY_KIND_MEMCPY"
        ).fetchall()
    trace = public(name)
    by_name, whole = defaultdict(list), 0
    for function, event_class, duration in calls:
        by_name[function.rpartition("_v")[0] or function, event_class].append(duration)
        whole += duration
    libraries = {0: "CUDA runtime", 1: "CUDA driver"}
    expected = {(function, libraries[kind]): summed(values) for (function, kind), values in by_name.items()}
    table = rows(trace.calls())
    assert {(row["name"], row["library"]): summary(row) for row in table} == expected
    assert sum(row["share"] for row in table) == pytest.approx(1)
    assert all(row["share"] == pytest.approx(row["total_ns"] / whole) for row in table)
    times, sizes = defaultdict(list), defaultdict(list)
    kinds, memory = {1: "HtoD", 2: "DtoH"}, {0: "Pageable", 2: "Device"}
    for kind, source, destination, duration, size in copies:
        key = kinds[kind], memory[source], memory[destination]
        times[key].append(duration)
        sizes[key].append(size)
    table = {(row["kind"], row["source"], row["destination"]): row for row in rows(trace.copies())}
    assert {key: summary(row) for key, row in table.items()} == {key: summed(ran) for key, ran in times.items()}
    assert {key: summary(row, "size_bytes") for key, row in table.items()} == {
        key: summed(n) for key, n in sizes.items()
    }


@pytest.mark.parametrize("name", ["ns_resolution", "diff_test"])
def test_kineto_copies_are_those_of_the_json(public, name):
    with gzip.open(FOLDER / "kineto" / f"{name}.json.gz") as file:
        events = [e for e in json.load(file)["traceEvents"] if e.get("cat") in ("gpu_memcpy", "gpu_memset")]
    expected = defaultdict(lambda: [0, 0])
    for event in events:
        kind = "set" if event["cat"] == "gpu_memset" else event["name"].split()[1]
        expected[kind][0] += 1
        expected[kind][1] += event["args"]["bytes"]
    found = defaultdict(lambda: [0, 0])
    for row in rows(public(f"kineto/{name}.json.gz").copies()):
        found[row["kind"]][0] += row["calls"]
        found[row["kind"]][1] += row["size_bytes"]
        assert row["pageable"] == ("Pageable" in (row["source"], row["destination"]))
    assert found == expected


def test_nvprof_says_which_memory_was_set(public):
    table = {row["kind"]: row for row in rows(public("nvprof/cfd-print-gpu-trace.csv").copies())}
    assert {kind: (row["calls"], row["source"], row["destination"]) for kind, row in table.items()} == {
        "DtoD": (2000, "Managed", "Managed"), "HtoD": (5, "Pageable", "Device"), "set": (1, None, "Managed")
    }  # fmt: skip
