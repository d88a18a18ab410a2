"""Sampled profiles of other tools, as these write them, against sums made by hand or by a few plain lines."""

import json
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

import strobe
from tests.formats.test_chrome import quality
from tests.formats.test_profiles import PATHS, by_path, text_file


def written(path: Path, body: object) -> Path:
    return text_file(path, json.dumps(body))


def own_by_function(trace: strobe.Trace) -> dict[str, int]:
    query = "select name, sum(self_ns)::bigint from statistics group by 1 having sum(self_ns) > 0"
    return {str(name): int(str(ns)) for name, ns in trace.sql(query).rows()}


def needs(tool: str) -> str:
    found = shutil.which(tool)
    if found is None:
        pytest.skip(f"needs {tool}")
    return found


# --- V8 --------------------------------------------------------------------------------------------------------------


def node(number: int, name: str, *children: int, line: int = -1, **more: object) -> dict[str, object]:
    frame = {"functionName": name, "scriptId": "1", "url": "file:///a%20b/x.js" if name else "", "lineNumber": line}
    if name == "(root)":
        frame["url"] = ""
    return {"id": number, "callFrame": frame | {"columnNumber": 0}, "hitCount": 0, "children": [*children], **more}


def v8(**changed: object) -> dict[str, object]:
    nodes = [
        node(1, "(root)", 2, 5),
        node(2, "main", 3, 4, line=0),
        node(3, "solve", line=9),
        node(4, ""),
        node(5, "(idle)"),
    ]
    nodes[2]["positionTicks"] = [{"line": 11, "ticks": 2}, {"line": 12, "ticks": 1}]
    samples, deltas = [2, 3, 4, 3, 5, 1], [100, 10, 20, 5, 30, 7]
    return {"nodes": nodes, "startTime": 1000, "endTime": 1180, "samples": samples, "timeDeltas": deltas, **changed}


def test_a_sample_of_v8_lasts_until_the_next_one(tmp_path: Path) -> None:
    trace = strobe.open(written(tmp_path / "x.cpuprofile", v8()))
    # 10 us of main, 20 of solve, 5 of the function without a name, 30 of solve, 7 idle, 8 of the root until the end.
    assert by_path(trace, "count, total_ns, self_ns") == {
        "main": [4, 65_000, 10_000],
        "main;solve": [2, 50_000, 50_000],
        "main;(anonymous)": [1, 5_000, 5_000],
        "(idle)": [1, 7_000, 7_000],
    }
    assert quality(trace)["samples_without_stack"] == 1
    assert "weights_are_no_time" not in quality(trace)
    assert trace.sql("select file, line from regions where name in ('main', 'solve') order by line").rows() == [
        ("/a b/x.js", 1),
        ("/a b/x.js", 10),
    ]
    lines = trace.sql("select function, function_line, line, hits from lines order by line").rows()
    assert lines == [("solve", 10, 11, 2), ("solve", 10, 12, 1)]


def test_samples_of_v8_that_are_written_late_count_where_they_belong(tmp_path: Path) -> None:
    late = v8(samples=[2, 3, 4], timeDeltas=[100, 50, -20], endTime=1160)  # at 1100, 1150 and 1130
    trace = strobe.open(written(tmp_path / "x", late))
    assert by_path(trace) == {"main": 30_000, "main;(anonymous)": 20_000, "main;solve": 10_000}


