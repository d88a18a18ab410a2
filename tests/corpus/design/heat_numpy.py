"""The heat equation, implicit: two tridiagonal solves (Thomas) per time step, a snapshot every 25 steps."""

import os
import time

import numpy as np


def thomas(lower, main, upper, right):
    """Solve a tridiagonal system for all columns at once."""
    n = len(main)
    c, d = np.empty(n), np.empty_like(right)
    c[0], d[0] = upper / main[0], right[0] / main[0]
    for i in range(1, n):
        m = main[i] - lower * c[i - 1]
        c[i] = upper / m
        d[i] = (right[i] - lower * d[i - 1]) / m
    for i in range(n - 2, -1, -1):
        d[i] -= c[i] * d[i + 1]
    return d


def half_step(u, r, main):
    right = u.copy()
    right[:, 1:-1] += 0.5 * r * (u[:, 2:] - 2 * u[:, 1:-1] + u[:, :-2])
    return thomas(-0.5 * r, main, -0.5 * r, right)


def source(u, t):
    u[20:24, 20:24] += 0.01 * np.sin(t)


class Snapshots:
    def __init__(self):
        self.kept = []

    def take(self, step, u):
        self.kept.append((step, u.copy()))


def simulate(steps=150, n=48, r=0.8):
    u = np.zeros((n, n))
    u[n // 3 : n // 2, n // 3 : n // 2] = 1.0
    main = np.full(n, 1 + r)
    snapshots, begins = Snapshots(), []
    for step in range(steps):
        begins.append(time.monotonic_ns())
        u = half_step(u, r, main)
        u = half_step(u.T, r, main).T
        source(u, step * 0.1)
        if step % 25 == 0:
            snapshots.take(step, u)
    return u, begins


if __name__ == "__main__":
    field, begins = simulate()
    print(f"heat {field.sum():.3f}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"step {ns}\n" for ns in begins)
