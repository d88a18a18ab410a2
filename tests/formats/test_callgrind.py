"""Callgrind's and Cachegrind's profiles, against what their own annotators print, and sums by hand."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

import strobe
from strobe.errors import FormatError
from tests.formats.test_chrome import quality
from tests.formats.test_profiles import by_path, text_file

SAMPLES = Path(__file__).parents[1] / "samples/callgrind"

# From the specification of the format; the same with names and numbers of lines written short.
PLAIN = """events: Instructions

fl=file1.c
fn=main
16 20
cfn=func1
calls=1 50
16 400
cfi=file2.c
cfn=func2
calls=3 20
16 400

fn=func1
51 100
cfi=file2.c
cfn=func2
calls=2 20
51 300

fl=file2.c
fn=func2
20 700
"""
SHORT = """# callgrind format
events: Instructions
fl=(1) file1.c
fn=(1) main
16 20
cfn=(2) func1
calls=1 +34
* 400
cfl=(2) file2.c
cfn=(3) func2
calls=3 +4
* 400
fn=(2)
+35 100
cfi=(2)
cfn=(3)
calls=2 -31
* 300
fl=(2)
fn=(3)
-0x1f 700
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> strobe.Trace:
    path = tmp_path_factory.mktemp("callgrind") / "renamed"
    path.write_bytes((SAMPLES / "callgrind.out").read_bytes())
    return strobe.open(path)


def opened(name: str, folder: Path) -> strobe.Trace:
    (folder / name).write_bytes((SAMPLES / name).read_bytes())
    return strobe.open(folder / name)


Costs = dict[str, float]


def annotated(name: str) -> tuple[dict[str, Costs], dict[tuple[str, str], tuple[int, Costs]]]:
    """Return what an annotator printed: costs that are not 0 of functions, and of calls with their number."""
    text = re.sub(r"\( ?[\d.]+%\)", "", (SAMPLES / name).read_text())  # without shares
    events = re.search(r"Events shown: +(.*)", text)
    assert events
    functions: dict[str, Costs] = {}
    calls: dict[tuple[str, str], tuple[int, Costs]] = {}
    caller = ""
    for line in text.splitlines():
        found = re.fullmatch(r"([\d,. ]+?) +([*>] +)?/src/\S+?:(.*?)(?: \((\d+)x\))?(?: \[.*\])?", line)
        if found is None:
            continue
        numbers = [float(cell.replace(",", "").replace(".", "0")) for cell in found[1].split()]
        costs = {event: cost for event, cost in zip(events[1].split(), numbers, strict=True) if cost}
        if (found[2] or "*").startswith("*"):
            caller = found[3]
            functions[caller] = costs
        else:
            calls[caller, found[3]] = int(found[4]), costs
    return functions, calls


def metrics(trace: strobe.Trace, column: str) -> dict[str, Costs]:
    rows = trace.sql(
        f"select name, metric, {column} from path_metrics join call_paths using (call_path) "
        f"join regions using (region) where {column} <> 0"
    ).rows()
    found: defaultdict[str, Costs] = defaultdict(dict)
    for function, metric, value in rows:
        found[str(function)][str(metric)] = value
    return found


def test_functions_and_calls_cost_what_callgrind_annotate_says(trace: strobe.Trace) -> None:
    functions, calls = annotated("callgrind_annotate.txt")
    assert (len(functions), len(calls)) == (6, 7)
    assert metrics(trace, "self_value") == functions
    own = trace.sql("select name, self_ns from statistics").rows()
    assert dict(own) == {name: costs["Ir"] for name, costs in functions.items()}
    edges = trace.sql("select caller, callee, calls, total_ns from call_edges").rows()
    assert {(a, b): (n, cost) for a, b, n, cost in edges} == {
        key: (number, costs["Ir"]) for key, (number, costs) in calls.items()
    }
    assert quality(trace)["weights_are_no_time"] == 6
    assert trace.span_count == 0


