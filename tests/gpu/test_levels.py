"""What is recorded of GPUs only where it is asked for, `--trace +cuda+memory+events`: against the fake driver's log."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import strobe
from strobe.server.trace_context import TraceContext
from tests.gpu import fake_cuda
from tests.gpu.recorded import CLOCK_NS, Recorded, attributed, record

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")

RELEASES = ["12.4", "12.8", "13.0"]
KINDS = {2: "Pinned", 3: "Device", 5: "Managed"}
POOL_CHANGES = {1: "pool created", 2: "pool destroyed", 3: "pool trimmed"}


def allocations(trace: strobe.Trace) -> list[dict[str, Any]]:
    """The table, with times of CLOCK_MONOTONIC."""
    rows = trace.sql("select * from allocations order by time_ns").to_pylist()
    return [{**row, "time_ns": row["time_ns"] + trace.zero_ns} for row in rows]


def expected(ran: Recorded) -> list[dict[str, Any]]:
    """What the table should have, computed from the driver's log: in use, and held with what pools hold, by kind."""
    used: Counter[tuple[int, str]] = Counter()
    outside: Counter[tuple[int, str]] = Counter()
    pools: dict[int, int] = {}
    rows = []
    for each in ran.truth:
        if each["what"] not in ("memory", "pool"):
            continue
        of_memory = each["what"] == "memory"
        place = (each["device"] if of_memory else 0), KINDS[each["kind"]] if of_memory else "Device"
        change = 0
        if of_memory:
            change = each["bytes"] if each["allocated"] else -each["bytes"]
            used[place] += change
            outside[place] += 0 if each["pool"] else change
        if not of_memory or each["pool"]:
            pools[each["pool" if of_memory else "address"]] = each["pool_bytes" if of_memory else "size"]
        if not of_memory and each["operation"] == 2:
            pools[each["address"]] = 0
        held = outside[place] + sum(pools.values()) if pools and place[1] == "Device" else None
        rows.append(
            {
                "address": each["address"],
                "size_bytes": change,
                "total_allocated_bytes": used[place],
                "total_reserved_bytes": held,
                "device_type": 1,
                "device": place[0],
                "context": each["context"] if of_memory else None,
                "memory_kind": place[1],
                "program_counter": 0xABC000 if of_memory else None,
                "name": None if of_memory else POOL_CHANGES[each["operation"]],
                "time_ns": pytest.approx(each["time_ns"], abs=CLOCK_NS),
            }
        )
    return rows


MEMORY = """
gpu = fake_cuda.Gpu()
stream = gpu.stream(non_blocking=True)
first = gpu.allocate(1000)
second = gpu.allocate(5000)
gpu.free(first)
pinned = gpu.allocate_host(4096)
gpu.allocate_managed(1 << 20)
of_default = gpu.allocate_async(3 << 20, stream)
pool = gpu.pool()
of_pool = [gpu.allocate_async(size, stream, pool) for size in (1 << 20, 2 << 20)]
gpu.free_async(of_pool[1], stream)
gpu.trim(pool)
gpu.free_async(of_pool[0], stream)
gpu.destroy(pool)
gpu.free_host(pinned)
gpu.allocate(7000)
gpu.free_async(of_default, stream)
gpu.synchronize()
"""


@pytest.mark.parametrize(("release", "released"), [*((each, "known") for each in RELEASES), ("13.0", "unknown")])
def test_every_allocation_is_there_with_what_is_in_use_from_then_on(
    tmp_path: Path, release: str, released: str
) -> None:
    """Whether records of releases have a size or not."""
    ran = record(tmp_path, MEMORY, release, options=("--trace", "+cuda+memory"), RELEASED=released)
    rows = expected(ran)
    assert Counter(row["memory_kind"] for row in rows) == {"Device": 13, "Pinned": 2, "Managed": 1}
    found = allocations(ran.trace)
    assert [{name: each[name] for name in rows[0]} for each in found] == rows
    # The call that did it is a span.
    calls = ran.trace.sql(
        "select c.name from allocations a join call_spans c using (correlation) order by a.time_ns limit 2"
    ).to_pylist()
    assert [row["name"] for row in calls] == ["cudaMalloc", "cudaMalloc"]
    assert ran.said().keys() == {"gpu_recorded_with"}


