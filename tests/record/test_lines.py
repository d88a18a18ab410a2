"""Source lines: hits as line_profiler counts them, times that are there, and the program as it is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import strobe
from tests.record.workshop import STROBE, Outcome, Workshop, environment

pytestmark = pytest.mark.every_python

PROGRAM = """
    import asyncio
    import os
    import sys
    import threading
    import time


    def loop(n):
        total = 0
        for i in range(n):
            if i % 3 == 0:
                total += leaf(i)
            total += 1
        return total


    def leaf(i):
        return (
            i
            + 1
        )


    def fib(n):
        if n < 2:
            return n
        return fib(n - 1) + fib(n - 2)


    def numbers(n):
        for i in range(n):
            yield i
            time.sleep(0)


    def fails(n):
        try:
            if n:
                return fails(n - 1)
            raise ValueError(n)
        except ValueError:
            n += 1
            raise
        finally:
            n += 2


    class Model:
        @property
        def size(self):
            return 3

        @staticmethod
        def forward(n):
            return [i * 2 for i in range(n)]


    async def waits(n):
        for _ in range(n):
            await asyncio.sleep(0)
        return n


    def sleeps():
        time.sleep(0.05)
        time.sleep(0.1)


    def not_chosen(n):
        for i in range(n):
            n += i
        return loop(n)


    def main():
        loop(100)
        fib(12)
        print(sum(numbers(10)))
        for n in range(3):
            try:
                fails(n)
            except ValueError:
                pass
        Model.forward(Model().size)
        asyncio.run(both())
        threads = [threading.Thread(target=loop, args=(50,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sleeps()
        not_chosen(5)


    async def both():
        await asyncio.gather(waits(5), waits(7))


    if __name__ == "__main__":
        main()
"""
CHOSEN = ("loop", "leaf", "fib", "numbers", "fails", "waits", "sleeps", "both")
PATTERNS = ",".join([*CHOSEN, "program.Model.*", "Model.*<listcomp>"])
# line_profiler itself, in a process of its own.
PEER = """
import json, sys, threading
import line_profiler
import program
profiler = line_profiler.LineProfiler()
for name in sys.argv[1].split(","):
    profiler.add_function(getattr(program, name))
profiler.add_function(program.Model.size.fget)
profiler.add_function(program.Model.forward)
run = threading.Thread.run
def run_profiled(thread):  # line_profiler counts in threads that have enabled it
    profiler.enable()
    run(thread)
    profiler.disable()
if sys.version_info < (3, 12):
    threading.Thread.run = run_profiled
profiler.enable()
program.main()
profiler.disable()
timings = profiler.get_stats().timings
print(json.dumps([[name, line, hits] for (_, _, name), lines in timings.items() for line, hits, _ in lines]))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    workshop = Workshop(tmp_path_factory.mktemp("lines"))
    workshop.write("program.py", PROGRAM)
    return workshop


@pytest.fixture(scope="module")
def outcome(place: Workshop) -> Outcome:
    return place.recorded("-t", "source_lines", "--lines", PATTERNS, "program.py")


def hits_of(trace: Path) -> dict[tuple[str, int], int]:
    rows = strobe.open(trace).lines().to_pylist()
    return {(str(row["function"]).rpartition(".")[2], row["line"]): row["hits"] for row in rows}


def test_hits_are_those_of_line_profiler(place: Workshop, outcome: Outcome) -> None:
    command = [sys.executable, "-c", PEER, ",".join(CHOSEN)]
    done = subprocess.run(command, cwd=place.folder, env=environment(), capture_output=True, text=True, check=True)
    peer = {(name.rpartition(".")[2], line): hits for name, line, hits in json.loads(done.stdout.splitlines()[-1])}
    ours = {key: hits for key, hits in hits_of(outcome.trace).items() if key[0] != "<listcomp>"}
    assert ours == peer


def test_program_is_not_changed(place: Workshop, outcome: Outcome) -> None:
    assert outcome.visible == place.plain("program.py").visible


def test_times_include_what_is_called_and_rest_is_nobodys(outcome: Outcome) -> None:
    trace = strobe.open(outcome.trace)
    sleeps = [row["total_ns"] for row in trace.lines(function="sleeps").to_pylist()]
    assert 50e6 <= sleeps[0] < 100e6 <= sleeps[1] < 400e6


def test_lprof_is_read_by_line_profiler(outcome: Outcome, tmp_path: Path) -> None:
    from line_profiler import load_stats

    trace = strobe.open(outcome.trace)
    target = tmp_path / "lines.lprof"
    subprocess.run([STROBE, "export", str(outcome.trace), "--to", "line_profiler", "-o", str(target)], check=True)
    stats = load_stats(str(target))
    counted = {(name, line): (hits, ns) for (_, _, name), rows in stats.timings.items() for line, hits, ns in rows}
    assert stats.unit == 1e-9
    assert counted == {
        (row["function"], row["line"]): (row["hits"], row["total_ns"]) for row in trace.lines().to_pylist()
    }


def test_decorator_chooses_functions(place: Workshop, tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    workshop.write(
        "decorated.py",
        """
        import os, time

        @profile
        def chosen(n):
            for _ in range(n):
                time.sleep(0)

        def other(n):
            return n

        chosen(3)
        other(1)
        if os.fork() == 0:
            chosen(5)
            os._exit(0)
        os.wait()
        print(profile.__name__, flush=True)
        os.kill(os.getpid(), 9)
        """,
    )
    outcome = workshop.recorded("-t", "lines", "decorated.py")
    assert outcome.stdout == "profile\n"
    # The killed parent and its child, each with its own counts.
    rows = strobe.open(outcome.trace).lines().to_pylist()
    assert [(row["function"], row["line"], row["hits"]) for row in rows] == [("chosen", 6, 10), ("chosen", 7, 8)]


def test_debugger_of_the_program_goes_on(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    workshop.write(
        "traced.py",
        """
        import sys
        seen = []

        def tracer(frame, event, argument):
            seen.append(event)
            return tracer

        def counted(n):
            for _ in range(n):
                n += 1
            return n

        counted(2)
        sys.settrace(tracer)
        counted(2)
        sys.settrace(None)
        counted(2)
        print(seen, sys.gettrace())
        """,
    )
    outcome = workshop.recorded("--lines", "traced.counted", "traced.py")
    assert outcome.visible == workshop.plain("traced.py").visible
    hits = {row["line"]: row["hits"] for row in strobe.open(outcome.trace).lines().to_pylist()}
    # Before 3.12 a program that traces itself has its lines for itself.
    calls = 3 if sys.version_info >= (3, 12) else 2
    assert hits == {10: 3 * calls, 11: 2 * calls, 12: calls}


def test_profiler_object_prints_and_dumps(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    workshop.write(
        "by_hand.py",
        """
        from strobe.compat.line_profiler import LineProfiler

        def inner(n):
            total = 0
            for i in range(n):
                total += i
            return total

        profiler = LineProfiler()
        profiler(inner)(10)
        profiler.runcall(inner, 5)
        profiler.dump_stats("by_hand.lprof")
        profiler.print_stats()
        """,
    )
    printed = workshop.plain("by_hand.py")
    assert printed.stderr == ""
    from line_profiler import load_stats

    ((key, rows),) = load_stats(str(workshop.folder / "by_hand.lprof")).timings.items()
    assert (key[1:], [row[:2] for row in rows]) == ((4, "inner"), [(5, 2), (6, 17), (7, 15), (8, 2)])
    lines = [line.split() for line in printed.stdout.splitlines() if "total += i" in line]
    assert lines[0][:2] == ["7", "15"]


def test_decorators_choose_outside_of_windows_and_each_recording_chooses_anew(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    workshop.write(
        "decorated.py",
        """
        import strobe

        @profile
        def chosen(n):
            return n

        def f(n): return n
        def g(n): return n

        chosen(1)
        strobe.resume()
        chosen(2)
        strobe.pause()
        """,
    )
    outcome = workshop.recorded("--start", "paused", "--lines", "nothing.at.all", "decorated.py")
    assert outcome.visible == ("", "", 0)
    rows = strobe.open(outcome.trace).lines().to_pylist()
    assert [(row["function"], row["line"], row["hits"]) for row in rows] == [("chosen", 6, 1)]
    workshop.write(
        "twice.py",
        """
        import builtins
        import strobe

        def f(n): return n
        def g(n): return n

        for name in "fgf":
            with strobe.record(f"{name}.strobe", lines=name):
                f(1); g(1)
        assert not hasattr(builtins, "profile")
        """,
    )
    assert workshop.plain("twice.py").visible == ("", "", 0)
    for name, function in (("f", "f"), ("g", "g"), ("f-2", "f")):
        rows = strobe.open(tmp_path / f"{name}.strobe").lines().to_pylist()
        assert [(row["function"], row["hits"]) for row in rows] == [(function, 1)]


GREENLETS = """
import json, threading, time
begun, imported = threading.Event(), threading.Event()

def early():
    begun.set()
    imported.wait()
    switch_often(20_000)

thread = threading.Thread(target=early)  # before greenlet is there: nobody follows its greenlets
thread.start()
begun.wait()
import greenlet

def ping(n, other):
    for _ in range(n):
        other.switch()
    return n

def pong(n, main):
    for _ in range(n):
        time.sleep(0.001)
        main.switch()

def both(n):
    greenlet.getcurrent().switch()  # to itself
    ping(n, greenlet.greenlet(pong_of(n)))
    return n

def pong_of(n):
    main = greenlet.getcurrent()
    return lambda: pong(n, main)

def there(n, other):
    for _ in range(n):
        other.switch()

def back(n, main):
    for _ in range(n):
        main.switch()

def switch_often(n):
    main = greenlet.getcurrent()
    there(n, greenlet.greenlet(lambda: back(n, main)))

def own_kib():
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1])

begin = time.monotonic_ns()
both(50)
elapsed_ns = time.monotonic_ns() - begin
imported.set()
thread.join()
switch_often(20_000)
before = own_kib()
switch_often(100_000)
print(json.dumps([elapsed_ns, own_kib() - before]))
"""


def test_lines_of_greenlets_have_their_own_time_and_leave_nothing_behind(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    workshop.write("program.py", GREENLETS)
    outcome = workshop.recorded("-t", "source_lines", "--lines", "ping,pong,both,there,back", "program.py")
    assert outcome.stderr == ""
    elapsed_ns, grown_kib = json.loads(outcome.stdout)
    hits: dict[str, list[int]] = {}
    ns: dict[str, list[int]] = {}
    for row in strobe.open(outcome.trace).lines().to_pylist():
        hits.setdefault(str(row["function"]), []).append(row["hits"])
        ns.setdefault(str(row["function"]), []).append(row["total_ns"])
    assert hits == {
        "ping": [51, 50, 1],
        "pong": [50, 50, 50],
        "both": [1, 1, 1],
        # 20 000 in a thread that nobody follows, 120 000 in the main thread
        "there": [140_003, 140_000],
        "back": [140_000, 140_000],
    }
    # A sleep lasts as long as it was asked for, or longer, and belongs to nobody else.
    assert ns["pong"][1] >= 50_000_000
    assert sum(ns["ping"]) <= sum(ns["both"])
    assert sum(ns["both"]) + sum(ns["pong"]) <= elapsed_ns
    assert grown_kib < 1000  # an entry that stayed for each switch would take 6 MiB


def test_the_decorator_that_is_imported_from_line_profiler_chooses_functions(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    workshop.write(
        "imported.py",
        """
        from line_profiler import profile

        @profile
        def chosen(n):
            return n

        chosen(chosen(3))
        print(profile.enabled)
        """,
    )
    outcome = workshop.recorded("-t", "lines", "imported.py")
    assert outcome.visible == workshop.plain("imported.py").visible == ("False\n", "", 0)
    rows = strobe.open(outcome.trace).lines().to_pylist()
    assert [(row["function"], row["line"], row["hits"]) for row in rows] == [("chosen", 6, 2)]
