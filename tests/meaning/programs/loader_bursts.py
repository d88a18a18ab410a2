"""Batches come from a generator whose every 10th file is on a slow mount (120 ms).

Truth: 80 steps; every 10th stands out; the gain is the measured wait. Data is the limit, as computing is small.
"""

import time

import numpy as np
from truth import problem, tile, write


def read_batches(n):
    rng = np.random.default_rng(0)
    for i in range(n):
        if i % 10 == 9:
            time.sleep(0.12)
        yield rng.normal(size=(128, 128))


model = np.eye(128)
data = 0
cuts = [time.monotonic_ns()]
for batch in read_batches(80):
    data += time.monotonic_ns() - cuts[-1]
    model = 0.9 * model + 0.1 * np.tanh(batch @ model)
    cuts.append(time.monotonic_ns())
write(
    tile(cuts, "step"),
    unit="step",
    limiting="data",
    phases_ns={"data": data},
    outliers=dict.fromkeys(range(9, 80, 10), "its file is on a slow mount"),
    problem=problem("every 10th read is slow", "loader_bursts.py:read_batches", "data", wasted_ns=data),
)
