"""A program that makes 100 000 events a second for an hour: does memory grow, and is anything lost?

./dev bench soak [--minutes 60] [--rate 100000]

The same program runs three times at once: plain, under `strobe run` as everybody gets it, and with `--keep all`. It
counts its own calls in a file. Threads come and go all the time. Memory is read from /proc once a minute: pages of its
own (anonymous), and pages of mapped files (the rings are such a file), beside those of the plain program.
"""

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from measure import STROBE, folder, table

import strobe

PROGRAM = """
import mmap, os, sys, threading, time
import strobe
path, minutes, rate = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
with open(path, "wb") as file:
    file.truncate(4096)
count = memoryview(mmap.mmap(os.open(path, os.O_RDWR), 4096)).cast("q")
STEP_S = 0.02
CALLS = int(rate / 2 * STEP_S)  # a call is two events: enter and leave
def leaf(n):
    return n
def branch(n):
    return leaf(n) + leaf(n + 1)
def step(calls):
    for n in range(calls // 3):
        branch(n)
def short(calls):
    for n in range(calls):
        leaf(n)
    count[2] += calls + 1
def main():
    begin = time.monotonic()
    steps = threads = 0
    while (now := time.monotonic()) < begin + minutes * 60:
        due = int((now - begin) / STEP_S)
        if steps >= due:
            time.sleep(STEP_S / 4)
            continue
        step(CALLS)
        steps += 1
        strobe.step()
        count[1] += 1 + CALLS // 3 * 3
        if steps % 50 == 0:
            threads += 1
            thread = threading.Thread(target=short, args=(100,), name=f"short-{threads % 8}")
            thread.start()
            thread.join()
    count[3] = 1
count[0] = os.getpid()
main()
"""
# Without throttling: what is left out costs nothing, and proves nothing.
WAYS = {"plain": None, "strobe": ("--throttle", "off"), "strobe --keep all": ("--throttle", "off", "--keep", "all")}


@dataclass
class Way:
    """One of the programs while it runs."""

    name: str
    process: "subprocess.Popen[bytes]"
    truth: Path
    trace: Path
    pid: int = 0


def numbers(path: Path) -> list[int]:
    """The program's own counts: pid, calls of the main thread, calls of the short threads, whether it is over."""
    data = path.read_bytes()[:32] if path.exists() else b""
    return [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)] or [0] * 4


def memory(pid: int) -> dict[str, float]:
    """MiB of a process by kind, and its CPU seconds."""
    try:
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
        )
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return {}
    if "RssAnon" not in status:  # it ends just now
        return {}
    sizes = {name: int(status[key].split()[0]) / 1024 for name, key in (("own", "RssAnon"), ("peak", "VmHWM"))}
    mapped = sum(int(status[key].split()[0]) / 1024 for key in ("RssFile", "RssShmem"))
    return {**sizes, "mapped": mapped, "cpu_s": (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")}


def start(name: str, options: tuple[str, ...] | None, place: Path, minutes: float, rate: int) -> Way:
    """Start the program in one of the ways."""
    stem = name.replace(" ", "").replace("--", "-")
    truth, trace = place / f"{stem}.bin", place / f"{stem}.strobe"
    program = place / "soak_program.py"
    program.write_text(PROGRAM)
    words = [str(program), str(truth), str(minutes), str(rate)]
    command = [sys.executable, *words]
    if options is not None:
        command = [STROBE, "run", "--quiet", *options, "-o", str(trace), *words]
    way = Way(name, subprocess.Popen(command, cwd=place), truth, trace)
    while not (pid := numbers(truth)[0]):
        if way.process.poll() is not None:
            raise SystemExit(f"{name} ended with {way.process.returncode}")
        time.sleep(0.05)
    way.pid = pid
    return way


def size(trace: Path) -> int:
    """Bytes of the block files of a trace."""
    return sum(path.stat().st_size for path in trace.glob("*.blocks"))


def per_minute(readings: list[tuple[float, float]]) -> float:
    """Slope of the least squares line through (minute, MiB)."""
    mean_x = sum(x for x, _ in readings) / len(readings)
    mean_y = sum(y for _, y in readings) / len(readings)
    spread = sum((x - mean_x) ** 2 for x, _ in readings)
    return sum((x - mean_x) * (y - mean_y) for x, y in readings) / spread if spread else 0.0


def calls_in(trace: Path) -> tuple[int, int]:
    """Calls in a trace (in detail and in its statistics), and the records that it counts as lost."""
    opened = strobe.open(trace)
    names = "('leaf', 'branch', 'step', 'short')"
    detail = opened.sql(f"select count(*) as n from spans where name in {names}").to_pylist()[0]["n"]
    folded = opened.sql(f"select coalesce(sum(count), 0)::bigint as n from statistics where name in {names}")
    calls = int(detail) + int(folded.to_pylist()[0]["n"])
    lost = opened.sql("select coalesce(sum(value), 0)::bigint as n from quality where what = 'records_lost'")
    return calls, int(lost.to_pylist()[0]["n"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=int, default=100_000, help="events a second; a call is two")
    parser.add_argument("--every", type=float, default=60, metavar="SECONDS", help="between two readings")
    options = parser.parse_args()
    with folder() as place:
        ways = [start(name, words, place, options.minutes, options.rate) for name, words in WAYS.items()]
        begin = time.monotonic()
        readings: list[dict[str, dict[str, float]]] = []
        minutes: list[float] = []
        while not all(numbers(way.truth)[3] for way in ways) and any(way.process.poll() is None for way in ways):
            time.sleep(min(options.every, 1.0) if not minutes else options.every)
            minute = (time.monotonic() - begin) / 60
            now = {way.name: memory(way.pid) for way in ways}
            if not all(now.values()):
                break
            minutes.append(minute)
            readings.append(now)
            shown = "; ".join(
                f"{way.name}: own {now[way.name]['own']:.1f}, mapped {now[way.name]['mapped']:.1f} MiB, "
                f"{size(way.trace) / 1e6:.1f} MB"
                for way in ways
            )
            print(f"minute {minute:5.1f}  load {os.getloadavg()[0]:4.1f}  {shown}", flush=True)
        codes = {way.name: way.process.wait(timeout=1800) for way in ways}
        rows = []
        for way in ways:
            own = [(minute, reading[way.name]["own"]) for minute, reading in zip(minutes, readings, strict=True)]
            settled = own[len(own) // 6 :]
            first = readings[len(own) // 6][way.name]
            last = readings[-1][way.name]
            _, main_calls, short_calls, _ = numbers(way.truth)
            row: dict[str, object] = {
                "program": way.name,
                "exit": codes[way.name],
                "own memory after a sixth, MiB": f"{first['own']:.1f}",
                "at the end": f"{last['own']:.1f}",
                "slope, KiB a minute": f"{per_minute(settled) * 1024:.2f}",
                "mapped at the end": f"{last['mapped']:.1f}",
                "peak": f"{last['peak']:.1f}",
                "CPU s": f"{last['cpu_s']:.1f}",
                "calls counted": main_calls + short_calls,
                "events/s": f"{(main_calls + short_calls) * 2 / (minutes[-1] * 60):.0f}",
                "calls in the trace": "",
                "records lost": "",
                "MB": "",
            }
            if way.trace.exists():
                row["calls in the trace"], row["records lost"] = calls_in(way.trace)
                row["MB"] = f"{size(way.trace) / 1e6:.1f}"
            rows.append(row)
        print(f"\n## {minutes[-1]:.0f} minutes at {options.rate} events a second\n")
        print(table(rows))


if __name__ == "__main__":
    main()
