"""Profiles without a time axis, as their own tools write them, against what those tools and plain sums say."""

import ast
import cProfile
import gzip
import json
import marshal
import pickle
import profile
import pstats
import re
import struct
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

import strobe
from strobe import registry
from strobe.errors import FormatError
from strobe.model.plugins import Format
from tests.formats.test_chrome import quality, span
from tests.formats.test_chrome import write as write_chrome

PATHS = """
    with recursive chain as (
        select call_path, name as path from call_paths join regions using (region) where parent is null
        union all
        select c.call_path, chain.path || ';' || r.name
        from call_paths c join chain on c.parent = chain.call_path join regions r on c.region = r.region
    )
"""


def by_path(trace: strobe.Trace, columns: str = "self_ns") -> dict[str, object]:
    rows = trace.sql(f"{PATHS} select path, {columns} from statistics join chain using (call_path)").rows()
    return {str(path): values[0] if len(values) == 1 else values for path, *values in rows}


def export(name: str, trace: strobe.Trace, path: Path, **options: object) -> strobe.Trace:
    plugin = registry.load("formats", name)
    assert isinstance(plugin, Format)
    assert plugin.write is not None
    plugin.write(trace, path, **options)
    return strobe.open(path)


def text_file(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


# --- collapsed stacks ------------------------------------------------------------------------------------------------

COLLAPSED = """main;solve;dot 42
main;solve 8
# a comment
main;solve;dot 1
main;read (io.py:12) 1.25
idle 3
a b;c::d<int, x>;e_[k] 7
"""


def test_collapsed_stacks_are_samples_by_call_path(tmp_path: Path) -> None:
    trace = strobe.open(text_file(tmp_path / "t.folded", COLLAPSED + "\nno number here\n"))
    assert by_path(trace, "count, total_ns, self_ns") == {
        "main": [52, 52, 0],
        "main;solve": [51, 51, 8],
        "main;solve;dot": [43, 43, 43],
        "main;read": [1, 1, 1],
        "idle": [3, 3, 3],
        "a b": [7, 7, 0],
        "a b;c::d<int, x>": [7, 7, 0],
        "a b;c::d<int, x>;e_[k]": [7, 7, 7],
    }
    assert trace.span_count == 0
    assert trace.sql("select file, line from regions where name = 'read'").rows() == [("io.py", 12)]
    counted = quality(trace)
    assert (counted["lines_not_understood"], counted["weights_rounded"]) == (1, 1)
    assert counted["weights_are_no_time"] == 5, "that a sample is shown as a nanosecond is said"
    exact = trace.sql("select sum(self_value) from path_metrics where metric = 'samples' and unit = 'count'").rows()
    assert exact == [(62.25,)]


def test_blanks_around_frames_are_no_part_of_them(tmp_path: Path) -> None:
    trace = strobe.open(text_file(tmp_path / "t.folded", "main; solve it;dot 4\nmain;solve it 3\n"))
    assert by_path(trace) == {"main": 0, "main;solve it": 3, "main;solve it;dot": 4}


def test_samples_of_py_spy_are_all_there(tmp_path: Path) -> None:
    spy = Path(sys.executable).with_name("py-spy")
    if not spy.exists():
        pytest.skip("needs py-spy")
    program = text_file(
        tmp_path / "spin.py",
        "import time\ndef fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
        "until = time.time() + 1\nwhile time.time() < until: fib(12)\n",
    )

    def record(form: str, path: Path) -> Path:
        command = [str(spy), "record", "-r", "100", "-d", "3", "--format", form, "-o", str(path), "--"]
        done = subprocess.run([*command, sys.executable, str(program)], capture_output=True, text=True, timeout=60)
        if not path.exists():
            pytest.skip(f"py-spy may not look into processes here: {done.stderr[-200:]}")
        return path

    raw = record("raw", tmp_path / "raw.txt")
    samples = sum(int(line.rpartition(" ")[2]) for line in raw.read_text().splitlines() if line.strip(" 0123456789"))
    trace = strobe.open(raw)
    assert trace.sql("select sum(self_ns)::bigint from statistics").rows() == [(samples,)]
    assert trace.sql("select count(*) from regions where name = 'fib' and file like '%spin.py'").rows()[0][0] > 0

    scope = record("speedscope", tmp_path / "scope.json")
    body = json.loads(scope.read_bytes(), parse_float=Decimal)
    trace = strobe.open(scope)
    leaves: Counter[str] = Counter()
    for each in body["profiles"]:
        for stack, weight in zip(each["samples"], each["weights"], strict=True):
            if stack:  # else nothing ran
                leaves[body["shared"]["frames"][stack[-1]]["name"]] += int(weight * 10**9)
    found = trace.sql("select name, sum(self_ns)::bigint from statistics group by 1 having sum(self_ns) > 0").rows()
    assert dict(found) == dict(leaves)


# --- speedscope ------------------------------------------------------------------------------------------------------


def scope(*profiles: dict[str, object], frames: int = 4) -> str:
    return json.dumps(
        {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "shared": {"frames": [{"name": f"f{i}", "file": "x.py", "line": i + 1} for i in range(frames)]},
            "profiles": profiles,
        }
    )


def events(text: str, scale: float = 1) -> list[dict[str, object]]:
    """`O0@5` opens frame 0 at 5."""
    return [{"type": e[0], "frame": int(e[1]), "at": float(e[3:]) * scale} for e in text.split()]


def test_evented_profiles_are_spans_and_sampled_ones_totals(tmp_path: Path) -> None:
    evented = {"type": "evented", "name": "main", "unit": "microseconds", "startValue": 0, "endValue": 20}
    evented["events"] = events("O0@1 O1@1 C1@2.5 O1@2.5 O2@3 C2@3 C1@4 C0@10 O3@12")
    sampled = {"type": "sampled", "name": "worker", "unit": "milliseconds", "startValue": 0, "endValue": 6}
    sampled |= {"samples": [[0, 1], [0], [0, 1], []], "weights": [1.5, 2, 2.5, 9]}
    trace = strobe.open(text_file(tmp_path / "t.json", scope(evented, sampled)))
    spans = trace.sql("select name, start_ns, duration_ns, depth, thread from spans order by row").rows()
    assert spans == [
        ("f0", 0, 9000, 0, "main"),
        ("f1", 0, 1500, 1, "main"),
        ("f1", 1500, 1500, 1, "main"),
        ("f2", 2000, 0, 2, "main"),
        ("f3", 11_000, 8000, 0, "main"),
    ]
    rows = trace.sql("select name, count, total_ns, self_ns, thread from statistics order by name").rows()
    assert rows == [("f0", 3, 6_000_000, 2_000_000, "worker"), ("f1", 2, 4_000_000, 4_000_000, "worker")]
    assert quality(trace)["spans_cut"] == 1
    assert quality(trace)["samples_without_stack"] == 1


def test_an_axis_of_bytes_is_no_time(tmp_path: Path) -> None:
    profile = {"type": "evented", "name": "heap", "unit": "bytes", "startValue": 0, "endValue": 100}
    profile["events"] = events("O0@0 O1@10 C1@70 C0@100")
    trace = strobe.open(text_file(tmp_path / "t.json", scope(profile)))
    assert trace.span_count == 0
    assert by_path(trace) == {"f0": 40, "f0;f1": 60}
    assert trace.sql("select distinct metric, unit from path_metrics").rows() == [("bytes", "bytes")]


def test_damaged_events_are_counted(tmp_path: Path) -> None:
    profile = {"type": "evented", "name": "m", "unit": "nanoseconds", "startValue": 0, "endValue": 50}
    profile["events"] = [
        *events("O0@0 O1@5 C3@6 C0@9"),
        {"type": "O", "frame": 99, "at": 1},
        {"type": "O", "frame": 0},
        7,
        {"type": "O", "frame": 0, "at": "x"},
    ]
    trace = strobe.open(text_file(tmp_path / "t.json", scope(profile, {"type": "?"})))
    assert trace.sql("select name, start_ns, duration_ns from spans order by 2").rows() == [("f0", 0, 9), ("f1", 5, 4)]
    counted = quality(trace)
    assert counted["events_not_understood"] == 4
    assert (counted["unmatched_leaves"], counted["spans_cut"], counted["profiles_not_understood"]) == (1, 1, 1)


def test_a_profile_of_pyinstrument_is_exact(tmp_path: Path) -> None:
    pyinstrument = pytest.importorskip("pyinstrument")
    from pyinstrument.renderers import SpeedscopeRenderer

    profiler = pyinstrument.Profiler(interval=0.0005)
    with profiler:
        for i in range(20):
            json.dumps(json.loads(json.dumps([[i] * 50] * 50, indent=1)), indent=1)
    path = text_file(tmp_path / "t.json", profiler.output(SpeedscopeRenderer()))
    body = json.loads(path.read_text(), parse_float=Decimal)["profiles"][0]
    expected: defaultdict[str, int] = defaultdict(int)
    frames = json.loads(path.read_text())["shared"]["frames"]
    stack: list[tuple[int, int]] = []
    for event in body["events"]:
        at = round(Fraction(event["at"]) * 10**9)
        if event["type"] == "O":
            stack.append((event["frame"], at))
        else:
            frame, start = stack.pop()
            expected[frames[frame]["name"]] += at - start
    found = strobe.open(path).sql("select name, sum(duration_ns)::bigint from spans group by 1").rows()
    assert dict(found) == dict(expected)
    assert len(expected) > 1


# --- pprof -----------------------------------------------------------------------------------------------------------


def number(value: int) -> bytes:
    value &= 2**64 - 1
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def message(*fields: tuple[int, int | bytes]) -> bytes:
    """A protobuf message, written by the book: independent of what is tested."""
    return b"".join(
        number(n << 3) + number(v) if isinstance(v, int) else number(n << 3 | 2) + number(len(v)) + v for n, v in fields
    )


def pprof(*, types: str = "samples/count cpu/nanoseconds", packed: bool = True) -> bytes:
    texts = ["", "main", "solve", "inlined", "a.c", "/bin/a", "thread", "T1", "key", "note"]
    names = [tuple(each.split("/")) for each in types.split()]
    texts += [part for name in names for part in name]

    def value_type(i: int) -> bytes:
        return message((1, 10 + 2 * i), (2, 11 + 2 * i))

    def sample(stack: list[int], values: list[int], *labels: bytes) -> bytes:
        many = [(1, b"".join(map(number, stack))), (2, b"".join(map(number, values)))]
        single = [(1, each) for each in stack] + [(2, each) for each in values]
        return message(*(many if packed else single), *((3, each) for each in labels))

    thread, label = message((1, 6), (2, 7)), message((1, 8), (3, 5))
    return message(
        *((1, value_type(i)) for i in range(len(names))),
        (2, sample([2, 1], [3, 3_000_000])),
        (2, sample([3, 1], [1, 10_000_000], label)),
        (2, sample([1], [2, -5], thread)),
        (2, sample([4], [1, 1])),
        (2, sample([], [1, 1])),
        (3, message((1, 1), (5, 5))),
        (4, message((1, 1), (2, 1), (3, 0x10), (4, message((1, 1), (2, 11))))),
        (4, message((1, 2), (2, 1), (4, message((1, 3), (2, 22))), (4, message((1, 2), (2, 33))))),
        (4, message((1, 3), (2, 1), (4, message((1, 2), (2, 34))))),
        (4, message((1, 4), (2, 1), (3, 0xABC))),
        (5, message((1, 1), (2, 1), (4, 4), (5, 9))),
        (5, message((1, 2), (2, 2), (4, 4), (5, 30))),
        (5, message((1, 3), (2, 3), (4, 4), (5, 20))),
        *((6, text.encode()) for text in texts),
        (9, 123),
        (13, 9),
    )


@pytest.mark.parametrize("packed", [True, False])
def test_pprof_has_inlined_frames_threads_and_lines(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "t.pb.gz"
    path.write_bytes(gzip.compress(pprof(packed=packed)))
    trace = strobe.open(path)
    rows = trace.sql(
        f"{PATHS} select thread, path, count, total_ns, self_ns from statistics join chain using (call_path)"
    ).rows()
    assert sorted(rows) == [
        ("T1", "main", 2, -5, -5),
        ("samples", "0xabc", 1, 1, 1),
        ("samples", "main", 4, 13_000_000, 0),
        ("samples", "main;solve", 4, 13_000_000, 10_000_000),
        ("samples", "main;solve;inlined", 3, 3_000_000, 3_000_000),
    ]
    assert trace.sql("select line, module from regions where name = 'solve'").rows() == [(30, "/bin/a")]
    lines = trace.sql("select function, line, hits, total_ns from lines order by line").rows()
    assert lines == [("main", 11, 2, -5), ("inlined", 22, 3, 3_000_000), ("solve", 34, 1, 10_000_000)]
    counted = quality(trace)
    assert (counted["labels_not_kept"], counted["samples_without_stack"]) == (1, 1)
    assert "weights_are_no_time" not in counted


def test_a_heap_profile_keeps_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "heap"
    path.write_bytes(pprof(types="inuse_objects/count inuse_space/bytes"))
    trace = strobe.open(path)
    metrics = trace.sql("select metric, unit, sum(self_value) from path_metrics group by all order by 1").rows()
    assert metrics == [("inuse_objects", "count", 7.0), ("inuse_space", "bytes", 12_999_996.0)]
    assert quality(trace)["weights_are_no_time"] > 0


def test_a_torn_pprof_opens_with_what_is_sound(tmp_path: Path) -> None:
    whole = pprof()
    for cut in range(60, len(whole) - 1, 7):
        path = tmp_path / f"torn-{cut}"
        path.write_bytes(whole[:cut])
        assert quality(strobe.open(path)).get("truncated", 0) in (0, 1)


# --- cProfile --------------------------------------------------------------------------------------------------------


def work() -> None:
    def fib(n: int) -> int:
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    fib(10)
    json.loads(json.dumps({"a": [1, 2.5, None]}))


@pytest.mark.parametrize("profiler", [cProfile.Profile, profile.Profile])
def test_every_sum_of_cprofile_is_that_of_pstats(tmp_path: Path, profiler: Callable[[], cProfile.Profile]) -> None:
    made = profiler()
    made.runcall(work)
    path = tmp_path / "t.prof"
    made.dump_stats(path)
    # Functions are known by their names in every run, not by where an object lay in this one.
    stats = repr(pstats.Stats(str(path)).stats)  # type: ignore[attr-defined]
    expected = ast.literal_eval(re.sub(" at 0x[0-9a-f]+", "", stats))
    trace = strobe.open(path)
    rows = trace.sql(
        "select file, line, r.name, count, total_ns, self_ns from statistics s join regions r using (region)"
    ).rows()
    assert {row[:3]: row[3:] for row in rows} == {
        ("" if file == "~" else file, line, name): (calls, round(total * 1e9), round(own * 1e9))
        for (file, line, name), (_, calls, own, total, _) in expected.items()
    }
    edges = trace.sql("select caller, caller_line, callee, callee_line, calls from call_edges").rows()
    assert sorted(edges) == sorted(
        (caller[2], caller[1], name, line, how[0] if isinstance(how, tuple) else how)
        for (_, line, name), (*_, callers) in expected.items()
        for caller, how in callers.items()
    )
    recursive = trace.sql("select self_value from path_metrics where metric = 'primitive calls'").rows()
    assert (1.0,) in recursive


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_every_version_of_marshal_is_read(tmp_path: Path, version: int) -> None:
    stats = {
        ("é.py", 3, "f"): (1, 2, 0.5, 1.5, {("~", 0, "<built-in>"): (1, 1, 0.25, 0.5)}),
        ("a", 1, "g"): (1, 1, 0.0, 2**40, {}),
    }
    path = tmp_path / "t"
    path.write_bytes(marshal.dumps(stats, version))
    trace = strobe.open(path)
    assert trace.sql("select name, count, self_ns from statistics order by name").rows() == [
        ("f", 2, 500_000_000),
        ("g", 1, 0),
    ]
    assert trace.sql("select caller, total_ns from call_edges").rows() == [("<built-in>", 500_000_000)]


def test_marshal_of_python_2_writes_a_name_once(tmp_path: Path) -> None:
    def text(kind: bytes, value: bytes) -> bytes:
        return kind + struct.pack("<I", len(value)) + value

    def entry(place: bytes, calls: bytes) -> bytes:
        sums = calls + calls + b"g" + struct.pack("<d", 0.5) + b"g" + struct.pack("<d", 1.5)
        return b"(\3\0\0\0" + place + b"(\5\0\0\0" + sums + b"{0"

    line = b"i" + struct.pack("<i", 7)
    first = entry(text(b"s", b"a.py") + line + text(b"t", b"f"), b"i" + struct.pack("<i", 3))
    again = entry(text(b"s", b"b.py") + line + b"R" + struct.pack("<i", 0), b"I" + struct.pack("<q", 1 << 33))
    path = tmp_path / "t.pstats"
    path.write_bytes(b"{" + first + again + b"0")
    found = (
        strobe.open(path)
        .sql("select r.name, r.file, count, self_ns from statistics join regions r using (region) order by 2")
        .rows()
    )
    assert found == [("f", "a.py", 3, 500_000_000), ("f", "b.py", 1 << 33, 500_000_000)]
    path.write_bytes(b"{" + again + b"0")
    with pytest.raises(FormatError, match="it refers to a missing value"):
        strobe.open(path)


def test_marshal_that_holds_more_is_refused(tmp_path: Path) -> None:
    code = compile("1", "x", "eval")
    for value in ({("a", 1, "b"): code}, {("a", 1, "b"): (1, 1, 0.0, 0.0, frozenset({1}))}, {("a", 1, "b"): [1]}):
        path = tmp_path / "t"
        path.write_bytes(marshal.dumps(value))
        with pytest.raises(FormatError, match="statistics do not"):
            strobe.open(path)


# --- line_profiler ---------------------------------------------------------------------------------------------------


def test_every_line_of_line_profiler_is_there(tmp_path: Path) -> None:
    line_profiler = pytest.importorskip("line_profiler")
    made = line_profiler.LineProfiler(work)
    made.runcall(work)
    path = tmp_path / "t.lprof"
    made.dump_stats(str(path))
    expected = line_profiler.load_stats(str(path))
    trace = strobe.open(path)
    rows = trace.sql("select file, function_line, function, line, hits, total_ns from lines").rows()
    assert sorted(rows) == sorted(
        (*key, number, hits, round(Fraction(str(expected.unit)) * 10**9 * time))
        for key, lines in expected.timings.items()
        for number, hits, time in lines
    )
    assert rows
    assert trace.profile().rows()[0][0].endswith("work")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_of_pickle_is_read(tmp_path: Path, protocol: int) -> None:
    line_profiler = pytest.importorskip("line_profiler")
    stats = line_profiler.LineStats({("a.py", 3, "f"): [(4, 10, 25), (5, 1, 1)], ("b.py", 1, "g"): []}, 1e-6)
    path = tmp_path / "t.lprof"
    path.write_bytes(pickle.dumps(stats, protocol))
    trace = strobe.open(path)
    assert trace.sql("select line, hits, total_ns from lines order by 1").rows() == [(4, 10, 25_000), (5, 1, 1_000)]
    assert trace.sql("select name, count, total_ns from statistics order by 1").rows() == [
        ("f", 10, 26_000),
        ("g", 0, 0),
    ]


class Attack:
    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (Path("pwned"),))


def test_a_pickle_that_calls_is_refused_and_calls_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = b"line_profiler.line_profiler LineStats"
    for protocol in (2, 4):
        path = tmp_path / "t.lprof"
        path.write_bytes(pickle.dumps([name.decode(), Attack()], protocol))
        with pytest.raises(FormatError, match="never done"):
            strobe.open(path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["t.lprof"]


# --- writing ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def timed(tmp_path: Path) -> strobe.Trace:
    """Spans of two threads; one call path is in both."""
    made = [
        *(span("outer", 100 * i, 60, tid=1) for i in range(3)),
        *(span("inner", 100 * i + 10, 20.125, tid=1) for i in range(3)),
        span("inner", 0, 7, tid=2),
        span("same;start", 200, 5, tid=2),
        span("(odd) «name»", 200, 5, tid=2),
    ]
    return strobe.open(write_chrome(tmp_path / "timed.json", made))


def sums(trace: strobe.Trace, columns: str = "total_ns, self_ns") -> list[tuple[object, ...]]:
    return trace.sql(
        f"{PATHS} select thread, path, {columns} from totals join chain using (call_path) order by all"
    ).rows()


def test_speedscope_with_events_is_read_again_equal(timed: strobe.Trace, tmp_path: Path) -> None:
    again = export("speedscope", timed, tmp_path / "t.speedscope.json", events=True)
    query = "select thread, name, start_ns, duration_ns, depth from spans order by all"
    assert again.sql(query).rows() == timed.sql(query).rows()


def test_speedscope_with_samples_is_read_again_equal(timed: strobe.Trace, tmp_path: Path) -> None:
    again = export("speedscope", timed, tmp_path / "t.speedscope.json")
    assert again.span_count == 0
    assert sums(again) == sums(timed)


def test_pprof_is_read_again_equal(timed: strobe.Trace, tmp_path: Path) -> None:
    again = export("pprof", timed, tmp_path / "t.pb.gz")
    assert sums(again, "count, total_ns, self_ns") == sums(timed, "count, total_ns, self_ns")
    third = export("pprof", again, tmp_path / "third.pb.gz")
    assert sums(third, "count, total_ns, self_ns") == sums(timed, "count, total_ns, self_ns")


def test_collapsed_stacks_open_with_lines_between_them_that_are_none(tmp_path: Path) -> None:
    text = "# what\n// comment\nnot a line\na;b 0.25000000000000000000000001\na;c 3.\nlast words\na;b 1.75\n a;b 4\n"
    trace = strobe.open(text_file(tmp_path / "x.txt", text))
    assert by_path(trace) == {"a": 0, "a;b": 6, "a;c": 3}
    assert quality(trace)["lines_not_understood"] == 3
    with pytest.raises(FormatError):
        strobe.open(text_file(tmp_path / "log.txt", "started;\nread 5 files\nwrote 3; 4\nended\nwith 0 errors;\n"))


def test_collapsed_stacks_are_read_again_equal(tmp_path: Path) -> None:
    trace = strobe.open(text_file(tmp_path / "t.folded", COLLAPSED))
    again = export("collapsed", trace, tmp_path / "again.folded")
    third = export("speedscope", again, tmp_path / "third.json")
    fourth = export("pprof", again, tmp_path / "fourth.pb.gz")
    for each in (again, third, fourth):
        assert by_path(each) == by_path(trace)
        assert "weights_are_no_time" in quality(each)
    assert by_path(fourth, "count") == by_path(trace, "count")


def test_collapsed_stacks_of_a_trace_add_up_to_its_time(timed: strobe.Trace, tmp_path: Path) -> None:
    path = tmp_path / "t.folded"
    export("collapsed", timed, path)
    lines = dict(line.rsplit(" ", 1) for line in path.read_text().splitlines())
    assert lines == {
        "outer": str(3 * 60_000 - 3 * 20_125),
        "outer;inner": str(3 * 20_125),
        "inner": "7000",
        "same:start;(odd) «name»": "5000",
    }


def test_pprof_of_an_imported_profile_keeps_its_metrics(tmp_path: Path) -> None:
    path = tmp_path / "heap"
    path.write_bytes(pprof(types="inuse_objects/count inuse_space/bytes"))
    first = strobe.open(path)
    again = export("pprof", first, tmp_path / "again.pb.gz")
    columns = "path, metric, unit, self_value, total_value"
    query = f"{PATHS} select {columns} from path_metrics join chain using (call_path) order by all"
    assert again.sql(query).rows() == first.sql(query).rows()
    assert sums(again, "count, total_ns, self_ns") == sums(first, "count, total_ns, self_ns")


def test_other_tools_read_what_is_written(timed: strobe.Trace, tmp_path: Path) -> None:
    gprof2dot = pytest.importorskip("gprof2dot")
    path = tmp_path / "t.folded"
    export("collapsed", timed, path)
    with path.open() as file:
        found = gprof2dot.CollapseParser(file).parse()
    assert {function.name for function in found.functions.values()} >= {"outer", "inner"}
    assert found[gprof2dot.SAMPLES] == 3 * 60_000 + 7000 + 5000


# --- what is no profile ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"hello world 5\nfoo bar 6\n", "not in a known format"),
        (b'{"shared": {"frames": 5}, "profiles": []}', "no profiles with shared frames"),
        (
            b'{"$schema": "https://www.speedscope.app/file-format-schema.json", ' + b'"x": ' + b"[" * 200_000,
            "nested too deeply",
        ),
        (b'{"shared": {"frames": []}, "profiles": NaN}', "no profiles with shared frames"),
        (marshal.dumps({("a", 1, "b"): (1, 1, 0.0, 0.0, {})})[:-3], "cut off"),
        (b"\xfb\xa9\x03" + b"\xa9\x03" * 100, "nested too deeply"),
        (b"\x80\x04cline_profiler.line_profiler\nLineStats\n)\x81.", "no timings"),
        (b"\x80\x04cline_profiler.line_profiler\nLineStats\nr\xff\xff\xff\x7f\x81.", "do not fit together"),
    ],
)
def test_what_is_no_profile_is_refused_with_a_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "t"
    path.write_bytes(content)
    with pytest.raises(FormatError) as refused:
        strobe.open(path)
    assert sentence in str(refused.value)


