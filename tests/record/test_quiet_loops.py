"""Loops whose usual iteration calls nothing that is recorded: each of their iterations is a span."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

import strobe
from strobe.advice.rank import findings
from tests.record.workshop import Workshop

pytestmark = pytest.mark.every_python

# About half a millisecond in C.
WORK = "import hashlib\nDATA = bytes(400_000)\n"
SLOW = "hashlib.sha256(DATA)"


def record(workshop: Workshop, code: str) -> strobe.Trace:
    workshop.write("program.py", WORK + code)
    done = workshop.recorded("program.py")
    assert done.returncode == 0, done.stderr
    return strobe.open(workshop.trace)


def iterations(trace: strobe.Trace) -> dict[str, int]:
    """How many spans each loop has, by what stands behind `loop in`."""
    names = trace.regions.column("name")
    spans = Counter[str]()
    for location in trace.locations.column("location"):
        spans.update(str(names[region]) for region in trace.span_arrays(location)["region"].tolist())
    return {name.removeprefix("loop in "): count for name, count in spans.items() if name.startswith("loop in ")}


@pytest.mark.parametrize(
    ("loop", "line"),
    [
        (f"for n in range(40):\n    {SLOW}", 3),
        pytest.param(
            f"for n in range(40): {SLOW}",
            3,
            marks=pytest.mark.skipif(sys.version_info >= (3, 12), reason="a line within a line has no event there"),
        ),
        (f"n = 0\nwhile n < 40:\n    n += 1\n    {SLOW}", 4),
        (f"n = 0\nwhile True:\n    n += 1\n    {SLOW}\n    if n == 40:\n        break", 4),
        (f"for n in range(100):\n    if n == 39:\n        {SLOW}\n        break\n    {SLOW}", 3),
        (f"for a, b in zip(\n    range(40),\n    range(40),\n):\n    {SLOW}", 3),
        (f"for n in range(40):\n    try:\n        {SLOW}\n        1 / (n % 2)\n    except ZeroDivisionError: pass", 3),
    ],
)
def test_each_iteration_is_a_span_and_a_step(workshop: Workshop, loop: str, line: int) -> None:
    trace = record(workshop, loop)
    assert iterations(trace) == {f"<module> at program.py:{line}": 40}
    assert len(trace.steps().to_pylist()) == 40
    assert f"each is an iteration of the loop in <module> at program.py:{line}" in trace.steps().about


def test_what_comes_every_so_often_lies_in_its_iteration(workshop: Workshop) -> None:
    code = f"""
def write(n): {SLOW}
def main():
    for n in range(400):
        {SLOW}
        if n % 10 == 9:
            write(n)
main()
"""
    trace = record(workshop, code)
    assert iterations(trace) == {"main at program.py:6": 400}
    assert len(trace.steps().to_pylist()) == 400


def test_of_nested_loops_the_innermost_quiet_one_counts(workshop: Workshop) -> None:
    code = f"def main():\n    for n in range(6):\n        for k in range(5):\n            {SLOW}\nmain()\n"
    found = iterations(record(workshop, code))
    assert found["main at program.py:5"] == 30
    assert found.keys() <= {"main at program.py:5", "main at program.py:4"}


def test_a_loop_that_calls_functions_has_no_spans_of_its_own(workshop: Workshop) -> None:
    code = f"def work(): {SLOW}\ndef main():\n    for n in range(40):\n        work()\nmain()\n"
    assert iterations(record(workshop, code)) == {}


def test_short_iterations_are_left_alone(workshop: Workshop) -> None:
    code = "def main():\n    total = 0\n    for n in range(300_000):\n        total += n\nmain()\n"
    assert iterations(record(workshop, code)) == {}


def test_a_slow_loop_is_followed_after_a_fast_one(workshop: Workshop) -> None:
    code = f"made = []\nfor n in range(400_000):\n    made.append(n)\nfor n in range(2000):\n    {SLOW}\n"
    found = iterations(record(workshop, code))
    assert found.keys() == {"<module> at program.py:6"}
    assert 1500 <= found["<module> at program.py:6"] <= 2000  # those of the first milliseconds are missing


def test_every_call_of_a_function_with_a_quiet_loop_is_followed(workshop: Workshop) -> None:
    code = f"def main():\n    for n in range(5):\n        {SLOW}\nfor n in range(8):\n    main()\n"
    assert iterations(record(workshop, code)) == {"main at program.py:4": 40}


def test_generators_are_not_followed(workshop: Workshop) -> None:
    code = f"def batches():\n    for n in range(40):\n        {SLOW}\n        yield n\nfor each in batches(): pass\n"
    assert iterations(record(workshop, code)) == {}


def test_the_program_traces_itself_undisturbed(workshop: Workshop) -> None:
    code = f"""
