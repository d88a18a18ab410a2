"""Sampled profiles of other tools, as these write them, against sums made by hand or by a few plain lines."""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

import strobe
from strobe.errors import FormatError
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
    body = v8(nodes=nodes, samples=[2, 99, "2", 1, 1], timeDeltas=[1, 2, 3, None, 5, 6], endTime=1100)
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
    thread = body["threads"][0]  # type: ignore[index]
    body["threads"] = [thread, {**thread, "tid": "78"}, {**thread, "pid": "9", "tid": "9.1", "processName": "child"}]
    trace = strobe.open(written(tmp_path / "x", body))
    found = trace.sql("select thread, sum(self_ns)::bigint from statistics group by all order by 1").rows()
    assert found == [("app 70, worker", 1_000_000), ("child 9, worker", 500_000)]
    assert trace.sql("select count(*) from locations").rows() == [(3,)]


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


# --- Linux perf ------------------------------------------------------------------------------------------------------

# Lines of perf 4.15 to 6.1 in their forms: with a PID, a CPU, a period or without, with kernel and inlined frames.
PERF = """# ========
# hostname : node1
# cmdline : /usr/bin/perf record -g python -X perf x.py
# ========
#
python 9/9     198791.127353:     250000 cpu-clock:ppp:{space}
\t             643 solve(std::function<void (int)>)+0x1b (/a b/app)
\t             677 step (inlined)
\t    7f2fd100ecd0 py::<module>:/a b/x.py+0xa (/tmp/perf-9.map)
\t 6ce258d4c544155 [unknown] ([unknown])

Web Content 2  9/11 [002] 198791.128290:     100000 cpu-clock:ppp:{space}
\tffffffff821e5223 xas_load+0x53 ([kernel.kallsyms])
  [kernel.kallsyms][ffffffff821e5223]
\t             677 main+0x3 (/tmp/app (deleted))

python     9/9     198791.13:          3 page-faults:{space}
\t             677 main (/tmp/app)
python     9/9     198791.14:          1 sched:sched_switch: prev_comm=swapper/2 prev_pid=0
\t             677 main (/tmp/app)

python     9/9     198791.15:     250000 cpu-clock:ppp:{space}

nothing that perf writes
""".replace("{space}", " ")


def test_every_event_of_perf_script_counts_for_its_stack_and_thread(tmp_path: Path) -> None:
    trace = strobe.open(text_file(tmp_path / "x.txt", PERF))
    columns = "thread, path, count, total_ns, self_ns"
    rows = trace.sql(f"{PATHS} select {columns} from statistics join chain using (call_path) order by all").rows()
    assert rows == [
        ("Web Content 2 9/11", "main", 1, 100_000, 0),
        ("Web Content 2 9/11", "main;xas_load", 1, 100_000, 100_000),
        ("python 9", "[unknown]", 1, 250_000, 0),
        ("python 9", "[unknown];<module>", 1, 250_000, 0),
        ("python 9", "[unknown];<module>;step", 1, 250_000, 0),
        ("python 9", "[unknown];<module>;step;solve(std::function<void (int)>)", 1, 250_000, 250_000),
        ("python 9", "main", 0, 0, 0),
    ]
    metrics = trace.sql("select metric, sum(self_value) from path_metrics where self_value > 0 group by 1 order by 1")
    assert metrics.rows() == [
        ("page-faults", 3.0),
        ("samples", 2.0),
        ("sched:sched_switch", 1.0),
    ]
    assert trace.sql("select name, file, module from regions where paradigm = 'python' or name = 'main'").rows() == [
        ("<module>", "/a b/x.py", ""),
        ("main", "", "/tmp/app"),
    ]
    counted = quality(trace)
    assert (counted["samples_without_stack"], counted["frames_without_function"]) == (1, 1)
    assert (counted["labels_not_kept"], counted["lines_not_understood"]) == (2, 1)


