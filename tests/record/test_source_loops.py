"""What the recorder reads in the bytecode of functions, beside the source; and the steps that follow from it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import strobe
from strobe.advice.rank import findings
from tests.record.workshop import Workshop

# What clocks may differ by.
SLACK_NS = 200_000

# Each function, and the text that its source means.
FUNCTIONS = {
    "plain": ("work(1)\nwork(2)", None),
    "one": ("for n in range(2):\n    work(n)", "range (work)"),
    "nested": (
        "work(0)\nfor n in range(2):\n    for k in range(2):\n        work(k)\n    tool.use(n)",
        "work range (range (work) tool.use)",
    ),
    "branches": (
        "for n in range(4):\n    work(n)\n    if n % 2:\n        tool.use(n)\n    elif n > 2:\n        work(n)",
        "range (work tool.use? work?)",
    ),
    "skips": (
        "for n in range(4):\n    work(n)\n    if n % 2:\n        continue\n    tool.use(n)",
        "range (work tool.use?)",
    ),
    "leaves": (
        "for n in range(4):\n    work(n)\n    if n == 2:\n        break\n    tool.use(n)",
        "range (work tool.use)",
    ),
    "fails": (
        "for n in range(4):\n    try:\n        work(n)\n    except ValueError:\n        work(n)\n    tool.use(n)",
        "range (work tool.use)",
    ),
    "fails_on": (
        "for n in range(4):\n    try:\n        work(n)\n    except ValueError:\n        continue\n    tool.use(n)",
        "range (work tool.use)",
    ),
    "in_turn": ("for n in range(2):\n    work(1); work(2)\n    tool.inner.use(n)", "range (work work inner.use)"),
    "keywords": ("for n in range(2):\n    tool.use(n=n)\n    work(n=n)", "range (tool.use work)"),
    "arguments": ("for n in range(2):\n    work(tool.use(work(n)))", "range (work tool.use work)"),
    "stars": ("for n in range(2):\n    work(*(n,))", "range (work)"),
    "many": (
        "for n in range(2):\n" + "\n".join(f"    x{k} = work({k}) + n * {k}" for k in range(80)),
        "range (" + " ".join(["work"] * 80) + ")",
    ),
    "local": ("here = work\nfor n in range(2):\n    here(n)", "range (here)"),
    "items": ("for n in range(2):\n    yield work(n)", "range (work yield)"),
    "some_items": (
        "rows = []\nfor n in range(4):\n    rows.append(n)\n    if len(rows) == 2:\n        yield work(rows)",
        "range (rows.append len work? yield?)",
    ),
    "once": ("work(1)\nyield 1\nwork(2)", "work yield work"),
    "guarded": ("try:\n    yield 1\nfinally:\n    work(1)", "yield work"),
    "delegates": ("yield from work([1])", "work yield-from"),
    "delegates_in_turn": ("for n in range(2):\n    yield from work([n])", "range (work yield-from)"),
    "repeats": ("for n in range(2):\n    for _ in range(3):\n        work(n)", "range (range (! work))"),
    "goes_through_items": (
        "for n in range(2):\n    rows = [n, n]\n    for row in rows[1:]:\n        work(row)",
        "range ((^ work))",
    ),
    "goes_through_pairs": (
        "for n, k in [(1, 2)]:\n    for a, b in zip([n], [k]):\n        work(a)",
        "(zip (^ work))",
    ),
    "goes_through_calls": ("for n in range(2):\n    for k in range(n):\n        work(k)", "range (range (^ work))"),
    "goes_through_others": (
        "all = [1]\nfor n in range(2):\n    tool.use(n)\n    for k in all:\n        work(k)",
        "range (tool.use (work))",
    ),
    "goes_through_items_of_epochs": (
        "for epoch in range(2):\n    for k in range(epoch):\n        work(k)",
        "range (range (work))",
    ),
    "goes_through_epochs": ("for epoch in range(2):\n    for _ in range(3):\n        work(1)", "range (range (work))"),
    "repeats_all": ("for _ in range(3):\n    work(1)", "range (work)"),
    "answers": ("for n in range(2):\n    told = yield n\n    work(told)", "range (yield work)"),
}
PROGRAM = """
class Tool:
    def use(self, n=0): return n