import sys
def main():
    lines = []
    def trace(frame, event, argument):
        if frame.f_code is traced.__code__: lines.append(event)
        return trace
    def traced():
        for n in range(3):
            {SLOW}
    for n in range(20):
        {SLOW}
    assert sys.gettrace() is None
    sys.settrace(trace)
    traced()
    assert sys.gettrace() is trace
    sys.settrace(None)
    for n in range(20):
        {SLOW}
    assert lines[0] == "call" and lines[-1] == "return" and lines.count("line") == 7, lines
main()
"""
    counts = list(iterations(record(workshop, code)).values())
    assert counts[0] == 20
    assert counts[1:] in ([], [3, 20])  # 3.11 does not go on once the program has traced itself


def test_recursion_exceptions_and_threads(workshop: Workshop) -> None:
    code = f"""
import threading
def fall(depth):
    for n in range(4):
        {SLOW}
    if depth:
        fall(depth - 1)
    else:
        raise KeyError(depth)
def main():
    for n in range(2):
        try:
            fall(20)
        except KeyError as failure:
            print(failure)
def beside():
    for n in range(20):
        {SLOW}
main()
thread = threading.Thread(target=beside)
thread.start()
thread.join()
"""
    assert iterations(record(workshop, code)) == {"fall at program.py:6": 2 * 21 * 4}


def test_two_recordings_in_one_process(workshop: Workshop) -> None:
    code = f"""
import strobe
def main():
    for n in range(20):
        {SLOW}
for k in range(2):
    with strobe.record(f"run{{k}}.strobe"):
        main()
"""
    workshop.write("program.py", WORK + code)
    done = workshop.plain("program.py")
    assert done.returncode == 0, done.stderr
    for k in range(2):
        assert list(iterations(strobe.open(workshop.folder / f"run{k}.strobe")).values()) == [20]


@pytest.mark.parametrize(("holder", "wanted"), [("def main():", "main"), ("if True:", "program.py")])
def test_lines_of_such_a_loop_are_asked_for_by_its_function(workshop: Workshop, holder: str, wanted: str) -> None:
    """What the advice says to type counts the lines of the loop."""
    call = "main()" if wanted == "main" else ""
    trace = record(workshop, f"{holder}\n    for n in range(200):\n        {SLOW}\n{call}\n")
    (said,) = (each.do for each in findings(trace) if each.rule == "python" and "loop in" in each.what)
    assert said == f"what it does there shows by line: strobe run --lines {wanted}"
    counted = workshop.folder / "lines.strobe"
    done = workshop.recorded("--lines", wanted, "-o", str(counted), "program.py")
    assert done.returncode == 0, done.stderr
    assert [row["hits"] for row in strobe.open(counted).lines().to_pylist() if SLOW in row["source"]] == [200]


def test_a_range_of_the_program_may_be_called_so(workshop: Workshop) -> None:
    code = f"""
import strobe
for n in range(200):
    with strobe.region("loop in epoch"):
        {SLOW}
"""
    trace = record(workshop, code)
    assert iterations(trace) == {"epoch": 200}
    assert len(trace.steps().to_pylist()) == 200