def test_the_older_form_of_v8_nests_its_nodes(tmp_path: Path) -> None:
    def old(number: int, name: str, line: int, hits: int, *children: object) -> dict[str, object]:
        frame = {"functionName": name, "url": "x.js", "lineNumber": line, "callUID": number}
        return {**frame, "hitCount": hits, "id": number, "children": [*children]}

    head = old(1, "(root)", 0, 0, old(2, "main", 1, 1, old(3, "solve", 7, 2)))
    head["url"] = ""
    times = {
        "startTime": 2.5,
        "endTime": 2.500_100_5,
        "samples": [2, 3, 3],
        "timestamps": [2_500_010, 2_500_030, 2_500_070],
    }
    trace = strobe.open(written(tmp_path / "x", {"head": head, **times}))
    assert by_path(trace, "count, total_ns, self_ns") == {
        "main": [3, 90_500, 20_000],
        "main;solve": [2, 70_500, 70_500],
    }
    assert trace.sql("select line from regions where name = 'solve'").rows() == [(7,)]
    without_times = strobe.open(written(tmp_path / "y", {"head": head, "startTime": 2.5, "endTime": 3}))
    assert by_path(without_times, "count, self_ns") == {"main": [3, 1], "main;solve": [2, 2]}
    assert quality(without_times)["weights_are_no_time"] == 2


def test_a_heap_profile_of_v8_has_bytes(tmp_path: Path) -> None:
    inner = {**node(3, "solve"), "selfSize": 500, "children": []}
    head = {**node(1, "(root)"), "selfSize": 0, "children": [{**node(2, "main"), "selfSize": 40, "children": [inner]}]}
    trace = strobe.open(written(tmp_path / "x.heapprofile", {"head": head, "samples": []}))
    query = (
        f"{PATHS} select path, self_value, total_value, unit from path_metrics join chain using (call_path) order by 1"
    )
    assert trace.sql(query).rows() == [("main", 40.0, 540.0, "bytes"), ("main;solve", 500.0, 500.0, "bytes")]


def test_damaged_nodes_and_samples_of_v8_are_counted(tmp_path: Path) -> None:
    nodes = [node(1, "a", 2), node(2, "b", 1), node(2, "again"), 7, {"id": "x"}]  # a and b call each other in a circle
    body = v8(nodes=nodes, samples=[2, 99, "2", 1, 1, 1], timeDeltas=[1, 2, 3, None, 5], endTime=1100)
    counted = quality(strobe.open(written(tmp_path / "x", body)))
    assert counted["functions_not_understood"] == 3
    assert counted["samples_not_understood"] == 3
    assert counted["frames_not_understood"] == 1
    assert counted["samples_without_weight"] == 1


def test_a_profile_of_node_is_exact(tmp_path: Path) -> None:
    program = "const f = n => n < 2 ? n : f(n - 1) + f(n - 2); const u = Date.now() + 200; while (Date.now() < u) f(15)"
    words = [needs("node"), "--cpu-prof", "--cpu-prof-name=x.cpuprofile", "-e", program]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=60)
    body = json.loads((tmp_path / "x.cpuprofile").read_text())
    names = {each["id"]: each["callFrame"]["functionName"] or "(anonymous)" for each in body["nodes"]}
    at, moments = body["startTime"], []
    for delta, sample in zip(body["timeDeltas"], body["samples"], strict=True):
        at += delta
        moments.append((at, sample))
    moments.sort()
    expected: Counter[str] = Counter()
    for (begin, sample), (end, _) in zip(moments, [*moments[1:], (body["endTime"], 0)], strict=True):
        expected[names[sample]] += (end - begin) * 1000
    expected.pop("(root)", None)
    assert own_by_function(strobe.open(tmp_path / "x.cpuprofile")) == {name: ns for name, ns in expected.items() if ns}
    assert expected["f"] > 50_000_000


# --- the Firefox Profiler --------------------------------------------------------------------------------------------

