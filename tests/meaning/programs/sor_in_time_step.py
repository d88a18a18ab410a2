"""An implicit time step that iterates over a pressure equation until a fixed number of sweeps is done.

Healthy, compute-bound in NumPy. Truth: 40 time steps; 1200 sweeps are the inner level.
"""

from time import monotonic_ns

import numpy as np
from truth import tile, write


def solve_pressure(p, rhs, sweeps=30):
    for _ in range(sweeps):
        p[1:-1, 1:-1] += 0.9 * ((p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - rhs) / 4 - p[1:-1, 1:-1])
    return p


p = np.zeros((300, 300))
rng = np.random.default_rng(1)
inside = 0
cuts = [monotonic_ns()]
for _ in range(40):
    rhs = rng.normal(size=(298, 298))
    a = monotonic_ns()
    p = solve_pressure(p, rhs)
    inside += monotonic_ns() - a
    cuts.append(monotonic_ns())
write(
    tile(cuts, "time step"),
    unit="time step",
    limiting="operators",
    levels={"sweep": 1200},
    phases_ns={"pressure": inside},
)