def test_the_curves_of_memory_are_what_the_driver_gave_out(tmp_path: Path) -> None:
    ran = record(tmp_path, MEMORY, options=("--trace", "+cuda+memory"))
    rows = expected(ran)
    curves = {row["memory"]: row for row in ran.trace.memory().to_pylist()}
    assert set(curves) == {"Device", "Pinned", "Managed", "resident"}
    for kind in ("Device", "Pinned", "Managed"):
        levels = [row["total_allocated_bytes"] for row in rows if row["memory_kind"] == kind]
        assert (curves[kind]["peak_bytes"], curves[kind]["last_bytes"]) == (max(levels), levels[-1])
        assert (curves[kind]["first_bytes"], curves[kind]["exact"]) == (0, True)
    assert curves["Device"]["peak_reserved_bytes"] == max(row["total_reserved_bytes"] or 0 for row in rows)
    assert curves["Device"]["allocations"] == 6
    assert curves["Pinned"]["peak_reserved_bytes"] is None


def test_the_page_has_them_among_the_metrics_of_the_gpu(tmp_path: Path) -> None:
    ran = record(tmp_path, MEMORY, options=("--trace", "+cuda+memory"))
    rows = [row for row in expected(ran) if row["memory_kind"] == "Pinned"]
    (series,) = (
        each for each in TraceContext(ran.trace, tmp_path).series if each.metric == "GPU 0: allocated (Pinned)"
    )
    assert series.unit == "bytes"
    # Corners, and to the end of the process.
    assert series.values.tolist() == [0, 4096, 4096, 0, 0]
    times = (series.time_ns[[1, 3]] + ran.trace.zero_ns).tolist()
    assert times == [row["time_ns"] for row in rows]
    assert series.time_ns[-1] == ran.trace.processes.to_pylist()[0]["ended_ns"]


def test_another_tool_that_has_the_callbacks_takes_none_of_it(tmp_path: Path) -> None:
    ran = record(tmp_path, MEMORY + EVENTS, options=("--trace", "+cuda+memory+events"), OTHER_TOOL=1)
    assert len(allocations(ran.trace)) == len(expected(ran))
    waits = ran.trace.sql("select wait_on_correlation from sync_spans").to_pylist()
    assert len(waits) == len(ran.did("synchronization"))
    assert sum(row["wait_on_correlation"] is not None for row in waits) == 82


def test_nothing_of_it_is_enabled_unless_it_is_asked_for(tmp_path: Path) -> None:
    refused = "ActivityEnable/49:35,ActivityEnable/36:35,ActivityConfigureUnifiedMemoryCounter:27"
    for folder, options, said in (
        ("without", (), set()),
        ("with", ("--trace", "+cuda+memory+events"), {"allocations", "events", "migrations_of_unified_memory"}),
    ):
        (tmp_path / folder).mkdir()
        ran = record(tmp_path / folder, MEMORY, options=options, FAIL=refused)
        assert {what.removeprefix("gpu_no_") for what in ran.said()} == said | {"gpu_recorded_with"}
        assert len(ran.trace.sql("select * from sync_spans").to_pylist()) == (1 if said else 0)
        assert {row["name"] for row in allocations(ran.trace)} == (set(POOL_CHANGES.values()) if said else set())
        locations = {row["name"] for row in ran.trace.locations.to_pylist() if row["kind"] != "thread"}
        assert locations == ({"GPU 0 memory", "GPU 0 waits"} if said else set())


@pytest.mark.parametrize("release", RELEASES)
def test_unified_memory_that_moves_is_a_copy_and_its_page_faults_are_counted(tmp_path: Path, release: str) -> None:
    ran = record(
        tmp_path,
        """
        gpu = fake_cuda.Gpu()
        size = 1 << 20
        address = gpu.allocate_managed(size)
        gpu.await_unified_memory()
        gpu.touch(address, size, 0, 3)
        gpu.touch(address, 4096, -1)
        gpu.prefetch(address, 1 << 16, 0)
        gpu.synchronize()
        """,
        release,
        options=("--trace", "+cuda+memory"),
    )
    copies = ran.trace.sql("select * from copy_spans order by start_ns").to_pylist()
    causes = {1: "User prefetch", 2: "Page fault"}
    assert [
        (
            row["size_bytes"],
            row["address"],
            row["copy_kind"],
            row["migration_cause"],
            row["source_device"],
            row["destination_device"],
        )
        for row in copies
    ] == [
        (
            each["bytes"],
            each["address"],
            "Unified HtoD" if each["from"] < 0 else "Unified DtoH",
            causes[each["cause"]],
            None if each["from"] < 0 else each["from"],
            None if each["to"] < 0 else each["to"],
        )
        for each in ran.did("migration")
    ]
    assert len(copies) == 3
    for row, each in zip(copies, ran.did("migration"), strict=True):
        assert row["start_ns"] + ran.trace.zero_ns == pytest.approx(each["start_ns"], abs=CLOCK_NS)
        assert row["duration_ns"] == pytest.approx(each["end_ns"] - each["start_ns"], abs=CLOCK_NS)
    assert copies[0]["name"] == "Memcpy Unified HtoD (Managed -> Managed)"
    counted = {row["what"]: row["value"] for row in ran.trace.quality.to_pylist()}
    assert (counted["gpu_page_faults"], counted["gpu_cpu_page_faults"]) == (3, 1)