def test_recursion_and_circles_count_once(trace: strobe.Trace) -> None:
    # fib(8) is 2*34 - 1 = 67 calls; even(9) is 5 of each; the compiler calls tally once, and adds it up.
    assert by_path(trace, "count, total_ns, self_ns") == {
        "(below main)": [1, 2183, 2],
        "(below main);work": [1, 2181, 741],
        "(below main);work;fib": [67, 968, 968],
        "(below main);work;even": [5, 80, 40],
        "odd": [5, 80, 40],
        "(below main);work;tally": [1, 392, 392],
    }
    assert quality(trace)["functions_in_circles"] == 2
    assert metrics(trace, "total_value").keys() == {"(below main)", "work", "fib", "tally"}, (
        "elsewhere a bound is known"
    )
    assert metrics(trace, "total_value")["work"]["Dr"] == 6 + 201 + 10 + 65


def test_lines_cost_what_cachegrind_counted(trace: strobe.Trace) -> None:
    expected: dict[tuple[str, str, int], int] = {}
    file = function = ""
    for line in (SAMPLES / "cachegrind.out").read_text().splitlines():
        key, _, name = line.partition("=")
        if key == "fl":
            file = name
        elif key == "fn":
            function = name
        elif line[:1].isdigit() and function != "(below main)":  # Callgrind counts it from its call on
            number, instructions, *_ = map(int, line.split())
            expected[file, function, number] = instructions
    rows = trace.sql("select file, function, line, total_ns from lines where function <> '(below main)'").rows()
    assert {(a, b, c): cost for a, b, c, cost in rows} == expected
    assert trace.sql("select name, line from regions where name in ('fib', 'tally') order by 1").rows() == [
        ("fib", 4),
        ("tally", 7),
    ], "where calls lead to"


def test_cachegrind_knows_functions_without_calls(tmp_path: Path) -> None:
    trace = opened("cachegrind.out", tmp_path)
    functions, calls = annotated("cg_annotate.txt")
    assert (len(functions), calls) == (6, {})
    assert metrics(trace, "self_value") == metrics(trace, "total_value") == functions
    assert quality(trace)["calls_not_counted"] == 6


def test_parts_of_a_file_are_added_up(tmp_path: Path) -> None:
    trace = opened("callgrind_parts.out", tmp_path)
    whole = {"(below main)": 2, "work": 741, "tally": 392}
    names = "', '".join(whole)
    assert dict(trace.sql(f"select name, self_ns from statistics where name in ('{names}')").rows()) == whole
    assert trace.sql("select sum(self_ns)::bigint from statistics").rows() == [(1771 + 412,)]
    assert trace.sql("select calls, total_ns from call_edges where callee = 'work'").rows() == [(1, 1769 + 412)]


def test_names_and_positions_may_be_short(tmp_path: Path) -> None:
    for name, text in {"plain": PLAIN, "short": SHORT}.items():
        trace = strobe.open(text_file(tmp_path / name, text))
        assert by_path(trace, "count, total_ns, self_ns") == {
            "main": [1, 820, 20],
            "main;func1": [1, 400, 100],
            "func2": [5, 700, 700],
        }
        assert quality(trace)["functions_of_several_callers"] == 1, "func2"
        regions = trace.sql("select name, file, line from regions order by name").rows()
        assert regions == [("func1", "file1.c", 50), ("func2", "file2.c", 20), ("main", "file1.c", 0)]
        lines = trace.sql("select file, line, total_ns from lines order by all").rows()
        assert lines == [("file1.c", 16, 20), ("file1.c", 51, 100), ("file2.c", 20, 700)]
        assert quality(trace).get("lines_not_understood") is None


