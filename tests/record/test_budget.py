"""A budget makes a recording give up detail, in order, and say so; sums stay exact."""

from pathlib import Path

import pytest

import strobe
from tests.record.workshop import Workshop

CALLS = 3_000_000
# No loop that repeats: lengths grow, so that no iterations are found, and everything would be written.
PROGRAM = f"""
import time
began = time.perf_counter()

def leaf(n):
    return n

def branch(n):
    return leaf(n)

def main():
    done, width = 0, 1
    while done < {CALLS}:
        for n in range(width):
            branch(n)
        done += width
        width += 7
    print(done)

main()
"""


def counts(trace: Path) -> tuple[dict[str, int], dict[str, int], float]:
    """Executions by function (spans and statistics), counters of quality, and bytes of the block files."""
    with strobe.open(trace) as opened:
        rows = opened.sql("select name, sum(count)::bigint as n from totals group by 1").to_arrow().to_pylist()
        quality = opened.sql("select what, sum(value)::bigint as value from quality group by 1").to_arrow().to_pylist()
    size = sum(path.stat().st_size for path in trace.glob("*.blocks"))
    return {row["name"]: row["n"] for row in rows}, {row["what"]: row["value"] for row in quality}, size


@pytest.fixture(scope="module")
def unlimited(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, float]:
    """Calls that the program says it made, and the bytes of a recording without a budget."""
    workshop = Workshop(tmp_path_factory.mktemp("unlimited"))
    workshop.write("program.py", PROGRAM)
    done = workshop.recorded("program.py")
    with strobe.open(workshop.trace) as trace:
        assert not any(str(row["what"]).startswith("budget") for row in trace.quality.to_pylist())
    return int(done.stdout), sum(path.stat().st_size for path in workshop.trace.glob("*.blocks"))


def test_a_trace_stays_within_its_size_and_its_sums_stay_exact(
    workshop: Workshop, unlimited: tuple[int, float]
) -> None:
    calls, whole = unlimited
    limit = int(whole / 2)
    workshop.write("program.py", PROGRAM)
    done = workshop.recorded("--max-size", str(limit), "program.py")
    assert (done.stdout, done.stderr, done.returncode) == (f"{calls}\n", "", 0)
    called, quality, size = counts(workshop.trace)
    assert size <= limit
    assert called["leaf"] == called["branch"] == calls
    assert quality["budget_fewer_iterations"] == quality["budget_statistics_only"] == 1
    assert quality.get("records_lost", 0) == 0
    with strobe.open(workshop.trace) as trace:
        levels = trace.sql("select value from metrics where metric like 'detail given up%' order by time_ns")
        assert [row["value"] for row in levels.to_arrow().to_pylist()] == [1, 3]
        said = trace.sql("select text from quality where what = 'budget_statistics_only'").to_arrow().to_pylist()
    assert "statistics only" in said[0]["text"]


def test_a_recorder_that_is_too_dear_gives_up_detail(workshop: Workshop) -> None:
    # It is looked at once a second, however fast the machine is.
    workshop.write("program.py", PROGRAM + "while time.perf_counter() - began < 4:\n    main()\n")
    done = workshop.recorded("--max-overhead", "0.01%", "program.py")
    assert (done.stderr, done.returncode) == ("", 0)
    called, quality, _ = counts(workshop.trace)
    assert quality["budget_fewer_iterations"] == 1
    assert called["leaf"] == sum(map(int, done.stdout.split()))


ENDLESS = """
import os, time
import strobe

def leaf(n):
    return n

def main():
    until = time.monotonic() + 7
    calls = 0
    while time.monotonic() < until:
        for n in range(1000):
            leaf(n)
        calls += 1000
    print(calls)

main()
if os.fork() == 0:
    with strobe.region("after the fork"):
        leaf(0)
    os._exit(0)
os.wait()
"""


def test_what_is_too_dear_in_statistics_too_records_no_functions_from_then_on(workshop: Workshop) -> None:
    workshop.write("program.py", ENDLESS)
    done = workshop.recorded("--max-overhead", "0.01%", "--throttle", "1000000000:1us", "program.py")
    assert (done.stderr, done.returncode) == ("", 0)
    called, quality, _ = counts(workshop.trace)
    steps = ("fewer_iterations", "hot_functions", "statistics_only", "no_functions")
    assert [quality.get(f"budget_{step}") for step in steps] == [1, 1, 1, 2], "the child of a fork goes on like that"
    assert 1000 < called["leaf"] < int(done.stdout) * 0.8
    assert called["main"] == 1
    assert quality.get("leaves_unmatched", 0) == quality.get("spans_cut", 0) == 0
    with strobe.open(workshop.trace) as trace:
        levels = trace.sql("select value from metrics where metric like 'detail given up%' order by time_ns")
        assert levels.column("value") == [1, 2, 3, 4]