def test_a_prefetch_is_no_launch_that_something_is_to_come_of(tmp_path: Path) -> None:
    """Decisions about iterations would wait for it, and the trace would say that something is missing."""
    ran = record(
        tmp_path,
        """
        gpu = fake_cuda.Gpu()
        gpu.prefetch(gpu.allocate_managed(4096), 4096, 0)
        gpu.launch("work")
        gpu.synchronize()
        time.sleep(4.5)  # a launch is given up after 3 s
        """,
    )
    assert "gpu_launches_without_work" not in {row["what"] for row in ran.trace.quality.to_pylist()}


EVENTS = """
gpu = fake_cuda.Gpu()
streams = [gpu.stream(non_blocking=True) for _ in range(2)]

def work(own, other):
    event = gpu.event(own)
    for _ in range(40):
        gpu.launch("first", stream=own, ns=30_000)
        gpu.record(event, own)
        gpu.wait(other, event)
        gpu.launch("second", stream=other, ns=10_000)
    gpu.synchronize(event=event)
    gpu.synchronize(own)

threads = [threading.Thread(target=work, args=pair) for pair in (streams, streams[::-1])]
for each in threads:
    each.start()
for each in threads:
    each.join()
gpu.synchronize()
"""


@pytest.mark.parametrize(("release", "events"), [("12.4", "late"), ("12.8", ""), ("13.0", ""), ("13.0", "late")])
def test_every_wait_names_the_call_that_recorded_what_it_waits_for(tmp_path: Path, release: str, events: str) -> None:
    """An event recorded again and again, by two threads; its records may come before those of the waits, or behind."""
    ran = record(tmp_path, EVENTS, release, options=("--trace", "+cuda+events"), EVENTS=events)
    found = {row["correlation"]: row for row in ran.trace.sql("select * from sync_spans").to_pylist()}
    told = ran.did("synchronization")
    assert Counter(each["type"] for each in told) == {1: 2, 2: 80, 3: 2, 4: 1}
    assert len(found) == len(told)
    kinds = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
    for each in told:
        row = found[each["correlation"]]
        assert (row["sync_kind"], row["name"]) == (kinds[each["type"]],) * 2
        assert row["stream"] == (None if each["stream"] < 0 else each["stream"])
        of_event = each["event"] >= 0
        assert row["wait_on_event"] == (each["event"] if of_event else None)
        assert row["wait_on_stream"] == (each["recorded_on"] if of_event else None)
        assert row["wait_on_correlation"] == (each["recorded_by"] if of_event else None)
        assert row["start_ns"] + ran.trace.zero_ns == pytest.approx(each["start_ns"], abs=CLOCK_NS)
    # They are beside the streams, and no time of the program's.
    rows = ran.trace.locations.to_pylist()
    names = {str(row["name"]).partition(" (")[0] for row in rows if row["kind"] == "stream"}  # lanes: clocks
    assert names == {"GPU 0 stream 8", "GPU 0 stream 9"}
    assert {row["kind"] for row in rows if str(row["name"]).startswith("GPU 0 waits")} == {"task"}


def test_a_wait_is_kept_back_until_its_event_is_told(tmp_path: Path) -> None:
    """Where the event's record comes when the GPU is there, which is long after CUPTI was asked for the wait's."""
    ran = record(
        tmp_path,
        """
        gpu = fake_cuda.Gpu()
        a, b = gpu.stream(non_blocking=True), gpu.stream(non_blocking=True)
        gpu.launch("long", stream=a, ns=1_600_000_000)
        gpu.wait(b, gpu.event(a))
        gpu.launch("after", stream=b)
        gpu.synchronize(b)
        """,
        options=("--trace", "+cuda+events"),
        EVENTS="late",
    )
    rows = ran.trace.sql("select wait_on_correlation, wait_on_stream from sync_spans order by start_ns").to_pylist()
    wait, _ = ran.did("synchronization")
    assert rows == [
        {"wait_on_correlation": wait["recorded_by"], "wait_on_stream": wait["recorded_on"]},
        {"wait_on_correlation": None, "wait_on_stream": None},
    ]


