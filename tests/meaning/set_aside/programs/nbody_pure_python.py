"""Gravity of 60 bodies in nested Python loops, as beginners write it.

Truth: 600 time steps, limited by Python; the gain is measured against a NumPy version of the same step, run after the loop.
"""

import random
from time import monotonic_ns

import numpy as np
from truth import problem, tile, write

random.seed(1)
bodies = [[random.random() for _ in range(3)] + [0.0, 0.0, 0.0] for _ in range(60)]


def advance(bodies, dt=1e-4):
    for a in bodies:
        fx = fy = fz = 0.0
        for b in bodies:
            dx, dy, dz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
            r3 = (dx * dx + dy * dy + dz * dz + 0.01) ** -1.5
            fx, fy, fz = fx + dx * r3, fy + dy * r3, fz + dz * r3
        a[3], a[4], a[5] = a[3] + dt * fx, a[4] + dt * fy, a[5] + dt * fz
    for a in bodies:
        a[0], a[1], a[2] = a[0] + dt * a[3], a[1] + dt * a[4], a[2] + dt * a[5]


cuts = [monotonic_ns()]
for _ in range(600):
    advance(bodies)
    cuts.append(monotonic_ns())
x, v = np.array(bodies)[:, :3].copy(), np.zeros((60, 3))
begin = monotonic_ns()
for _ in range(600):
    d = x[None] - x[:, None]
    v += 1e-4 * (d * ((d * d).sum(-1) + 0.01)[..., None] ** -1.5).sum(1)
    x += 1e-4 * v
vectorised = monotonic_ns() - begin
write(
    tile(cuts, "time step"),
    unit="time step",
    limiting="python",
    problem=problem(
        "forces in nested Python loops",
        "nbody_pure_python.py:advance",
        "python",
        wasted_ns=cuts[-1] - cuts[0] - vectorised,
    ),
)
