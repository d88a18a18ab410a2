"""Kineto and other Chrome JSON, against sums that decimal arithmetic took straight from the files."""

import csv
from pathlib import Path

import pytest

import strobe

ROOT = Path(__file__).parents[2]
TRACES = ROOT.parent / "shared" / "traces"
EXPECTED = list(csv.DictReader((TRACES / "expected.csv").open())) if TRACES.exists() else []
COMMUNICATION = "nccl|rccl|deep_ep|nvshmem|msccl|cross_device_reduce"


def union(intervals: list[tuple[int, int]]) -> int:
    total, until = 0, None
    for start, end in sorted(intervals):
        begin = start if until is None else max(start, until)
        total += max(0, end - begin)
        until = end if until is None else max(until, end)
    return total


def overlap(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> int:
    return union(a) + union(b) - union(a + b)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.skipif(not EXPECTED, reason="the folder of public traces is not here")
@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: row["file"].removesuffix(".json.gz"))
def test_every_sum_is_the_one_of_the_file(row: dict[str, str], cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_CACHE", str(cache))
    trace = strobe.open(TRACES / row["file"])

    def number(query: str) -> int:
        return int(trace.sql(query).rows()[0][0] or 0)

    def intervals(condition: str) -> list[tuple[int, int]]:
        found = trace.sql(f"select start_ns, start_ns + duration_ns from spans where {condition}").rows()
        return [(int(str(start)), int(str(end))) for start, end in found]

    kernels = "role = 'kernel'"
    communication = f"{kernels} and regexp_matches(lower(name), '{COMMUNICATION}')"
    compute = f"{kernels} and not regexp_matches(lower(name), '{COMMUNICATION}')"
    busy = intervals("role in ('kernel', 'copy') and paradigm = 'cuda'")
    gpu_span = max(end for _, end in busy) - min(start for start, _ in busy)
    found = {
        "x_events": trace.span_count,
        "kernels": number(f"select count(*) from spans where {kernels}"),
        "memcpy": number("select count(*) from copy_spans where name not ilike 'memset%'"),
        "memset": number("select count(*) from copy_spans where name ilike 'memset%'"),
        "runtime": number("select count(*) from call_spans where callback_id is not null"),
        "sync": number("select count(*) from sync_spans"),
        "kernel_sum_ns": number(f"select sum(duration_ns) from spans where {kernels}"),
        "busy_union_ns": union(busy),
        "gpu_span_ns": gpu_span,
        "idle_ns": gpu_span - union(busy),
        "compute_union_ns": union(intervals(compute)),
        "comm_kernels": number(f"select count(*) from spans where {communication}"),
        "comm_union_ns": union(intervals(communication)),
        "comm_comp_overlap_ns": overlap(intervals(communication), intervals(compute)),
        "memcpy_bytes": number("select sum(size_bytes) from copy_spans where name not ilike 'memset%'"),
        "distinct_kernels": number(f"select count(distinct name) from spans where {kernels}"),
        "streams": number(
            "select count(distinct (device, thread_id)) from locations join spans using (location) "
            "where role = 'kernel'"
        ),
        "kernels_without_runtime": number(
            "select count(*) from kernel_spans where correlation not in "
            "(select correlation from call_spans where correlation is not null)"
        ),
        "profiler_steps": number(
            "select count(*) from spans where name like 'ProfilerStep#%' and role = 'range' "
            "and location in (select location from locations where kind = 'thread')"
        ),
    }
    assert found == {key: int(row[key]) for key in found}
