"""Soft particles in a box, velocity Verlet; the list of close pairs is made anew every 10 steps, energies every 25."""

import os
import time

import numpy as np


def pairs_within(x, reach):
    i, j = np.triu_indices(len(x), 1)
    close = ((x[i] - x[j]) ** 2).sum(axis=1) < reach**2
    return i[close], j[close]


def forces(x, pairs):
    i, j = pairs
    d = x[i] - x[j]
    r = np.sqrt((d**2).sum(axis=1)) + 1e-9
    push = np.maximum(1.0 - r, 0)[:, None] * d / r[:, None]
    f = np.zeros_like(x)
    np.add.at(f, i, push)
    np.add.at(f, j, -push)
    return f


def bounce(x, v, box):
    out = (x < 0) | (x > box)
    v[out] *= -1
    return np.clip(x, 0, box), v


def kinetic(v):
    return 0.5 * (v**2).sum()


def main():
    rng = np.random.default_rng(1)
    box, dt = 12.0, 0.01
    x, v = rng.random((180, 2)) * box, rng.normal(0, 1, (180, 2))
    pairs = pairs_within(x, 1.5)
    f, begins = forces(x, pairs), []
    for step in range(300):
        begins.append(time.monotonic_ns())
        v += 0.5 * dt * f
        x, v = bounce(x + dt * v, v, box)
        if step % 10 == 0:
            pairs = pairs_within(x, 1.5)
        f = forces(x, pairs)
        v += 0.5 * dt * f
        if step % 25 == 24:
            print(f"step {step + 1}: {kinetic(v):.3f}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"step {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
