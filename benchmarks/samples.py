"""What `strobe run --sample HZ` costs: CPU time of a process with 1, 4 and 16 threads, with and without, in turn.

./dev bench samples [--rate 1000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

# One thread works for a fixed CPU time; the others sleep, or take turns. The added CPU time is measured.
PROGRAM = """
import json, resource, sys, threading, time

def deep(n, work):
    return deep(n - 1, work) if n else work()

def idle(done):
    done.wait()

def work():
    x = 0
    for i in range(40_000_000):
        x = (x * 3 + i) % 1000003

done = threading.Event()
others = [threading.Thread(target=idle, args=(done,)) for _ in range(int(sys.argv[1]) - 1)]
for thread in others:
    thread.start()
begin, wall = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
deep(20, work)
end, wall = resource.getrusage(resource.RUSAGE_SELF), time.monotonic() - wall
done.set()
for thread in others:
    thread.join()
print(end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime, wall)
"""


def main() -> None:
    """Print one line for each number of threads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", default="1000")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    strobe = str(Path(sys.executable).with_name("strobe"))
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(PROGRAM)
        for threads in ("1", "4", "16"):
            added, share = [], []
            for turn in range(given.rounds):
                out = f"{folder}/{threads}-{turn}"
                runs = []
                for rate in ("0", given.rate):
                    options = ("-q", "-o", f"{out}-{rate}", "--trace", "metrics", "--sample", rate)
                    runs.append(_run(strobe, "run", *options, str(program), threads))
                (without, _), (with_samples, wall) = runs
                added.append(with_samples / without - 1)
                share.append((with_samples - without) / wall)
            rounds = ", ".join(f"{100 * each:.1f}" for each in added)
            print(f"{threads} threads, {given.rate} Hz: {100 * median(added):.2f} % more CPU time (rounds: {rounds}),")
            print(f"  {100 * median(share):.2f} % of a core; load {os.getloadavg()[0]:.0f}")


def _run(*command: str) -> tuple[float, float]:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    cpu, wall = done.stdout.split()
    return float(cpu), float(wall)


if __name__ == "__main__":
    main()