# The tables of samply 0.13: a stack main > py > 0x1f, frames of a program, of Python's perf trampolines and of libc.
STRINGS = ["main", "py::<module>.solve:/a b/x.py", "0x1f", "app", "libc.so.6", "main.rs"]
TABLES = {
    "stackTable": {"length": 4, "prefix": [None, 0, 1, 0], "frame": [0, 1, 2, 2], "category": [0, 0, 0, 0]},
    "frameTable": {"length": 3, "func": [0, 1, 2], "line": [None, None, None], "address": [1, 2, 31]},
    "resourceTable": {"length": 2, "lib": [0, 1], "name": [3, 4], "host": [None, None], "type": [1, 1]},
}
FUNCTIONS = {"length": 3, "name": [0, 1, 2], "resource": [0, -1, 1], "lineNumber": [7, None, None]}
LIBS = [{"name": "app", "path": "/bin/app", "breakpadId": "A"}, {"name": "libc.so.6", "path": "/lib/libc.so.6"}]


def firefox(samples: Mapping[str, object], version: int, **meta: object) -> dict[str, object]:
    """A thread of samply, in the form of a version: tables of the thread, shared texts, or shared tables."""
    thread = {"name": "worker", "tid": "77", "pid": "70", "processName": "app", "samples": samples}
    body: dict[str, object] = {"meta": {"preprocessedProfileVersion": version, "interval": 0.5, **meta}, "libs": LIBS}
    files = {"fileName": [5, None, None]}
    if version >= 58:
        files = {"source": [0, None, None]}
    tables = {**TABLES, "funcTable": FUNCTIONS | files}
    texts = {"stringArray": STRINGS, "sources": {"length": 1, "id": [None], "filename": [5]}}
    if version < 56:
        return body | {"threads": [thread | tables | {"stringArray": STRINGS}]}
    if version < 60:
        return body | {"threads": [thread | tables], "shared": texts}
    return body | {"threads": [thread], "shared": texts | tables}


@pytest.mark.parametrize("version", [48, 57, 58, 62])
def test_every_form_of_the_processed_format_is_read(tmp_path: Path, version: int) -> None:
    samples = {"stack": [0, 2, None, 2, 3, 99], "weight": [1, 2, 1, 1, 4, 1], "weightType": "samples"}
    trace = strobe.open(written(tmp_path / "x.json", firefox(samples, version)))
    path = "main;<module>.solve"
    assert by_path(trace, "count, total_ns, self_ns") == {
        "main": [8, 4_000_000, 500_000],
        path: [3, 1_500_000, 0],
        f"{path};0x1f": [3, 1_500_000, 1_500_000],
        "main;0x1f": [4, 2_000_000, 2_000_000],
    }
    query = "select name, file, line, module, paradigm from regions order by name"
    assert trace.sql(query).rows() == [
        ("0x1f", "", 0, "/lib/libc.so.6", "other"),
        ("<module>.solve", "/a b/x.py", 0, "", "python"),
        ("main", "main.rs", 7, "/bin/app", "other"),
    ]
    assert trace.sql("select distinct thread from statistics").rows() == [("worker",)]
    counted = quality(trace)
    assert (counted["samples_without_stack"], counted["samples_not_understood"]) == (1, 1)
    assert counted["frames_without_function"] == 1
    assert "weights_are_no_time" not in counted


def test_weights_of_the_processed_format_have_their_type(tmp_path: Path) -> None:
    timed = firefox({"stack": [0, 2], "weight": [1.25, 3], "weightType": "tracing-ms"}, 62)
    assert by_path(strobe.open(written(tmp_path / "ms", timed)))["main"] == 1_250_000
    heap = strobe.open(
        written(tmp_path / "b", firefox({"stack": [0, 2], "weight": [8, -3], "weightType": "bytes"}, 62))
    )
    rows = heap.sql("select self_value, total_value, metric from path_metrics order by 1").rows()
    assert rows == [(-3.0, -3.0, "bytes"), (0.0, -3.0, "bytes"), (8.0, 5.0, "bytes")]
    plain = strobe.open(written(tmp_path / "p", firefox({"stack": [0, 2], "weight": None}, 62, interval=0)))
    assert by_path(plain)["main"] == 1
    assert quality(plain)["weights_are_no_time"] == 2


