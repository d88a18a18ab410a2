"""Kineto and other Chrome JSON, against sums that decimal arithmetic took straight from the files."""

import gzip
import json
import os
import re
import shutil
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

import strobe
from strobe.api import imports
from strobe.cli.main import main
from strobe.errors import FormatError, TraceError
from strobe.formats.reading import inputs
from tests.public import KINETO, exact_sums

ROOT = Path(__file__).parents[2]
COMMUNICATION = re.compile("nccl|rccl|deep_ep|nvshmem|msccl|cross_device_reduce")


def union(intervals: list[tuple[int, int]]) -> int:
    total, until = 0, None
    for start, end in sorted(intervals):
        begin = start if until is None else max(start, until)
        total += max(0, end - begin)
        until = end if until is None else max(until, end)
    return total


def overlap(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> int:
    return union(a) + union(b) - union(a + b)


@pytest.mark.parametrize("name", KINETO)
def test_every_sum_is_the_one_of_the_file(public_folder: Path, name: str) -> None:
    row = exact_sums(name)
    trace = strobe.open(public_folder / name)

    spans = trace.sql("select name, role, paradigm, start_ns, start_ns + duration_ns as end_ns, thread from spans")
    gpu = [row for row in spans.rows() if row[2] == "cuda"]

    def intervals(wanted: Callable[[str, str], bool]) -> list[tuple[int, int]]:
        return [(int(str(row[3])), int(str(row[4]))) for row in gpu if wanted(str(row[0]), str(row[1]))]

    kernels = intervals(lambda _, role: role == "kernel")
    communication = intervals(lambda name, role: role == "kernel" and COMMUNICATION.search(name.lower()) is not None)
    compute = intervals(lambda name, role: role == "kernel" and COMMUNICATION.search(name.lower()) is None)
    busy = intervals(lambda _, role: role in ("kernel", "copy"))
    gpu_span = max(end for _, end in busy) - min(start for start, _ in busy)
    copies, kernel_spans, calls = (trace.side_table(name) for name in ("copy_spans", "kernel_spans", "call_spans"))
    names = {row[:2]: row[2] for row in trace.sql("select location, row, name from spans where role = 'copy'").rows()}
    copied = [(str(names[row[:2]]), row[2]) for row in copies.select(["location", "row", "size_bytes"]).rows()]
    launched = {number for number in calls.column("correlation") if number is not None}
    found = {
        "x_events": trace.span_count,
        "kernels": len(kernels),
        "memcpy": sum(not name.lower().startswith("memset") for name, _ in copied),
        "memset": sum(name.lower().startswith("memset") for name, _ in copied),
        "runtime": len(calls),
        "sync": len(trace.side_table("sync_spans")),
        "kernel_sum_ns": sum(end - start for start, end in kernels),
        "busy_union_ns": union(busy),
        "gpu_span_ns": gpu_span,
        "idle_ns": gpu_span - union(busy),
        "compute_union_ns": union(compute),
        "comm_kernels": len(communication),
        "comm_union_ns": union(communication),
        "comm_comp_overlap_ns": overlap(communication, compute),
        "memcpy_bytes": sum(int(str(size)) for name, size in copied if not name.lower().startswith("memset")),
        "distinct_kernels": len({row[0] for row in gpu if row[1] == "kernel"}),
        "streams": len({str(row[5]).split(" (lane")[0] for row in gpu if row[1] == "kernel"}),
        "kernels_without_runtime": sum(number not in launched for number in kernel_spans.column("correlation")),
        "profiler_steps": len(
            {
                row[3]
                for row in spans.rows()
                if str(row[0]).startswith("ProfilerStep#") and not str(row[5]).startswith("GPU")
            }
        ),
    }
    assert found == {key: int(row[key]) for key in found}
    launches = trace.sql(
        "select count(*) from links join _kernel_spans on location = to_location and row = to_row where kind = 'launch'"
    ).rows()
    assert launches == [(found["kernels"] - found["kernels_without_runtime"],)]


# --- files made here -------------------------------------------------------------------------------------------------


def write(path: Path, events: object, **beside: object) -> Path:
    body = {"traceEvents": events, **beside} if beside else events
    text = json.dumps(body).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def spans_of(trace: strobe.Trace) -> list[tuple[object, ...]]:
    return trace.sql(
        "select name, start_ns, duration_ns, depth, thread from spans order by start_ns, duration_ns desc, name"
    ).rows()


def span(name: str, ts: object, dur: object, tid: object = 1, **more: object) -> dict[str, object]:
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": 7, "tid": tid, **more}


def quality(trace: strobe.Trace) -> dict[str, int]:
    rows = trace.quality.to_pylist()
    return {str(row["what"]): int(str(row["value"])) for row in rows if row["value"]}


def test_times_are_decimal_numbers_and_never_floats(tmp_path: Path) -> None:
    # As text: a double has no decimals beyond 2^52. Three and an exponent are exact, four are rounded and counted.
    events = [
        {**span("a", 0, 0), "ts": "4503599627370497.001", "dur": "0.002"},
        {**span("b", 0, 0), "ts": "4503599627370498", "dur": "1.5e1"},
        {**span("c", 0, 0), "ts": "4503599627370604.0005", "dur": 1},
    ]
    trace = strobe.open(write(tmp_path / "t.json", events))
    assert [(name, start, duration) for name, start, duration, *_ in spans_of(trace)] == [
        ("a", 0, 2),
        ("b", 999, 15_000),
        ("c", 107_000, 1_000),  # .0005 us after .001: half a nanosecond is rounded up to 1 ns, and 107 us - 1 ns + 1 ns
    ]
    assert quality(trace)["times_rounded"] == 1


def test_spans_nest_by_their_times_in_whatever_order_they_come(tmp_path: Path) -> None:
    events = [span("inner", 10, 5), span("leaf", 11, 1), span("outer", 0, 100), span("next", 15, 5)]
    trace = strobe.open(write(tmp_path / "t.json", events))
    assert [(name, depth) for name, _, _, depth, _ in spans_of(trace)] == [
        ("outer", 0),
        ("inner", 1),
        ("leaf", 2),
        ("next", 1),
    ]


def test_a_recursion_deeper_than_16_bits_keeps_its_sums_and_its_nesting(tmp_path: Path) -> None:
    deepest = 70_000
    trace = strobe.open(write(tmp_path / "t.json", [span("f", i, 2 * (deepest - i)) for i in range(deepest + 1)]))
    around = trace.sql("select depth, count(*) from spans where depth >= 65533 group by 1 order by 1")
    assert around.rows() == [(65_533, 1), (65_534, 1), (65_535, deepest - 65_534)]
    assert trace.span_arrays(0)["depth"].tolist() == list(range(deepest + 1))
    assert max(row["depth"] for row in trace.call_paths.to_pylist()) == 65_535
    (row,) = trace.ask("profile").to_pylist()
    assert (row["calls"], row["self_ns"], row["total_ns"]) == (deepest + 1, 2 * deepest * 1000, 2 * deepest * 1000)


def test_what_overlaps_without_nesting_keeps_its_times_in_a_lane(tmp_path: Path) -> None:
    trace = strobe.open(write(tmp_path / "t.json", [span("a", 0, 10), span("b", 5, 10), span("c", 12, 1)]))
    assert {(name, start, duration) for name, start, duration, *_ in spans_of(trace)} == {
        ("a", 0, 10_000),
        ("b", 5_000, 10_000),
        ("c", 12_000, 1_000),
    }
    assert len(trace.locations) == 2
    assert len({row["thread_id"] for row in trace.locations.to_pylist()}) == 1
    assert quality(trace)["overlapping_spans"] == 1


def test_functions_of_python_give_way_to_the_marks_that_they_cross(tmp_path: Path) -> None:
    # A profiler with stacks: a mark begins inside of a function and ends inside of another, in which the next begins.
    def python(name: str, ts: int, dur: int) -> dict[str, object]:
        return span(name, ts, dur, cat="python_function")

    marks = [span(f"ProfilerStep#{i}", 100 * i, 95, cat="user_annotation") for i in (1, 2)]
    functions = [
        python("main", 50, 300), python("__enter__", 95, 20), python("begin", 99, 10), python("forward", 120, 30),
        python("__exit__", 190, 20), python("end", 192, 4), python("after", 197, 9), python("forward", 220, 40),
    ]  # fmt: skip
    operators = [span("aten::mm", 125, 10, cat="cpu_op"), span("aten::mm", 225, 10, cat="cpu_op")]
    trace = strobe.open(write(tmp_path / "t.json", [*functions, *operators, *marks]))
    rows = [(name, start // 1000 + 50, duration // 1000, depth) for name, start, duration, depth, _ in spans_of(trace)]
    assert rows == [
        ("main", 50, 300, 0), ("__enter__", 95, 5, 1), ("begin", 99, 1, 2),
        ("ProfilerStep#1", 100, 95, 1), ("forward", 120, 30, 2), ("aten::mm", 125, 10, 3),
        ("__exit__", 195, 5, 1), ("end", 195, 1, 2), ("after", 197, 3, 2),
        ("ProfilerStep#2", 200, 95, 1), ("forward", 220, 40, 2), ("aten::mm", 225, 10, 3),
    ]  # fmt: skip
    assert quality(trace)["spans_clipped"] == 6
    assert "overlapping_spans" not in quality(trace)
    assert len(trace.locations) == 1


def test_begins_and_ends_are_paired(tmp_path: Path) -> None:
    events = [
        {"ph": "B", "name": "f", "ts": 0, "pid": 1, "tid": 1, "args": {"x": 3}},
        {"ph": "B", "name": "g", "ts": 2, "pid": 1, "tid": 1},
        {"ph": "E", "ts": 5, "pid": 1, "tid": 1},
        {"ph": "E", "ts": 9, "pid": 1, "tid": 1},
        {"ph": "E", "ts": 10, "pid": 1, "tid": 1},
        {"ph": "B", "name": "cut", "ts": 11, "pid": 1, "tid": 1},
        {"ph": "X", "name": "last", "ts": 12, "dur": 8, "pid": 1, "tid": 1},
    ]
    trace = strobe.open(write(tmp_path / "t.json", events))
    assert [(name, start, duration) for name, start, duration, *_ in spans_of(trace)] == [
        ("f", 0, 9_000),
        ("g", 2_000, 3_000),
        ("cut", 11_000, 9_000),
        ("last", 12_000, 8_000),
    ]
    assert trace.sql("select key, value from arguments").rows() == [("x", "3")]
    assert (quality(trace)["unmatched_leaves"], quality(trace)["spans_cut"]) == (1, 1)


def test_asynchronous_work_has_rows_of_its_own(tmp_path: Path) -> None:
    def one(phase: str, number: int, ts: int) -> dict[str, object]:
        return {"ph": phase, "cat": "net", "name": "get", "id": number, "ts": ts, "pid": 1, "tid": 1}

    events = [span("main", 0, 100, pid=1), one("b", 1, 0), one("b", 2, 5), one("e", 1, 10), one("e", 2, 50)]
    trace = strobe.open(write(tmp_path / "t.json", events))
    rows = trace.sql("select start_ns, duration_ns from spans where name = 'get' order by start_ns").rows()
    assert rows == [(0, 10_000), (5_000, 45_000)]
    assert [row["kind"] for row in trace.locations.to_pylist()].count("task") == 2


def test_counters_marks_and_flows_are_there(tmp_path: Path) -> None:
    events = [
        span("a", 1, 5),
        {"ph": "C", "name": "memory", "ts": 2, "pid": 7, "args": {"used": 5, "free": 7.5}},
        {"ph": "i", "s": "t", "name": "hello", "cat": "note", "ts": 3, "pid": 7, "tid": 1, "args": {"why": ["é", 1]}},
        {"ph": "s", "id": 4, "cat": "ac2g", "name": "ac2g", "ts": 1, "pid": 7, "tid": 1},
        {"ph": "f", "id": 4, "cat": "ac2g", "name": "ac2g", "ts": 2, "pid": 7, "tid": 1, "bp": "e"},
    ]
    trace = strobe.open(write(tmp_path / "t.json.gz", events, displayTimeUnit="ns"))
    metrics = trace.sql("select metric, time_ns, value from metrics order by metric").rows()
    assert metrics == [("memory: free", 1000, 7.5), ("memory: used", 1000, 5.0)]
    marks = trace.sql("select time_ns, name, category, arguments from marks").rows()
    assert marks == [(2000, "hello", "note", '{"why":["é",1]}')]
    flows = trace.sql("select phase, flow, time_ns from flows order by time_ns").rows()
    assert flows == [("s", 4, 0), ("f", 4, 1000)]


def test_processes_and_threads_have_their_names(tmp_path: Path) -> None:
    events = [
        span("a", 1, 5),
        {**span("b", 2, 5), "pid": 8},
        {"ph": "M", "name": "thread_name", "pid": 7, "tid": 1, "args": {"name": "worker"}},
        {"ph": "M", "name": "process_name", "pid": 8, "args": {"name": "server"}},
    ]
    trace = strobe.open(write(tmp_path / "t.json", events))
    assert [row["pid"] for row in trace.processes.to_pylist()] == [7, 8]
    assert trace.processes.to_pylist()[1]["argv"] == "server"
    assert trace.locations.to_pylist()[0]["name"] == "worker"


BROKEN = (
    '[{"ph": "X", "name": "a", "ts": 1, "dur": N/A, "pid": 1, "tid": 1, "args": {"x": N/A}},\n'
    '{"ph": "X", "name": "\udcff\\u00e9", "ts": 2, "dur": 3, "pid": 1, "tid": 1},\n'
    '{"ph": "X", "name": "no time", "dur": 3, "pid": 1, "tid": 1},\n'
    '{"ph": "X", "name": "backwards", "ts": 10, "dur": -3, "pid": 1, "tid": 1},\n'
    '{"ph": "X", "name": "b", "ts": 20, "dur": 3, "pid": 1, "tid": 1, "args": {"deep": {"er": [1, {}]}}},\n'
    '{"ph": "X", "name": "torn", "ts": 30, "du'
)


def test_a_damaged_file_opens_with_what_is_sound_and_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(BROKEN.encode("utf-8", "surrogateescape"))
    trace = strobe.open(path)
    found = [(start, duration) for _, start, duration, *_ in spans_of(trace)]
    assert found == [(0, 3_000), (8_000, 0), (18_000, 3_000)]
    counted = quality(trace)
    assert counted["negative_durations"] == 1
    assert counted["events_without_time"] == 2  # one has no begin, one has N/A for a duration
    assert counted["repaired_events"] == 1
    assert counted["truncated"] == 1
    assert trace.sql("select value from arguments where key = 'deep'").rows() == [('{"er":[1,{}]}',)]


def test_a_torn_gzip_opens_up_to_where_it_is_torn(tmp_path: Path) -> None:
    whole = write(tmp_path / "t.json.gz", [span(f"f{i * 7919 % 1000}", i * 10, 5) for i in range(20_000)], x=1)
    torn = tmp_path / "torn.json.gz"
    torn.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    trace = strobe.open(torn)
    assert 5_000 < trace.span_count < 15_000
    assert quality(trace)["truncated"] == 1
    names = trace.sql("select name from spans order by start_ns").column("name")
    assert names == [f"f{i * 7919 % 1000}" for i in range(len(names))]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "not in a known format"),
        (b"hello", "not in a known format"),
        (b'{"model": {"inner": 1}, "layers": [{"name": "x"}], "a:b": "c: d"}', "(JSON?). Keys: model, layers, a:b"),
        (b'{"traceEvents": 5}', "no traceEvents"),
        (b'{"traceEvents" [', "a colon was expected here"),
        (gzip.compress(b"hello", mtime=0), "not in a known format"),
        (b'{"traceEvents": [{"ph":"X"', "holds no event that can be read; it ends in the middle"),
        (b'{"traceEvents": []}', "holds no event that can be read"),
    ],
)
def test_what_is_no_trace_is_refused_with_a_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(content)
    with pytest.raises(TraceError) as refused:
        strobe.open(path)
    assert sentence in str(refused.value)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["t.json"], "nothing is left behind"


