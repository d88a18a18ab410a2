"""`--min-duration`: short functions are in sums only. Calls and times are those of every call all the same."""

from collections import Counter

import numpy as np
import pytest

import strobe
from strobe.steps.selection import select
from strobe.sums.path_statistics import path_statistics
from tests.record.workshop import Workshop, quality_of

STEPS, SLOW_EVERY, KILLED_AT, IN_THREAD = 300, 25, 210, 400
LEAST_NS = 2_000_000
PROGRAM = f"""
import os, signal, sys, threading, time
import strobe

def leaf(n):
    return n

def short(n):
    return leaf(n) + leaf(n + 1)

def recursive(n):
    return n and recursive(n - 1)

def slow():
    time.sleep(0.005)
    return leaf(0)

def around():
    with strobe.region("range"):
        leaf(1)

def one_step(i):
    for k in range(20):
        short(k)
    recursive(5)
    around()
    if i % {SLOW_EVERY} == 0:
        slow()

def beside():
    for k in range({IN_THREAD}):
        short(k)

def main():
    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()
    for i in range({STEPS}):
        if sys.argv[1:] and i == {KILLED_AT}:
            os.kill(os.getpid(), signal.SIGKILL)
        one_step(i)
        strobe.step()

main()
"""


def expected_calls(steps: int) -> dict[str, int]:
    """How often each function runs, by what the program says."""
    slow = -(-steps // SLOW_EVERY)
    short = 20 * steps + IN_THREAD
    return {
        "leaf": 2 * short + slow + steps,
        "short": short,
        "recursive": 6 * steps,
        "slow": slow,
        "around": steps,
        "range": steps,
        "one_step": steps,
        "beside": 1,
        "main": 1,
    }


def calls(trace: strobe.Trace) -> dict[str, int]:
    """Executions by name, spans and statistics together."""
    found: Counter[str] = Counter()
    for name, count in trace.sql("select name, sum(count)::bigint from totals group by 1").rows():
        found[str(name).rpartition(".")[2]] += int(count)
    return {name: found[name] for name in expected_calls(1)}


def short_in_detail(trace: strobe.Trace) -> int:
    """Spans of functions that hold nothing which stays, and end before they have lasted long enough."""
    names = ("leaf", "short", "recursive")
    found = 0
    for location in range(len(trace.locations)):
        spans = trace.span_arrays(location)
        name = np.array([str(each).rpartition(".")[2] for each in trace.regions.column("name")])[spans["region"]]
        found += int((np.isin(name, names) & (spans["duration_ns"] < LEAST_NS)).sum())
    return found


def recorded(workshop: Workshop, keep: str, least: str, *words: str) -> strobe.Trace:
    workshop.write("program.py", PROGRAM)
    workshop.trace = workshop.folder / f"{keep}-{least}-{len(words)}.strobe"
    outcome = workshop.recorded("--keep", keep, "--min-duration", least, "program.py", *words)
    assert (outcome.stdout, outcome.stderr, outcome.returncode) == ("", "", -9 if words else 0)
    return strobe.open(workshop.trace)


@pytest.fixture(scope="module")
def workshop_of_all(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("short"))


@pytest.fixture(scope="module", params=["all", "10"])
def trace(workshop_of_all: Workshop, request: pytest.FixtureRequest) -> strobe.Trace:
    return recorded(workshop_of_all, request.param, "2ms")


@pytest.fixture(scope="module")
def everything(workshop_of_all: Workshop) -> strobe.Trace:
    return recorded(workshop_of_all, "all", "0us")


def test_calls_are_those_of_all_that_ran(trace: strobe.Trace, everything: strobe.Trace) -> None:
    assert calls(everything) == expected_calls(STEPS)
    assert calls(trace) == expected_calls(STEPS)
    assert short_in_detail(everything) > 15_000
    assert short_in_detail(trace) == 0
    by_name = {str(row["name"]).rpartition(".")[2]: row["calls"] for row in trace.profile(step="all").to_pylist()}
    assert {name: by_name[name] for name in expected_calls(1)} == expected_calls(STEPS)


def test_times_add_up(trace: strobe.Trace) -> None:
    sums = path_statistics(trace, select(trace, step="all"))
    inside = np.zeros(len(sums.parent), dtype=np.int64)
    np.add.at(inside, sums.parent[sums.parent >= 0], sums.total_ns[sums.parent >= 0])
    assert (sums.total_ns == sums.own_ns + inside).all()
    assert (sums.own_ns >= 0).all()
    names = np.array([str(each).rpartition(".")[2] for each in trace.regions.column("name")])[sums.region]
    assert int(sums.total_ns[names == "slow"].sum()) >= 5_000_000 * expected_calls(STEPS)["slow"]


def test_it_is_said_how_many_are_in_sums_only(trace: strobe.Trace) -> None:
    rows = trace.ask("statistics").to_pylist()
    left_out = sum(row["count"] for row in rows if row["short"])
    assert 0 < left_out == quality_of(trace.path, "short_spans")
    assert all(row["max_ns"] < LEAST_NS for row in rows if row["short"])
    assert trace.span_count + trace.folded_count == sum(
        int(n) for (n,) in trace.sql("select sum(count)::bigint from totals").rows()
    )
    # Of some steps only what they kept is known.
    note = trace.profile(step="20..22").note
    assert "below --min-duration are counted in the whole run only" in note


@pytest.mark.parametrize("keep", ["all", "10"])
def test_a_kill_loses_none_of_them(workshop_of_all: Workshop, keep: str) -> None:
    trace = recorded(workshop_of_all, keep, "2ms", "kill")
    assert calls(trace) == expected_calls(KILLED_AT)
    assert short_in_detail(trace) == 0
    assert quality_of(trace.path, "short_spans") > 1000
    sums = path_statistics(trace, select(trace, step="all"))
    assert (sums.own_ns >= 0).all()
