"""Explicit heat equation on a grid with NumPy; every 100th step prints the mean temperature.

Healthy, compute-bound in NumPy. Truth: 600 time steps.
"""

from time import monotonic_ns

import numpy as np
from truth import tile, write

u = np.zeros((600, 600))
u[200:400, 200:400] = 1.0
cuts = [monotonic_ns()]
for n in range(600):
    lap = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
    u[1:-1, 1:-1] += 0.2 * lap
    if n % 100 == 99:
        print(n, u.mean())
    cuts.append(monotonic_ns())
write(tile(cuts, "time step"), unit="time step", limiting="operators")