DEPENDS = """
gpu = fake_cuda.Gpu()
a, b = gpu.stream(non_blocking=True), gpu.stream(non_blocking=True)
gpu.function("awaited"), gpu.function("before"), gpu.function("after")
event = gpu.event(a)
end = time.monotonic_ns() + 60_000_000
gpu.next_ends(end)
gpu.launch("awaited", stream=a)
gpu.next_ends(end - 15_000)  # so shortly that nothing else would say what the next one waited for
gpu.launch("before", stream=b)
gpu.record(event, a)
gpu.wait(b, event)
gpu.launch("after", stream=b, ns=5_000_000)
gpu.synchronize(b)
"""


def test_the_critical_path_follows_an_event_from_one_stream_to_another(tmp_path: Path) -> None:
    """As it does in the same trace written for, and read from, another tool."""
    paths = defaultdict(list)
    for folder, options in (("without", ()), ("with", ("--trace", "+cuda+events"))):
        (tmp_path / folder).mkdir()
        trace = record(tmp_path / folder, DEPENDS, options=options).trace
        for row in trace.critical_path(by="segment").to_pylist():
            if row["kind"] == "computation":
                paths[folder].append(row["region"])
    assert paths == {"without": ["before", "after"], "with": ["awaited", "after"]}
    exported = tmp_path / "trace.json"
    command = [sys.executable, "-m", "strobe", "export", "with/t.strobe", "--to", "chrome", "-o", str(exported)]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    imported = strobe.open(exported)
    assert imported.critical_path(by="kind").to_pylist() == trace.critical_path(by="kind").to_pylist()


LOOP = """
import strobe
gpu = fake_cuda.Gpu()
stream, other = gpu.stream(non_blocking=True), gpu.stream(non_blocking=True)
event = gpu.event(stream)
kept = []
def train():
    for number in range(300):
        strobe.step()
        scratch = gpu.allocate(1 << 20)
        gpu.launch("work", stream=stream, ns=20_000)
        gpu.record(event, stream)
        gpu.wait(other, event)
        gpu.launch("more", stream=other, ns=20_000)
        if number % 10 == 0:
            kept.append(gpu.allocate(1000))
        gpu.free(scratch)
        time.sleep(0.0005)
train()
gpu.synchronize()
"""


def test_allocations_of_all_iterations_stay_and_waits_go_with_theirs(tmp_path: Path) -> None:
    """What is in use is a sum over all of the run: no iteration can be left out of it (test_streams.cpp has more)."""
    ran = record(tmp_path, LOOP, options=("--keep", "8", "--trace", "+cuda+memory+events"))
    rows = expected(ran)
    assert len(rows) == 300 + 300 + 30
    assert [row["total_allocated_bytes"] for row in allocations(ran.trace)] == [
        row["total_allocated_bytes"] for row in rows
    ]
    (curve,) = (row for row in ran.trace.memory().to_pylist() if row["memory"] == "Device")
    assert (curve["peak_bytes"], curve["last_bytes"]) == ((1 << 20) + 30_000, 30_000)
    steps = [row for row in ran.trace.steps().to_pylist() if row["detail"] == "all"]
    assert len(steps) < 100
    waits = ran.trace.sql("select start_ns, sync_kind from sync_spans").to_pylist()
    for step in steps[2:-1]:
        begin, end = step["start_ns"], step["start_ns"] + step["duration_ns"]
        assert sum(begin <= each["start_ns"] < end for each in waits) == 1
    assert len(waits) < 150


@pytest.mark.parametrize("quietly", [0, 1.5], ids=["before anybody asked", "told before"])
def test_a_kill_takes_no_allocation_and_no_wait(tmp_path: Path, quietly: float) -> None:
    ran = record(
        tmp_path,
        MEMORY + EVENTS + f"time.sleep({quietly})\n" + MEMORY + "os.kill(os.getpid(), signal.SIGKILL)\n",
        options=("--trace", "+cuda+memory+events"),
        expected=-signal.SIGKILL,
    )
    rows = expected(ran)
    found = allocations(ran.trace)
    same = ("address", "size_bytes", "device", "memory_kind", "name")
    assert [[each[name] for name in same] for each in found] == [[row[name] for name in same] for row in rows]
    levels = [row["total_allocated_bytes"] for row in rows if row["memory_kind"] == "Device"]
    (curve,) = (row for row in ran.trace.memory().to_pylist() if row["memory"] == "Device")
    assert (curve["peak_bytes"], curve["last_bytes"]) == (max(levels), levels[-1])
    waits = ran.trace.sql("select correlation, wait_on_correlation from sync_spans").to_pylist()
    assert sorted((row["correlation"], row["wait_on_correlation"]) for row in waits) == sorted(
        (each["correlation"], each["recorded_by"] or None) for each in ran.did("synchronization")
    )
    names = Counter(each["name"] for each in attributed(ran.trace))
    assert names["first"] + names["second"] == 160 or quietly == 0  # a kill may take names of kernels
    kinds = {row["name"]: row["kind"] for row in ran.trace.locations.to_pylist() if row["kind"] != "thread"}
    assert (kinds["GPU 0 memory"], kinds["GPU 0 waits"], kinds["GPU 0 stream 9"]) == ("task", "task", "stream")


