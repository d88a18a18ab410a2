"""Source lines: hits as line_profiler counts them, times that are there, and the program as it is."""

import json
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import strobe
from tests.record.workshop import Outcome, Workshop, environment

PROGRAM = '''
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
'''
CHOSEN = ("loop", "leaf", "fib", "numbers", "fails", "waits", "sleeps", "both")
PATTERNS = ",".join([*CHOSEN, "program.Model.*", "Model.*<listcomp>"])
# line_profiler itself, in a process of its own.
PEER = """
import json, sys
import line_profiler
import program
profiler = line_profiler.LineProfiler()
for name in sys.argv[1].split(","):
    profiler.add_function(getattr(program, name))
profiler.add_function(program.Model.size.fget)
profiler.add_function(program.Model.forward)
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
    return {(row["function"].rpartition(".")[2], row["line"]): row["hits"] for row in strobe.open(trace).lines().to_pylist()}


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