tool = Tool()
tool.inner = Tool()
def work(n=0): return n
"""


def texts(trace: strobe.Trace) -> dict[str, str]:
    names = trace.regions.column("name")
    return {str(names[region]): text for region, text in trace.definitions.source_loops.items()}


@pytest.mark.every_python
def test_the_bytecode_means_what_the_source_does(workshop: Workshop) -> None:
    lines = [PROGRAM]
    for name, (body, _) in FUNCTIONS.items():
        lines += [f"def {name}():", *("    " + line for line in body.splitlines()), f"list({name}() or ())"]
    workshop.write("program.py", "\n".join(lines))
    assert workshop.recorded("program.py").returncode == 0
    found = texts(strobe.open(workshop.trace))
    assert {name: found.get(name) for name in FUNCTIONS} == {name: text for name, (_, text) in FUNCTIONS.items()}


@pytest.mark.every_python
def test_a_while_loop_calls_its_condition_in_each_iteration(workshop: Workshop) -> None:
    code = "left = [1, 2, 3]\ndef more(): return left\ndef work():\n    while more():\n        left.pop()\nwork()\n"
    workshop.write("program.py", code)
    assert workshop.recorded("program.py").returncode == 0
    # Once before the loop and once at its end, where the compiler writes it twice: until 3.13.
    found = texts(strobe.open(workshop.trace))["work"]
    assert found in ("more (~ left.pop more)?", "more (~ left.pop more)", "(~ more left.pop?)", "(~ more left.pop)")


@pytest.mark.every_python
def test_a_child_that_was_forked_knows_them_too(workshop: Workshop) -> None:
    code = "import os\ndef work(n): pass\ndef main():\n    for n in range(3): work(n)\nmain()\n"
    workshop.write("program.py", code + "if os.fork() == 0:\n    main()\n    os._exit(0)\nos.wait()\n")
    assert workshop.recorded("program.py").returncode == 0
    trace = strobe.open(workshop.trace)
    assert trace.readers[0].source_loops() == trace.readers[1].source_loops()
    assert "range (work)" in trace.readers[1].source_loops().values()


def test_an_export_and_a_cut_know_them_too(workshop: Workshop) -> None:
    code = "import time\ndef work(n): time.sleep(0.001)\ndef main():\n    for n in range(40): work(n)\nmain()\n"
    workshop.write("program.py", code)
    assert workshop.recorded("program.py").returncode == 0
    trace = strobe.open(workshop.trace)
    for form in ("chrome", "perfetto"):
        trace.export(workshop.folder / f"again.{form}", form)
        again = strobe.open(workshop.folder / f"again.{form}")
        assert texts(again) == texts(trace)
        assert again.ask("loops").to_pylist() == trace.ask("loops").to_pylist()
    trace.part(time_ns=(0, trace.info.duration_ns)).cut(workshop.folder / "part.strobe")
    assert texts(strobe.open(workshop.folder / "part.strobe")) == texts(trace)


def test_names_are_not_in_an_anonymous_trace(workshop: Workshop) -> None:
    workshop.write("program.py", "def secret(): pass\ndef main():\n    for n in range(40): secret()\nmain()\n")
    assert workshop.recorded("program.py").returncode == 0
    strobe.open(workshop.trace).cut(workshop.folder / "hidden.strobe", anonymise=True)
    assert texts(strobe.open(workshop.folder / "hidden.strobe")) == {}
    assert not [path for path in (workshop.folder / "hidden.strobe").rglob("*") if b"secret" in path.read_bytes()]


def test_what_is_done_at_times_and_twice_is_in_the_steps(workshop: Workshop) -> None:
    code = """
import time
def advance(): time.sleep(0.002)
def write(k): time.sleep(0.004)
def close(): time.sleep(0.001)
def main():
    for n in range(60):
        advance()
        if n % 10 == 9:
            for k in range(12): write(k)
            close()
main()
"""
    workshop.write("program.py", code)
    assert workshop.recorded("program.py").returncode == 0
    assert abs(len(strobe.open(workshop.trace).steps()) - 60) <= 1


def test_a_function_called_twice_is_one_step_while_the_program_runs(workshop: Workshop) -> None:
    """The second call is the short one: a step that began with it would not lie where the program has it."""
    code = """
import json, time
begins, called = [], []
def turn(seconds):
    called.append(time.monotonic_ns())
    time.sleep(seconds)
def main():
    turn(0.01)
    for n in range(1000):
        begins.append(time.monotonic_ns())
        turn(0.002)
        turn(0.001)