def test_a_gzip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_ALWAYS_BYTES", 1 << 24)
    path = tmp_path / "bomb.json.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(b'{"traceEvents": [')
        for _ in range(64):
            file.write(b" " * (1 << 20))
    with pytest.raises(FormatError, match="unpacks to more than"):
        strobe.open(path)


def test_the_second_opening_reads_the_cache_and_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", [span("a", 1, 5)])
    job = strobe.open(path).path / "job.json"
    made = job.stat().st_mtime_ns
    assert strobe.open(path).path == job.parent
    assert job.stat().st_mtime_ns == made
    write(path, [span("a", 1, 5), span("b", 10, 5)])
    assert strobe.open(path).span_count == 2
    assert list(tmp_path.iterdir()) == [path]  # nothing lies beside it


def test_an_import_that_was_asked_for_beside_its_file_is_used(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", [span("a", 1, 5)])
    made = imports.imported([path], tmp_path / "t.json.strobe")
    assert strobe.open(path).path == made


def test_imports_that_nobody_opened_for_long_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("strobe.api.imports.CACHE_BYTES", 1)
    old, recent, new = (strobe.open(write(tmp_path / f"{name}.json", [span("a", 1, 5)])).path for name in "abc")
    assert {old, recent, new} == set((tmp_path / "cache").iterdir())
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(old, (two_days_ago, two_days_ago))
    strobe.open(tmp_path / "c.json")
    assert {recent, new} == set((tmp_path / "cache").iterdir())


def test_files_of_ranks_become_one_trace(tmp_path: Path) -> None:
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in (0, 1, 10):
        beside = {"distributedInfo": {"rank": rank, "world_size": 11}, "baseTimeNanoseconds": 1000 * rank}
        write(folder / f"r{rank}.json.gz", [span("step", 5, 10)], **beside)
    (folder / "notes.txt").write_text("not a trace")
    trace = strobe.open(folder)
    assert [row["rank"] for row in trace.processes.to_pylist()] == [0, 1, 10]
    starts = trace.sql("select process, start_ns from spans order by process").rows()
    assert starts == [(0, 0), (1, 1_000), (2, 10_000)], "bases of the clocks are added"


def test_spans_beyond_the_buffer_are_merged_from_sorted_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [span(f"f{i % 7}", (i * 7919) % 10_007 * 10, 5, tid=i % 3, args={"i": i}) for i in range(10_000)]
    whole = strobe.open(write(tmp_path / "whole.json", events))
    expected = spans_of(whole), whole.sql("select start_ns, value from arguments order by all").rows()
    monkeypatch.setattr(imports, "_BUFFER_BYTES", 10_000)
    spilled = strobe.open(shutil.copy(tmp_path / "whole.json", tmp_path / "spilled.json"))
    assert (spans_of(spilled), spilled.sql("select start_ns, value from arguments order by all").rows()) == expected
    assert len(expected[0]) == len(expected[1]) == 10_000


def test_a_real_profile_of_pytorch_equals_what_its_json_says(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "trace.json"
    layer = torch.nn.Linear(32, 32)
    with torch.profiler.profile(record_shapes=True, with_stack=True, profile_memory=True) as profiler:
        for _ in range(3):
            with torch.profiler.record_function("mine"):
                layer(torch.randn(4, 32)).sum().backward()
    profiler.export_chrome_trace(str(path))
    events = json.loads(path.read_bytes(), parse_float=Decimal)["traceEvents"]
    complete = [e for e in events if e.get("ph") == "X"]
    trace = strobe.open(path)
    assert trace.span_count == len(complete)
    # Functions of Python that cross a mark are shorter by what lies behind its edge; all else is exact.
    total = {True: 0, False: 0}
    for each in complete:
        total[each["cat"] == "python_function"] += int(Decimal(each["dur"]) * 1000)
    sums = trace.sql("select paradigm = 'python', sum(duration_ns)::bigint from spans group by 1 order by 1").rows()
    assert sums[0] == (False, total[False])
    assert 0.95 * total[True] < int(str(sums[1][1])) < total[True]
    shapes = sorted(
        json.dumps(e["args"]["Input Dims"], separators=(",", ":"))
        for e in complete
        if "Input Dims" in e.get("args", {})
    )
    assert sorted(trace.sql("select shapes from operator_spans where shapes is not null").column("shapes")) == shapes
    assert shapes
    memory = sum(e.get("name") == "[memory]" for e in events)
    assert len(trace.side_table("allocations")) == memory > 0
    functions = [e for e in complete if e.get("cat") == "python_function"]
    assert trace.sql("select count(*) from spans where paradigm = 'python'").rows() == [(len(functions),)]
    assert trace.sql("select count(*) from regions where paradigm = 'python' and line > 0").rows()[0][0] > 0


def test_a_real_trace_of_viztracer_equals_what_its_json_says(tmp_path: Path) -> None:
    viztracer = pytest.importorskip("viztracer")
    path = tmp_path / "viz.json"
    tracer = viztracer.VizTracer(output_file=str(path), verbose=0)
    tracer.start()
    json.loads(json.dumps([[i] * 5 for i in range(50)], indent=1))
    tracer.stop()
    tracer.save()
    events = json.loads(path.read_bytes(), parse_float=Decimal)["traceEvents"]
    complete = [e for e in events if e["ph"] == "X"]
    trace = strobe.open(path)
    total = sum(round(Decimal(e["dur"]) * 1000) for e in complete)
    assert trace.sql("select count(*), sum(duration_ns)::bigint from spans").rows() == [(len(complete), total)]
    dumps = trace.sql("select file, line from regions where name = 'dumps'").rows()
    assert dumps
    assert str(dumps[0][0]).endswith("json/__init__.py")


def test_ranks_are_imported_by_name_and_summed_up(
    public_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted(str(path) for path in (public_folder / "kineto" / "two_ranks").iterdir())
    assert main(["import", *files, "-o", str(tmp_path / "job")]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "job.strobe")
    trace = strobe.open(tmp_path / "job")
    assert [row["rank"] for row in trace.processes.to_pylist()] == [0, 1]
    kernels = trace.sql("select process, count(*) from spans where role = 'kernel' group by 1 order by 1").rows()
    assert kernels == [(0, 1154), (1, 1104)]
    assert main([str(tmp_path / "job.strobe")]) == 0, "two steps are enough for a summary"
    assert "train" in capsys.readouterr().out
    assert main(["import", *files]) == 2
    assert "needs a name" in capsys.readouterr().err
    assert main(["import", *files, "-o", str(tmp_path / "x"), "--ranks", "1"]) == 2
    assert main(["import", *files, "-o", str(tmp_path / "y"), "--ranks", "5,3"]) == 0
    asked = strobe.open(tmp_path / "y")
    assert sorted(int(str(row["rank"])) for row in asked.processes.to_pylist()) == [3, 5]


def test_what_is_no_thread_takes_no_time_of_the_program(tmp_path: Path) -> None:
    """Asynchronous work is in SQL, but in no share of the profile: it does not run while it waits."""
    wait = {"cat": "net", "name": "get", "id": 1, "pid": 7, "tid": 1}
    waits = [{"ph": "b", "ts": 0, **wait}, {"ph": "e", "ts": 90, **wait}]
    both = strobe.open(write(tmp_path / "both.json", [span("main", 0, 10), *waits]))
    assert both.profile().column("name") == ["main"]
    assert both.sql("select count(*) from spans").rows() == [(2,)]
    alone = strobe.open(write(tmp_path / "alone.json", waits))
    assert alone.profile().column("name") == ["get"]


def test_files_with_several_processes_each_stay_apart(tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    folder.mkdir()
    for number in range(2):
        write(folder / f"rank{number}.json", [{**span(f"f{number}{pid}", 5, 10), "pid": pid} for pid in (1, 2)])
    trace = strobe.open(folder)
    assert sorted(str(name) for name, *_ in spans_of(trace)) == ["f01", "f02", "f11", "f12"]
    assert sorted(int(str(row["rank"])) for row in trace.processes.to_pylist()) == [0, 0, 1, 1]


def merged(tmp_path: Path, *files: list[dict[str, object]]) -> strobe.Trace:
    events = sorted((each for file in files for each in file), key=lambda each: float(str(each["ts"])))
    return strobe.open(write(tmp_path / "merged.json", events))


def of_gpus(trace: strobe.Trace) -> list[tuple[object, ...]]:
    return trace.sql("""
        select pid, s.name, s.start_ns, device from spans s join locations l using (location)
        join processes p on p.process = s.process where role in ('kernel', 'copy') order by all
    """).rows()


def job(pid: int, device: int, first: int, start: int, *, number: int = 40) -> list[dict[str, object]]:
    """A process that launches a kernel every 10 us, with correlations from `first` on; they run 25 us later."""
    events = []
    for i in range(number):
        at, args = start + 10 * i, {"correlation": first + i}
        host = {"pid": pid, "tid": pid}
        events.append({**span("aten::mm", at, 6, cat="cpu_op"), **host})
        events.append({**span("cudaLaunchKernel", at + 1, 2, cat="cuda_runtime"), **host, "args": args})
        events.append({**span(f"gemm of {pid}", at + 25, 8, cat="kernel"), "pid": device, "tid": 7, "args": args})
        flow = {"ph": "f", "id": first + i, "pid": device, "tid": 7, "ts": at + 25, "name": "ac2g", "cat": "ac2g"}
        events.append(flow)
    return events


@pytest.mark.parametrize(
    ("devices", "firsts"),
    [((0, 1), (100, 7000)), ((0, 0), (100, 7000)), ((0, 1), (100, 100))],
    ids=["apart", "one device", "equal correlations"],
)
def test_kernels_of_processes_merged_by_time_belong_to_who_launched_them(
    tmp_path: Path, devices: tuple[int, int], firsts: tuple[int, int]
) -> None:
    # Of equal correlations the device decides, which is known by a kernel whose call only one process has.
    jobs = [job(4000 + k, devices[k], firsts[k], 10 * k + 3 * k) for k in range(2)]
    jobs = [[*jobs[k], *job(4000 + k, devices[k], 90_000 + 1000 * k, 500 + k, number=2)] for k in range(2)]
    if firsts[0] == firsts[1]:
        jobs = [[*job(4000 + k, devices[k], 80_000 + 1000 * k, -60 + 3 * k, number=2), *jobs[k]] for k in range(2)]
    trace = merged(tmp_path, *jobs)
    found = of_gpus(trace)
    assert {(pid, name) for pid, name, *_ in found} == {(4000, "gemm of 4000"), (4001, "gemm of 4001")}
    assert len(found) == sum(each.get("cat") == "kernel" for job in jobs for each in job)
    assert {row["operator"] for row in trace.kernels(by="operator").to_pylist()} == {"aten::mm"}
    assert len(trace.streams()) == 2
    ends = trace.sql("select pid, count(*) from flows f join locations using (location) join processes p"
                     " on p.process = locations.process where phase = 'f' group by 1 order by 1").rows()  # fmt: skip
    assert ends == [(4000 + k, sum(each["ph"] == "f" for each in jobs[k])) for k in range(2)]


def test_functions_of_a_thread_without_a_number_belong_to_the_process(tmp_path: Path) -> None:
    # As Kineto has a thread that began no operator: tqdm's monitor.
    waits = {**span("threading.py(359): wait", 2, 90, cat="python_function"), "pid": 0, "tid": 0}
    events = [{**span("aten::mm", 5 * n, 4, cat="cpu_op"), "pid": 812, "tid": 812} for n in range(4)]
    kernel = {**span("gemm", 10, 5, cat="kernel"), "pid": 0, "tid": 7}
    trace = strobe.open(write(tmp_path / "t.json", [*events[:2], waits, *events[2:], kernel]))
    assert trace.sql("select pid from processes").rows() == [(812,)]
    assert trace.sql("select l.name, l.kind, s.name from spans s join locations l using (location)"
                     " where s.name in ('wait', 'gemm') order by 1").rows() == [
        ("GPU 0 stream 7", "stream", "gemm"), ("thread 0", "thread", "wait")]  # fmt: skip


def test_forward_operators_are_linked_to_their_backward(public_folder: Path) -> None:
    path = public_folder / "kineto" / "nccl_data.json.gz"
    events = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)["traceEvents"]
    named = {(e["tid"], e["ts"]): e["name"] for e in events if e.get("cat") == "cpu_op"}
    ends = {(e["id"], e["ph"]): named[e["tid"], e["ts"]] for e in events if e.get("cat") == "fwdbwd"}
    expected = sorted((ends[number, "s"], ends[number, "f"]) for number, phase in ends if phase == "s")
    found = strobe.open(path).sql("""
        select a.name, b.name from links
        join spans a on a.location = from_location and a.row = from_row
        join spans b on b.location = to_location and b.row = to_row
        where kind = 'forward_backward' order by all
    """)
    assert found.rows() == expected
    assert len(expected) == 543


def test_clocks_of_ranks_are_aligned_by_their_collectives(tmp_path: Path) -> None:
    """Rank 1 counts 5 ms ahead, and comes late to every second collective: they end together all the same."""
    folder = tmp_path / "job"
    folder.mkdir()
    wobble = [0.4, -1.2, 2.0, 0.0, -0.7, 1.1, -2.0, 0.9]  # us between the ends
    for rank in range(2):
        events = [span("step", 100 + rank * 5000, 3000)]
        for number, apart in enumerate(wobble):
            end = 1000 + 300 * number + rank * (5000 + apart)
            begin = end - (20 if rank == number % 2 else 150)
            name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
            events.append({**span(name, round(begin, 3), round(end - begin, 3), tid=20, cat="kernel"), "pid": rank})
        write(folder / f"rank{rank}.json", events, distributedInfo={"rank": rank, "world_size": 2})
    trace = strobe.open(folder)
    ends = trace.sql("""
        select rank, start_ns + duration_ns from spans join processes using (process) where role = 'kernel' order by all
    """).rows()
    first, second = ([int(str(end)) for rank, end in ends if rank == wanted] for wanted in range(2))
    apart_ns = [abs(b - a) for a, b in zip(first, second, strict=True)]
    assert max(apart_ns) < 3000, "of 5 000 000 ns"
    (told,) = (row for row in trace.quality.to_pylist() if row["what"] == "clock_error_ns" and row["value"] is not None)
    assert 1000 < int(str(told["value"])) < 3000
    assert "8 collectives agree" in str(told["text"])


@pytest.mark.parametrize("gpu_first", [True, False])
def test_gpus_belong_to_the_process_of_the_host_whatever_comes_first(tmp_path, gpu_first):
    shared = {"correlation": 5}
    gpu = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20, "dur": 5, "args": shared}
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 41, "tid": 1, "ts": 10, "dur": 2}
    events = [gpu, {**call, "args": shared}, {**gpu, "ts": 30, "args": {"correlation": 6}}]
    labels = {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "ts": 0, "args": {"labels": "GPU 0"}}
    path = tmp_path / "profile.json"
    path.write_text(json.dumps({"traceEvents": [*(events if gpu_first else events[1:] + events[:1]), labels]}))
    trace = strobe.open(path)
    assert [row["pid"] for row in trace.processes.to_pylist()] == [41]
    assert sorted(row["span_count"] for row in trace.locations.to_pylist()) == [1, 2]
    (launch,) = trace.sql("select * from links where kind = 'launch'").to_pylist()
    assert launch is not None
