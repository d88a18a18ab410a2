"""What a program can say itself: regions, counters, marks, steps; two threads, a child process, an exception."""

import subprocess
import sys
import threading
import time

import strobe


def work(number):
    with strobe.region("load"):
        data = bytearray(200_000 + 1000 * number)
        time.sleep(0.001)
    with strobe.region(f"phase-{number % 2}"):
        total = sum(data)
    strobe.counter("loss", 1.0 / (number + 1))
    return total


def fails():
    raise ValueError("expected")


def background():
    for number in range(12):
        time.sleep(0.003)
        strobe.mark(f"tick {number % 3}")


thread = threading.Thread(target=background, name="ticker")
thread.start()
for number in range(30):
    strobe.step()
    work(number)
    try:  # noqa: SIM105, an exception that leaves a function is recorded
        fails()
    except ValueError:
        pass
thread.join()
child = "def child(n):\n    return n * n\nfor n in range(20): child(n)\n"
subprocess.run([sys.executable, "-c", child], check=True)
time.sleep(0.5)  # metrics are read every 200 ms