def test_inlined_lines_belong_to_their_function_and_to_their_file(tmp_path: Path) -> None:
    text = "events: Ir\nfl=a.c\nfn=f\n1 2\nfi=b.h\n7 30\nfe=a.c\n2 4\nfi=b.h\n8 5\nfn=g\n3 100\n"
    trace = strobe.open(text_file(tmp_path / "t", text))
    assert trace.sql(
        "select r.name, file, self_ns from statistics join regions r using (region) order by 1"
    ).rows() == [
        ("f", "a.c", 41),
        ("g", "a.c", 100),
    ]
    rows = trace.sql("select function, file, line, total_ns from lines order by all").rows()
    assert rows == [
        ("f", "a.c", 1, 2),
        ("f", "a.c", 2, 4),
        ("f", "b.h", 7, 30),
        ("f", "b.h", 8, 5),
        ("g", "a.c", 3, 100),
    ]


def test_threads_are_locations_and_times_are_times(tmp_path: Path) -> None:
    text = "version: 1\ncreator: xdebug 3.2.0 (PHP 8.2)\npositions: line\nevents: Time_(10ns) Memory_(bytes)\n"
    text += "fl=(1) php:internal\nfn=(1) php::strlen\n0 7 16\nthread: 2\nevents: Time_(10ns)\nfn=(1)\n0 5\n"
    trace = strobe.open(text_file(tmp_path / "t", text))
    rows = trace.sql("select thread, name, self_ns from statistics order by 1").rows()
    assert rows == [("profile", "php::strlen", 70), ("thread 2", "php::strlen", 50)]
    assert trace.sql("select metric, unit, self_value from path_metrics").rows() == [("Memory", "bytes", 16.0)]
    assert quality(trace).get("weights_are_no_time") is None


def test_a_file_that_was_cut_off_opens_with_what_is_there(tmp_path: Path) -> None:
    whole = (SAMPLES / "callgrind.out").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: len(whole) * 2 // 3])
    trace = strobe.open(tmp_path / "cut")
    assert quality(trace)["truncated"] == 1
    assert trace.sql("select self_ns from statistics where name = 'tally'").rows() == [(392,)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("# callgrind format\nversion: 2\nevents: Ir\n", "version 2"),
        ("# callgrind format\nevents: Ir\n", "no costs of functions"),
        ("version: 1\ncreator: callgrind-3.5.0\nevents: Ir\nsummary: 0\n", "no costs of functions"),
        ("# callgrind format\nfn=f\n1 2\n", "before the names of what is counted"),
        ("# callgrind format\npositions: column\nevents: Ir\n", "only instr and line are known"),
        ("# callgrind format\nevents:" + " e".join(map(str, range(70))) + "\n", "more than 64 kinds"),
        ("# callgrind format\n# " + "x" * (3 << 20), "longer than 1 MiB"),
        ("version: 1\nevents: [push]\njobs:\n  test: 5\n", "not in a known format"),
        ("the\nevents: Ir\nfn=f\n1 2\n", "not in a known format"),
    ],
)
def test_what_is_no_profile_is_refused_with_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(FormatError) as refused:
        strobe.open(text_file(tmp_path / "t", text))
    assert sentence in str(refused.value)


def test_lines_that_are_not_understood_are_left_out_and_counted(tmp_path: Path) -> None:
    bad = ["1 2 3", "+x 5", "what is this", "calls=1 0", "1 99", "99999999999999999999999 1", "1 0x1g"]
    text = "# callgrind format\nevents: Ir\nfn=f\n1 2\n" + "\n".join(bad) + "\n0x2 0x10\n3\n"
    trace = strobe.open(text_file(tmp_path / "t", text))
    assert by_path(trace) == {"f": 18}
    assert quality(trace)["lines_not_understood"] == len(bad) - 1, "a call is in two lines"


def test_damage_anywhere_ends_in_a_trace_or_a_sentence(tmp_path: Path) -> None:
    whole = (SAMPLES / "callgrind_parts.out").read_bytes()
    for i, at in enumerate(range(0, len(whole), len(whole) // 40)):
        broken = bytearray(whole)
        broken[at] ^= (0x55, 0x80, 0xFF, 0x01)[i % 4]
        (tmp_path / str(at)).write_bytes(broken if i % 3 else broken[: at + 1])
        try:
            strobe.open(tmp_path / str(at)).profile()
        except strobe.StrobeError:
            continue  # a sentence: anything else fails the test
