"""A copy of the state is written and synced to disk after every iteration, for fear of losing work.

Truth: 60 iterations, limited by input and output (20 ms of a slow disk each); the gain is the measured time of `save`.
"""

import os
import time

import numpy as np
from truth import problem, tile, write


def save(state):
    with open("state.bin", "wb") as f:
        f.write(state.tobytes())
        f.flush()
        os.fsync(f.fileno())
    time.sleep(0.02)


state = np.random.default_rng(0).normal(size=(200, 200))
saving = 0
cuts = [time.monotonic_ns()]
for _ in range(60):
    state = np.tanh(state @ state.T / 200)
    a = time.monotonic_ns()
    save(state)
    saving += time.monotonic_ns() - a
    cuts.append(time.monotonic_ns())
write(
    tile(cuts, "iteration"),
    unit="iteration",
    limiting="io",
    phases_ns={"checkpoint": saving},
    problem=problem("a checkpoint after every iteration", "checkpoint_every_step.py:save", "io", wasted_ns=saving),
)
