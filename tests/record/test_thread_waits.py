"""Waits of threads of pthreads: state, count, time, caller, holder and step are what the program measured itself."""

import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import strobe
from strobe.native import library
from tests.record.workshop import Workshop

HERE = Path(__file__).parent
INCLUDE = HERE.parents[1] / "native" / "include"
STEPS = 12
Waits = dict[tuple[str, int | None], tuple[int, int]]


def compiled(folder: Path, name: str) -> str:
    """The program NAME.c, linked with the recorder's library."""
    lib = Path(library()).parent
    flags = ["-O1", "-g", "-pthread", f"-I{INCLUDE}", f"-L{lib}", f"-Wl,-rpath,{lib}"]
    program = folder / name
    subprocess.run(["gcc", *flags, str(HERE / "threads" / f"{name}.c"), "-lstrobe", "-o", str(program)], check=True)
    return str(program)


def measured(printed: str) -> Waits:
    """Count and ns of each state and step, by the program's own clocks."""
    rows = (line.split() for line in printed.splitlines())
    found = {(state, int(step)): (int(count), int(ns)) for state, step, count, ns in rows}
    return {(state, None if step < 0 else step): sums for (state, step), sums in found.items() if sums[0]}


def dicts(table: strobe.Table) -> list[dict[str, Any]]:
    """The rows of a table."""
    return table.to_pylist()


def line_of(text: str) -> int:
    """The first line of the program with a text."""
    lines = (HERE / "threads" / "waits.c").read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[strobe.Trace, Waits]]:
    """A program that waits in every way."""
    workshop = Workshop(tmp_path_factory.mktemp("waits"))
    done = workshop.recorded("--", compiled(workshop.folder, "waits"))
    assert (done.returncode, done.stderr) == (0, "")
    with strobe.open(done.trace) as trace:
        yield trace, measured(done.stdout)


def test_each_step_has_the_waits_that_the_program_measured(waiting: tuple[strobe.Trace, Waits]) -> None:
    trace, known = waiting
    found = {(row["state"], row["step"]): row for row in dicts(trace.waits(by="step"))}
    first = STEPS - len(trace.steps())  # iterations before the first step
    far = []
    for (state, step), (count, ns) in known.items():
        if step is None or step < first:
            continue
        row = found.get((state, step - first), {"waits": 0, "wait_ns": 0})
        # A lock or semaphore that is free when its turn comes on a busy machine has no wait.
        counted = row["waits"] == count or state in ("lock_contention", "semaphore_wait")
        if not counted or abs(row["wait_ns"] - ns) > 0.05 * ns + 50_000:
            far.append((state, step, count, ns, row))
    assert len(far) <= 2, far  # another program had the processor between two looks at the clock
    whole = {row["state"]: row["wait_ns"] for row in dicts(trace.waits())}
    sums = Counter[str]()
    for (state, _), (_, ns) in known.items():
        sums[state] += ns
    assert whole == pytest.approx(sums, rel=0.05, abs=1e6)


def test_waits_have_their_caller_and_who_held_the_lock(waiting: tuple[strobe.Trace, Waits]) -> None:
    trace, _ = waiting
    calls = {(row["state"], row["call_path"]) for row in dicts(trace.waits(by="call"))}
    inner, taken = line_of("  pthread_mutex_lock(mutex)"), line_of("sem_timedwait(semaphore")
    lines = [
        ("lock_contention", f"pthread_mutex_lock(table_lock) < lock (waits.c:{inner})", line_of("lock(&table_lock")),
        ("condition_wait", "pthread_cond_wait(gate)", line_of("pthread_cond_wait(&gate")),
        ("semaphore_wait", f"sem_wait(ready) < take (waits.c:{taken})", line_of("take(&ready")),
        ("thread_barrier", "pthread_barrier_wait(barrier)", line_of("pthread_barrier_wait(&barrier)")),
    ]
    for state, path, line in lines:
        assert (state, f"{path} < work (waits.c:{line})") in calls
    rows = dicts(trace.sql("select state, location, cause, sum(waits) as n from thread_waits group by 1, 2, 3"))
    workers = {row["location"] for row in rows if row["state"] == "condition_wait"}
    main = {row["location"] for row in rows if row["state"] == "thread_join"}
    holds = [{row["location"], row["cause"]} for row in rows if row["state"] == "lock_contention"]
    assert workers in holds
    assert all(pair <= workers | main | {None} for pair in holds)  # on a busy machine, the lock of the gate, too
    # The main thread opens the gate, posts, and comes to the barrier last.
    assert {row["cause"] for row in rows if row["state"] in ("condition_wait", "semaphore_wait")} == main
    assert max((row for row in rows if row["state"] == "thread_barrier"), key=lambda row: row["n"])["cause"] in main
    joined = {row["cause"] for row in rows if row["state"] == "thread_join"}
    assert joined <= {*workers, None}


def test_long_waits_are_on_the_timeline(waiting: tuple[strobe.Trace, Waits]) -> None:
    trace, known = waiting
    table = trace.sql(
        "select regions.name as name, count(*) as n, sum(duration_ns) as ns from spans join regions using (region)"
        " where regions.role = 'wait' group by 1"
    )
    found = {row["name"]: row for row in dicts(table)}
    ns = sum(ns for (state, _), (_, ns) in known.items() if state == "condition_wait")
    assert found["pthread_cond_wait"]["ns"] == pytest.approx(ns, rel=0.05)
    assert found["pthread_barrier_wait"]["n"] <= 3 * STEPS


@pytest.mark.parametrize(("way", "state"), [("many", "condition_wait"), ("posts", "semaphore_wait")])
def test_short_waits_are_counted_each_in_a_few_rows(way: str, state: str, workshop: Workshop) -> None:
    done = workshop.recorded("--", compiled(workshop.folder, "waits"), way)
    known = measured(done.stdout)[state, None]
    with strobe.open(done.trace) as trace:
        (row,) = (row for row in dicts(trace.waits()) if row["state"] == state)
    assert row["waits"] <= known[0]
    assert row["waits"] == known[0] or state == "semaphore_wait"  # it may have been posted meanwhile
    assert known[0] > 10_000
    assert row["wait_ns"] == pytest.approx(known[1], rel=0.05)


def test_waits_of_a_killed_program_are_kept(workshop: Workshop) -> None:
    """It is killed while its threads compute, a while after they have waited."""
    code = workshop.write(
        "killed.c",
        """
        #include <pthread.h>
        #include <signal.h>
        #include <unistd.h>
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        static void* hold(void* nothing) {
          pthread_mutex_lock(&lock);
          usleep(200000);
          pthread_mutex_unlock(&lock);
          pause();
          return nothing;
        }
        int main(void) {
          pthread_t thread;
          pthread_create(&thread, 0, hold, 0);
          usleep(50000);
          pthread_mutex_lock(&lock);
          usleep(1000000);
          return kill(getpid(), 9);
        }
        """,
    )
    subprocess.run(["gcc", "-pthread", str(code), "-o", str(workshop.folder / "killed")], check=True)
    done = workshop.recorded("--", str(workshop.folder / "killed"))
    assert done.returncode == -signal.SIGKILL or done.returncode == 128 + signal.SIGKILL
    with strobe.open(done.trace) as trace:
        (row,) = dicts(trace.waits(by="thread"))
    assert (row["state"], row["waits"]) == ("lock_contention", 1)
    assert row["awaited_thread"] is not None
    assert 50e6 < row["wait_ns"] < 200e6