main()
json.dump([begins, called[1::2]], open("begins.json", "w"))
"""
    workshop.write("program.py", code)
    assert workshop.recorded("--keep", "10", "program.py").returncode == 0
    trace = strobe.open(workshop.trace)
    steps = trace.steps().to_pylist()
    folded = [row for row in steps if row["detail"] == "none"]
    begins, called = map(np.array, json.loads((workshop.folder / "begins.json").read_text()))
    assert len(folded) > 20
    assert abs(len(steps) - 1000) <= 2
    # Between the program's note and what its first call notes, however busy the machine.
    starts = np.array([row["start_ns"] + trace.zero_ns for row in folded])
    at = np.searchsorted(begins, starts + SLACK_NS) - 1
    assert (starts <= called[at] + SLACK_NS).all()


@pytest.mark.parametrize("keep", ["10", "all"])
def test_a_loop_that_only_repeats_something_is_a_part_of_the_step_around_it(workshop: Workshop, keep: str) -> None:
    """Frames of 5 substeps: nothing but the substeps is called, and every 10th frame measures something."""
    code = """
import json, time
called = []
def substep():
    called.append(time.monotonic_ns())
    time.sleep(0.001)
def measure(): time.sleep(0.001)
def main():
    for frame in range(400):
        for _ in range(5):
            substep()
        if frame % 10 == 9:
            measure()
    for _ in range(20):
        substep()
main()
json.dump([called[4:2000:5], called[:2000:5]], open("called.json", "w"))
"""
    workshop.write("program.py", code)
    assert workshop.recorded("--keep", keep, "program.py").returncode == 0
    trace = strobe.open(workshop.trace)
    steps = trace.steps()
    starts = [begin + trace.zero_ns for begin in steps.column("start_ns")]
    last, first = json.loads((workshop.folder / "called.json").read_text())
    assert len(starts) == 400
    # Between the last substep of the frame before and the frame's first one, however busy the machine.
    assert all(a < b + SLACK_NS for a, b in zip(starts[1:], first[1:], strict=True))
    assert all(a > b for a, b in zip(starts[1:], last[:-1], strict=True))
    assert "each is an iteration of the loop in main at program.py:9, which repeats something 5 times" in steps.about


@pytest.mark.every_python
@pytest.mark.parametrize(("loop", "steps"), [("while len(done) < 120", 120), ("for question in range(400)", 400)])
def test_to_ask_for_something_to_do_is_no_step(workshop: Workshop, loop: str, steps: int) -> None:
    """A third of all questions has an answer. Who goes through 400 items does them all."""
    code = f"""
import random, time
def ask(): return random.random() < 0.3
def handle(): time.sleep(0.01)
def serve():
    done = []
    {loop}:
        if ask():
            handle()
            done.append(1)
random.seed(3)
serve()
"""
    workshop.write("program.py", code)
    assert workshop.recorded("program.py").returncode == 0
    with strobe.open(workshop.trace) as trace:
        assert len(trace.steps()) == steps


def test_a_library_that_calls_back_has_an_iteration_for_each_call(workshop: Workshop) -> None:
    """What is asked for most of the time has a loop of its own; the function that holds all calls has none."""
    code = """
import sys, time
from collections import deque
from itertools import cycle, islice
from operator import call
def part(k): time.sleep(0.001)
def cost():
    for n in range(3): part(n)
def watch(): sys.stderr.write(".")
def main(): deque(map(call, islice(cycle([cost] * 12 + [watch]), 40 * 13)), 0)
main()
"""
    workshop.write("program.py", code)
    assert workshop.recorded("program.py").returncode == 0
    with strobe.open(workshop.trace) as trace:
        assert abs(len(trace.steps()) - 40) <= 1


def test_pages_are_steps_and_not_their_rows(workshop: Workshop) -> None:
    """A page takes longer than the one before, and the last one is not full; rows take next to nothing."""
    code = """
import time
def letter(row): return str(row)
def read(number):
    time.sleep(0.004 + 0.0001 * number)
    return [(number, row) for row in range(250 if number < 119 else 150)]
def pages():
    number = 0
    while True:
        rows = read(number)
        yield rows
        if number == 119:
            return
        number += 1
def remind():
    for number, rows in enumerate(pages(), 1):
        for row in rows:
            letter(row)
remind()
"""
    workshop.write("program.py", code)
    assert workshop.recorded("program.py").returncode == 0
    with strobe.open(workshop.trace) as trace:
        assert abs(len(trace.steps()) - 120) <= 1


def test_why_a_level_was_taken_is_not_told_of_other_iterations(workshop: Workshop) -> None:
    """What is done in every fourth iteration holds four of them; the source tells that each of these is a step."""
    code = """
import time
def load(n): time.sleep(0.0003)
def solve(n):
    for _ in range(6): time.sleep(0.0003)
def check(n): time.sleep(0.02)
def main():
    for n in range(200):
        solve(load(n))
        if n % 4 == 3: check(n)
