"""CPU time by kind, of programs that know their own: by getrusage, schedstat, and psutil's reading of the machine."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import strobe
from tests.record.workshop import Workshop

MIX = """
import json, os, resource, time
import psutil
import strobe

zero, buffer = os.open("/dev/zero", os.O_RDONLY), bytearray(1 << 20)

def spin(until):
    while time.monotonic() < until:
        sum(range(20000))

def read_zeros(until):
    while time.monotonic() < until:
        for _ in range(50):
            os.readv(zero, [buffer])

def sleep(until):
    time.sleep(max(0, until - time.monotonic()))

def usage():
    used = resource.getrusage(resource.RUSAGE_THREAD)
    waited = int(open("/proc/thread-self/schedstat").read().split()[1]) / 1e9
    return {"user": used.ru_utime, "system": used.ru_stime, "waiting": waited, "wall": time.monotonic()}

truth = {each.__name__: dict.fromkeys(usage(), 0) for each in (spin, read_zeros, sleep)}
begun, machine = usage(), psutil.cpu_times()
for step in range(7):
    strobe.step()
    before, what = usage(), (spin, read_zeros, sleep)[step % 3]
    what(time.monotonic() + 0.85)
    after = usage()
    for kind in after:
        truth[what.__name__][kind] += after[kind] - before[kind]
truth["run"] = {kind: each - begun[kind] for kind, each in usage().items()}
truth["machine"] = [b - a for a, b in zip(machine, psutil.cpu_times())]
truth["machine"] = dict(zip(machine._fields, truth["machine"]))
print(json.dumps(truth))
"""

CROWD = """
import hashlib, json, os, resource, threading, time

core = {min(os.sched_getaffinity(0))}
os.sched_setaffinity(0, core)
data, truth = bytes(1 << 22), []

def spin():
    until = time.monotonic() + 2.5
    while time.monotonic() < until:
        hashlib.sha256(data)                      # without the GIL
    used = resource.getrusage(resource.RUSAGE_THREAD)
    ran, waited, _ = map(int, open("/proc/thread-self/schedstat").read().split())
    truth.append({"cpu": used.ru_utime + used.ru_stime, "waiting": waited / 1e9})
    read.wait()                                   # what a thread did since the last reading is lost with it

read = threading.Event()
threads = [threading.Thread(target=spin) for _ in range(3)]
[each.start() for each in threads]
while len(truth) < 3:
    time.sleep(0.1)
time.sleep(1)
read.set()
[each.join() for each in threads]
print(json.dumps(truth))
"""


def recorded(folder: Path, code: str, *options: str) -> tuple[Any, Path]:
    """What the program printed, and its trace."""
    workshop = Workshop(folder)
    workshop.write("program.py", code)
    done = workshop.recorded(*options, "program.py")
    assert (done.stderr, done.returncode) == ("", 0)
    return json.loads(done.stdout), workshop.trace


@pytest.fixture(scope="module")
def mix(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A program whose steps compute, read from the kernel, and sleep in turn, recorded once."""
    return recorded(tmp_path_factory.mktemp("mix"), MIX)


def rows(trace: Path, by: str) -> list[dict[str, Any]]:
    """The answer to `strobe cpu`."""
    with strobe.open(trace) as opened:
        return opened.cpu(by=by).to_arrow().to_pylist()


def test_steps_of_each_class_have_the_kinds_of_time_that_the_program_counts(mix: tuple[Any, Path]) -> None:
    truth, trace = mix
    of_thread = {row["class"].removeprefix("step+"): row for row in rows(trace, "class") if row["what"] == "thread"}
    assert set(of_thread) >= {"spin", "read_zeros", "sleep"}
    for name in ("spin", "read_zeros"):
        row = of_thread[name]
        expected = truth[name]["system"] / (truth[name]["user"] + truth[name]["system"])
        counted = row["user_ns"] + row["system_ns"]
        # Two ticks for each step of which some readings count.
        assert row["system_ns"] / counted == pytest.approx(expected, abs=0.06 + 60e6 / counted), name
        assert 0 < row["covered"] <= 1
    assert of_thread["sleep"]["user_ns"] + of_thread["sleep"]["system_ns"] < 0.1 * of_thread["sleep"]["duration_ns"]
    assert of_thread["sleep"]["idle_share"] > 0.9


