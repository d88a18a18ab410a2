"""Sampled profiles of other tools, as these write them, against sums made by hand or by a few plain lines."""

import json
import shutil
import subprocess
from collections import Counter
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