main()
"""
    workshop.write("program.py", code)
    assert workshop.recorded("program.py").returncode == 0
    with strobe.open(workshop.trace) as trace:
        steps = trace.steps()
        assert len(steps) == 200
        assert "equal iterations" not in steps.about


def test_few_rounds_of_a_long_loop_are_no_steps(workshop: Workshop) -> None:
    """Each round begins with work that takes most of the time, as where it compiles something."""
    code = """
import time
def trace(n): pass
def compiled(n):
    time.sleep(0.8)
    for k in range(40): trace(k)
def draw(): time.sleep(0.0005 + 0.00001 * (time.monotonic_ns() % 40))
def main():
    for number in range(4):
        compiled(number)
        for _ in range(60):
            draw()
main()
"""
    workshop.write("program.py", code)
    assert workshop.recorded("program.py").returncode == 0
    with strobe.open(workshop.trace) as trace:
        assert len(trace.steps()) == 240


def test_what_a_loop_calls_by_another_name_is_not_called_back(workshop: Workshop) -> None:
    """A loop of the program's own hands each event to one of two functions; every third goes to the rare one."""
    code = """
import time
def tick(): time.sleep(0.005)
def trade(): time.sleep(0.005)
def main():
    handlers = [tick, tick, trade]
    for n in range(300):
        handle = handlers[n % 3]
        handle()
main()
"""
    workshop.write("program.py", code)
    assert workshop.recorded("program.py").returncode == 0
    with strobe.open(workshop.trace) as trace:
        assert "calls it back" not in trace.steps().about


@pytest.mark.every_python
def test_a_function_that_is_no_longer_recorded_hides_no_step(workshop: Workshop) -> None:
    """It is called 5000 times in each of the first steps of 200, and then left out."""
    code = """
def tiny(): pass
def solve():
    for n in range(5000): tiny()
def report(): pass
def main():
    for step in range(200):
        solve()
        report()
main()
"""
    workshop.write("program.py", code)
    assert workshop.recorded("--throttle", "50000:1s", "program.py").returncode == 0
    trace = strobe.open(workshop.trace)
    assert any("tiny" in what for what in trace.quality.column("what"))
    assert len(trace.steps()) == 200
    # A busy machine may change its pace at another moment.
    faster = [each for each in findings(trace) if each.rule == "drift" and " less: " in each.what]
    assert not any(finding.evidence[0]["text"] in {f"step {number}" for number in range(25)} for finding in faster)


LIBRARY_CALLS = """
import sys

def judge(value):
    return sum(range(value % 90 + 60))

def files(count):
    for number in range(count):
        yield [number + row for row in range(1000)]

def main():
    kept = 0
    for rows in files(40):
        kept += sum(map(judge, rows))
    print(kept, file=sys.stderr)

main()
"""


@pytest.mark.every_python
def test_what_a_library_calls_the_function_for_is_the_step(workshop: Workshop) -> None:
    """The source shows a loop over files; 1000 calls for each of them come from `map`, which has none."""
    workshop.write("program.py", LIBRARY_CALLS)
    assert workshop.recorded("program.py").returncode == 0
    with strobe.open(workshop.trace) as trace:
        assert len(trace.steps()) == 40


@pytest.mark.parametrize(("work", "steps"), [("pass", 60), ("time.sleep(0.008)", 60 * 5)])
@pytest.mark.parametrize("rows", ["rows", "parsed(rows)"])
def test_short_rows_of_an_item_are_no_steps(workshop: Workshop, rows: str, work: str, steps: int) -> None:
    """Texts of 5 rows; nothing is called but for each row, which is a step where it takes more than 5 ms."""
    code = f"""
import time
def handle(row): {work}
def parsed(rows):
    for row in rows:
        yield row.strip()
def main():
    for number in range(60):
        rows = (f"{{number}};" * 5).split(";")[:5]
        time.sleep(0.02)
        for row in {rows}:
            handle(row)
main()
"""
    workshop.write("program.py", code)
    assert workshop.recorded("program.py").returncode == 0
    with strobe.open(workshop.trace) as trace:
        found = trace.steps()
        assert abs(len(found) - steps) <= 1
        assert ("which goes through 5 items" in found.about) == (steps == 60)