def test_processes_and_threads_of_the_firefox_profiler_are_locations(tmp_path: Path) -> None:
    body = firefox({"stack": [0]}, 62)
    thread = body["threads"][0]
    body["threads"] = [thread, {**thread, "tid": "78"}, {**thread, "pid": "9", "tid": "9.1", "processName": "child"}]
    trace = strobe.open(written(tmp_path / "x", body))
    found = trace.sql("select thread, sum(self_ns)::bigint from statistics group by all order by 1").rows()
    assert found == [("app 70, worker", 1_000_000), ("child 9, worker", 500_000)]
    assert trace.sql("select count(*) from locations").rows() == [(3,)]


@pytest.mark.parametrize("names", [("x.json", "x.syms.json"), ("x.json.gz", "x.json.syms.json"), ("x", "x.syms.json")])
def test_symbols_that_samply_writes_beside_a_profile_are_its_names(tmp_path: Path, names: tuple[str, str]) -> None:
    body = firefox({"stack": [2, 0]}, 62)  # the frame 0x1f of libc.so.6, and main of the program at address 1
    body["libs"] = [
        {"name": "app", "path": "/bin/app", "debugName": "app", "breakpadId": "AB" * 16 + "0"},
        {
            "name": "libc.so.6",
            "path": "/lib/libc.so.6",
            "debugName": "libc.so.6",
            "breakpadId": "0123456789ABCDEF" * 2 + "0",
        },
    ]
    inlined = [{"function": 1, "file": 2, "line": 8}, {"function": 0, "file": 2, "line": 9}]
    libc = {"debug_name": "libc.so.6", "debug_id": "01234567-89ab-cdef-0123-456789abcdef", "code_id": "x"}
    entries = [{"rva": 16, "size": 64, "symbol": 0, "frames": inlined}, {"rva": 99, "symbol": 7}]
    table = {**libc, "symbol_table": entries, "known_addresses": [[31, 0], [1, 1], [2, 9], "x"]}
    other = {**libc, "debug_name": "app", "symbol_table": entries, "known_addresses": [[1, 0]]}
    texts = ["qsort", "msort_temp", "stdlib/msort.c"]
    written(tmp_path / names[1], {"string_table": texts, "data": [table, other]})
    trace = strobe.open(written(tmp_path / names[0], body))
    assert by_path(trace) == {
        "main": 500_000,
        "main;<module>.solve": 0,
        "main;<module>.solve;qsort": 0,
        "main;<module>.solve;qsort;msort_temp": 500_000,
    }
    found = trace.sql("select name, file, line, module from regions where name ~ 'sort' order by 1").rows()
    assert found == [
        ("msort_temp", "stdlib/msort.c", 0, "/lib/libc.so.6"),
        ("qsort", "stdlib/msort.c", 0, "/lib/libc.so.6"),
    ]
    assert "frames_without_function" not in quality(trace)


def test_the_format_of_gecko_is_read_with_its_processes(tmp_path: Path) -> None:
    texts = ["(root)", "js::Run", "solve (http://h/x.js:12:3)", "bound (self-hosted:9:0)", "read (in libxul)"]
    thread = {
        "name": "GeckoMain",
        "tid": 5,
        "pid": 4,
        "samples": {"schema": {"stack": 0, "time": 1}, "data": [[2, 0.5], [2, 1.5], [3, 2], [None, 3], [4, 5]]},
        "stackTable": {"schema": {"prefix": 0, "frame": 1}, "data": [[None, 0], [0, 1], [1, 2], [2, 3], [1, 4]]},
        "frameTable": {"schema": {"location": 0, "line": 1}, "data": [[0], [1], [2, 14], [3], [4]]},
        "stringTable": texts,
    }
    child = {"threads": [{**thread, "pid": 6, "processName": "tab"}], "processes": []}
    body = {
        "meta": {"version": 24, "interval": 1, "stackwalk": 1},
        "libs": [],
        "threads": [thread],
        "processes": [child],
    }
    trace = strobe.open(written(tmp_path / "x", body))
    rows = trace.sql(
        f"{PATHS} select thread, path, self_ns from statistics join chain using (call_path) where self_ns > 0"
    )
    assert sorted(rows.rows()) == [
        (who, f"(root);js::Run;{path}", ns)
        for who in ("process 4, GeckoMain", "tab 6, GeckoMain")
        for path, ns in (("read", 1_000_000), ("solve", 2_000_000), ("solve;bound", 1_000_000))
    ]
    found = trace.sql(
        "select name, file, line, module from regions where name in ('solve', 'bound', 'read') order by 1"
    )
    assert found.rows() == [
        ("bound", "self-hosted", 9, ""),
        ("read", "", 0, "in libxul"),
        ("solve", "http://h/x.js", 12, ""),
    ]