def test_a_thread_and_its_process_have_what_the_program_counts_in_the_run(mix: tuple[Any, Path]) -> None:
    truth, trace = mix
    found = {row["what"]: row for row in rows(trace, "run") if row["name"] != "strobe"}
    # Before the loop there are imports, after it the end.
    for kind in ("user", "system", "waiting"):
        row = found["thread"]
        assert 0.85 * truth["run"][kind] - 0.05 <= row[f"{kind}_ns"] / 1e9 <= truth["run"][kind] + 0.6
    for kind in ("user", "system"):
        assert found["process"][f"{kind}_ns"] >= found["thread"][f"{kind}_ns"] - 30e6
    thread = found["thread"]
    whole = sum(thread[f"{kind}_ns"] or 0 for kind in ("user", "system", "io_wait", "waiting", "idle"))
    assert whole == pytest.approx(thread["duration_ns"], rel=0.02)
    process = found["process"]
    assert process["cores"] <= len(os.sched_getaffinity(0))
    whole = sum(process[f"{kind}_ns"] for kind in ("user", "system", "idle"))
    assert whole == pytest.approx(process["cores"] * process["duration_ns"], rel=0.02)


def test_kinds_of_the_machine_add_up_to_its_cores_and_are_what_psutil_reads(mix: tuple[Any, Path]) -> None:
    truth, trace = mix
    (row,) = (row for row in rows(trace, "run") if row["what"] == "machine")
    kinds = ("user", "system", "io_wait", "stolen", "idle")
    assert row["cores"] == os.cpu_count()
    # Ticks of each core are counted when it has one; a core without work counts its own when it wakes.
    assert sum(row[f"{kind}_ns"] for kind in kinds) == pytest.approx(row["cores"] * row["duration_ns"], rel=0.05)
    machine = truth["machine"]
    expected = {
        "user": machine["user"] + machine["nice"],
        "system": machine["system"] + machine["irq"] + machine["softirq"],
        "io_wait": machine["iowait"],
        "stolen": machine["steal"],
        "idle": machine["idle"],
    }
    for kind in kinds:
        share = expected[kind] / sum(expected.values())
        assert row[f"{kind}_share"] == pytest.approx(share, abs=0.08), kind
    assert row["waiting_ns"] is None


def test_three_threads_on_one_core_wait_for_it_as_long_as_the_kernel_counts(tmp_path: Path) -> None:
    truth, trace = recorded(tmp_path, CROWD)
    found = [row for row in rows(trace, "run") if row["what"] == "thread" and row["name"] != "MainThread"]
    crowd = sorted((row for row in found if row["waiting_ns"] > 5e8), key=lambda row: -row["waiting_ns"])
    assert len(crowd) == 3
    waited, cpu = sum(each["waiting"] for each in truth), sum(each["cpu"] for each in truth)
    assert sum(row["waiting_ns"] for row in crowd) / 1e9 == pytest.approx(waited, rel=0.25)
    assert sum(row["user_ns"] + row["system_ns"] for row in crowd) / 1e9 == pytest.approx(cpu, rel=0.25)
    (process,) = (row for row in rows(trace, "run") if row["what"] == "process")
    with strobe.open(trace) as opened:
        cores = "select value from metrics where metric = 'cores of the process' order by time_ns desc limit 1"
        assert opened.sql(cores).to_arrow().to_pylist() == [{"value": 1}]
    assert process["waiting_ns"] >= 0.9 * sum(row["waiting_ns"] for row in crowd)


def test_without_three_readings_a_step_has_no_figures(mix: tuple[Any, Path]) -> None:
    _, trace = mix
    for row in rows(trace, "step"):
        assert row["readings"] >= 3
    with strobe.open(trace) as opened:
        short = {each["step"] for each in opened.steps().to_arrow().to_pylist() if each["duration_ns"] < 5e8}
    assert short
    assert not short & {row["step"] for row in rows(trace, "step")}