@pytest.mark.every_python
@pytest.mark.parametrize(
    "forces",
    [
        "def forces(): time.sleep(0.004)",
        "def insert(n):\n    if n: insert(n - 1)\ndef pull(n):\n    if n: pull(n - 1)\nstars = list(range(200))\n"
        "def forces():\n    max(abs(n) for n in stars)\n"
        "    for n in stars: insert(n % 5)\n    for n in stars: pull(n % 4)",
    ],
    ids=["alone", "of_others"],
)
def test_a_generator_that_is_resumed_for_each_step_begins_it(workshop: Workshop, forces: str) -> None:
    """The same two functions are called before the loop as well, one of them by another function."""
    code = f"""
import json, time
resumed = []
{forces}
def energy(): time.sleep(0.003)
def evolve():
    forces()
    for step in range(120):
        resumed.append(time.monotonic_ns())
        forces()
        yield energy()
def main():
    energy()
    for value in evolve():
        pass
main()
json.dump(resumed, open("resumed.json", "w"))
"""
    workshop.write("program.py", code)
    assert workshop.recorded("program.py").returncode == 0
    with strobe.open(workshop.trace) as trace:
        steps = trace.steps()
        starts, about = [begin + trace.zero_ns for begin in steps.column("start_ns")], steps.about
    resumed = json.loads((workshop.folder / "resumed.json").read_text())
    assert len(starts) == 120
    assert "evolve is resumed for each" in about
    assert all(a < b < a + 3e6 for a, b in zip(starts[1:], resumed[1:], strict=True))


@pytest.mark.every_python
def test_a_coroutine_goes_through_several_items_each_time_it_is_resumed(workshop: Workshop) -> None:
    """A packet is a step, not what one waking up of the hub finds in its queue."""
    code = """
import asyncio, time
def check(packet): time.sleep(0.001)
async def buoy(queue):
    for n in range(100):
        await queue.put(n)
        await asyncio.sleep(0)
async def packets(queue):
    while True:
        yield await queue.get()
async def listen(queue):
    received = 0
    async for packet in packets(queue):
        check(packet)
        received += 1
        if received == 500:
            return
async def main():
    queue = asyncio.Queue(maxsize=8)
    async with asyncio.TaskGroup() as group:
        for n in range(5):
            group.create_task(buoy(queue))
        group.create_task(listen(queue))
asyncio.run(main())
"""
    workshop.write("program.py", code)
    assert workshop.recorded("program.py").returncode == 0
    with strobe.open(workshop.trace) as trace:
        assert len(trace.steps()) == 500


def test_items_of_an_expression_are_no_steps_of_what_is_done_at_times(workshop: Workshop) -> None:
    code = """
import time
def filtered(): time.sleep(0.001)
def orthonormalise(vectors):
    for i, vector in enumerate(vectors):
        for other in vectors[:i]:
            reduced(vector * other)
def reduced(value): inner(value)
def inner(value): pass
def rayleigh():
    filtered()
    reduced(2)
    return [0.5, 0.25, 0.125, 0.1, 0.01]
def main():
    for iteration in range(150):
        filtered()
        orthonormalise(list(range(28)))
        if iteration % 25 == 24:
            print(" ".join(f"{value:.3f}" for value in rayleigh()))
main()
"""
    workshop.write("program.py", code)
    assert workshop.recorded("program.py").returncode == 0
    with strobe.open(workshop.trace) as trace:
        assert len(trace.steps()) == 150


@pytest.mark.parametrize("blend", ["blend(1)", "list(map(blend, [1]))"])
def test_what_is_done_at_times_is_no_step(workshop: Workshop, blend: str) -> None:
    """Updates of three tasks each; every 4th validates, which does the same and takes half of the time."""
    code = f"""
import time
def draw(): time.sleep(0.002)
def adapt(): time.sleep(0.004)
def blend(n): time.sleep(0.001)
def validate():
    for _ in range(5):
        draw()
        adapt()
def main():
    for update in range(1, 61):
        for _ in range(3):
            draw()
            adapt()
        {blend}
        if update % 4 == 0:
            validate()
main()
"""
    workshop.write("program.py", code)
    assert workshop.recorded("program.py").returncode == 0
    with strobe.open(workshop.trace) as trace:
        assert len(trace.steps()) == 60


def test_what_a_condition_allows_in_each_iteration_is_a_step(workshop: Workshop) -> None:
    """As rank 0 does under `if rank == 0`; what a library does twice beside it is no step."""
    code = """
import time
ROOT = True
def choose(): time.sleep(0.002)
def member(): time.sleep(0.003)
def blend(n): time.sleep(0.001)
def main():
    for step in range(60):
        if ROOT:
            choose()
        member()
        list(map(blend, [1, 2]))
main()
"""
    workshop.write("program.py", code)
    assert workshop.recorded("program.py").returncode == 0
    with strobe.open(workshop.trace) as trace:
        assert len(trace.steps()) == 60