def test_perf_without_clock_events_counts_samples(tmp_path: Path) -> None:
    text = """swapper     0 [001]     2001 cycles:  ffff08 idle+0x1 ([kernel.kallsyms])
 my app    12 7.000001:       99 cycles:u:     51d main (/bin/x)
 my app    12 7.000002:        1 cycles:u:     51d main (/bin/x)
"""
    trace = strobe.open(text_file(tmp_path / "x", text))
    assert by_path(trace, "thread, count, self_ns") == {"idle": ["swapper 0", 1, 1], "main": ["my app 12", 2, 2]}
    metrics = trace.sql("select metric, self_value from path_metrics where self_value > 0 order by all").rows()
    assert metrics == [("cycles", 2001.0), ("cycles:u", 100.0), ("samples", 1.0), ("samples", 2.0)]
    assert quality(trace)["weights_are_no_time"] == 2


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A perf.data of a program that computes for a while."""
    program = "import time\nu = time.time() + 0.3\nwhile time.time() < u: sorted(range(999), key=lambda n: -n)"
    words = [needs("perf"), "record", "-q", "-g", "-e", "cpu-clock", "-F", "999", "-o", "perf.data", "--"]
    done = subprocess.run([*words, sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"perf may not record here: {done.stderr[-200:]!r}")
    return tmp_path / "perf.data"


def test_a_perf_data_has_the_sums_of_perf_report(recorded: Path) -> None:
    words = ["perf", "report", "-i", str(recorded), "--stdio", "--no-children", "-g", "none", "-t;", "-F", "period,sym"]
    report = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    expected: Counter[str] = Counter()
    for line in report.splitlines():
        period, _, symbol = line.partition(";")
        if symbol and not line.startswith("#") and not symbol[4:].startswith("0x"):
            expected[symbol[4:].strip()] += int(period)
    found = own_by_function(strobe.open(recorded))
    assert {name: found.get(name) for name in expected} == dict(expected)
    assert sum(expected.values()) > 100_000_000


def test_perf_data_without_perf_is_refused_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(b"PERFILE2" + bytes(96))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FormatError, match="it needs perf, which is not installed here") as refused:
        strobe.open(path)
    assert f"perf script -i {path} --no-inline -F +pid > {path}.txt" in str(refused.value)


def test_a_thread_name_that_is_made_to_be_slow_is_not(tmp_path: Path) -> None:
    hostile = PERF + "a 1 " * 200_000 + "\n" + " " * 900_000 + "x\n" + "\t" + "f" * 900_000 + "\n"
    assert quality(strobe.open(text_file(tmp_path / "x", hostile)))["lines_not_understood"] == 4


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


# --- Java Flight Recorder --------------------------------------------------------------------------------------------


def java(kind: str, thread: str, *methods: str, **more: object) -> dict[str, object]:
    """A sample as JDK 17 prints it; methods are the innermost first."""
    frames = [
        {
            "method": {
                "type": {"name": name.rpartition(".")[0], "package": {"name": "a", "module": {"name": "java.base"}}},
                "name": name.rpartition(".")[2],
                "descriptor": "()V",
            },
            "lineNumber": 2,
            "type": "Interpreted",
        }
        for name in methods
    ]
    who = {"osName": thread, "osThreadId": 7, "javaName": thread, "javaThreadId": 1}
    stack = {"truncated": False, "frames": frames, **more} if methods else None
    values = {"startTime": "2026-01-01T00:00:00Z", "sampledThread": who, "stackTrace": stack}
    return {"type": f"jdk.{kind}", "values": values}


JFR = [
    java("ExecutionSample", "main", "java/util/List.sort", "W.main"),
    java("ExecutionSample", "main", "W.main", truncated=True),
    java("ExecutionSample", "main", "java/util/List.sort", "W.main"),
    java("NativeMethodSample", "main", "sun/nio/ch/Net.poll", "W.main"),
    java("ExecutionSample", "worker", "W.main"),
    java("ExecutionSample", "worker"),
    java("CPULoad", "main", "W.main"),
]


def check_java(trace: strobe.Trace) -> None:
    columns = "thread, path, count, self_ns"
    rows = trace.sql(f"{PATHS} select {columns} from statistics join chain using (call_path) order by all").rows()
    assert rows == [
        ("main", "W.main", 3, 1),
        ("main", "W.main;java.util.List.sort", 2, 2),
        ("main (native code)", "W.main", 1, 0),
        ("main (native code)", "W.main;sun.nio.ch.Net.poll", 1, 1),
        ("worker", "W.main", 1, 1),
    ]
    assert trace.sql("select distinct module from regions").rows() == [("java.base",)]
    counted = quality(trace)
    assert (counted["samples_without_stack"], counted["stacks_cut"], counted["events_of_other_kinds"]) == (1, 1, 1)
    assert counted["weights_are_no_time"] == 4


@pytest.mark.parametrize("indent", [None, 2])
def test_samples_that_jfr_printed_are_counted_by_thread(tmp_path: Path, indent: int | None) -> None:
    text = json.dumps({"recording": {"events": JFR}}, indent=indent)
    check_java(strobe.open(text_file(tmp_path / "x.json", text)))


def test_a_recording_is_printed_by_jfr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.jfr"
    path.write_bytes(b"FLR\0\0\2\0\1" + bytes(60))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FormatError, match="it needs jfr, which is not installed here") as refused:
        strobe.open(path)
    what = "jfr print --json --stack-depth 2048 --events jdk.ExecutionSample,jdk.NativeMethodSample"
    assert f"type: {what} {path} > {path}.json" in str(refused.value)
    printed = written(tmp_path / "printed", {"recording": {"events": JFR}})
    jfr = text_file(tmp_path / "jfr", f'#!/bin/sh\n[ "$*" = "{what[4:]} {path}" ] && exec /bin/cat {printed}\n')
    jfr.chmod(0o755)
    check_java(strobe.open(path))


def test_events_are_read_one_by_one_and_up_to_where_they_are_cut_off(tmp_path: Path) -> None:
    many = json.dumps({"recording": {"events": JFR[:1] * 3000}})
    assert by_path(strobe.open(text_file(tmp_path / "x", many)))["W.main;java.util.List.sort"] == 3000
    torn = strobe.open(text_file(tmp_path / "torn", many[: len(many) // 3]))
    assert by_path(torn)["W.main;java.util.List.sort"] == 999
    assert quality(torn)["truncated"] == 1
    with pytest.raises(FormatError, match="not JSON, or larger than 16 MiB"):
        strobe.open(text_file(tmp_path / "large", '{"recording": {"events": [{"a": "' + "x" * (33 << 20)))
    with pytest.raises(FormatError, match="nested too deeply"):
        strobe.open(text_file(tmp_path / "deep", '{"recording": {"events": [{"a": ' + "[" * 200_000))


def test_a_recording_of_java_has_the_samples_that_jfr_prints(tmp_path: Path) -> None:
    text_file(
        tmp_path / "Spin.java",
        "public class Spin { static long f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"
        "public static void main(String[] a) { long u = System.currentTimeMillis() + 800;\n"
        "while (System.currentTimeMillis() < u) f(20); } }\n",
    )
    options = ["-Xmx64m", "-XX:StartFlightRecording=filename=x.jfr,settings=profile"]
    subprocess.run([needs("javac"), "Spin.java"], cwd=tmp_path, check=True, timeout=120)
    subprocess.run([needs("java"), *options, "Spin"], cwd=tmp_path, check=True, timeout=120, capture_output=True)
    words = [needs("jfr"), "print", "--events", "jdk.ExecutionSample", "x.jfr"]
    text = subprocess.run(words, cwd=tmp_path, check=True, timeout=120, capture_output=True, text=True).stdout
    # The line below `stackTrace = [` is the innermost frame: Spin.f(int) line: 1
    leaves = Counter(re.findall(r"stackTrace = \[\n\s+([\w.$]+)\(", text))
    trace = strobe.open(tmp_path / "x.jfr")
    query = "select name, sum(self_ns)::bigint from statistics where thread = 'main' and self_ns > 0 group by 1"
    assert dict(trace.sql(query).rows()) == dict(leaves)
    assert leaves["Spin.f"] > 5


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


# --- TAU -------------------------------------------------------------------------------------------------------------


def tau(*rows: str, metric: str = "_MULTI_TIME", count: int | None = None) -> str:
    """A profile of TAU 2.28; rows are name, calls, calls of others, exclusive, inclusive, group."""
    head = f"{count or len(rows)} templated_functions{metric} \n# Name Calls Subrs Excl Incl ProfileCalls # "
    attributes = "<metadata><attribute><name>Hostname</name><value>node1</value></attribute></metadata>\n"
    body = "".join('"{}" {} {} {} {} 0 GROUP="{}" \n'.format(*row.split("|")) for row in rows)
    events = '# eventname numevents max min mean sumsqr\n"Message size for all-gather" 68 309428 309428 309428 6510\n'
    return head + attributes + body + "0 aggregates\n1 userevents\n" + events


FLAT = (
    ".TAU application|1|1|6|1000.5|TAU_USER",
    "int main(int, char **) C [{src.c} {26,1}-{473,1}]  |1|3|494.5|994.5|TAU_DEFAULT",
    "MPI_Barrier()  |3|0|500|500|MPI",
    "step [{a b.py} {7,0}] [THROTTLED]|2|0|0.0005|0.0005|TAU_DISABLE",
)


def test_functions_of_tau_have_their_sums(tmp_path: Path) -> None:
    trace = strobe.open(text_file(tmp_path / "profile.3.0.0", tau(*FLAT)))
    rows = trace.sql("select name, count, total_ns, self_ns from statistics order by total_ns desc").rows()
    assert rows == [
        (".TAU application", 1, 1_000_500, 6_000),
        ("int main(int, char **) C", 1, 994_500, 494_500),
        ("MPI_Barrier()", 3, 500_000, 500_000),
        ("step [THROTTLED]", 2, 0, 0),
    ]
    assert trace.sql(
        "select name, file, line, paradigm from regions where paradigm != 'other' or line > 0 order by 1"
    ).rows() == [
        ("MPI_Barrier()", "", 0, "mpi"),
        ("int main(int, char **) C", "src.c", 26, "other"),
        ("step [THROTTLED]", "a b.py", 7, "python"),
    ]
    assert trace.sql("select distinct thread from statistics").rows() == [("thread 0",)]
    assert trace.sql("select rank from processes").rows() == [(3,)]
    assert quality(trace)["metrics_not_kept"] == 1


def test_whole_call_paths_of_tau_are_a_tree(tmp_path: Path) -> None:
    rows = (
        "main|1|2|1|10|T",
        "f|3|1|5|8|T",
        "g|4|0|4|4|T",
        "main => f|3|1|5|8|C",
        "main => g|1|0|1|1|C",
        "main => f => g|3|0|3|3|C",
    )
    trace = strobe.open(text_file(tmp_path / "x", tau(*rows)))
    assert by_path(trace, "count, total_ns, self_ns") == {
        "main": [1, 10_000, 1_000],
        "main;f": [3, 8_000, 5_000],
        "main;g": [1, 1_000, 1_000],
        "main;f;g": [3, 3_000, 3_000],
    }


def test_call_paths_of_tau_that_are_cut_are_callers(tmp_path: Path) -> None:
    rows = (
        "main|1|2|1|10|T",
        "f|3|1|5|8|T",
        "g|4|0|4|4|T",
        "main => f|3|1|5|8|C",
        "f => g|3|0|3|3|C",
        "main => g|1|0|1|1|C",
    )
    trace = strobe.open(text_file(tmp_path / "x", tau(*rows)))
    assert by_path(trace) == {"main": 1_000, "f": 5_000, "g": 4_000}
    edges = trace.sql("select caller, callee, calls, total_ns, self_ns from call_edges order by all").rows()
    assert edges == [("f", "g", 3, 3_000, 3_000), ("main", "f", 3, 8_000, 5_000), ("main", "g", 1, 1_000, 1_000)]


def test_samples_of_tau_do_not_add_to_the_time_of_functions(tmp_path: Path) -> None:
    sampled = ".TAU application => [CONTEXT] .TAU application"
    rows = (
        ".TAU application|1|0|77|77|T",
        "[CONTEXT] .TAU application|3|0|0|90|S",
        "[SAMPLE] f [{a.cc} {10}]|2|0|60|60|S",
    )
    paths = (
        f"{sampled}|3|0|0|90|S",
        f"{sampled} => [SAMPLE] f [{{a.cc}} {{10}}]|2.4|0|60|60|S",
        f"{sampled} => [SAMPLE] g|1|0|30|30|S",
    )
    trace = strobe.open(text_file(tmp_path / "profile.0.0.0", tau(*rows, *paths)))
    columns = "thread, path, count, total_ns, self_ns"
    found = trace.sql(f"{PATHS} select {columns} from statistics join chain using (call_path) order by all").rows()
    assert found == [
        ("thread 0", ".TAU application", 1, 77_000, 77_000),
        ("thread 0, samples", "[CONTEXT] .TAU application", 3, 90_000, 0),
        ("thread 0, samples", "[CONTEXT] .TAU application;[SAMPLE] f", 2, 60_000, 60_000),
        ("thread 0, samples", "[CONTEXT] .TAU application;[SAMPLE] g", 1, 30_000, 30_000),
    ]


def test_a_folder_of_tau_is_one_trace_with_ranks_and_threads(tmp_path: Path) -> None:
    for node, thread in ((0, 0), (0, 1), (0, 10), (0, 2), (1, 0), (1, 1)):
        text_file(tmp_path / f"profile.{node}.0.{thread}", tau(f"work|{thread + 1}|0|{node + 1}|{node + 1}|T"))
    trace = strobe.open(tmp_path)
    of_rank = "statistics s join locations l using (location) join processes p on l.process = p.process"
    rows = trace.sql(f"select rank, s.thread, count, total_ns from {of_rank} order by rank, count").rows()
    assert rows == [
        (0, "thread 0", 1, 1_000),
        (0, "thread 1", 2, 1_000),
        (0, "thread 2", 3, 1_000),
        (0, "thread 10", 11, 1_000),
        (1, "thread 0", 1, 2_000),
        (1, "thread 1", 2, 2_000),
    ]
    one = strobe.open(tmp_path / "profile.0.0.2")
    assert one.sql("select thread, count from statistics").rows() == [("thread 2", 3)]


def test_profiles_of_tau_of_other_metrics_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "MULTI__PAPI_TOT_CYC"
    folder.mkdir()
    path = text_file(folder / "profile.0.0.0", tau("f|3|0|5|8|T", metric="_MULTI_PAPI_TOT_CYC"))
    trace = strobe.open(path)
    metrics = trace.sql("select metric, unit, self_value, total_value from path_metrics").rows()
    assert metrics == [("PAPI_TOT_CYC", "events", 5.0, 8.0)]
    assert quality(trace)["weights_are_no_time"] == 1
    (tmp_path / "MULTI__TIME").mkdir()
    text_file(tmp_path / "MULTI__TIME" / "profile.0.0.0", tau("f|3|0|5|8|T"))
    with pytest.raises(FormatError, match="several profiles of node 0: open one of the folders"):
        strobe.open(tmp_path)


def test_damaged_profiles_of_tau_are_counted(tmp_path: Path) -> None:
    whole = tau("f|3|0|5|8|T", "g|x|0|5|8|T", "h|1e99|0|5|8|T", "k|1|0|5|8|T", count=5)
    trace = strobe.open(text_file(tmp_path / "profile.0.0.0", whole))
    assert by_path(trace) == {"f": 5_000, "k": 5_000}
    assert (quality(trace)["lines_not_understood"], quality(trace)["truncated"]) == (2, 1)
