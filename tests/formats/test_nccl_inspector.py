"""Logs of NCCL's Inspector. Shape and figures are those of NVIDIA's own example (nccl, ext-profiler/inspector)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import strobe
from strobe.errors import StrobeError
from tests.formats.sources import counted

START_US = 1_752_867_229_000_000
# Kinds with the factors from a rank's bytes to the size of the collective, and to the bus: nccl-tests, PERFORMANCE.md.
KINDS = {
    "AllReduce": (lambda n: 1, lambda n: 2 * (n - 1) / n),
    "AllGather": (lambda n: n, lambda n: (n - 1) / n),
    "ReduceScatter": (lambda n: n, lambda n: (n - 1) / n),
    "Broadcast": (lambda n: 1, lambda n: 1),
    "Send": (lambda n: 1, lambda n: 1),
    "Recv": (lambda n: 1, lambda n: 1),
}


def line(
    kind: str = "ReduceScatter",
    number: int = 1231,
    *,
    rank: int = 4,
    ranks: int = 8,
    end_us: int = START_US,
    **more: int,
) -> dict[str, Any]:
    """The example of the README, a collective of 2 GB and 41 057 us; `more`: replaces what it has."""
    perf = {"coll": kind, "coll_sn": number, "coll_msg_size_bytes": 2147483648, "coll_exec_time_us": 41057} | more
    whole, bus = (factor(ranks) for factor in KINDS.get(kind, KINDS["AllReduce"]))
    algorithm = perf["coll_msg_size_bytes"] * whole / perf["coll_exec_time_us"] / 1000
    perf |= {"coll_timing_source": "kernel_gpu", "coll_algobw_gbs": algorithm, "coll_busbw_gbs": algorithm * bus}
    return {
        "header": {"id": f"0xe62dedaa97644{ranks}", "rank": rank, "n_ranks": ranks, "nnodes": 1},
        "metadata": {
            "inspector_output_format_version": "v4.0",
            "git_rev": "9019a1912-dirty",
            "rec_mechanism": "nccl_profiler_interface",
            "dump_timestamp_us": end_us + 300,
            "hostname": "example-hostname",
            "pid": 438776 + rank,
        },
        "coll_perf": perf,
    }


def verbose(each: dict[str, Any], begin_us: int, end_us: int) -> dict[str, Any]:
    kernels = [
        {"channel_id": n, "kernel_start_ts": begin_us + n, "kernel_stop_ts": end_us, "kernel_record_ts": end_us}
        for n in range(2)
    ]
    each["coll_perf"]["event_trace_ts"] = {"coll_start_ts": begin_us - 100, "kernel_events": kernels}
    return each


def written(path: Path, *lines: dict[str, Any] | str) -> Path:
    texts = (each if isinstance(each, str) else json.dumps(each, separators=(",", ":")) for each in lines)
    path.write_text("\n".join(texts) + "\n")
    return path


def test_the_bandwidths_of_nvidias_example_are_those_of_nvidia(tmp_path: Path) -> None:
    (row,) = strobe.open(written(tmp_path / "a.log", line())).collectives().to_pylist()
    assert (row["collective"], row["group_size"], row["rank"], row["total_ns"]) == ("reducescatter", 8, 4, 41_057_000)
    assert (row["algbw_gb_s"], row["busbw_gb_s"]) == pytest.approx((418.439467, 366.134533), abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_bandwidths_of_every_kind_are_those_in_the_file(tmp_path: Path, kind: str) -> None:
    given = line(kind)
    (row,) = strobe.open(written(tmp_path / "a.log", given)).collectives().to_pylist()
    theirs = given["coll_perf"]
    assert row["collective"] == kind.lower()
    assert row["algbw_gb_s"] == pytest.approx(theirs["coll_algobw_gbs"])
    assert row["busbw_gb_s"] == pytest.approx(theirs["coll_busbw_gbs"])


def test_times_are_those_of_the_kernels_where_the_log_is_verbose(tmp_path: Path) -> None:
    """Else those of the log, which are counted: nobody is said to have waited by such times."""
    first = verbose(line(number=7, end_us=START_US + 50_000), START_US, START_US + 41_057)
    second = line("AllReduce", 9, ranks=2, rank=1, end_us=START_US + 100_000, coll_exec_time_us=1000)
    with strobe.open(written(tmp_path / "a.log", first, second)) as trace:
        spans = trace.spans().to_pylist()
        assert [(row["start_ns"], row["duration_ns"]) for row in spans] == [(0, 41_057_000), (99_300_000, 1_000_000)]
        assert counted(trace)["times_of_log"] == 1
        rows = trace.side_table("collective_spans").to_pylist()
        assert [(row["sequence"], row["group_size"], row["rank"]) for row in rows] == [(7, 8, 4), (9, 2, 1)]
        assert trace.info.started_unix_ns == START_US * 1000
        (process,) = trace.processes.to_pylist()
        assert (process["rank"], process["pid"]) == (4, 438780), "its rank in the largest communicator"
        sources = {row["value"] for row in trace.side_table("arguments").to_pylist()}
        assert "kernel_gpu" in sources
        assert "nobody is known to have waited" in trace.waits().note


def test_a_folder_of_logs_is_one_job(tmp_path: Path) -> None:
    for rank in range(4):
        written(tmp_path / f"node{rank // 2}-pid{rank}.log", line(rank=rank, ranks=4), line(rank=rank % 2, ranks=2))
    with strobe.open(tmp_path) as trace:
        assert [row["rank"] for row in trace.processes.to_pylist()] == [0, 1, 2, 3]
        found = [(row["rank"], row["group_size"]) for row in trace.collectives().to_pylist()]
        assert sorted(found) == [(rank, size) for rank in range(4) for size in (2, 4)]


def test_lines_that_are_not_whole_are_counted(tmp_path: Path) -> None:
    torn = json.dumps(line())[:-30]
    odd = [
        line(coll_exec_time_us=-1),
        {"header": {}, "metadata": {}},
        line() | {"header": {"id": "0x1", "rank": 8, "n_ranks": 8}},
        line() | {"coll_perf": []},
    ]
    with strobe.open(written(tmp_path / "a.log", line(), *odd, torn)) as trace:
        assert trace.span_count == 1
        assert (counted(trace)["records_taken"], counted(trace)["damaged_records"]) == (1, 5)
    with pytest.raises(StrobeError, match="none of its lines has a collective with a duration"):
        strobe.open(written(tmp_path / "b.log", line(coll_exec_time_us=-1)))
