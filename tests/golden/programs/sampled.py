"""Two threads that samples find in Python, in C, and waiting; a loop with steps that all look alike."""

import threading
import time
import zlib

DATA = bytes(range(256)) * 2000


def compress():
    return len(zlib.compress(DATA, 6))


def count(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


def idle():
    time.sleep(0.004)


def worker():
    for _ in range(25):
        compress()
        idle()


def main():
    thread = threading.Thread(target=worker, name="worker")
    thread.start()
    for _ in range(40):
        count(60_000)
        compress()
        idle()
    thread.join()


main()
