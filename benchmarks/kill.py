"""Kill programs at random moments, and compare what their traces hold with what they themselves counted.

./dev bench kill [--times 20] [--seed 1] [--crowd | --launcher]

With `--launcher`: `strobe run` of a small program is killed, the program, or both, one after the other, from its first
line on. A program ends with `strobe run`. Every counted call must be there, and no page for windows be left.

With `--crowd`: processes that fork while their threads call, all killed at once. Every thread of every process counts
its calls in memory that survives; spans must nest, and every call that was counted must be there, or be stated as lost.
In half of the runs the threads call without a pause, so that buffers run full.

Without: a training.

A thread of the training calls `tick(n)` all the time and leaves n in a file that survives the kill. The trace must hold
every one of these calls; the last may be missing, because the kill can hit between counting and calling.
"""

import argparse
import mmap
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

from measure import EXAMPLE, ROOT, STROBE, folder, table

import strobe
from tests.record.crowd import faults

TICKING = """
import mmap, os, runpy, struct, sys, threading, time
with open("count.bin", "wb") as file:
    file.write(struct.pack("<qq", 0, os.getpid()))
count = memoryview(mmap.mmap(os.open("count.bin", os.O_RDWR), 16)).cast("q")
def tick(n):
    count[0] = n  # one store, unlike struct.pack_into, which clears the bytes first
def run():
    n = 0
    while True:
        n += 1
        tick(n)
        time.sleep(0.0002)
threading.Thread(target=run, daemon=True).start()
sys.argv = [{example!r}, "--steps", "100000", "--seed", "1"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def kill_once(place: Path, number: int, delay_s: float) -> dict[str, object]:
    """Start the training, kill it after a while, and read what is left."""
    count_file = place / "count.bin"
    count_file.unlink(missing_ok=True)
    command = [STROBE, "run", "--quiet", "-o", f"{number}.strobe", "-c", TICKING.format(example=str(EXAMPLE))]
    process = subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not count_file.exists() or int.from_bytes(count_file.read_bytes()[:8], "little") == 0:
        time.sleep(0.01)
    time.sleep(delay_s)
    killed_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    os.kill(int.from_bytes(count_file.read_bytes()[8:], "little"), signal.SIGKILL)
    code = process.wait(timeout=120)
    counted = int.from_bytes(count_file.read_bytes()[:8], "little")
    trace = strobe.open(place / f"{number}.strobe")
    ticks = trace.sql("select count(*) as n from spans where name = 'tick'").to_pylist()[0]
    last = trace.sql("select max(start_ns + duration_ns) as ns from spans where complete").to_pylist()[0]
    main = trace.sql("select end_state from processes where main").to_pylist()[0]
    return {
        "after s": f"{delay_s:.2f}",
        "ticks counted": counted,
        "ticks in the trace": ticks["n"],
        "last span before the kill, ms": f"{(killed_ns - trace.job.zero_ns - last['ns']) / 1e6:.2f}",
        "end": main["end_state"],
        "exit": code,
        "sound": counted - 1 <= ticks["n"] <= counted and main["end_state"] == "lost" and code == -signal.SIGKILL,
    }


def kill_crowd(place: Path, number: int, moments: random.Random) -> dict[str, object]:
    """Start a crowd of processes and threads, kill all of it after a while, and compare."""
    processes, threads = moments.choice([(2, 8), (4, 4), (7, 2)])
    delay_s, pause_s = moments.uniform(0.0, 2.0), 0.001 * (number % 2)
    words = [str(ROOT / "tests/record/crowd.py"), f"{number}.counts", str(processes), str(threads), str(pause_s)]
    options = ["--quiet", "--keep", "all", "--throttle", "off", "-o", f"{number}.strobe"]
    process = subprocess.Popen([STROBE, "run", *options, *words], cwd=place, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    group = int(process.stdout.readline().split()[1])
    time.sleep(delay_s)
    os.killpg(group, signal.SIGKILL)
    code = process.wait(timeout=600)
    wrong, figures = faults(place / f"{number}.strobe", place / f"{number}.counts")
    for sentence in wrong:
        print(f"run {number}: {sentence}", flush=True)
    shutil.rmtree(place / f"{number}.strobe")
    facts = {"after s": f"{delay_s:.2f}", "pause": "yes" if pause_s else "no", **figures}
    return {**facts, "sound": not wrong and code == -signal.SIGKILL}


SMALL = """
import mmap, os, sys, time
file = os.open("small.bin", os.O_RDWR)
count = memoryview(mmap.mmap(file, 24)).cast("q")
count[1] = os.getpid()
def tick(n):
    count[0] = n
until = time.monotonic() + 1.2
n = 0
while time.monotonic() < until:
    n += 1
    tick(n)
    time.sleep(0.0002)
count[2] = 1
"""


def kill_launcher(place: Path, number: int, moments: random.Random) -> dict[str, object]:
    """Start a small program, kill it, `strobe run`, or both, and compare what is left with its own count."""
    whom = ("launcher", "both", "program")[number % 3]
    (place / "small.bin").write_bytes(bytes(24))
    command = [STROBE, "run", "--quiet", "--keep", "all", "--throttle", "off", "-o", f"{number}.strobe", "-c", SMALL]
    launcher = subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    counted = memoryview(mmap.mmap(os.open(place / "small.bin", os.O_RDWR), 24)).cast("q")
    while not counted[1]:
        time.sleep(0.001)
    pid, delay_s = counted[1], moments.choice([moments.uniform(0.0, 0.1), moments.uniform(0.1, 1.1)])
    time.sleep(delay_s)
    if whom != "program":
        launcher.kill()
    if whom != "launcher":
        os.kill(pid, signal.SIGKILL)
    code = launcher.wait(timeout=120)
    while Path(f"/proc/{pid}").exists() and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    folder_ = place / f"{number}.strobe"
    with strobe.open(folder_) as trace:
        ticks = trace.sql("select count(*) as n from spans where name = 'tick'").to_pylist()[0]["n"]
        process = trace.processes.to_pylist()[0]
        lost = dict(trace.ask("info").rows())["lost"]
        ended = trace.info.ended
    left = sorted(each.name for each in folder_.glob("window-*"))
    whole = counted[0] - 1 <= ticks <= counted[0] and lost == "nothing"
    shutil.rmtree(folder_)
    return {
        "killed": whom,
        "after s": f"{delay_s:.3f}",
        "calls counted": counted[0],
        "calls in the trace": ticks,
        "end": ended,
        "exit": code,
        "left": ", ".join(left),
        "sound": whole and not counted[2] and process["end_state"] == "lost" and not left and code == -signal.SIGKILL,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--crowd", action="store_true")
    parser.add_argument("--launcher", action="store_true")
    options = parser.parse_args()
    moments = random.Random(options.seed)
    with folder() as place:
        if options.crowd:
            rows = [kill_crowd(place, number, moments) for number in range(options.times)]
        elif options.launcher:
            rows = [kill_launcher(place, number, moments) for number in range(options.times)]
        else:
            rows = [kill_once(place, number, moments.uniform(0.0, 6.0)) for number in range(options.times)]
    print(f"\n## Killed at {options.times} random moments\n")
    print(table(rows))
    sound = sum(bool(row["sound"]) for row in rows)
    print(f"\n{sound} of {options.times} traces are whole")
    raise SystemExit(sound != options.times)


if __name__ == "__main__":
    main()
