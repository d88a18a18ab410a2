"""A loop that is killed from within, without a chance to end anything."""

import os
import signal
import threading
import time


def inner(n):
    return sum(range(n))


def step(number):
    for _ in range(5):
        inner(3000)
    if number == 260:
        time.sleep(0.3)  # what is in the rings by then is older and younger than the last block
    if number == 300:
        os.kill(os.getpid(), signal.SIGKILL)


def background():
    while True:
        inner(100)
        time.sleep(0.002)


threading.Thread(target=background, daemon=True).start()
for number in range(400):
    step(number)
