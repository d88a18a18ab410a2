"""Flow through a channel by the lattice Boltzmann method, on NumPy; the mean speed is printed every 15 steps."""

import os
import time

import numpy as np

DIRECTIONS = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
WEIGHTS = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
OPPOSITE = [0, 3, 4, 1, 2, 7, 8, 5, 6]


def equilibrium(density, ux, uy):
    speed2 = ux**2 + uy**2
    along = np.array([3 * (dx * ux + dy * uy) for dx, dy in DIRECTIONS])
    return WEIGHTS[:, None, None] * density * (1 + along + along**2 / 2 - 1.5 * speed2)


def stream(f):
    for k, (dx, dy) in enumerate(DIRECTIONS):
        f[k] = np.roll(np.roll(f[k], dx, axis=1), dy, axis=0)


def bounce(f, wall):
    f[:, wall] = f[OPPOSITE][:, wall]


def moments(f):
    density = f.sum(axis=0)
    ux = sum(f[k] * d[0] for k, d in enumerate(DIRECTIONS)) / density + 1e-4
    uy = sum(f[k] * d[1] for k, d in enumerate(DIRECTIONS)) / density
    return density, ux, uy


def run(steps):
    begins = []
    f = equilibrium(np.ones((24, 48)), np.zeros((24, 48)), np.zeros((24, 48)))
    wall = np.zeros((24, 48), dtype=bool)
    wall[0] = wall[-1] = True
    for step in range(steps):
        begins.append(time.monotonic_ns())
        stream(f)
        bounce(f, wall)
        density, ux, uy = moments(f)
        f += 0.6 * (equilibrium(density, ux, uy) - f)
        if step % 15 == 14:
            print(step, ux[~wall].mean())
    return begins


begins = run(180)
with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.writelines(f"step {ns}\n" for ns in begins)