# --- pyinstrument ----------------------------------------------------------------------------------------------------


def instrument(function: str, time: float, *children: object, **more: object) -> dict[str, object]:
    frame = {"function": function, "file_path_short": "x.py", "line_no": 3, "time": time, "children": [*children]}
    return frame | {"is_application_code": True, **more}


def test_the_tree_of_pyinstrument_is_exact(tmp_path: Path) -> None:
    leaf = instrument("run", 0.100001, instrument("[self]", 0.1), class_name="A", file_path="/a/y.py")
    root = instrument(
        "<module>", 0.420707, leaf, instrument("sleep", 0.3, file_path="<built-in>"), instrument("", 0.02)
    )
    body = {"start_time": 1.5, "duration": 0.42, "sample_count": 108, "program": "x.py", "root_frame": root}
    trace = strobe.open(written(tmp_path / "x.json", body))
    assert by_path(trace, "total_ns, self_ns") == {
        "<module>": [420_707_000, 706_000],
        "<module>;A.run": [100_001_000, 100_001_000],
        "<module>;sleep": [300_000_000, 300_000_000],
        "<module>;(no name)": [20_000_000, 20_000_000],
    }
    assert trace.sql("select name, file, line, paradigm from regions where file != 'x.py' order by 1").rows() == [
        ("A.run", "/a/y.py", 3, "python"),
        ("sleep", "<built-in>", 3, "python"),
    ]
    assert (quality(trace)["frames_not_understood"], quality(trace)["calls_not_counted"]) == (1, 4)


def test_a_session_of_pyinstrument_has_every_sample_of_every_thread(tmp_path: Path) -> None:
    main, worker = "MainThread\0<thread>\x0012", "worker\0<thread>\x0013"
    run, read = "run\0x.py\x003\x01cA\x01l5", "read\0<built-in>\x000"
    records = [
        [[main, run], 0.1],
        [[main, run.replace("l5", "l6"), read], 0.25],
        [[worker, run], 1e-7],
        [[main, run], 0.2],
    ]
    records += [[[main], 0.5], [[main, 7], 0.5], "x"]
    about = {"start_time": 1.5, "duration": 1, "min_interval": 0.001, "sample_count": 4}
    version_4 = strobe.open(written(tmp_path / "4.pyisession", {"frame_records": records, **about}))
    trace = strobe.open(written(tmp_path / "5.pyisession", {**about, "frame_records": records}))
    assert by_path(version_4) == by_path(trace)
    columns = "thread, path, count, total_ns, self_ns"
    rows = trace.sql(f"{PATHS} select {columns} from statistics join chain using (call_path) order by all").rows()
    assert rows == [
        ("MainThread", "A.run", 3, 550_000_000, 300_000_000),
        ("MainThread", "A.run;read", 1, 250_000_000, 250_000_000),
        ("worker", "A.run", 1, 100, 100),
    ]
    lines = trace.sql("select function, function_line, line, hits, total_ns from lines order by hits").rows()
    assert lines == [("A.run", 3, 5, 1, 100), ("A.run", 3, 5, 2, 300_000_000)]
    assert (quality(trace)["samples_without_stack"], quality(trace)["samples_not_understood"]) == (1, 2)


