"""Interpreters beside the main one, and Pythons that are not recorded: free-threaded builds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import strobe
from strobe.model import exit_codes
from strobe.record import inject
from tests.record.workshop import Workshop

pytestmark = pytest.mark.every_python

# 12 tasks in three interpreters, of which each counts what it has called; a generator is left early in each task.
PROGRAM = """
import json
from concurrent.futures import InterpreterPoolExecutor

def one(i):
    return i

def numbers(n):
    for i in range(n):
        yield one(i)

def thrower(n):
    if n == 0:
        raise ValueError
    thrower(n - 1)

def work(n):
    for i in numbers(2 * n):
        if i == n - 1:
            break
    try:
        thrower(3)
    except ValueError:
        return n

def here(n):
    return n

if __name__ == "__main__":
    with InterpreterPoolExecutor(3) as pool:
        print(sum(pool.map(work, range(1, 13))), sum(here(i) for i in range(7)))
"""


@pytest.mark.skipif(sys.version_info < (3, 14), reason="there is no InterpreterPoolExecutor before Python 3.14")
def test_calls_in_other_interpreters_are_counted_in_threads_that_name_them(workshop: Workshop) -> None:
    workshop.write("program.py", PROGRAM)
    assert workshop.recorded("program.py").visible == ("78 21\n", "", 0)
    with strobe.open(workshop.trace) as trace:
        rows = trace.sql(
            """select regions.name as name, locations.name as thread, count(*)::bigint as n
               from spans join regions on spans.region = regions.region
               join locations on spans.location = locations.location
               where regions.line > 0 group by all"""
        ).to_pylist()
        assert not [row for row in trace.quality.to_arrow().to_pylist() if row["what"] == "unrecorded"]
    calls: dict[str, int] = {}
    for row in rows:
        calls[row["name"]] = calls.get(row["name"], 0) + row["n"]
        in_main = row["name"] in ("here", "<genexpr>")
        assert in_main or row["name"] == "<module>" or " (interpreter " in row["thread"], row
        assert not in_main or row["thread"] == "main thread"
    # numbers: once a number, and once more for the end that closing it is.
    assert {name: calls[name] for name in ("one", "work", "thrower", "here")} == {
        "one": 78,
        "work": 12,
        "thrower": 4 * 12,
        "here": 7,
    }


def test_a_free_threaded_python_is_refused_in_one_sentence(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("print(1)")
    stub = "import sys; sys.abiflags = 't'; from strobe.cli.main import main; "
    start = stub + f"sys.exit(main(['run', {str(program)!r}]))"
    done = subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == exit_codes.NOT_RECORDED
    assert done.stdout == ""
    assert done.stderr == (
        "strobe: this is a free-threaded build of Python, which strobe does not support\n"
        "  Use the standard build of Python\n"
    )
    assert os.listdir(tmp_path) == ["program.py"]


def test_a_free_threaded_child_runs_and_is_named_as_missing(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        f"""
        import runpy, sys
        sys.abiflags = "t"
        sys.modules["sitecustomize"] = sys
        try:
            runpy.run_path({str(Path(inject.__path__[0]) / "sitecustomize.py")!r})
        except ImportError as error:
            assert str(error) == "no sitecustomize", error
        """,
    )
    assert workshop.recorded("program.py").visible == ("", "", 0)
    with strobe.open(workshop.trace) as trace:
        (note,) = [row["text"] for row in trace.quality.to_arrow().to_pylist() if row["what"] == "unrecorded"]
    assert note.endswith("was not recorded: strobe does not record free-threaded builds of Python")
