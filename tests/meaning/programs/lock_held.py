"""A statistics thread holds the lock of a shared buffer for 20 ms at a time; each training step needs the same lock.

Truth: 200 steps, limited by the lock; the gain is the measured wait for it.
"""

import threading
import time

import numpy as np
from truth import problem, tile, write

lock, stop = threading.Lock(), threading.Event()


def flush_statistics():
    while not stop.is_set():
        with lock:
            time.sleep(0.02)
        time.sleep(0.001)


rng = np.random.default_rng(0)
weights = rng.normal(size=(200, 200))
thread = threading.Thread(target=flush_statistics, daemon=True)
thread.start()
waited = 0
cuts = [time.monotonic_ns()]
for _ in range(200):
    weights = np.tanh(weights @ weights.T / 200)
    t = time.monotonic_ns()
    with lock:
        waited += time.monotonic_ns() - t
        total = weights.sum()
    cuts.append(time.monotonic_ns())
stop.set()
write(
    tile(cuts, "iteration"),
    unit="iteration",
    limiting="lock",
    phases_ns={"lock": waited},
    problem=problem("a lock is held while waiting", "lock_held.py:flush_statistics", "lock", wasted_ns=waited),
)