def test_what_pyinstrument_writes_is_read(tmp_path: Path) -> None:
    pyinstrument = pytest.importorskip("pyinstrument")
    from pyinstrument.renderers import JSONRenderer

    def deep(n: int) -> str:
        return json.dumps([[1.5] * 999] * 99) if n == 0 else deep(n - 1)

    profiler = pyinstrument.Profiler(interval=0.0005)
    with profiler:
        for _ in range(3):
            deep(600)
    session = profiler.last_session
    session.save(tmp_path / "x.pyisession")
    expected: defaultdict[str, float] = defaultdict(float)
    for stack, time in session.frame_records:
        expected[stack[-1].partition("\0")[0].rpartition(".")[2]] += time
    found = strobe.open(tmp_path / "x.pyisession").sql("select name, self_ns from statistics where self_ns > 0").rows()
    assert sum(int(str(ns)) for _, ns in found) == pytest.approx(sum(expected.values()) * 1e9, abs=len(found))
    assert {str(name).rpartition(".")[2] for name, _ in found} == set(expected)

    path = text_file(tmp_path / "x.json", profiler.output(JSONRenderer(show_all=True)))
    of_tree: defaultdict[str, float] = defaultdict(float)
    waiting, count = [session.root_frame()], 0
    while waiting:
        frame = waiting.pop()
        callees = [each for each in frame.children if each.function != "[self]"]
        of_tree[frame.function.rpartition(".")[2]] += frame.time - sum(each.time for each in callees)
        waiting += callees
        count += 1
    query = "select name, sum(self_ns)::bigint from statistics group by 1"
    again: Counter[str] = Counter()
    for name, ns in strobe.open(path).sql(query).rows():
        again[str(name).rpartition(".")[2]] += int(str(ns))
    assert count > 600
    assert dict(again) == pytest.approx({name: time * 1e9 for name, time in of_tree.items()}, abs=1000 * count)


# --- stackprof -------------------------------------------------------------------------------------------------------


def ruby(**changed: object) -> dict[str, object]:
    """What StackProf.run returns, as `stackprof --json` prints it."""
    lines = {"11": [5, 4], "12": 1}  # [in samples, innermost], or both at once
    of_map = {"name": "Array#map", "file": "<cfunc>", "line": None, "total_samples": 6, "samples": 1}
    frames = {
        "70": {"name": "<main>", "file": "/a/x.rb", "line": 1, "total_samples": 6, "samples": 0, "edges": {"71": 6}},
        "71": {**of_map, "edges": {"72": 5}},
        "72": {"name": "A#run", "file": "/a/x.rb", "line": 9, "total_samples": 5, "samples": 5, "lines": lines},
    }
    raw = [3, 70, 71, 72, 2, 2, 70, 71, 1, 3, 70, 71, 72, 3]
    head = {"version": 1.2, "mode": "cpu", "interval": 250.5, "samples": 6, "gc_samples": 0, "missed_samples": 0}
    return {**head, "frames": frames, "raw": raw, "raw_timestamp_deltas": [100, 300, 1, 2, 3, 4], **changed}


def test_samples_of_stackprof_stand_for_the_interval(tmp_path: Path) -> None:
    trace = strobe.open(written(tmp_path / "x.json", ruby()))
    assert by_path(trace, "count, total_ns, self_ns") == {
        "<main>": [6, 1_503_000, 0],
        "<main>;Array#map": [6, 1_503_000, 250_500],
        "<main>;Array#map;A#run": [5, 1_252_500, 1_252_500],
    }
    assert trace.sql("select name, file, line, paradigm from regions order by 1").rows() == [
        ("<main>", "/a/x.rb", 1, "other"),
        ("A#run", "/a/x.rb", 9, "other"),
        ("Array#map", "<cfunc>", 0, "other"),
    ]
    lines = trace.sql("select function, file, line, hits, total_ns from lines order by line").rows()
    assert lines == [("A#run", "/a/x.rb", 11, 4, 1_002_000), ("A#run", "/a/x.rb", 12, 1, 250_500)]