def test_what_is_in_use_counts_what_was_allocated_between_two_windows(tmp_path: Path) -> None:
    ran = record(
        tmp_path,
        """
        import strobe
        gpu = fake_cuda.Gpu()
        gpu.allocate(1000)
        gpu.synchronize()
        strobe.pause()
        gpu.allocate(20_000)
        strobe.resume()
        gpu.allocate(300_000)
        gpu.synchronize()
        """,
        options=("--trace", "+cuda+memory"),
    )
    found = [(row["size_bytes"], row["total_allocated_bytes"]) for row in allocations(ran.trace)]
    assert found == [(1000, 1000), (300_000, 321_000)]


def test_a_kill_leaves_what_is_in_use_where_it_was(tmp_path: Path) -> None:
    """The last rows, which nobody had told the core of, say how much came and went, not how much there is."""
    ran = record(
        tmp_path,
        """
        import strobe
        gpu = fake_cuda.Gpu()
        strobe.pause()
        gpu.allocate(20_000)
        strobe.resume()
        first = gpu.allocate(300_000)
        time.sleep(2.5)
        gpu.allocate(7)
        gpu.free(first)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        options=("--trace", "+cuda+memory"),
        expected=-signal.SIGKILL,
    )
    found = [(row["size_bytes"], row["total_allocated_bytes"]) for row in allocations(ran.trace)]
    assert found == [(300_000, 320_000), (7, None), (-300_000, None)]
    (curve,) = (row for row in ran.trace.memory().to_pylist() if row["memory"] == "Device")
    assert (curve["first_bytes"], curve["peak_bytes"], curve["last_bytes"]) == (20_000, 320_007, 20_007)
    assert not curve["exact"]


def test_a_program_that_records_itself_asks_in_the_same_way(tmp_path: Path) -> None:
    program = """
        import fake_cuda, strobe
        with strobe.record("t.strobe", trace="+cuda+memory"):
            gpu = fake_cuda.Gpu()
            gpu.allocate(1234)
            gpu.synchronize()
        """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    environment = fake_cuda.environment("13.0")
    environment.pop("STROBE_SESSION", None)
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert [row["size_bytes"] for row in allocations(strobe.open(tmp_path / "t.strobe"))] == [1234]


def test_compiling_and_what_cupti_costs_are_told_in_ms(tmp_path: Path) -> None:
    ran = record(
        tmp_path,
        "gpu = fake_cuda.Gpu()\nfor _ in range(3):\n    gpu.compile()\ngpu.launch('work')\ngpu.synchronize()\n",
        JIT_NS=20_000_000,
        OVERHEAD_NS=7_000_000,
    )
    told = {row["what"]: row for row in ran.trace.quality.to_pylist()}
    took = sum(each["ns"] for each in ran.truth if each["what"] == "compiled")
    assert told["gpu_jit_compilations"]["value"] == 3
    assert told["gpu_jit_ms"]["value"] == took // 1_000_000 >= 60
    assert str(told["gpu_jit_ms"]["text"]).endswith("ms of just-in-time compilation of kernels by the driver")
    # CUPTI asked for a buffer at least once.
    assert told["gpu_overhead_ms"]["value"] % 7 == 0
    assert told["gpu_overhead_ms"]["value"] > 0
    assert "ms of overhead reported by CUPTI" in str(told["gpu_overhead_ms"]["text"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("+cuda+memroy", "--trace: 'memroy' in '+cuda+memroy' is not a level. Levels: memory, events."),
        ("+python+memory", "--trace: 'memory' in '+python+memory' is not a level. python_calls has no levels."),
        ("-cuda+memory", "--trace: '-cuda+memory' both removes cuda and asks for levels of it"),
    ],
)
def test_a_level_that_is_none_is_one_sentence(tmp_path: Path, words: str, sentence: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "strobe", "run", "--trace", words, "program.py"],
        cwd=tmp_path,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
