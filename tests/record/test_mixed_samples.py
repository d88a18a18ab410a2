"""C functions below Python ones in samples, against an extension module that measures itself."""

import json
import subprocess
import sysconfig
from collections import Counter
from pathlib import Path

import pytest

import strobe
from strobe.sums.samples import RUNNING, sample_sums
from tests.record.workshop import Workshop

KITCHEN = Path(__file__).parent / "mixed/kitchen.c"
MS = 1_000_000
PROGRAM = """
    import json, sys, threading, time
    import kitchen

    def loaf(knead, heat):
        return kitchen.bake(knead, heat)

    def rest(ns):
        begin, x = time.thread_time_ns(), 0
        while time.thread_time_ns() - begin < ns:
            for i in range(10000):
                x = (x * 3 + i) % 1000003
        return time.thread_time_ns() - begin

    known = {"knead": 0, "heat": 0, "rest": 0}
    for _ in range(20):
        kneaded, heated = loaf(30_000_000, 10_000_000)
        known["knead"] += kneaded
        known["heat"] += heated
        known["rest"] += rest(10_000_000)
    print(json.dumps(known))
"""


@pytest.fixture
def kitchen(workshop: Workshop) -> Workshop:
    """A folder with the extension module in it."""
    include, suffix = sysconfig.get_paths()["include"], sysconfig.get_config_var("EXT_SUFFIX")
    command = ["gcc", "-O2", "-g", "-shared", "-fPIC", f"-I{include}", str(KITCHEN), "-o"]
    subprocess.run([*command, str(workshop.folder / f"kitchen{suffix}")], check=True)
    return workshop


def ran_in(trace: strobe.Trace) -> tuple[Counter[str], Counter[tuple[str, ...]]]:
    """Time that ran in each function with what it calls, and by the chain of known functions."""
    total, chains = Counter[str](), Counter[tuple[str, ...]]()
    for each in sample_sums(trace):
        names = tuple(frame.partition(" (")[0] for frame in each.stack)
        if each.state in RUNNING:
            total.update(dict.fromkeys(names, each.ran_ns))
            chains[tuple(name for name in names if name in ("loaf", "bake", "knead", "heat"))] += each.ran_ns
    return total, chains


@pytest.mark.every_python
def test_functions_of_an_extension_module_lie_below_the_python_function_that_calls_them(kitchen: Workshop) -> None:
    done = kitchen.recorded("--trace=+native", "--sample", "1000", str(kitchen.write("baker.py", PROGRAM)))
    assert done.returncode == 0, done.stderr
    known, trace = json.loads(done.stdout), strobe.open(done.trace)
    total, chains = ran_in(trace)
    whole = sum(known.values())
    for name in ("knead", "heat", "rest"):
        assert total[name] / whole == pytest.approx(known[name] / whole, abs=0.05), name
    assert chains["loaf", "bake", "knead"] > 0.95 * total["knead"]
    rows = {row["name"]: row for row in trace.samples().to_pylist()}
    assert Path(rows["knead"]["file"]).name == "kitchen.c"
    assert rows["knead"]["line"] == 1 + KITCHEN.read_text().splitlines().index(
        "__attribute__((noinline, noclone)) static long long knead(long long ns) {"
    )
    lines = {row["name"]: row for row in trace.samples(by="line").to_pylist()}
    assert lines["loaf"]["line"] == 6
    assert lines["loaf"]["native_ns"] == pytest.approx(total["loaf"], rel=0.05)


def test_unless_it_is_asked_for_the_python_function_has_the_time(kitchen: Workshop) -> None:
    done = kitchen.recorded("--sample", "1000", str(kitchen.write("baker.py", PROGRAM)))
    rows = {row["name"]: row for row in strobe.open(done.trace).samples().to_pylist()}
    assert "knead" not in rows
    assert rows["loaf"]["native_ns"] > 0


CAREFUL = """
    import ctypes, os, select, signal, sys, threading, time
    import kitchen

    def bake(ns):
        kitchen.bake(ns, 0)

    libc = ctypes.CDLL(None, use_errno=True)
    print(signal.getsignal(signal.SIGPROF))
    stop, interrupted = threading.Event(), 0
    worker = threading.Thread(target=lambda: [kitchen.bake(1_000_000, 0) for _ in range(300)])
    worker.start()
    while worker.is_alive():  # calls in C that a signal would end early
        begin = time.monotonic()
        if libc.usleep(2000) or time.monotonic() - begin < 0.002 or libc.poll(None, 0, 2):
            interrupted += 1
    print("interrupted", interrupted)
    child = os.fork()
    if not child:
        bake(400_000_000)
        os._exit(7)
    print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    got = []
    signal.signal(signal.SIGPROF, lambda number, frame: got.append(number))
    signal.setitimer(signal.ITIMER_PROF, 0.02, 0)
    while not got:
        kitchen.bake(1_000_000, 0)
    print("own signal came")
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    bake(50_000_000)
    os.kill(os.getpid(), signal.SIGPROF)
    time.sleep(1)
"""


def test_signals_forks_and_calls_of_the_program_stay_as_they_are(kitchen: Workshop) -> None:
    program = str(kitchen.write("careful.py", CAREFUL))
    plain = kitchen.plain(program)
    seen = kitchen.recorded("--trace=+native", "--sample", "1000", program)
    assert plain.visible == seen.visible
    assert seen.stdout.split("\n")[1:4] == ["interrupted 0", "child 7", "own signal came"]
    trace = strobe.open(seen.trace)
    assert len(trace.processes) == 2
    assert all("knead" in str(each) for each in _stacks_by_process(trace).values())


def _stacks_by_process(trace: strobe.Trace) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {0: set(), 1: set()}
    for each in sample_sums(trace):
        found[trace.home(each.location).process] |= set(each.stack)
    return found