def test_numbers_beyond_what_a_trace_holds_are_counted(tmp_path: Path) -> None:
    sampled = {"type": "sampled", "name": "w", "unit": "seconds", "startValue": 0, "endValue": 6}
    sampled |= {"samples": [[0], [0], [0, 1], [0], [0], [0]], "weights": [10**30, 1, 10**11, 7.5, 8.5, 9.5]}
    text = scope(sampled).replace("7.5", "1e99999999999999999999").replace("8.5", "1e999999").replace("9.5", "NaN")
    trace = strobe.open(text_file(tmp_path / "t.json", text))
    assert quality(trace)["samples_not_understood"] == 4
    assert quality(trace)["weights_out_of_range"] == 1
    assert by_path(trace)["f0"] == 1_000_000_000


def test_very_deep_stacks_keep_their_weight(tmp_path: Path) -> None:
    deep = ";".join(["f"] * 6000)
    trace = strobe.open(text_file(tmp_path / "t.folded", f"{deep} 5\n"))
    assert trace.sql("select sum(self_ns)::bigint, max(total_ns) from statistics").rows() == [(5, 5)]
    assert quality(trace)["frames_too_deep"] == 6000 - 4096


LPROF = b"".join(
    [
        b"\x80\x04cline_profiler.line_profiler\nLineStats\n)\x81}(X\x07\0\0\0timings}",
        b"X\x04\0\0\0a.pyK\x03X\x01\0\0\0f\x87](K\x04K\x02K\x19\x87es",
        b"X\x04\0\0\0unitG?PbM\xd2\xf1\xa9\xfcub.",
    ]
)
SAMPLES = {
    "collapsed": COLLAPSED.encode(),
    "speedscope": scope({"type": "sampled", "unit": "seconds", "samples": [[0, 1], [2]], "weights": [0.5, 1]}).encode(),
    "pprof": pprof(),
    "pstats": marshal.dumps({("a", 1, "f"): (1, 1, 0.5, 0.5, {("~", 0, "g"): (1, 1, 0.25, 0.5)})}),
    "line_profiler": LPROF,
}


@pytest.mark.parametrize("name", SAMPLES)
def test_damage_anywhere_ends_in_a_trace_or_a_sentence(tmp_path: Path, name: str) -> None:
    whole = SAMPLES[name]
    (tmp_path / "whole").write_bytes(whole)
    assert strobe.open(tmp_path / "whole").folded_count > 0
    for i, at in enumerate(range(0, len(whole), max(1, len(whole) // 40))):
        broken = bytearray(whole)
        broken[at] ^= (0x55, 0x80, 0xFF, 0x01)[i % 4]
        path = tmp_path / str(at)
        path.write_bytes(broken if i % 3 else broken[: at + 1])
        try:
            strobe.open(path).profile()
        except strobe.StrobeError:
            continue  # a sentence: anything else fails the test