def test_samples_of_wall_time_last_since_the_one_before(tmp_path: Path) -> None:
    trace = strobe.open(written(tmp_path / "x", ruby(mode="wall")))
    assert by_path(trace) == {"<main>": 0, "<main>;Array#map": 1_000, "<main>;Array#map;A#run": 409_000}
    few = strobe.open(written(tmp_path / "few", ruby(mode="wall", raw_timestamp_deltas=[1, 2])))
    assert by_path(few)["<main>;Array#map;A#run"] == 1_252_500


def test_allocations_of_stackprof_are_objects(tmp_path: Path) -> None:
    trace = strobe.open(written(tmp_path / "x", ruby(mode="object", interval=10)))
    metrics = trace.sql("select metric, unit, sum(self_value) from path_metrics group by all").rows()
    assert metrics == [("objects", "count", 60.0)]
    assert quality(trace)["weights_are_no_time"] == 2


def test_stackprof_without_raw_samples_has_functions_and_callers(tmp_path: Path) -> None:
    trace = strobe.open(written(tmp_path / "x", ruby(raw=[], version=1.1)))
    rows = trace.sql("select name, count, total_ns, self_ns from statistics order by 1").rows()
    assert rows == [
        ("<main>", 6, 1_503_000, 0),
        ("A#run", 5, 1_252_500, 1_252_500),
        ("Array#map", 6, 1_503_000, 250_500),
    ]
    edges = trace.sql("select caller, callee, total_ns from call_edges order by 1").rows()
    assert edges == [("<main>", "Array#map", 1_503_000), ("Array#map", "A#run", 1_252_500)]


def test_damaged_raw_samples_of_stackprof_are_counted(tmp_path: Path) -> None:
    raw = [1, 99, 1, 1, 70, 0, 0, 2, 1, 70, 1, 5, 70, 71]  # an unknown frame, no sample, no frame, a sound one, cut off
    trace = strobe.open(written(tmp_path / "x", ruby(raw=raw)))
    assert by_path(trace) == {"(unknown)": 250_500, "<main>": 250_500}
    counted = quality(trace)
    assert (counted["frames_not_understood"], counted["samples_not_understood"]) == (1, 1)
    assert (counted["samples_without_stack"], counted["truncated"]) == (2, 1)


# --- Python's profiling.sampling -------------------------------------------------------------------------------------


def test_collapsed_stacks_of_profiling_sampling_have_threads_and_lines(tmp_path: Path) -> None:
    text = """tid:71;x.py:<module>:9;x.py:A.run:3 40
tid:71;x.py:<module>:9;x.py:A.run:4 2
tid:71;x.py:<module>:9;<GC> 1
tid:72;<string>:work:1 5
"""
    trace = strobe.open(text_file(tmp_path / "x.txt", text))
    columns = "thread, path, count, self_ns"
    rows = trace.sql(f"{PATHS} select {columns} from statistics join chain using (call_path) order by all").rows()
    assert rows == [
        ("thread 71", "<module>", 43, 0),
        ("thread 71", "<module>;<GC>", 1, 1),
        ("thread 71", "<module>;A.run", 42, 42),
        ("thread 72", "work", 5, 5),
    ]
    assert trace.sql("select name, file, line from regions where name != '<GC>' order by 1").rows() == [
        ("<module>", "x.py", 0),
        ("A.run", "x.py", 0),
        ("work", "<string>", 0),
    ]
    lines = trace.sql("select function, file, line, hits from lines order by line").rows()
    assert lines == [("work", "<string>", 1, 5), ("A.run", "x.py", 3, 40), ("A.run", "x.py", 4, 2)]
